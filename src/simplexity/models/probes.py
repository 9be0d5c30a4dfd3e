"""Checks that an adapted model is scored as the model itself would score.

Three equalities: the model's own forward on one sentence at a time is the adapter's score of the
padded batch ("hard"); that is the score of the same strings as vertices of the simplex ("soft");
and that is what a search sees word by word ("steps"). And derivatives are finite ("gradient").
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeAlias

import torch
from torch import Tensor
from torch.nn import functional as F

from simplexity.errors import SimplexityError
from simplexity.models.predictions import Predictions
from simplexity.models.soft_inputs import embedding
from simplexity.relax.tokens import Hard, Soft, lengths, pad_batch, unpad

UNSHIFTED = ("fsmt", "mbart", "plbart")
"""Families whose own forward does not put the decoder's start before the labels: FSMT makes no
inputs of them, the others begin with the last label, which is meant to be a language code."""

Check: TypeAlias = Callable[[Any, Hard, Hard], Tensor]


def probe(adapter: Any) -> None:
    """Score two short strings in every way; a difference is a SimplexityError that names it."""
    name = type(adapter.model).__name__
    checks: tuple[tuple[str, Check], ...] = (
        ("hard", score_alone),
        ("soft", score_soft),
        ("steps", score_steps),
    )
    with torch.no_grad(), warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)  # what a loss will be is not our matter
        with refusing(name, "hard"):
            source, target = examples(adapter)
            expected = score_hard(adapter, source, target)
        for label, check in checks:
            with refusing(name, label):
                found = check(adapter, source, target)
            if not close(found, expected, adapter.model.dtype):
                worst = float((found - expected)[found != expected].abs().max())
                raise SimplexityError(
                    f"{name} cannot be used: the check {label!r} found log-probabilities that "
                    f"differ by {worst:.2g}; give the right prefix and suffix ids, or use another "
                    "model."
                )
        with refusing(name, "gradient"):
            bad = worst_gradient(adapter, source, target)
        if bad:
            raise SimplexityError(
                f"{name} cannot be used: the check 'gradient' found derivatives that are "
                f"no numbers with respect to the {bad}; use another model."
            )


def worst_gradient(adapter: Any, source: Hard, target: Hard) -> str | None:
    """Which side of a padded soft batch has no finite gradient, if one has none."""
    dtype = adapter.model.dtype
    with torch.enable_grad():
        sides = [vertex(source, dtype), vertex(target, dtype)]
        probs = [side.probs.requires_grad_() for side in sides]
        memory = adapter.encode(sides[0])
        total = adapter.log_probs(memory, sides[1]).total(sides[1]).sum()
        grads = torch.autograd.grad(total, probs)
    names = ("source", "target")
    return next((n for n, g in zip(names, grads, strict=True) if not g.isfinite().all()), None)


@contextmanager
def refusing(name: str, label: str) -> Iterator[None]:
    """A model that cannot even run is refused by the name of the check."""
    try:
        yield
    except (AttributeError, IndexError, RuntimeError, TypeError, ValueError) as problem:
        raise SimplexityError(
            f"{name} cannot be used: the check {label!r} stopped with {problem!r}; use another "
            "model."
        ) from problem


def close(found: Tensor, expected: Tensor, dtype: torch.dtype) -> bool:
    """Equal up to the square root of the precision that the model computes in."""
    tolerance = torch.finfo(dtype).eps ** 0.5
    return torch.allclose(found, expected, rtol=tolerance, atol=tolerance)


def examples(adapter: Any) -> tuple[Hard, Hard]:
    """Sources of three and two words, targets of two and three, all different."""
    table: Any = embedding(adapter.model.get_encoder()).weight
    special = {*adapter.banned, *adapter.source_prefix, *adapter.source_suffix, adapter.eos}
    source = spread(len(table), special)
    target = spread(adapter.vocabulary_size, special)
    return (
        pad_batch([source[:3], source[3:]], adapter.pad, adapter.device),
        pad_batch([target[:2], target[2:]], adapter.pad, adapter.device),
    )


def spread(vocabulary: int, special: set[int]) -> list[int]:
    """Five words from all over the vocabulary; of a very small one, some more than once."""
    words = [word for word in range(vocabulary) if word not in special]
    return [words[i * len(words) // 5] for i in range(5)]


def score_hard(adapter: Any, source: Hard, target: Hard) -> Tensor:
    """The adapter's scores of the padded batch."""
    return join(adapter.log_probs(adapter.encode(source), target), target)


def score_alone(adapter: Any, source: Hard, target: Hard) -> Tensor:
    """The model's own forward on every sentence by itself, without padding."""
    words, ends = [], []
    for x, y in zip(unpad(source), unpad(target), strict=True):
        log_p = own_forward(adapter, x, y)
        words.append(log_p[:-1])
        ends.append(log_p[-1, adapter.eos])
    return torch.cat([*[row.flatten() for row in words], torch.stack(ends)])


def own_forward(adapter: Any, source: list[int], target: list[int]) -> Tensor:
    """log p of every next word [length + 1, vocabulary]; the model shifts the labels itself."""
    ids = [*adapter.source_prefix, *source, *adapter.source_suffix]
    inputs = {"input_ids": ids, "attention_mask": [1] * len(ids)}
    if len(adapter.target_prefix) == 1 and adapter.model.config.model_type not in UNSHIFTED:
        inputs["labels"] = [*target, adapter.eos]
    else:
        inputs["decoder_input_ids"] = [*adapter.target_prefix, *target]
    batch = {name: torch.tensor([row], device=adapter.device) for name, row in inputs.items()}
    logits: Tensor = adapter.model(**batch, use_cache=False).logits[0, -len(target) - 1 :]
    return logits.log_softmax(-1, dtype=torch.promote_types(logits.dtype, torch.float32))


def score_soft(adapter: Any, source: Hard, target: Hard) -> Tensor:
    """The same strings as vertices of the simplex, on both sides."""
    memory = adapter.encode(vertex(source, adapter.model.dtype))
    return join(adapter.log_probs(memory, vertex(target, adapter.model.dtype)), target)


def vertex(tokens: Hard, dtype: torch.dtype) -> Soft:
    """One-hot rows over the few words that occur: a whole vocabulary could be large.

    What stands on padding may be forbidden, of probability 0, and is left out.
    """
    support = torch.unique(tokens.ids[tokens.mask])
    place = torch.searchsorted(support, tokens.ids).clamp_max(len(support) - 1)
    probs = F.one_hot(place, len(support))
    return Soft(probs.to(dtype), tokens.mask, support)


def score_steps(adapter: Any, source: Hard, target: Hard) -> Tensor:
    """What a search sees: one word after the other."""
    memory = adapter.encode(source)
    state, log_p = adapter.step(memory, adapter.start(memory), None)
    steps = [log_p]
    for word in target.ids.unbind(1):
        state, log_p = adapter.step(memory, state, word)
        steps.append(log_p)
    found = torch.stack(steps, 1)
    end = found[..., adapter.eos].gather(1, lengths(target)[:, None]).squeeze(1)
    return join(Predictions(found[:, :-1], end), target)


def join(found: Predictions, target: Hard) -> Tensor:
    """All scores of real positions in one row."""
    return torch.cat([found.words[target.mask].flatten(), found.end])
