"""Strings as slots, so that substituting, inserting and deleting are one thing: writing a slot.

A string of n words has 2n + 1 slots: its words stand in the odd ones, the gaps around them are the
even ones. A slot holds a word or nothing. Writing another word into a word's slot substitutes it,
writing nothing there deletes it, writing a word into a gap inserts it; several slots may be written
at once.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional as F

from simplexity.relax.tokens import Hard

NOTHING = -1


@dataclass(frozen=True)
class Edits:
    """Single changes to each of a batch of strings: what to write into which slot [rows, edits].

    `real` is False where there is no edit: lists of different lengths stand side by side.
    """

    slot: Tensor
    word: Tensor
    real: Tensor


def slots_of(strings: Hard) -> Tensor:
    """The slots of each string [rows, 2 * length + 1]; the gaps hold nothing."""
    words = strings.ids.masked_fill(~strings.mask, NOTHING)
    gaps = torch.full_like(words, NOTHING)
    return F.pad(torch.stack([gaps, words], -1).flatten(1), (0, 1), value=NOTHING)


def read(slots: Tensor, length: int) -> Hard:
    """The strings that stand in slots [..., slots], at most `length` words of each."""
    real = slots != NOTHING
    order = (~real).long().argsort(dim=-1, stable=True)[..., :length]
    mask = real.gather(-1, order)
    return Hard(slots.gather(-1, order).masked_fill(~mask, 0), mask)


def apply_each(strings: Hard, edits: Edits) -> Hard:
    """Every edit by itself: as many strings as edits [rows, edits, length + 1]."""
    before = slots_of(strings)[:, None].expand(-1, edits.slot.shape[1], -1)
    after = before.scatter(-1, edits.slot[..., None], edits.word[..., None])
    return read(after, strings.ids.shape[1] + 1)


def apply_together(strings: Hard, edits: Edits, chosen: Tensor) -> Hard:
    """All chosen edits [rows, edits] of a string at once, one string a row."""
    slots = slots_of(strings)
    # One column behind the slots takes what is not chosen.
    nowhere = slots.shape[1]
    place = edits.slot.masked_fill(~chosen, nowhere)
    after = F.pad(slots, (0, 1)).scatter(1, place, edits.word)[:, :-1]
    grown = int((chosen & (edits.slot % 2 == 0)).sum(1).max()) if len(slots) else 0
    return read(after, strings.ids.shape[1] + grown)


def independent(edits: Edits, gain: Tensor, reach: int = 2) -> Tensor:
    """Which edits to make together [rows, edits]: those that gain, best first, none near another.

    Edits within `reach` slots of each other touch the same words or neighbours; of those only the
    best is taken. The choice is made for all edits at once: one that gives way to a better one
    gives way also where that one gives way to a third.
    """
    near = (edits.slot[:, :, None] - edits.slot[:, None]).abs() <= reach
    place = torch.arange(gain.shape[1], device=gain.device)
    ahead = (gain[:, :, None] < gain[:, None]) | (
        (gain[:, :, None] == gain[:, None]) & (place[:, None] > place)
    )
    useful = edits.real & (gain > 0)
    beaten = (near & ahead & useful[:, None]).any(-1)
    return useful & ~beaten
