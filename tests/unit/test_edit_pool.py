"""The memory of a best-first search, against plain lists."""

from __future__ import annotations

import math

import torch

from simplexity.edit.pool import Pool, first_of_equals
from simplexity.relax.tokens import Hard, pad_batch


def pool(rows: list[dict[tuple[int, ...], float]]) -> Pool:
    """A pool of these strings and costs; one term, which costs as much."""
    listed = [(n, k, s, c) for n, row in enumerate(rows) for k, (s, c) in enumerate(row.items())]
    strings = pad_batch([list(s) for _, _, s, _ in listed], 0)
    total = torch.tensor([c for _, _, _, c in listed])
    row, place = (torch.tensor([one[i] for one in listed]) for i in (0, 1))
    shape = (len(rows), max(map(len, rows)))
    return Pool.of(shape, row, place, strings, total[:, None], total)


def content(found: Pool) -> list[list[tuple[tuple[int, ...], float]]]:
    return [
        [
            (tuple(found.ids[n, k][found.mask[n, k]].tolist()), float(cost))
            for k, cost in enumerate(row)
            if math.isfinite(cost)
        ]
        for n, row in enumerate(found.total.tolist())
    ]


ONE = [{(4,): 3.0, (5, 6): 1.0}, {(7,): 2.0}]
TWO = [{(8, 8, 8): 2.0}, {(9,): math.nan, (4, 4): math.inf}]


def test_strings_stand_in_the_order_of_their_costs() -> None:
    assert content(pool(ONE).sorted()) == [[((5, 6), 1.0), ((4,), 3.0)], [((7,), 2.0)]]


def test_pools_are_merged_and_what_has_no_cost_is_dropped() -> None:
    found = pool(ONE).sorted().merge(pool(TWO))
    assert content(found) == [[((5, 6), 1.0), ((8, 8, 8), 2.0), ((4,), 3.0)], [((7,), 2.0)]]
    assert found.total.shape == (2, 3)


def test_of_equal_costs_the_older_string_is_first() -> None:
    found = pool([{(4,): 1.0}]).merge(pool([{(5,): 1.0}]))
    assert content(found) == [[((4,), 1.0), ((5,), 1.0)]]


def test_closed_strings_are_not_looked_at_again() -> None:
    found = pool(ONE).sorted()
    place, is_open = found.next_open()
    assert (place.tolist(), is_open.tolist()) == ([0, 0], [True, True])
    found = found.close(place)
    place, is_open = found.next_open()
    assert (place.tolist()[0], is_open.tolist()) == (1, [True, False])
    merged = found.merge(pool(TWO))  # what is closed stays closed among others
    assert merged.closed.tolist() == [[True, False, False], [True, False, False]]


def test_it_knows_the_strings_that_it_holds() -> None:
    asked = [[[5, 6], [5], [5, 6, 6]], [[7], [4], [5, 6]]]
    batch = [pad_batch(row, 0) for row in asked]
    width = max(one.ids.shape[1] for one in batch)
    pad = torch.nn.functional.pad
    ids = torch.stack([pad(one.ids, (0, width - one.ids.shape[1])) for one in batch])
    mask = torch.stack([pad(one.mask, (0, width - one.mask.shape[1])) for one in batch])
    found = pool(ONE).holds(Hard(ids, mask))
    assert found.tolist() == [[True, False, False], [True, False, False]]


def test_a_string_that_stands_twice_is_new_once() -> None:
    ids = torch.tensor([[[4, 5], [4, 0], [4, 5], [4, 0]]])
    mask = torch.tensor([[[True, True], [True, False], [True, True], [True, True]]])
    real = torch.tensor([[True, True, True, True]])
    assert first_of_equals(Hard(ids, mask), real).tolist() == [[True, True, False, True]]
    # What is not there does not stand before anything.
    real = torch.tensor([[False, True, True, True]])
    assert first_of_equals(Hard(ids, mask), real).tolist() == [[False, True, True, True]]
