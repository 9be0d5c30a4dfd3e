"""Beam search against joint descent, sentence by sentence, with what every model thinks of both.

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


def main() -> None:
    sentences = Path(sys.argv[1]).read_text(encoding="utf-8").splitlines()
    palette = Palette(sys.stdout.isatty() and not os.environ.get("NO_COLOR"))
    begin = time.perf_counter()
    models = simplexity.load(sys.argv[2] if len(sys.argv) > 2 else None)
    loaded = time.perf_counter()
    beam = models.translate(sentences)
    joint = models.translate(sentences, decoder="eg", objective="joint")
    done = time.perf_counter()

    before = costs(models, sentences, [found.text for found in beam])
    after = costs(models, sentences, [found.text for found in joint])
    width = max(len(found.text) for found in (*beam, *joint)) + 2
    print(
        palette.quiet(
            f"{'':7}{'-log P, less is better':{width}}{''.join(f'{t:>9}' for t in TERMS)}"
        )
    )
    for sentence, one, two, old, new in zip(sentences, beam, joint, before, after, strict=True):
        print(f"\n       {palette.strong(sentence)}")
        texts = marked((one.text, two.text), (palette.old, palette.new))
        rows = (("beam", one.text, texts[0], old), ("joint", two.text, texts[1], new))
        for name, plain, text, row in rows:
            print(f"{name:7}{text}{' ' * (width - len(plain))}{''.join(f'{c:9.2f}' for c in row)}")

    changed = sum(one.text != two.text for one, two in zip(beam, joint, strict=True))
    fall = sum(sum(old) - sum(new) for old, new in zip(before, after, strict=True))
    print(
        f"\nJoint descent changed {changed} of {len(sentences)} sentences; the mean cost of the "
        f"three models fell by {fall / 3 / len(sentences):.2f} a sentence.\n"
        f"Models loaded in {loaded - begin:.1f} s, both searches done in {done - loaded:.1f} s."
    )


def costs(models: simplexity.Loaded, sources: list[str], targets: list[str]) -> list[list[float]]:
    """-log P of every translation by every model."""
    pairs = list(zip(sources, targets, strict=True))
    columns = [[-score.total for score in models.score(pairs, term)] for term in TERMS]
    return [list(row) for row in zip(*columns, strict=True)]


if __name__ == "__main__":
    main()
