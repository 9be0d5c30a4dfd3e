"""Terms whose model has a vocabulary of its own: strings reach it through their text.

A hard string is decoded to text, and cut by the other vocabulary: its score is exact, that of the
string that the user gets. A soft string is mapped (terms/piece_map.py), for its gradient alone.
With one vocabulary on both sides nothing is mapped, but hard strings still go through text: a
string of pieces that its own tokenizer would cut differently is scored as it would be read.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import torch
from torch import Tensor

from simplexity.errors import SimplexityError
from simplexity.relax.tokens import Hard, Soft, Tokens, harden, lengths, pad_batch, unpad, words
from simplexity.terms.mix import Term, TermEnergy
from simplexity.terms.piece_map import PieceMap, piece_map
from simplexity.text.vocabulary import Vocabulary


@dataclass(frozen=True)
class Bridge:
    """From one vocabulary to another; strings of more than `longest` pieces are cut off there."""

    here: Vocabulary
    there: Vocabulary
    longest: int
    device: torch.device | str = "cpu"

    @cached_property
    def same(self) -> bool:
        """Whether ids mean the same on both sides."""
        return self.here.fingerprint == self.there.fingerprint

    def hard(self, tokens: Hard) -> tuple[Hard, Tensor]:
        """These strings as the other vocabulary reads them, and which fit [batch]."""
        lines = [self.there.encode(self.here.decode(ids)) for ids in unpad(tokens)]
        fits = torch.tensor([len(line) <= self.longest for line in lines], device=self.device)
        return pad_batch([line[: self.longest] for line in lines], 0, self.device), fits

    def soft(self, tokens: Soft) -> Soft:
        """A soft string over the other vocabulary, which rounds to the reading of its rounding."""
        if self.same:
            return tokens
        if tokens.gaps:
            raise SimplexityError(
                "Models with vocabularies of their own cannot read strings of relaxed length; use "
                "--lengths predicted."
            )
        rounding = harden(tokens)
        return self._map(tokens, rounding, self.hard(rounding)[0])

    @cached_property
    def _map(self) -> PieceMap:
        return piece_map(self.here, self.there, self.device)


@dataclass(frozen=True)
class ThroughText:
    """A term behind bridges: `target` for strings, `source` for the sources that it is bound to."""

    term: Term
    source: Bridge | None
    target: Bridge
    counts_source: bool = False
    """Whether its cost is divided by words of the source: a reverse model predicts these."""

    def bind(self, source: Hard) -> ThroughTextEnergy:
        """Read the sources as the model's own vocabulary cuts them."""
        fits = torch.ones_like(source.mask.sum(-1), dtype=torch.bool)
        read = source
        if self.source is not None:
            read, fits = self.source.hard(source)
        counted = lengths(source) if self.counts_source else None
        return ThroughTextEnergy(self.term.bind(read), self.target, fits, counted)


@dataclass(frozen=True)
class ThroughTextEnergy:
    """Exact for hard strings, through text; soft strings are mapped.

    What is too long for the model costs infinity. Costs per word count words of the first
    vocabulary, so that terms compare.
    """

    inner: TermEnergy
    bridge: Bridge
    fits: Tensor
    counted: Tensor | None

    def __call__(self, y: Tokens) -> Tensor:
        if isinstance(y, Soft):
            return self.inner(self.bridge.soft(y))
        read, fits = self.bridge.hard(y)
        return self.inner(read).masked_fill(~(fits & self.fits), torch.inf)

    def factors(self, y: Tokens) -> Tensor:
        return (words(y) if self.counted is None else self.counted) + 1

    def select(self, rows: Tensor) -> ThroughTextEnergy:
        counted = None if self.counted is None else self.counted[rows]
        return replace(self, inner=self.inner.select(rows), fits=self.fits[rows], counted=counted)
