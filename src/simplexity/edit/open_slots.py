"""Proposals where the length itself is relaxed: one gradient for edits of all kinds.

Every slot of a string is a variable over the words and NOTHING: those of its words are nearly
closed on them, those of its gaps nearly on nothing, and the models pass by what is empty
(`models/gaps.py`). So one forward and one backward pass of every model say, to first order, what
any writing into any slot changes, the reverse model included:

    Q(s with w in slot i) - Q(s)  ~  g_i(w) - g_i(s_i),   w and s_i words or NOTHING
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional as F

from simplexity.edit.propose import (
    Gradient,
    Quota,
    gains,
    joined,
    most_gaining,
    outlook,
    own_candidates,
)
from simplexity.edit.slots import NOTHING, Edits, read, slots_of
from simplexity.relax.optimise import Energy, Iterate
from simplexity.relax.tokens import Hard, Soft, Tokens, harden, lengths
from simplexity.terms.mix import MixEnergy


@dataclass(frozen=True)
class OverSlots:
    """An energy as a function of slots, whose last candidate is NOTHING."""

    energy: Energy

    def __call__(self, y: Tokens) -> Tensor:
        assert isinstance(y, Soft)
        assert y.support is not None
        return self.energy(Soft(y.probs[..., :-1], y.mask, y.support[..., :-1], gaps=True))

    def select(self, rows: Tensor) -> OverSlots:
        return OverSlots(self.energy.select(rows))


@dataclass(frozen=True)
class ProposeOpen:
    """Choose edits of all kinds by the gradient of the relaxed objective over slots.

    anchor: how much of each slot is what stands in it; the rest is the models' predictions, of
    which `doubt` is that a word's slot is empty and a gap's is not. openings: gaps of each string
    that are opened, those of the surest predictions.
    """

    gradient: Gradient
    quota: Quota
    anchor: float = 0.5
    doubt: float = 0.1
    openings: int = 4

    def __call__(self, energy: MixEnergy, strings: Hard, support: Tensor) -> tuple[Edits, Hard]:
        here, gaps = outlook(energy, strings, support, self.gradient.precision)
        table = support.expand(len(strings.ids), -1)
        lifted, standing = self._lift(strings, table, here.softmax(-1), gaps.softmax(-1))
        slot, mask = self._opened(strings, gaps)
        probs = lifted.gather(1, slot[..., None].expand(-1, -1, lifted.shape[-1]))
        nothing = table.new_full((len(table), 1), NOTHING)
        point = Soft(probs, mask, torch.cat([table, nothing], 1))
        first, later = self.gradient(OverSlots(energy), strings, point)
        gain = gains(first.grad, standing.gather(1, slot), mask)
        return self._edits(gain, slot, point), self._roundings(strings, later)

    def _lift(
        self, strings: Hard, table: Tensor, here: Tensor, gaps: Tensor
    ) -> tuple[Tensor, Tensor]:
        """A distribution for every slot, and the candidate that stands there."""
        words = table.shape[1]
        own, known = own_candidates(strings, table)
        slots = slots_of(strings)
        expected = gaps.new_zeros((*slots.shape, words + 1))
        expected[:, 0::2, :-1] = self.doubt * gaps
        expected[:, 0::2, -1] = 1 - self.doubt
        expected[:, 1::2, :-1] = (1 - self.doubt) * here
        expected[:, 1::2, -1] = self.doubt
        standing = torch.full_like(slots, words)
        standing[:, 1::2] = own
        kept = torch.full_like(slots, self.anchor, dtype=expected.dtype)
        kept[:, 1::2] *= known
        kept = kept[..., None]
        return kept * F.one_hot(standing, words + 1) + (1 - kept) * expected, standing

    def _opened(self, strings: Hard, gaps: Tensor) -> tuple[Tensor, Tensor]:
        """The slots of all words and of the gaps that are opened, in order; which are real."""
        outside = torch.arange(gaps.shape[1], device=gaps.device) > lengths(strings)[:, None]
        sure = gaps.amax(-1).masked_fill(outside, -torch.inf)
        opened = sure.topk(min(self.openings, sure.shape[1])).indices
        real = (slots_of(strings) != NOTHING).scatter(1, 2 * opened, True)
        real[:, 0::2] &= ~outside
        slot = (~real).long().argsort(dim=1, stable=True)[:, : int(real.sum(1).max())]
        return slot, real.gather(1, slot)

    def _edits(self, gain: Tensor, slot: Tensor, point: Soft) -> Edits:
        assert point.support is not None
        gap = (slot % 2 == 0)[..., None]
        nothing = torch.arange(gain.shape[-1], device=gain.device) == gain.shape[-1] - 1
        kinds = (
            (~gap & ~nothing, self.quota.substitutions),
            (gap & ~nothing, self.quota.insertions),
            (~gap & nothing, self.quota.deletions),
        )
        return joined(
            *(
                most_gaining(gain.masked_fill(~kind, -torch.inf), slot, point.support, number)
                for kind, number in kinds
            )
        )

    def _roundings(self, strings: Hard, later: list[Iterate]) -> Hard:
        """What the steps of the descent round to, as strings."""
        length = strings.ids.shape[1] + self.openings
        found = []
        for iterate in later:
            held = harden(iterate.y).ids.masked_fill(~iterate.y.mask, NOTHING)
            found.append(
                read(F.pad(held, (0, max(0, length - held.shape[1])), value=NOTHING), length)
            )
        if not found:
            return Hard(strings.ids[:, None][:, :0], strings.mask[:, None][:, :0])
        return Hard(torch.stack([f.ids for f in found], 1), torch.stack([f.mask for f in found], 1))
