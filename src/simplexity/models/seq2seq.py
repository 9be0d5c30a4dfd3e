"""What searches, terms and trainers ask of a model."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Literal, Protocol, TypeAlias

import torch
from torch import Tensor

from simplexity.models.picked import WordScores
from simplexity.models.predictions import Predictions
from simplexity.relax.tokens import Hard, Tokens, flip, reverse

Direction = Literal["l2r", "r2l"]

Memory: TypeAlias = Any
"""An encoded batch: tensors that start with the batch, and `select(rows)` to keep some of it."""

State: TypeAlias = Any
"""What a search carries from word to word: tensors by hypothesis, and `select(rows)`."""


class Seq2Seq(Protocol):
    """A model of P(target | source) that reads its target in one direction.

    Callers never reverse a string: a right-to-left model takes and gives reading order in `encode`
    and `log_probs`, and `step` follows its own direction, which `direction` tells the search.
    """

    @property
    def direction(self) -> Direction: ...
    @property
    def eos(self) -> int: ...
    @property
    def vocabulary_size(self) -> int:
        """Number of target words."""
        ...

    @property
    def banned(self) -> tuple[int, ...]:
        """Target ids that are no words of a sentence: padding, boundaries, unknown."""
        ...

    @property
    def max_length(self) -> int:
        """Most target words it can score."""
        ...

    @property
    def reads_gaps(self) -> bool:
        """Whether it reads strings whose positions may be empty (`Soft.gaps`)."""
        ...

    @property
    def device(self) -> torch.device: ...

    def encode(self, source: Tokens) -> Memory:
        """Read the source once; every later call reuses the answer."""
        ...

    def log_probs(
        self, memory: Memory, target: Tokens, within: Tensor | None = None
    ) -> Predictions:
        """Score all positions of the target, and its end, in one pass.

        `within` names the only words, shared [candidates] or by sentence [batch, candidates], that
        compete with one another and with the end: a sum over few words in place of the whole
        vocabulary. The probabilities are then too high by the mass of the words left out.
        """
        ...

    def score(self, memory: Memory, target: Hard) -> WordScores:
        """log p of the words of these strings, and of their ends, in one pass."""
        ...

    def start(self, memory: Memory) -> State:
        """The state before the first word, one row for each sentence of the memory."""
        ...

    def step(self, memory: Memory, state: State, ids: Tensor | None) -> tuple[State, Tensor]:
        """Take one word for each row of the state (None: the beginning of the sentence).

        Rows come in equal groups, one group a sentence of the memory. Returns the next state and
        log p of the next word [rows, vocabulary].
        """
        ...


@dataclass(frozen=True)
class RightToLeft:
    """A model trained on reversed targets, seen from reading order."""

    inner: Seq2Seq

    @property
    def direction(self) -> Direction:
        return "r2l"

    @property
    def eos(self) -> int:
        return self.inner.eos

    @property
    def vocabulary_size(self) -> int:
        return self.inner.vocabulary_size

    @property
    def banned(self) -> tuple[int, ...]:
        return self.inner.banned

    @property
    def max_length(self) -> int:
        return self.inner.max_length

    @property
    def reads_gaps(self) -> bool:
        return self.inner.reads_gaps

    @property
    def device(self) -> torch.device:
        return self.inner.device

    def encode(self, source: Tokens) -> Memory:
        return self.inner.encode(source)

    def log_probs(
        self, memory: Memory, target: Tokens, within: Tensor | None = None
    ) -> Predictions:
        found = self.inner.log_probs(memory, reverse(target), within)
        return replace(found, words=flip(found.words, target.mask))

    def score(self, memory: Memory, target: Hard) -> WordScores:
        backwards = Hard(flip(target.ids, target.mask), target.mask)
        found = self.inner.score(memory, backwards)
        return replace(found, words=flip(found.words, target.mask))

    def start(self, memory: Memory) -> State:
        return self.inner.start(memory)

    def step(self, memory: Memory, state: State, ids: Tensor | None) -> tuple[State, Tensor]:
        return self.inner.step(memory, state, ids)
