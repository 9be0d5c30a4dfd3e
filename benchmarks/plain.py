"""An exported model in other programs: beam 5 on text, sentences of like length together."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import torch

from simplexity.models.pretrained import explained
from simplexity.text.batches import by_length

BATCH = 64
FORBIDDEN = [["<unk>"], ["<s>"]]
Decode = Callable[[list[str]], list[str]]


def generate(plain: Path, **settings: Any) -> Decode:
    """By transformers alone, with these settings of `generate` and else those that it finds."""
    from transformers import AutoModelForSeq2SeqLM  # takes seconds to import

    tokenizer = read_tokenizer(plain)
    model = AutoModelForSeq2SeqLM.from_pretrained(plain).eval().requires_grad_(False)

    def decode(lines: list[str]) -> list[str]:
        texts = [""] * len(lines)
        for rows in in_parts(tokenizer, lines):
            given = tokenizer([lines[row] for row in rows], return_tensors="pt", padding=True)
            found = tokenizer.batch_decode(
                model.generate(**given, **settings), skip_special_tokens=True
            )
            for row, text in zip(rows, found, strict=True):
                texts[row] = text
        return texts

    return decode


def ctranslate2(plain: Path, converted: Path, patience: float = 1.0) -> Decode:
    """By CTranslate2 in single precision, with the tokenizer of the plain directory."""
    from ctranslate2 import Translator

    tokenizer = read_tokenizer(plain)
    threads = {"inter_threads": 1, "intra_threads": torch.get_num_threads()}
    translator = Translator(str(converted), "cpu", compute_type="float32", **threads)

    def decode(lines: list[str]) -> list[str]:
        texts = [""] * len(lines)
        for rows in in_parts(tokenizer, lines):
            given = [tokenizer.convert_ids_to_tokens(tokenizer(lines[r]).input_ids) for r in rows]
            found = translator.translate_batch(
                given,
                beam_size=5,
                patience=patience,
                length_penalty=1.0,
                suppress_sequences=FORBIDDEN,
            )
            for row, one in zip(rows, found, strict=True):
                ids = tokenizer.convert_tokens_to_ids(one.hypotheses[0])
                texts[row] = tokenizer.decode(ids, skip_special_tokens=True)
        return texts

    return decode


def read_tokenizer(plain: Path) -> Any:
    """The tokenizer of a plain directory."""
    from transformers import AutoTokenizer

    with explained(plain):
        return AutoTokenizer.from_pretrained(plain)


def in_parts(tokenizer: Any, lines: list[str]) -> Iterator[list[int]]:
    """Places of the lines, those of about one length together."""
    yield from by_length([len(tokenizer(line).input_ids) for line in lines], BATCH)
