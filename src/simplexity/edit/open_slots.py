"""Proposals where the length itself is relaxed: one gradient for edits of all kinds.

Every slot of a string is a variable over the words and NOTHING: those of its words are nearly
closed on them, those of its gaps nearly on nothing, and the models pass by what is empty
(`models/gaps.py`). So one forward and one backward pass of every model say, to first order, what
any writing into any slot changes, the reverse model included:

    Q(s with w in slot i) - Q(s)  ~  g_i(w) - g_i(s_i),   w and s_i words or NOTHING
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import islice

import torch
from torch import Tensor
from torch.nn import functional as F

from simplexity.decode import InPrecision, Precision
from simplexity.edit.propose import PerString, joined, most_gaining, outlook, own_candidates
from simplexity.edit.slots import NOTHING, Edits, read, slots_of
from simplexity.relax.geometry import ExponentiatedGradient
from simplexity.relax.optimise import Energy, Iterate, iterates
from simplexity.relax.tokens import Hard, Soft, Tokens, harden, lengths
from simplexity.relax.updates import Update
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

    update: Update
    substitutions: int = 8
    insertions: int = 4
    deletions: int = 2
    descent: int = 2
    anchor: float = 0.5
    doubt: float = 0.1
    openings: int = 4
    per_word: bool = False
    precision: Precision = "fp32"

    def __call__(self, energy: MixEnergy, strings: Hard, support: Tensor) -> tuple[Edits, Hard]:
        device = strings.ids.device.type
        with torch.no_grad(), torch.autocast(device, torch.bfloat16, self.precision == "bf16"):
            here, gaps = outlook(energy, strings, support)
        table = support.expand(len(strings.ids), -1)
        point, slot, own = self._lift(strings, table, here.softmax(-1), gaps)
        scaled = PerString(energy, lengths(strings) + 1) if self.per_word else energy
        relaxed = InPrecision(OverSlots(scaled), self.precision)
        steps = iterates(relaxed, point, ExponentiatedGradient(), self.update)
        first, *later = islice(steps, 1 + self.descent)
        steps.close()
        gain = first.grad.gather(-1, own[..., None]) - first.grad
        gain = gain.scatter(-1, own[..., None], -torch.inf)
        gain = gain.masked_fill(~point.mask[..., None], -torch.inf)
        return self._edits(gain, slot, point), self._roundings(strings, slot, later)

    def _lift(
        self, strings: Hard, table: Tensor, here: Tensor, gaps: Tensor
    ) -> tuple[Soft, Tensor, Tensor]:
        """The point, the slot behind each of its positions, and the candidate that stands there."""
        words = table.shape[1]
        own, known = own_candidates(strings, table)
        slots = slots_of(strings)
        filled = slots != NOTHING
        expected = gaps.new_zeros((*slots.shape, words + 1))
        expected[:, 0::2, :-1], expected[:, 0::2, -1] = (
            self.doubt * gaps.softmax(-1),
            1 - self.doubt,
        )
        expected[:, 1::2, :-1], expected[:, 1::2, -1] = (1 - self.doubt) * here, self.doubt
        standing = torch.full_like(slots, words)
        standing[:, 1::2] = own
        kept = torch.full_like(slots, self.anchor, dtype=expected.dtype)
        kept[:, 1::2] *= known
        lifted = kept[..., None] * F.one_hot(standing, words + 1) + (1 - kept[..., None]) * expected
        # The gaps that are opened, and all words, in reading order.
        place = torch.arange(gaps.shape[1], device=gaps.device)
        sure = gaps.amax(-1).masked_fill(place > lengths(strings)[:, None], -torch.inf)
        opened = sure.topk(min(self.openings, sure.shape[1])).indices
        kept_slot = filled.scatter(1, 2 * opened, True)
        kept_slot[:, 0::2] &= place <= lengths(strings)[:, None]
        order = (~kept_slot).long().argsort(dim=1, stable=True)[:, : int(kept_slot.sum(1).max())]
        mask = kept_slot.gather(1, order)
        nothing = table.new_full((len(table), 1), NOTHING)
        support = torch.cat([table, nothing], 1)
        probs = lifted.gather(1, order[..., None].expand(-1, -1, words + 1))
        return Soft(probs, mask, support), order, standing.gather(1, order)

    def _edits(self, gain: Tensor, slot: Tensor, point: Soft) -> Edits:
        assert point.support is not None
        gap = (slot % 2 == 0)[..., None]
        nothing = torch.arange(gain.shape[-1], device=gain.device) == gain.shape[-1] - 1
        kinds = (
            (~gap & ~nothing, self.substitutions),
            (gap & ~nothing, self.insertions),
            (~gap & nothing, self.deletions),
        )
        return joined(
            *(
                most_gaining(gain.masked_fill(~kind, -torch.inf), slot, point.support, number)
                for kind, number in kinds
            )
        )

    def _roundings(self, strings: Hard, slot: Tensor, later: list[Iterate]) -> Hard:
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
