"""Translation models as parts of the objective, in either direction.

    forward   -log P(y | x), relaxed: -sum_i y_i . log softmax f(E y_{<i}, x) - log p(end)   (eq. 6)
    reverse   -log P(x | y), relaxed: the encoder reads the expected embeddings E y_i        (eq. 9)

Every energy takes hard and soft strings alike: the same lines are the relaxed objective, the score
that rounding is judged by, and the scorer of n-best lists.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from torch import Tensor

from simplexity.models.seq2seq import Memory, Seq2Seq
from simplexity.relax.tokens import Hard, Tokens, lengths, words


@dataclass(frozen=True)
class Likelihood:
    """-log P(y | x) under a model of either reading direction, the end included.

    With `shortlisted`, soft strings are scored among the candidates of their support alone, which
    saves the products with the whole vocabulary; hard strings are always scored exactly.
    """

    model: Seq2Seq
    shortlisted: bool = False

    def bind(self, source: Hard) -> LikelihoodEnergy:
        """Read the sources once."""
        return LikelihoodEnergy(self.model, self.model.encode(source), self.shortlisted)


@dataclass(frozen=True)
class LikelihoodEnergy:
    """Cost of targets for sources that were read already."""

    model: Seq2Seq
    memory: Memory
    shortlisted: bool = False

    def __call__(self, y: Tokens) -> Tensor:
        if isinstance(y, Hard):
            return -self.model.score(self.memory, y).total
        within = y.support if self.shortlisted else None
        return -self.model.log_probs(self.memory, y, within).total(y)

    def factors(self, y: Tokens) -> Tensor:
        return words(y) + 1

    def select(self, rows: Tensor) -> LikelihoodEnergy:
        return replace(self, memory=self.memory.select(rows))


@dataclass(frozen=True)
class Reverse:
    """-log P(x | y) under a model that translates back; the string is its source."""

    model: Seq2Seq

    def bind(self, source: Hard) -> ReverseEnergy:
        """Keep the sources: they are what the model has to predict."""
        return ReverseEnergy(self.model, source)


@dataclass(frozen=True)
class ReverseEnergy:
    """Cost of the sources, given targets."""

    model: Seq2Seq
    source: Hard

    def __call__(self, y: Tokens) -> Tensor:
        return -self.model.score(self.model.encode(y), self.source).total

    def factors(self, y: Tokens) -> Tensor:
        return lengths(self.source) + 1

    def select(self, rows: Tensor) -> ReverseEnergy:
        return replace(self, source=self.source.select(rows))
