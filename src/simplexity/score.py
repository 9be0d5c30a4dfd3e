"""Forced scoring: what a model thinks of given translations, in one parallel pass."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import torch

from simplexity.models.family import Member
from simplexity.pipeline import in_batches
from simplexity.relax.tokens import lengths, pad_batch
from simplexity.text.vocabulary import PAD


@dataclass(frozen=True)
class Score:
    """log P of every token in reading order, the end's last; `total` is their sum."""

    tokens: tuple[float, ...]
    total: float


def score_pairs(
    pairs: Iterable[tuple[str, str]], member: Member, batch_size: int
) -> Iterator[Score]:
    """log P(target | source) of every pair, in order; by the reverse member P(source | target)."""
    given = ((y, x) for x, y in pairs) if member.name == "reverse" else pairs
    encoded = ((member.source.encode(x), member.target.encode(y)) for x, y in given)
    return in_batches(
        encoded, lambda pair: max(map(len, pair)), batch_size, lambda batch: _score(batch, member)
    )


@torch.no_grad()
def _score(pairs: list[tuple[list[int], list[int]]], member: Member) -> list[Score]:
    device = member.model.device
    target = pad_batch([y for _, y in pairs], PAD, device)
    memory = member.model.encode(pad_batch([x for x, _ in pairs], PAD, device))
    found = member.model.log_probs(memory, target)
    columns = (found.per_token(target), found.end, found.total(target), lengths(target))
    rows = zip(*(column.tolist() for column in columns), strict=True)
    return [Score((*tokens[:n], end), total) for tokens, end, total, n in rows]
