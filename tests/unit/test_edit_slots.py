"""Strings as slots: every edit is a writing, and lists of edits are made of plain string edits."""

from __future__ import annotations

import torch
from hypothesis import given
from hypothesis import strategies as st

from simplexity.edit.slots import (
    NOTHING,
    Edits,
    apply_each,
    apply_together,
    independent,
    read,
    slots_of,
)
from simplexity.relax.tokens import pad_batch, unpad

STRINGS = [[5, 6, 7], [8]]
words = st.lists(st.integers(4, 9), min_size=1, max_size=5)


def listed(slots: list[list[int]], written: list[list[int]]) -> Edits:
    place, word = torch.tensor(slots), torch.tensor(written)
    return Edits(place, word, torch.ones_like(place, dtype=torch.bool))


def by_hand(string: list[int], slot: int, word: int) -> list[int]:
    """The same edit on a Python list."""
    place = slot // 2
    new = [] if word == NOTHING else [word]
    return string[:place] + new + string[place + slot % 2 :]


def test_words_stand_in_odd_slots() -> None:
    found = slots_of(pad_batch(STRINGS, 0)).tolist()
    assert found == [[-1, 5, -1, 6, -1, 7, -1], [-1, 8, -1, -1, -1, -1, -1]]


@given(st.lists(words, min_size=1, max_size=3), st.data())
def test_a_written_slot_is_a_substitution_an_insertion_or_a_deletion(
    strings: list[list[int]], data: st.DataObject
) -> None:
    slot = [data.draw(st.integers(0, 2 * len(string))) for string in strings]
    word = [data.draw(st.sampled_from([4, 9] + [NOTHING] * (n % 2))) for n in slot]
    edits = listed([[n] for n in slot], [[w] for w in word])
    batch = pad_batch(strings, 0)
    expected = [by_hand(*one) for one in zip(strings, slot, word, strict=True)]
    each = apply_each(batch, edits)
    assert [unpad_one(each.ids[n, 0], each.mask[n, 0]) for n in range(len(slot))] == expected
    together = apply_together(batch, edits, torch.ones(len(slot), 1, dtype=torch.bool))
    assert unpad(together) == expected


def unpad_one(ids: torch.Tensor, mask: torch.Tensor) -> list[int]:
    return ids[mask].tolist()  # type: ignore[no-any-return]


def test_chosen_edits_are_made_at_once() -> None:
    edits = listed([[0, 3, 6, 5]] * 2, [[9, NOTHING, 4, 8]] * 2)
    chosen = torch.tensor([[True, True, True, False], [True, False, False, False]])
    assert unpad(apply_together(pad_batch(STRINGS, 0), edits, chosen)) == [[9, 5, 7, 4], [9, 8]]


def test_slots_are_read_in_order() -> None:
    slots = torch.tensor([[NOTHING, 5, NOTHING, 6], [7, NOTHING, NOTHING, NOTHING]])
    assert unpad(read(slots, 3)) == [[5, 6], [7]]


def test_near_edits_give_way_to_the_best() -> None:
    edits = listed([[1, 3, 7, 9, 20]], [[4] * 5])
    gain = torch.tensor([[1.0, 2.0, 1.0, 1.0, -1.0]])
    # 1 yields to 3; of 7 and 9, which gain alike, the first is made; the last makes it worse.
    assert independent(edits, gain).tolist() == [[False, True, True, False, False]]
    unreal = Edits(edits.slot, edits.word, torch.zeros_like(edits.real))
    assert not independent(unreal, gain).any()
