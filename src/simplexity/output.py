"""Translations as text, Moses n-best lists, or JSON lines."""

from __future__ import annotations

import json
import math
from typing import Literal

from simplexity.decode import Hypothesis
from simplexity.search.nbest import NBestLine, format_line

OutputType = Literal["text", "nbest", "json"]


def lines_of(sentence: int, found: list[Hypothesis], n_best: int, kind: OutputType) -> list[str]:
    """What is written for one source sentence, its best hypotheses first."""
    kept = found[:n_best]
    match kind:
        case "text":
            return [kept[0].text]
        case "nbest":
            return [format_line(nbest_line(sentence, hypothesis)) for hypothesis in kept]
        case "json":
            return [json.dumps(record(sentence, kept), ensure_ascii=False)]


def nbest_line(sentence: int, hypothesis: Hypothesis) -> NBestLine:
    """A hypothesis in an n-best list: log-probabilities by term, then the score."""
    features = {name: -cost for name, cost in hypothesis.terms.items()}
    return NBestLine(sentence, hypothesis.text, features, hypothesis.score)


def record(sentence: int, found: list[Hypothesis]) -> dict[str, object]:
    """One sentence as a JSON object; JSON knows no infinite numbers, so these are null."""
    best = found[0]
    return {
        "sentence_id": sentence,
        "translation": best.text,
        "score": _finite(best.score),
        "translations": [hypothesis.text for hypothesis in found],
        "scores": [_finite(hypothesis.score) for hypothesis in found],
        "terms": {name: _finite(cost) for name, cost in best.terms.items()},
        "continuous_cost": _finite(best.continuous_cost),
        "discrete_cost": _finite(best.discrete_cost),
        "initial_cost": _finite(best.initial_cost),
        "iterations": best.iterations,
        "stop": best.stop,
    }


def _finite(value: float | None) -> float | None:
    return value if value is not None and math.isfinite(value) else None
