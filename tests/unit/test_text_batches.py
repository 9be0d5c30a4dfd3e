"""Batches: every sentence once, within the budget, like with like, the same when asked again."""

from __future__ import annotations

import time
from itertools import chain, pairwise
from random import Random

from hypothesis import given
from hypothesis import strategies as st

from simplexity.text.batches import bucketed, by_length

PAIRS = st.lists(st.tuples(st.integers(0, 30), st.integers(0, 30)), max_size=60)


@given(PAIRS, st.integers(1, 100), st.integers(0, 5), st.integers(0, 5))
def test_training_batches(
    lengths: list[tuple[int, int]], budget: int, seed: int, epoch: int
) -> None:
    batches = bucketed(lengths, budget, seed, epoch)
    assert sorted(chain.from_iterable(batches)) == list(range(len(lengths)))
    sizes = [[max(lengths[i]) + 1 for i in batch] for batch in batches]
    assert all(len(batch) == 1 or max(batch) * len(batch) <= budget for batch in sizes)
    for shorter, longer in pairwise(sorted(sizes, key=lambda batch: (min(batch), max(batch)))):
        assert max(shorter) <= min(longer)
    assert batches == bucketed(lengths, budget, seed, epoch)


@given(st.integers(1, 40), st.integers(0, 100), st.integers(1, 9))
def test_batches_of_equal_sentences_are_full(length: int, count: int, per_batch: int) -> None:
    batches = bucketed([(length, 0)] * count, budget=(length + 1) * per_batch, seed=0, epoch=0)
    full, rest = divmod(count, per_batch)
    assert sorted(map(len, batches)) == sorted([per_batch] * full + [rest] * (rest > 0))


def test_epochs_and_seeds_differ_in_batches_and_in_their_order() -> None:
    lengths = [(i % 7, i % 3) for i in range(300)]
    base = bucketed(lengths, 64, seed=1, epoch=0)
    for other in (bucketed(lengths, 64, seed=1, epoch=1), bucketed(lengths, 64, seed=2, epoch=0)):
        assert {frozenset(batch) for batch in base} != {frozenset(batch) for batch in other}
        assert [max(lengths[i] for i in batch) for batch in base] != [
            max(lengths[i] for i in batch) for batch in other
        ]


def test_two_hundred_thousand_pairs_are_fast() -> None:
    random = Random(0)
    lengths = [(random.randint(1, 80), random.randint(1, 80)) for _ in range(200_000)]
    start = time.process_time()
    bucketed(lengths, 4000, seed=0, epoch=0)
    assert time.process_time() - start < 1.5


@given(st.lists(st.integers(0, 9), max_size=50), st.integers(1, 8))
def test_decoding_batches(lengths: list[int], size: int) -> None:
    batches = by_length(lengths, size)
    order = list(chain.from_iterable(batches))
    assert order == [i for _, i in sorted((length, i) for i, length in enumerate(lengths))]
    assert all(len(batch) == size for batch in batches[:-1])
    assert all(1 <= len(batch) <= size for batch in batches)
