"""Table 1: how large the corpora are, as the paper counts them."""

from __future__ import annotations

from collections import Counter
from functools import partial
from typing import Any

from simplexity.experiment.cache import digest
from simplexity.experiment.workbench import Workbench
from simplexity.text.corpora import Bitext
from simplexity.text.tokenise import split_words

CUT_OFF = 5


def corpus_sizes(bench: Workbench) -> list[dict[str, Any]]:
    """Tokens and types of both sides and sentences of each part.

    Tokens are words and punctuation marks; Chinese is counted by characters. Types of the training
    part are those seen at least five times, the paper's cut-off; elsewhere all.
    """
    recipe = bench.recipe
    languages = (recipe.source_language, recipe.target_language)
    rows = []
    for name in ("train", "dev", "test"):
        bitext = Bitext.at(bench.corpus / name, *languages)
        stamps = [f"{file.name} {file.stat().st_size}" for file in (bitext.source, bitext.target)]
        key = {"files": digest(stamps), "part": name}
        rows.append(bench.cache.get(corpus_sizes, key, partial(_count, bitext, name)))
    return rows


def _count(bitext: Bitext, name: str) -> dict[str, Any]:
    counts: tuple[Counter[str], Counter[str]] = (Counter(), Counter())
    sentences = 0
    for pair in bitext:
        sentences += 1
        for side, line in zip(counts, pair, strict=True):
            side.update(split_words(line))
    least = CUT_OFF if name == "train" else 1
    return {
        "part": name,
        "sentences": sentences,
        "tokens": [side.total() for side in counts],
        "types": [sum(number >= least for number in side.values()) for side in counts],
    }
