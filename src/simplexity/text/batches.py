"""Which sentences travel together: batches as lists of indices."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np


def bucketed(
    lengths: Sequence[tuple[int, int]], budget: int, seed: int, epoch: int
) -> list[list[int]]:
    """Training batches of sentence pairs of like length, in random order.

    A batch of n pairs has n * max(length) <= budget, where the length of a pair is that of its
    longer side and one for the end; a pair above the budget travels alone. Equal seed and epoch
    give equal batches.
    """
    random = np.random.default_rng([seed, epoch])
    sizes = np.asarray(lengths, dtype=np.int64).reshape(-1, 2).max(axis=1) + 1
    # The last key comes first, so ties of length fall at random.
    order = np.lexsort((random.random(len(sizes)), sizes))
    batches: list[list[int]] = []
    for index, size in zip(order.tolist(), sizes[order].tolist(), strict=True):
        # Sizes rise, so the newest pair is the longest of its batch.
        if not batches or (len(batches[-1]) + 1) * size > budget:
            batches.append([])
        batches[-1].append(index)
    return [batches[i] for i in random.permutation(len(batches)).tolist()]


def by_length(lengths: Sequence[int], size: int) -> list[list[int]]:
    """Decoding batches of at most `size` sentences, short ones first, ties in their order."""
    order = sorted(range(len(lengths)), key=lengths.__getitem__)
    return [order[start : start + size] for start in range(0, len(order), size)]
