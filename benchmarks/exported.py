"""One exported model in three programs: are the strings of beam 5 the same?

    simplexity export MODEL -o PLAIN
    ct2-transformers-converter --model PLAIN --output_dir CT2
    python benchmarks/exported.py MODEL PLAIN SOURCE --ct2 CT2

Two things that differ between the programs are set alike. CTranslate2 forbids a word before it
makes probabilities of what is left, transformers (unless `renormalize_logits`) and ours after; and
it stops when so many strings have ended (`patience`), transformers and ours when none can win.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from plain import ctranslate2, generate

import simplexity
from simplexity.runtime import keep_memory, use_threads
from simplexity.text.files import read_lines

Strings = dict[str, list[str]]


def differing(one: list[str], other: list[str]) -> list[int]:
    return [row for row, (a, b) in enumerate(zip(one, other, strict=True)) if a != b]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    for name in ("model", "plain", "source"):
        parser.add_argument(name, type=Path)
    parser.add_argument("--ct2", type=Path)
    parser.add_argument("--patience", type=float, default=4.0)
    parser.add_argument("--limit", type=int)
    given = parser.parse_args()
    keep_memory()
    use_threads(None)
    lines = list(read_lines(given.source))[: given.limit]
    loaded = {name: simplexity.load(given_at, device="cpu") for name, given_at in (
        ("ours", given.model), ("ours, exported", given.plain))}  # fmt: skip
    found: Strings = {
        name: [h.text for h in models.translate(lines, decoder="beam")]
        for name, models in loaded.items()
    }
    found["transformers"] = generate(given.plain)(lines)
    for name in loaded:
        print(f"{name} and transformers: {report(found, name, 'transformers')}", flush=True)
    if given.ct2:
        renormalised = generate(given.plain, renormalize_logits=True)
        found["transformers, renormalised"] = renormalised(lines)
        for patience in (1.0, given.patience):
            name = f"CTranslate2, patience {patience:g}"
            found[name] = ctranslate2(given.plain, given.ct2, patience)(lines)
            for other in ("transformers", "transformers, renormalised"):
                print(f"{name} and {other}: {report(found, name, other)}", flush=True)
        for row in differing(found[name], found["transformers, renormalised"])[:10]:
            for system in (name, "transformers, renormalised"):
                text = found[system][row]
                score = next(loaded["ours, exported"].score([(lines[row], text)]))
                words = len(score.tokens)
                print(f"{row} {system}: {score.total / words:.5f} a word ||| {text}")


def report(found: Strings, one: str, other: str) -> str:
    rows = differing(found[one], found[other])
    return f"{len(found[one]) - len(rows)} of {len(found[one])} equal"


if __name__ == "__main__":
    main()
