"""Tokenizers of transformers as vocabularies."""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from simplexity.text.vocabulary import Side, Vocabulary

REMEMBERED = 1 << 17
"""Source lines that are kept, more than are on their way through a decoder."""


@dataclass(frozen=True)
class TokenizerVocabulary:
    """One side of a tokenizer; many cut sources and targets differently."""

    tokenizer: Any
    side: Side

    @cached_property
    def fingerprint(self) -> str:
        table = sorted((number, piece) for piece, number in self._table.items())
        return hashlib.sha256(repr(table).encode()).hexdigest()[:12]

    @cached_property
    def _table(self) -> dict[str, int]:
        """Pieces and their ids on this side."""
        if self.side == "target" and self._two_tables:
            return {piece: number for number, piece in self.tokenizer.decoder.items()}
        return dict(self.tokenizer.get_vocab())

    @property
    def _two_tables(self) -> bool:
        """Whether a Marian tokenizer numbers sources and targets differently."""
        return bool(getattr(self.tokenizer, "separate_vocabs", False))

    @cached_property
    def _names(self) -> dict[int, str]:
        return {number: piece for piece, number in self._table.items()}

    @cached_property
    def _silent(self) -> frozenset[int]:
        return frozenset(self.tokenizer.all_special_ids)

    def numbers(self) -> list[int]:
        """All ids that stand for a piece."""
        return sorted(self._names)

    def encode(self, line: str) -> list[int]:
        # Every line is one sentence; line ends and runs of spaces mean nothing.
        text = " ".join(line.split())
        given = {"text" if self.side == "source" else "text_target": text}
        found: list[int] = self.tokenizer(**given, add_special_tokens=False)["input_ids"]
        return found if text else []

    def decode(self, ids: Sequence[int]) -> str:
        if self.side == "source" and self._two_tables:
            # The tokenizer itself reads all ids as those of targets.
            pieces = [self._names[n] for n in ids if n not in self._silent]
            return str(self.tokenizer.spm_source.decode_pieces(pieces)).strip()
        return str(self.tokenizer.decode(list(ids), skip_special_tokens=True)).strip()

    def pieces(self, ids: Sequence[int]) -> list[str]:
        return [self._names.get(n, "") for n in ids]

    def __len__(self) -> int:
        return max(self._names, default=-1) + 1

    def save(self, directory: Path, side: str) -> None:
        self.tokenizer.save_pretrained(directory)


@dataclass(frozen=True)
class Remembering:
    """A vocabulary that gives back the very lines it has read.

    A second model has to score the line that the user wrote, not what is left of it in pieces of
    the first: characters that this one does not know are in the line still.
    """

    inner: Vocabulary
    lines: OrderedDict[tuple[int, ...], str] = field(
        default_factory=OrderedDict, repr=False, compare=False
    )

    @property
    def fingerprint(self) -> str:
        return self.inner.fingerprint

    def encode(self, line: str) -> list[int]:
        ids = self.inner.encode(line)
        self.lines[tuple(ids)] = line
        if len(self.lines) > REMEMBERED:
            self.lines.popitem(last=False)
        return ids

    def decode(self, ids: Sequence[int]) -> str:
        line = self.lines.get(tuple(ids))
        return self.inner.decode(ids) if line is None else line

    def pieces(self, ids: Sequence[int]) -> list[str]:
        return self.inner.pieces(ids)

    def __len__(self) -> int:
        return len(self.inner)

    def save(self, directory: Path, side: str) -> None:
        self.inner.save(directory, side)
