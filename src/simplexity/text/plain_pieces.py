"""A subword vocabulary as a sentencepiece model that does its own normalising.

Our vocabularies compose characters, collapse white space and lower-case before sentencepiece sees
the text. Whoever uses the sentencepiece model alone needs these rules inside it.
"""

from __future__ import annotations

import sys
import tempfile
import unicodedata
from collections.abc import Iterator
from functools import cache
from io import BytesIO
from pathlib import Path

from sentencepiece import SentencePieceTrainer

from simplexity.text.vocabulary import SubwordVocabulary, normalise

NORMALISER, RULES = 3, 2
"""Fields of a sentencepiece model, and of its normaliser."""

DELIMITED = 2
"""The wire type of strings, bytes and messages."""


def with_rules(vocabulary: SubwordVocabulary) -> bytes:
    """The sentencepiece model that cuts raw text as the vocabulary does.

    Rules see a few characters at a time: marks in an unusual order stay uncomposed, and a Greek
    sigma becomes the same small letter everywhere.
    """
    # Serialised messages are merged by being joined: what comes last holds.
    normaliser = _field(RULES, _rules(vocabulary.lowercase))
    return vocabulary.model + _field(NORMALISER, normaliser)


@cache
def _rules(lowercase: bool) -> bytes:
    """The rules as sentencepiece compiles them, taken from a model of nothing else."""
    model = BytesIO()
    with tempfile.TemporaryDirectory() as folder:
        table = Path(folder) / "rules.tsv"
        lines = (f"{_codes(a)}\t{_codes(b)}\n" for a, b in _changes(lowercase))
        table.write_text("".join(lines), encoding="utf-8")
        SentencePieceTrainer.train(
            sentence_iterator=iter(["a"]),
            model_writer=model,
            model_type="char",
            vocab_size=5,
            hard_vocab_limit=False,
            normalization_rule_tsv=str(table),
            minloglevel=2,
        )
    return _value(_value(model.getvalue(), NORMALISER), RULES)


def _changes(lowercase: bool) -> Iterator[tuple[str, str]]:
    """What becomes what: single characters, and letters with the marks that belong to them."""
    written: dict[str, str] = {}
    for number in range(1, sys.maxunicode + 1):
        character = chr(number)
        if 0xD800 <= number < 0xE000:
            continue  # half a character
        spread = {unicodedata.normalize("NFD", character), character}
        parts = unicodedata.decomposition(character)
        if parts and not parts.startswith("<"):
            spread.add("".join(chr(int(part, 16)) for part in parts.split()))
        for form in spread:
            after = " " if character.isspace() else normalise(character, lowercase)
            if after != form:
                written[form] = after
    return iter(sorted(written.items()))


def _codes(text: str) -> str:
    return " ".join(f"{ord(character):X}" for character in text)


def _field(number: int, value: bytes) -> bytes:
    """A field of a serialised message."""
    return _varint(number << 3 | DELIMITED) + _varint(len(value)) + value


def _varint(number: int) -> bytes:
    out = bytearray()
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*out, number])


def _value(message: bytes, wanted: int) -> bytes:
    """The last value of a field whose neighbours are strings, bytes or messages."""
    place, found = 0, b""
    while place < len(message):
        key, place = _read_varint(message, place)
        size, place = _read_varint(message, place)
        if key == wanted << 3 | DELIMITED:
            found = message[place : place + size]
        place += size if key & 7 == DELIMITED else 0  # a number is its own size
    return found


def _read_varint(message: bytes, place: int) -> tuple[int, int]:
    number, shift = 0, 0
    while True:
        byte = message[place]
        number |= (byte & 0x7F) << shift
        place, shift = place + 1, shift + 7
        if byte < 0x80:
            return number, place
