"""From lines of text to lines of text: the pipeline around a decoder.

Lines are read in windows of several batches, sorted by length within a window, decoded, and given
back in the order in which they came. An empty line gives an empty line.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice

import torch

from simplexity.decode import Decoder, Hypothesis
from simplexity.relax.tokens import pad_batch
from simplexity.text.batches import by_length
from simplexity.text.vocabulary import PAD, Vocabulary

WINDOW = 32
"""Batches read ahead, so that a batch holds sentences of about one length."""

NOTHING = Hypothesis(text="", ids=(), score=0.0, terms={}, discrete_cost=0.0, stop="empty")


def translate_lines(
    lines: Iterable[str],
    vocabulary: Vocabulary,
    decoder: Decoder,
    batch_size: int,
    longest: int,
    device: torch.device | str = "cpu",
) -> Iterator[list[Hypothesis]]:
    """The hypotheses of every line, in order; a source longer than `longest` is cut there."""
    source = iter(lines)
    while window := list(islice(source, batch_size * WINDOW)):
        encoded = [vocabulary.encode(line)[:longest] for line in window]
        answers: list[list[Hypothesis]] = [[NOTHING] for _ in window]
        full = [place for place, ids in enumerate(encoded) if ids]
        for batch in by_length([len(encoded[place]) for place in full], batch_size):
            places = [full[i] for i in batch]
            sources = pad_batch([encoded[place] for place in places], PAD, device)
            for place, found in zip(places, decoder(sources), strict=True):
                answers[place] = found
        yield from answers
