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
from typing import Any

import torch
from transformers import AutoModelForSeq2SeqLM, AutoTokenizer

import simplexity
from simplexity.models.pretrained import explained
from simplexity.runtime import keep_memory, use_threads
from simplexity.text.batches import by_length
from simplexity.text.files import read_lines

FORBIDDEN = [["<unk>"], ["<s>"]]
Strings = dict[str, list[str]]


def in_transformers(
    plain: Path, tokenizer: Any, lines: list[str], parts: list[list[int]], **settings: Any
) -> list[str]:
    """The beam's best by `generate`."""
    model = AutoModelForSeq2SeqLM.from_pretrained(plain).eval()
    texts = [""] * len(lines)
    for rows in parts:
        given = tokenizer([lines[row] for row in rows], return_tensors="pt", padding=True)
        found = model.generate(**given, **settings)
        for row, text in zip(
            rows, tokenizer.batch_decode(found, skip_special_tokens=True), strict=True
        ):
            texts[row] = text
    return texts


def in_ctranslate2(
    converted: Path, tokenizer: Any, lines: list[str], patience: float
) -> tuple[list[str], list[float]]:
    """The beam's best by CTranslate2 and their scores."""
    from ctranslate2 import Translator

    translator = Translator(str(converted), "cpu", compute_type="float32", intra_threads=1)
    given = [tokenizer.convert_ids_to_tokens(tokenizer(line).input_ids) for line in lines]
    found = translator.translate_batch(
        given,
        max_batch_size=64,
        beam_size=5,
        patience=patience,
        length_penalty=1.0,
        suppress_sequences=FORBIDDEN,
        return_scores=True,
    )
    ids = [tokenizer.convert_tokens_to_ids(one.hypotheses[0]) for one in found]
    texts = [tokenizer.decode(row, skip_special_tokens=True) for row in ids]
    return texts, [one.scores[0] for one in found]


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
    with explained(given.plain):
        tokenizer = AutoTokenizer.from_pretrained(given.plain)
    parts = by_length([len(tokenizer(line).input_ids) for line in lines], 64)
    loaded = {name: simplexity.load(given_at, device="cpu") for name, given_at in (
        ("ours", given.model), ("ours, exported", given.plain))}  # fmt: skip
    found: Strings = {
        name: [h.text for h in models.translate(lines, decoder="beam")]
        for name, models in loaded.items()
    }
    with torch.no_grad():
        found["transformers"] = in_transformers(given.plain, tokenizer, lines, parts)
    for name in loaded:
        print(f"{name} and transformers: {report(found, name, 'transformers')}", flush=True)
    if given.ct2:
        with torch.no_grad():
            found["transformers, renormalised"] = in_transformers(
                given.plain, tokenizer, lines, parts, renormalize_logits=True
            )
        for patience in (1.0, given.patience):
            name = f"CTranslate2, patience {patience:g}"
            found[name], _ = in_ctranslate2(given.ct2, tokenizer, lines, patience)
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
