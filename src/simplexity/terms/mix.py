"""Weighted sums of terms: the objectives of the paper's extended models.

bidirectional   a (-log P_r2l(y | x)) + (1 - a) (-log P_l2r(y | x))        (eq. 8)
bilingual       a (-log P(y | x))     + (1 - a) (-log P(x | y))            (eq. 9)
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor

from simplexity.errors import UsageError
from simplexity.relax.simplex import entropy
from simplexity.relax.tokens import Hard, Soft, Tokens, lengths, words


class TermEnergy(Protocol):
    """An energy that knows how many factors its cost is made of."""

    def __call__(self, y: Tokens) -> Tensor:
        """The cost of each sentence [batch]."""
        ...

    def factors(self, y: Tokens) -> Tensor:
        """Number of probabilities multiplied [batch]; costs per word divide by it."""
        ...

    def select(self, rows: Tensor) -> TermEnergy:
        """The same energy for some of its sentences."""
        ...


class Term(Protocol):
    """A part of the objective: bound to sources, it is an energy."""

    def bind(self, source: Hard) -> TermEnergy: ...


@dataclass(frozen=True)
class Part:
    """A term under the name that reports use, and its weight in the sum."""

    name: str
    weight: float
    term: Term


@dataclass(frozen=True)
class Mix:
    """sum_k weight_k cost_k: one objective made of several terms."""

    parts: tuple[Part, ...]

    def __post_init__(self) -> None:
        if not self.parts:
            raise UsageError("An objective needs at least one term.")
        for part in self.parts:
            if part.weight == 0 or not math.isfinite(part.weight):
                raise UsageError(f"The weight of {part.name} is {part.weight}; leave the term out.")

    def bind(self, source: Hard) -> MixEnergy:
        """Bind every term to the same sources."""
        return MixEnergy(
            tuple(part.name for part in self.parts),
            tuple(part.weight for part in self.parts),
            tuple(part.term.bind(source) for part in self.parts),
        )


@dataclass(frozen=True)
class MixEnergy:
    """The weighted sum for a batch of sources, and what each term adds to it."""

    names: tuple[str, ...]
    weights: tuple[float, ...]
    energies: tuple[TermEnergy, ...]

    def __call__(self, y: Tokens) -> Tensor:
        return self.total(self.costs(y))

    def costs(self, y: Tokens) -> Tensor:
        """The cost of every term by itself, not weighted [batch, terms]."""
        return torch.stack([energy(y) for energy in self.energies], -1)

    def total(self, costs: Tensor) -> Tensor:
        """The weighted sum of costs [..., terms]."""
        # Plain sums: a matrix product would round to bfloat16 under autocast, and a tensor of
        # weights would have to travel to the device in every iteration.
        terms = zip(self.weights, costs.unbind(-1), strict=True)
        return torch.stack([weight * cost for weight, cost in terms]).sum(0)

    def per_word(self, costs: Tensor, y: Tokens) -> Tensor:
        """The weighted sum, every term divided by its own factors: for strings of any length."""
        return self.total(costs / torch.stack([e.factors(y) for e in self.energies], -1))

    def factors(self, y: Tokens) -> Tensor:
        return words(y) + 1

    def select(self, rows: Tensor) -> MixEnergy:
        return MixEnergy(self.names, self.weights, tuple(e.select(rows) for e in self.energies))


@dataclass(frozen=True)
class PerWord:
    """A term divided by the number of its factors: the words it predicts, and their end.

    The paper measures costs so. A sum of such terms compares strings of different lengths.
    """

    term: Term

    def bind(self, source: Hard) -> PerWordEnergy:
        return PerWordEnergy(self.term.bind(source))


@dataclass(frozen=True)
class PerWordEnergy:
    """Cost per factor."""

    energy: TermEnergy

    def __call__(self, y: Tokens) -> Tensor:
        return self.energy(y) / self.energy.factors(y)

    def factors(self, y: Tokens) -> Tensor:
        return torch.ones_like(lengths(y))

    def select(self, rows: Tensor) -> PerWordEnergy:
        return PerWordEnergy(self.energy.select(rows))


@dataclass(frozen=True)
class Confidence:
    """-sum_i Entropy(y_i), the prior of EG's implicit objective (eq. 7); 0 at every string.

    With weight gamma in a `Mix`, it keeps estimates from becoming confident without evidence.
    """

    def bind(self, source: Hard) -> ConfidenceEnergy:
        return ConfidenceEnergy()


@dataclass(frozen=True)
class ConfidenceEnergy:
    """Minus the entropy of every position, summed; the sources do not matter."""

    def __call__(self, y: Tokens) -> Tensor:
        match y:
            case Soft():
                return -entropy(y)
            case Hard(ids=ids):
                return torch.zeros(len(ids), device=ids.device)

    def factors(self, y: Tokens) -> Tensor:
        return lengths(y).clamp_min(1)

    def select(self, rows: Tensor) -> ConfidenceEnergy:
        return self


@dataclass(frozen=True)
class WordReward:
    """Minus the number of words: with a weight in a `Mix`, what each word takes off the cost.

    Sums of costs favour short strings, and this evens them out; it moves no descent, whose strings
    keep their length.
    """

    def bind(self, source: Hard) -> WordRewardEnergy:
        return WordRewardEnergy()


@dataclass(frozen=True)
class WordRewardEnergy:
    """Minus the words of each string; the sources do not matter."""

    def __call__(self, y: Tokens) -> Tensor:
        # Tied to the probabilities, of which it is constant, so that a gradient exists.
        return -1.0 * words(y) + (0.0 * y.probs.sum((1, 2)) if isinstance(y, Soft) else 0.0)

    def factors(self, y: Tokens) -> Tensor:
        return lengths(y).clamp_min(1)

    def select(self, rows: Tensor) -> WordRewardEnergy:
        return self
