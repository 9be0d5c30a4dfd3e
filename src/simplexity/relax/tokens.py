"""Sentences as tensors: hard (word ids) or soft (a distribution per position).

Only free positions are tokens: the words a decoder may choose. Sentence boundaries are never
variables; the models add them.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from torch import Tensor
from torch.nn import functional as F


@dataclass(frozen=True)
class Hard:
    """Word ids [batch, length]; `mask` is True on real positions, which come first."""

    ids: Tensor
    mask: Tensor

    def select(self, rows: Tensor) -> Hard:
        """The sentences of these rows, in this order."""
        return Hard(self.ids[rows], self.mask[rows])


@dataclass(frozen=True)
class Soft:
    """Rows of the probability simplex [batch, length, candidates].

    `support` names the word behind each candidate: ids [candidates] shared by the batch, or
    [batch, candidates] for each sentence its own; None means the whole vocabulary in order. A word
    outside the support cannot be chosen.

    With `gaps` a position may be empty: its row sums to the probability that a word stands there,
    and what is missing to 1 is the probability that nothing does.
    """

    probs: Tensor
    mask: Tensor
    support: Tensor | None = None
    gaps: bool = False

    def select(self, rows: Tensor) -> Soft:
        """The sentences of these rows, in this order."""
        support = select_support(self.support, rows)
        return Soft(self.probs[rows], self.mask[rows], support, self.gaps)

    def with_probs(self, probs: Tensor) -> Soft:
        """The same positions and candidates with other probabilities."""
        return replace(self, probs=probs)


Tokens = Hard | Soft


def select_support(support: Tensor | None, rows: Tensor) -> Tensor | None:
    """The support of these sentences; a shared one belongs to all."""
    return support if support is None or support.dim() == 1 else support[rows]


def lengths(tokens: Tokens) -> Tensor:
    """Number of real positions of each sentence [batch]."""
    return tokens.mask.sum(-1)


def presence(tokens: Tokens) -> Tensor | None:
    """The probability that a word stands at each position [batch, length]; None: always."""
    if isinstance(tokens, Soft) and tokens.gaps:
        return tokens.probs.sum(-1).masked_fill(~tokens.mask, 0.0)
    return None


def words(tokens: Tokens) -> Tensor:
    """How many words each sentence has, or is expected to have [batch]."""
    present = presence(tokens)
    return lengths(tokens) if present is None else present.sum(-1)


def embed(tokens: Tokens, table: Tensor) -> Tensor:
    """Expected embedding of each position: a look-up when hard, a mixture when soft.

    This line is the whole relaxation: E^{y_i} becomes sum_w y_i(w) E^w (paper, section 3).
    """
    match tokens:
        case Hard(ids=ids):
            return F.embedding(ids, table)
        case Soft(probs=probs, support=None):
            return probs.to(table.dtype) @ table
        case Soft(probs=probs, support=support):
            return probs.to(table.dtype) @ table[support]


def restrict(scores: Tensor, support: Tensor | None) -> Tensor:
    """Columns of `scores` [batch, length, vocabulary] that belong to the support."""
    if support is None:
        return scores
    if support.dim() == 1:
        return scores.index_select(-1, support)
    return scores.gather(-1, support[:, None].expand(-1, scores.shape[1], -1))


def one_hot(tokens: Hard, vocabulary: int, dtype: torch.dtype = torch.float32) -> Soft:
    """The vertex of the simplex that is this string."""
    return Soft(F.one_hot(tokens.ids, vocabulary).to(dtype), tokens.mask)


def likeliest(tokens: Soft, number: int) -> tuple[Tensor, Tensor]:
    """The words of most mass at each position, and their masses [batch, length, number]."""
    mass, best = tokens.probs.topk(number)
    match tokens.support:
        case None:
            return best, mass
        case support if support.dim() == 1:
            return support[best], mass
        case support:
            return support[:, None].expand(-1, best.shape[1], -1).gather(-1, best), mass


def harden(tokens: Soft) -> Hard:
    """Put all mass on the likeliest word of each position (the paper's rounding)."""
    best = tokens.probs.argmax(-1)
    match tokens.support:
        case None:
            ids = best
        case support if support.dim() == 1:
            ids = support[best]
        case support:
            ids = support.gather(-1, best)
    return Hard(ids.masked_fill(~tokens.mask, 0), tokens.mask)


def flip(values: Tensor, mask: Tensor) -> Tensor:
    """Reverse the real positions of each row of [batch, length, ...]; padding stays at the end."""
    length = mask.sum(-1, keepdim=True)
    position = torch.arange(mask.shape[1], device=mask.device)
    index = torch.where(position < length, length - 1 - position, position)
    index = index.view(*index.shape, *[1] * (values.dim() - 2)).expand_as(values)
    return values.gather(1, index)


def reverse(tokens: Tokens) -> Tokens:
    """The same sentences read from their last word to their first."""
    match tokens:
        case Hard(ids=ids, mask=mask):
            return Hard(flip(ids, mask), mask)
        case Soft(probs=probs, mask=mask):
            return tokens.with_probs(flip(probs, mask))


def pad_batch(sentences: list[list[int]], pad: int, device: torch.device | str = "cpu") -> Hard:
    """A batch from lists of word ids, padded on the right."""
    longest = max(map(len, sentences), default=0)
    ids = torch.full((len(sentences), longest), pad, dtype=torch.long)
    mask = torch.zeros((len(sentences), longest), dtype=torch.bool)
    for row, sentence in enumerate(sentences):
        ids[row, : len(sentence)] = torch.tensor(sentence, dtype=torch.long)
        mask[row, : len(sentence)] = True
    return Hard(ids.to(device), mask.to(device))


def unpad(tokens: Hard) -> list[list[int]]:
    """Lists of word ids without their padding."""
    keep = tokens.mask.sum(-1).tolist()
    return [row[:n] for row, n in zip(tokens.ids.tolist(), keep, strict=True)]
