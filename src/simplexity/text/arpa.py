"""N-gram language models in ARPA form: the file, and how lines become its words."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from simplexity.errors import SimplexityError
from simplexity.text.files import read_lines
from simplexity.text.tokenise import JOINER, split_words
from simplexity.text.vocabulary import Vocabulary

BEGIN, END, UNKNOWN = "<s>", "</s>", "<unk>"
SPECIAL = frozenset((BEGIN, END, UNKNOWN, "<UNK>"))
PIECES = 0.9
"""A model of which so many words are pieces of a vocabulary was trained on these pieces."""


@dataclass(frozen=True)
class NGram:
    """One line of the file: words, and natural logarithms of probability and back-off weight."""

    words: tuple[str, ...]
    log_prob: float
    back_off: float


@dataclass(frozen=True)
class Arpa:
    """All n-grams, by order from 1."""

    orders: tuple[tuple[NGram, ...], ...]

    @cached_property
    def ids(self) -> dict[str, int]:
        """The words in the order of the file; the unknown word is added if it is missing."""
        words = dict.fromkeys(gram.words[0] for gram in self.orders[0])
        words.setdefault(UNKNOWN if "<UNK>" not in words else "<UNK>")
        return {word: number for number, word in enumerate(words)}

    @property
    def unknown(self) -> int:
        return self.ids["<UNK>" if "<UNK>" in self.ids else UNKNOWN]


def read_arpa(path: Path) -> Arpa:
    """Read an ARPA file, plain, .gz or .xz."""
    orders: list[list[NGram]] = []
    order = 0
    for number, line in enumerate(read_lines(path), 1):
        if line.startswith("\\"):
            order = _order(line)
            if order > 0:
                orders.append([])
        elif order > 0 and line.strip():
            try:
                orders[-1].append(_ngram(line, order))
            except (ValueError, IndexError):
                raise SimplexityError(
                    f"{path}, line {number}, is no {order}-gram of an ARPA file: {line[:60]!r}."
                ) from None
    words = {gram.words[0] for gram in orders[0]} if orders else set()
    if not {BEGIN, END} <= words:
        raise SimplexityError(
            f"{path} is no language model in ARPA form: it has no \\1-grams with {BEGIN} and "
            f"{END}; make one with lmplz or ngram-count."
        )
    return Arpa(tuple(map(tuple, orders)))


def _order(line: str) -> int:
    """3 of `\\3-grams:`, 0 of any other heading."""
    number, _, rest = line[1:].partition("-")
    return int(number) if number.isdigit() and rest.startswith("grams:") else 0


def _ngram(line: str, order: int) -> NGram:
    fields = line.split()
    if len(fields) not in (order + 1, order + 2):
        raise ValueError(line)
    back_off = float(fields[order + 1]) if len(fields) > order + 1 else 0.0
    scale = math.log(10)
    return NGram(tuple(fields[1 : order + 1]), float(fields[0]) * scale, back_off * scale)


@dataclass(frozen=True)
class ArpaVocabulary:
    """The words of an ARPA file.

    If it was trained on the pieces of the vocabulary `cut`, that cuts lines for it; otherwise words
    and punctuation are cut as in `text/tokenise.py`, without marks of where spaces were.
    """

    ids: dict[str, int] = field(repr=False)
    unknown: int
    cut: Vocabulary | None

    @cached_property
    def _words(self) -> tuple[str, ...]:
        return tuple(self.ids)

    @cached_property
    def fingerprint(self) -> str:
        return hashlib.sha256("\n".join(self._words).encode()).hexdigest()[:12]

    def encode(self, line: str) -> list[int]:
        return [self.ids.get(word, self.unknown) for word in self._split(line)]

    def _split(self, line: str) -> Iterator[str]:
        if self.cut is not None:
            yield from self.cut.pieces(self.cut.encode(line))
        else:
            yield from (word.strip(JOINER) for word in split_words(" ".join(line.split())))

    def decode(self, ids: Sequence[int]) -> str:
        words = [self._words[n] for n in ids if self._words[n] not in SPECIAL]
        if self.cut is None:
            return " ".join(words)
        return self.cut.decode([self._cut_ids[word] for word in words if word in self._cut_ids])

    @cached_property
    def _cut_ids(self) -> dict[str, int]:
        assert self.cut is not None
        return {piece: n for n, piece in enumerate(self.cut.pieces(range(len(self.cut))))}

    def pieces(self, ids: Sequence[int]) -> list[str]:
        return [self._words[n] for n in ids]

    def __len__(self) -> int:
        return len(self._words)

    def save(self, directory: Path, side: str) -> None:
        raise SimplexityError("The words of an ARPA file are saved with the file itself.")


def arpa_vocabulary(arpa: Arpa, target: Vocabulary) -> ArpaVocabulary:
    """The words of a model that has to judge strings of this vocabulary."""
    own = [word for word in arpa.ids if word not in SPECIAL]
    pieces = set(target.pieces(range(len(target))))
    shared = sum(word in pieces for word in own)
    cut = target if own and shared >= PIECES * len(own) else None
    return ArpaVocabulary(arpa.ids, arpa.unknown, cut)
