"""N-gram language models as tensors: any number of n-grams looked up at once.

    log p(w | c) = log p(c w) if the n-gram is listed, else back-off(c) + log p(w | c without its
    first word)

An n-gram of order n is a key: the row of its first n - 1 words among those of that order, and its
last word. Keys are sorted, so that a look-up is a binary search on any device.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from simplexity.errors import SimplexityError
from simplexity.models.huggingface import UNLIMITED
from simplexity.relax.tokens import Hard, Soft, Tokens, harden, lengths
from simplexity.text.arpa import BEGIN, END, Arpa

MISSING = -100 * 2.302585092994046
"""log p of an unknown word that the file does not list, as KenLM has it."""


@dataclass(frozen=True)
class Level:
    """All n-grams of one order: sorted keys, log p, log back-off weights."""

    keys: Tensor
    log_prob: Tensor
    back_off: Tensor

    def find(self, keys: Tensor) -> Tensor:
        """The row of each key, -1 where it is not listed."""
        if len(self.keys) == 0:
            return torch.full_like(keys, -1)
        row = torch.searchsorted(self.keys, keys.contiguous()).clamp_max(len(self.keys) - 1)
        return torch.where(self.keys[row] == keys, row, -1)


@dataclass(frozen=True)
class NGrams:
    """An n-gram model behind the protocol of language models."""

    levels: tuple[Level, ...]
    begin: int
    end: int

    @property
    def max_length(self) -> int:
        return UNLIMITED

    @property
    def device(self) -> torch.device:
        return self.levels[0].keys.device

    @property
    def order(self) -> int:
        return len(self.levels)

    def log_prob(self, target: Tokens) -> Tensor:
        """log P(y), the end included; of a soft string its first order around the rounding h:

            log P(h) + sum_i sum_w y_i(w) (log P(h with w at i) - log P(h))

        which is exact for h and for every string that differs from it in one word.
        """
        hard = target if isinstance(target, Hard) else harden(target)
        windows, real = self._windows(hard)
        here = self.lookup(windows).masked_fill(~real, 0.0)
        if isinstance(target, Hard):
            return here.sum(-1)
        change = self._changes(target, windows, here, real)
        return here.sum(-1) + (target.probs * change).masked_fill(~target.mask[..., None], 0.0).sum(
            (1, 2)
        )

    def _windows(self, target: Hard) -> tuple[Tensor, Tensor]:
        """Each word and the end behind their contexts [batch, length + 1, order]; which count."""
        batch, length = len(target.ids), lengths(target)[:, None]
        ids = torch.cat([target.ids, target.ids.new_zeros(batch, 1)], 1).scatter(
            1, length, self.end
        )
        before = ids.new_full((batch, max(self.order - 2, 0)), -1)
        begin = ids.new_full((batch, min(self.order - 1, 1)), self.begin)
        windows = torch.cat([before, begin, ids], 1).unfold(1, self.order, 1)
        return windows, torch.arange(ids.shape[1], device=ids.device) <= length

    @torch.no_grad()
    def _changes(self, target: Soft, windows: Tensor, here: Tensor, real: Tensor) -> Tensor:
        """What each candidate would add to log P in its place [batch, length, candidates]."""
        candidates = target.support
        if candidates is None:
            candidates = torch.arange(target.probs.shape[-1], device=windows.device)
        words = candidates if candidates.dim() == 1 else candidates[:, None]
        total = torch.zeros_like(target.probs, dtype=here.dtype)
        longest = target.mask.shape[1]
        for distance in range(min(self.order, longest + 1)):
            # The word at i stands so far before the end of the window of i + distance.
            later = windows[:, distance:][:, :longest]
            reach = later.shape[1]
            changed = later[:, :, None].expand(-1, -1, total.shape[-1], -1).clone()
            changed[..., self.order - 1 - distance] = words.expand(changed.shape[:-1])
            gain = self.lookup(changed) - here[:, distance : distance + reach, None]
            counts = real[:, distance : distance + reach, None]
            total[:, :reach] += gain.masked_fill(~counts, 0.0)
        return total

    def lookup(self, windows: Tensor) -> Tensor:
        """log p of the last word of each window after those before it [...]; -1 is no word."""
        words = windows.unbind(-1)
        # rows[n]: the n + 1 words that end here; contexts[n]: those that end before the last word.
        rows, contexts = self._suffixes(words), self._suffixes(words[:-1])
        score = self.levels[0].log_prob[rows[0]]
        for order in range(1, self.order):
            row, context = rows[order], contexts[order - 1]
            weight = self.levels[order - 1].back_off[context.clamp_min(0)]
            weight = weight.masked_fill(context < 0, 0.0)
            level = self.levels[order]
            if len(level.keys) == 0:
                score = score + weight
                continue
            listed = level.log_prob[row.clamp_min(0)]
            score = torch.where(row >= 0, listed, score + weight)
        return score

    def _suffixes(self, words: tuple[Tensor, ...]) -> list[Tensor]:
        """For n = 1, 2, ...: the row of the last n of these words among the n-grams, or -1."""
        found = []
        for number in range(1, len(words) + 1):
            first, *others = words[-number:]
            row = first
            for level, word in zip(self.levels[1:], others, strict=False):
                key = torch.where((row < 0) | (word < 0), -1, row * self._words + word)
                row = level.find(key)
            found.append(row)
        return found

    @property
    def _words(self) -> int:
        return len(self.levels[0].keys)


def ngrams(arpa: Arpa, device: torch.device | str = "cpu") -> NGrams:
    """The tensors of an ARPA file."""
    count = len(arpa.ids)
    log_prob = torch.full((count,), MISSING)
    back_off = torch.zeros(count)
    for gram in arpa.orders[0]:
        number = arpa.ids[gram.words[0]]
        log_prob[number], back_off[number] = gram.log_prob, gram.back_off
    levels = [Level(torch.arange(count), log_prob, back_off)]
    for order in range(2, len(arpa.orders) + 1):
        levels.append(_level(arpa, order, levels, count))
    moved = (
        Level(level.keys.to(device), level.log_prob.to(device), level.back_off.to(device))
        for level in levels
    )
    return NGrams(tuple(moved), arpa.ids[BEGIN], arpa.ids[END])


def _level(arpa: Arpa, order: int, lower: list[Level], count: int) -> Level:
    """The n-grams of one order, sorted."""
    grams = arpa.orders[order - 1]
    try:
        ids = torch.tensor([[arpa.ids[word] for word in gram.words] for gram in grams])
    except KeyError as problem:
        raise SimplexityError(
            f"The ARPA file has {order}-grams with {problem}, which is not among its words."
        ) from None
    ids = ids.view(len(grams), order)
    row = ids[:, 0]
    for level, word in zip(lower[1:], ids[:, 1:-1].unbind(1), strict=False):
        row = level.find(torch.where(row < 0, -1, row * count + word))
    if bool((row < 0).any()):
        wrong = " ".join(grams[int((row < 0).nonzero()[0])].words)
        raise SimplexityError(
            f"The ARPA file lists {wrong!r}, but not the {order - 1}-gram that it begins with."
        )
    keys, place = (row * count + ids[:, -1]).sort()
    values = torch.tensor([[gram.log_prob, gram.back_off] for gram in grams]).view(len(grams), 2)
    return Level(keys, values[place, 0], values[place, 1])
