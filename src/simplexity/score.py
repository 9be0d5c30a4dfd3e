"""Forced scoring: what a model thinks of given translations, in one parallel pass."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import torch

from simplexity.errors import SimplexityError
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
    encoded = (_encode(member, x, y, place) for place, (x, y) in enumerate(given))
    return in_batches(
        encoded, lambda pair: max(map(len, pair)), batch_size, lambda batch: _score(batch, member)
    )


def _encode(member: Member, source: str, target: str, place: int) -> tuple[list[int], list[int]]:
    ids = member.source.encode(source), member.target.encode(target)
    longest, limit = max(map(len, ids)), member.model.max_length
    if longest > limit:
        raise SimplexityError(
            f"Line {place + 1} has {longest} tokens, but the {member.name} model takes {limit} at "
            "most; split it into sentences."
        )
    return ids


@torch.no_grad()
def _score(pairs: list[tuple[list[int], list[int]]], member: Member) -> list[Score]:
    device = member.model.device
    target = pad_batch([y for _, y in pairs], PAD, device)
    memory = member.model.encode(pad_batch([x for x, _ in pairs], PAD, device))
    found = member.model.score(memory, target)
    columns = (found.words, found.end, found.total, lengths(target))
    rows = zip(*(column.tolist() for column in columns), strict=True)
    return [Score((*tokens[:n], end), total) for tokens, end, total, n in rows]
