"""Names of objectives: which models are asked, and how much each counts. Nothing here needs torch.

The weights sum to 1, so that costs of different objectives are of one size.
"""

from __future__ import annotations

import math
from difflib import get_close_matches
from typing import Literal, get_args

from simplexity.errors import UsageError

TermName = Literal["l2r", "r2l", "reverse", "lm"]
Weights = dict[TermName, float]

NAMED: dict[str, Weights] = {
    "forward": {"l2r": 1.0},
    "bidirectional": {"l2r": 0.5, "r2l": 0.5},
    "bilingual": {"l2r": 0.5, "reverse": 0.5},
    "joint": {"l2r": 0.34, "r2l": 0.33, "reverse": 0.33},
}


def usual_objective(reverse: bool, lm: bool) -> str:
    """The objective that is meant when models are named without one.

    >>> usual_objective(reverse=True, lm=False)
    'bilingual'
    """
    match reverse, lm:
        case True, True:
            return "l2r=0.45,reverse=0.45,lm=0.1"
        case True, False:
            return "bilingual"
        case False, True:
            return "l2r=0.9,lm=0.1"
        case _:
            return "forward"


def parse_objective(text: str) -> Weights:
    """The weights behind a name, or behind `l2r=0.5,r2l=0.5`."""
    if "=" in text:
        weights = dict(_part(part) for part in text.split(","))
        if len(weights) < text.count(",") + 1:
            raise UsageError(f"The objective {text!r} names a term twice; name it once.")
        return _checked(weights)
    if text not in NAMED:
        near = get_close_matches(text, NAMED, n=1)
        hint = f"did you mean {near[0]!r}?" if near else f"choose from {', '.join(NAMED)}"
        raise UsageError(
            f"There is no objective {text!r}; {hint}, or give weights such as l2r=0.5,r2l=0.5."
        )
    return NAMED[text]


def _part(text: str) -> tuple[TermName, float]:
    name, _, number = text.partition("=")
    for known in get_args(TermName):
        if name.strip() == known:
            try:
                return known, float(number)
            except ValueError:
                raise UsageError(f"The weight of {known} is {number!r}, not a number.") from None
    known_terms = ", ".join(get_args(TermName))
    raise UsageError(f"There is no term {name.strip()!r}; an objective is made of {known_terms}.")


def _checked(weights: Weights) -> Weights:
    bad = [name for name, weight in weights.items() if not (math.isfinite(weight) and weight > 0)]
    if bad:
        raise UsageError(
            f"The weight of {bad[0]} must be above 0; leave out what should not count."
        )
    total = sum(weights.values())
    if abs(total - 1) > 1e-3:
        scaled = ",".join(f"{name}={weight / total:.4g}" for name, weight in weights.items())
        raise UsageError(f"The weights of an objective sum to 1, not {total:.4g}: try {scaled}.")
    return weights


def parse_weights(text: str) -> dict[str, float]:
    """Weights for reranking: those of an objective, or of any features, above 0 or below.

    Only their proportions matter, so they need not sum to 1.

    >>> parse_weights("F0=1,tokens=-0.2")
    {'F0': 1.0, 'tokens': -0.2}
    """
    if "=" not in text:
        return {str(name): weight for name, weight in parse_objective(text).items()}
    weights: dict[str, float] = {}
    for part in text.split(","):
        name, _, number = (piece.strip() for piece in part.rpartition("="))
        if not name or name in weights:
            problem = f"names {name} twice" if name else f"has a part without a name, {part!r}"
            raise UsageError(f"The objective {text!r} {problem}; write name=weight,name=weight.")
        weights[name] = _number(number, name)
        if weights[name] == 0:
            raise UsageError(f"The weight of {name} is 0; leave out what should not count.")
    return weights


def _number(text: str, name: str) -> float:
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not math.isfinite(number):
        raise UsageError(f"The weight of {name} is {text!r}, not a number.")
    return number
