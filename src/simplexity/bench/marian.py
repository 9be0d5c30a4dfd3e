"""Marian's own attentional model behind `pymarian`, given tokens that our vocabularies cut."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from simplexity.errors import SimplexityError
from simplexity.text.vocabulary import Vocabulary

BEST = "model.npz.best-perplexity.npz"


def segment(vocabulary: Vocabulary, ids: list[int]) -> str:
    """The pieces of a sentence with spaces between; an unknown word is <unk>."""
    return " ".join(vocabulary.pieces(ids))


def join(vocabulary: Vocabulary, lines: list[str]) -> list[str]:
    """Text of the pieces that Marian wrote."""
    table = {piece: n for n, piece in enumerate(vocabulary.pieces(range(len(vocabulary))))}
    return [vocabulary.decode([table[piece] for piece in line.split()]) for line in lines]


def translator(folder: Path, threads: int, beam: int, batch: int) -> Any:
    """The best model with beam search, scores divided by length, the end counted, as ours."""
    if not (folder / BEST).exists():
        raise SimplexityError(
            f"{folder} holds no Marian model with a validation; train one with the step train of "
            "benchmarks/peers.py."
        )
    from pymarian import Translator

    return Translator(
        models=[folder / BEST],
        vocabs=[folder / "source.yml", folder / "target.yml"],
        beam_size=beam,
        normalize=1,
        mini_batch=batch,
        maxi_batch=100,
        maxi_batch_sort="src",
        max_length_factor=3,
        cpu_threads=threads,
        data_threads=1,
        workspace=1024,
        quiet="",
    )
