"""Work on a stream in batches of items of about one length, and answer in the stream's order."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from typing import TypeVar

from simplexity.text.batches import by_length

Item = TypeVar("Item")
Answer = TypeVar("Answer")

WINDOW = 32
"""Batches read ahead and sorted by length."""


def in_batches(
    items: Iterable[Item],
    length: Callable[[Item], int],
    size: int,
    work: Callable[[list[Item]], list[Answer]],
) -> Iterator[Answer]:
    """The answer to every item, in order; `work` sees at most `size` items of similar length."""
    stream = iter(items)
    while window := list(islice(stream, size * WINDOW)):
        answers: dict[int, Answer] = {}
        for batch in by_length([length(item) for item in window], size):
            found = work([window[place] for place in batch])
            answers.update(zip(batch, found, strict=True))
        yield from (answers[place] for place in range(len(window)))
