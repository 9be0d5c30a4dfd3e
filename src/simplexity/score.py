"""Forced scoring: what a model thinks of given translations, in one parallel pass."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice

import torch

from simplexity.models.family import Member
from simplexity.relax.tokens import lengths, pad_batch
from simplexity.text.batches import by_length
from simplexity.text.vocabulary import PAD
from simplexity.translate import WINDOW


@dataclass(frozen=True)
class Score:
    """log P of every token in reading order, the end's last; `total` is their sum."""

    tokens: tuple[float, ...]
    total: float


@torch.no_grad()
def score_pairs(
    pairs: Iterable[tuple[str, str]], member: Member, batch_size: int
) -> Iterator[Score]:
    """log P(target | source) of every pair, in order; the reverse member's log P(source | target)."""
    stream = iter((y, x) for x, y in pairs) if member.name == "reverse" else iter(pairs)
    while window := list(islice(stream, batch_size * WINDOW)):
        sources = [member.source.encode(source) for source, _ in window]
        targets = [member.target.encode(target) for _, target in window]
        answers: dict[int, Score] = {}
        longest = [max(len(x), len(y)) for x, y in zip(sources, targets, strict=True)]
        for batch in by_length(longest, batch_size):
            found = _score_batch([sources[i] for i in batch], [targets[i] for i in batch], member)
            answers.update(zip(batch, found, strict=True))
        yield from (answers[place] for place in range(len(window)))


def _score_batch(sources: list[list[int]], targets: list[list[int]], member: Member) -> list[Score]:
    device = member.model.device
    target = pad_batch(targets, PAD, device)
    memory = member.model.encode(pad_batch(sources, PAD, device))
    found = member.model.log_probs(memory, target)
    columns = (found.per_token(target), found.end, found.total(target), lengths(target))
    rows = zip(*(column.tolist() for column in columns), strict=True)
    return [Score((*tokens[:n], end), total) for tokens, end, total, n in rows]
