"""When a sentence has had enough: rules that look at its history.

A rule answers True for the sentences that should stop. Comparisons are written so that a value
that is not a number never stops anything: `minimise` sees to those itself.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Protocol

import torch
from torch import Tensor

from simplexity.relax.simplex import frank_wolfe_gap, gradient_norm
from simplexity.relax.tokens import Soft


@dataclass(frozen=True)
class History:
    """What a rule may know about the sentences still in the batch.

    t: updates made. cost, previous, best [batch]: the cost now, one update ago (NaN at the start)
    and the least so far. unchanged [batch]: for how many updates the rounding has stayed the same.
    y, grad: the iterate and its centred gradient. first_gradient [batch]: `gradient` at the start.
    """

    t: int
    cost: Tensor
    previous: Tensor
    best: Tensor
    unchanged: Tensor
    y: Soft
    grad: Tensor
    first_gradient: Tensor

    @property
    def gap(self) -> Tensor:
        """The Frank-Wolfe gap [batch]: the first-order improvement that is left."""
        return frank_wolfe_gap(self.y, self.grad)

    @property
    def gradient(self) -> Tensor:
        """The length of the gradient as the simplex measures it [batch]."""
        return gradient_norm(self.y, self.grad)


class Stop(Protocol):
    """A rule with a name for the record."""

    @property
    def name(self) -> str: ...

    def __call__(self, history: History) -> Tensor:
        """Which sentences are done [batch]."""
        ...


@dataclass(frozen=True)
class MaxIterations:
    """Stop after n updates."""

    n: int
    name: ClassVar[str] = "iterations"

    def __call__(self, history: History) -> Tensor:
        return torch.full_like(history.cost, history.t >= self.n, dtype=torch.bool)


@dataclass(frozen=True)
class RelativeChange:
    """Stop when an update hardly changes the cost: |Q_t - Q_{t-1}| <= tolerance |Q_{t-1}|."""

    tolerance: float
    name: ClassVar[str] = "relative change"

    def __call__(self, history: History) -> Tensor:
        change = (history.cost - history.previous).abs()
        return change <= self.tolerance * history.previous.abs()


@dataclass(frozen=True)
class RoundingUnchanged:
    """Stop when the likeliest words have stayed the same for this many updates."""

    iterations: int
    name: ClassVar[str] = "rounding unchanged"

    def __call__(self, history: History) -> Tensor:
        return history.unchanged >= self.iterations


@dataclass(frozen=True)
class GradientRatio:
    """Stop when the gradient has shrunk to this share of its length at the start."""

    ratio: float
    name: ClassVar[str] = "gradient ratio"

    def __call__(self, history: History) -> Tensor:
        return history.gradient <= self.ratio * history.first_gradient


@dataclass(frozen=True)
class SmallGap:
    """Stop when the Frank-Wolfe gap promises no more than this improvement.

    The gap counts every candidate, also one that started with probability 0.
    """

    tolerance: float
    name: ClassVar[str] = "gap"

    def __call__(self, history: History) -> Tensor:
        return history.gap <= self.tolerance


@dataclass(frozen=True)
class FirstOf:
    """Stop when any of these rules says so; of several at once, the first in the list counts."""

    rules: tuple[Stop, ...]
    name: ClassVar[str] = "first of"

    def __call__(self, history: History) -> Tensor:
        return self.which(history) >= 0

    def which(self, history: History) -> Tensor:
        """The number of the rule that stops each sentence, -1 where none does [batch]."""
        number = torch.full_like(history.unchanged, -1)
        for i, rule in reversed(list(enumerate(self.rules))):
            number = torch.where(rule(history), i, number)
        return number
