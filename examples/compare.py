"""Beam search against joint descent and joint search with edits, and what every model thinks.

usage: python examples/compare.py SENTENCES [FAMILY]
"""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

import simplexity
from simplexity.show.terminal import Palette, marked

TERMS = ("l2r", "r2l", "reverse")
SEARCHES = {
    "beam": {},
    "descent": {"decoder": "eg", "objective": "joint"},
    "edits": {"decoder": "edits", "objective": "joint"},
}


def main() -> None:
    sentences = Path(sys.argv[1]).read_text(encoding="utf-8").splitlines()
    palette = Palette(sys.stdout.isatty() and not os.environ.get("NO_COLOR"))
    begin = time.perf_counter()
    models = simplexity.load(sys.argv[2] if len(sys.argv) > 2 else None)
    loaded = time.perf_counter()
    texts = {
        name: [found.text for found in models.translate(sentences, **settings)]
        for name, settings in SEARCHES.items()
    }
    done = time.perf_counter()
    every = {name: costs(models, sentences, found) for name, found in texts.items()}

    width = max(len(text) for found in texts.values() for text in found) + 2
    head = f"{'':9}{'-log P, less is better':{width}}{''.join(f'{t:>9}' for t in TERMS)}"
    print(palette.quiet(head))
    for number, sentence in enumerate(sentences):
        print(f"\n         {palette.strong(sentence)}")
        beam = texts["beam"][number]
        for name, found in texts.items():
            other = texts["edits"][number] if name == "beam" else beam
            mark = palette.old if name == "beam" else palette.new
            text = marked((found[number], other), (mark, palette.old))[0]
            row = "".join(f"{cost:9.2f}" for cost in every[name][number])
            print(f"{name:9}{text}{' ' * (width - len(found[number]))}{row}")

    print()
    for name, found in texts.items():
        if name != "beam":
            changed = sum(one != two for one, two in zip(texts["beam"], found, strict=True))
            fall = (mean(every["beam"]) - mean(every[name])) / len(TERMS)
            print(
                f"{name}: {changed} of {len(sentences)} sentences changed; the mean cost of the "
                f"three models fell by {fall:.2f} a sentence."
            )
    print(f"Models loaded in {loaded - begin:.1f} s, all searches done in {done - loaded:.1f} s.")


def costs(models: simplexity.Loaded, sources: list[str], targets: list[str]) -> list[list[float]]:
    """-log P of every translation by every model."""
    pairs = list(zip(sources, targets, strict=True))
    columns = [[-score.total for score in models.score(pairs, term)] for term in TERMS]
    return [list(row) for row in zip(*columns, strict=True)]


def mean(rows: list[list[float]]) -> float:
    """The mean over sentences of the sum over models."""
    return sum(map(sum, rows)) / len(rows)


if __name__ == "__main__":
    main()
