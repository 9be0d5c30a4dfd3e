"""From gradients to steps: step sizes, schedules, momentum, scaling.

An update keeps nothing: what it must remember is a state that goes in and comes out. A state is
`()`, a tensor that starts with the batch, or a tuple of states, so that sentences can leave.
Updates see gradients that are centred and 0 on padding, [batch, length, candidates].
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias

import torch
from torch import Tensor

State: TypeAlias = Any
"""`()`, a tensor [batch, ...], or a tuple of states."""


class Schedule(Protocol):
    """A step size for each iteration, counted from 0."""

    def __call__(self, t: int) -> float: ...


class Update(Protocol):
    """A rule that makes steps of gradients. Subtract the step to go downhill."""

    def init(self, like: Tensor) -> State:
        """What it remembers before the first gradient; `like` has the gradients' shape."""
        ...

    def step(self, grad: Tensor, state: State, t: int) -> tuple[Tensor, State]:
        """The step for this gradient, and what to remember."""
        ...


def select_state(state: State, rows: Tensor) -> State:
    """The state of these sentences."""
    if isinstance(state, tuple):
        return tuple(select_state(part, rows) for part in state)
    return state[rows]


def choose_state(which: Tensor, state: State, other: State) -> State:
    """`state` for the sentences where `which` [batch] is True, `other` for the rest."""
    if isinstance(state, tuple):
        pairs = zip(state, other, strict=True)
        return tuple(choose_state(which, mine, its) for mine, its in pairs)
    return torch.where(per_sentence(which, state), state, other)


def per_sentence(values: Tensor, like: Tensor) -> Tensor:
    """Values [batch] with as many dimensions as `like`, to be broadcast against it."""
    return values.view(-1, *[1] * (like.dim() - 1))


@dataclass(frozen=True)
class Constant:
    """The same step size for ever: eta."""

    size: float

    def __call__(self, t: int) -> float:
        return self.size


@dataclass(frozen=True)
class InverseDecay:
    """A step size that falls like a power of time: eta / (1 + t * decay)^power.

    >>> InverseDecay(initial=2.0, decay=1.0, power=0.5)(3)
    1.0
    """

    initial: float
    decay: float
    power: float = 1.0

    def __call__(self, t: int) -> float:
        return float(self.initial / (1.0 + t * self.decay) ** self.power)


@dataclass(frozen=True)
class ExponentialDecay:
    """A step size that keeps a fixed share of itself at each iteration: eta * rate^t.

    >>> ExponentialDecay(initial=2.0, rate=0.5)(2)
    0.5
    """

    initial: float
    rate: float

    def __call__(self, t: int) -> float:
        return float(self.initial * self.rate**t)


@dataclass(frozen=True)
class Scale:
    """Multiply by the step size eta, a number or a schedule."""

    size: float | Schedule

    def init(self, like: Tensor) -> State:
        return ()

    def step(self, grad: Tensor, state: State, t: int) -> tuple[Tensor, State]:
        size = self.size(t) if callable(self.size) else self.size
        return size * grad, ()


@dataclass(frozen=True)
class Momentum:
    """Sum the gradients, the older the less.

    v_t = decay * v_{t-1} + g_t. After `Scale(eta)` this is the weighted moving average that the
    paper prints: Chain((Scale(eta), Momentum(0.9))).
    """

    decay: float = 0.9

    def init(self, like: Tensor) -> State:
        return torch.zeros_like(like)

    def step(self, grad: Tensor, state: State, t: int) -> tuple[Tensor, State]:
        velocity = self.decay * state + grad
        return velocity, velocity


@dataclass(frozen=True)
class Nesterov:
    """Momentum that looks one step ahead.

    v_t = decay * v_{t-1} + g_t, and the step is g_t + decay * v_t.
    """

    decay: float = 0.9

    def init(self, like: Tensor) -> State:
        return torch.zeros_like(like)

    def step(self, grad: Tensor, state: State, t: int) -> tuple[Tensor, State]:
        velocity = self.decay * state + grad
        return grad + self.decay * velocity, velocity


@dataclass(frozen=True)
class Optimistic:
    """Expect the next gradient to change as the last one did: 2 g_t - g_{t-1}, at first g_0."""

    def init(self, like: Tensor) -> State:
        return torch.zeros_like(like), _counters(like)

    def step(self, grad: Tensor, state: State, t: int) -> tuple[Tensor, State]:
        previous, seen = state
        return grad + seen * (grad - previous), (grad, torch.ones_like(seen))


@dataclass(frozen=True)
class Adaptive:
    """Divide each coordinate by its recent size, as Adam does (Kingma and Ba, 2015).

    m_t = beta1 m_{t-1} + (1 - beta1) g_t and v_t = beta2 v_{t-1} + (1 - beta2) g_t^2; the step is
    m_t / (1 - beta1^n) / (sqrt(v_t / (1 - beta2^n)) + eps) after n gradients.
    """

    beta1: float = 0.9
    beta2: float = 0.999
    eps: float = 1e-8

    def init(self, like: Tensor) -> State:
        return torch.zeros_like(like), torch.zeros_like(like), _counters(like)

    def step(self, grad: Tensor, state: State, t: int) -> tuple[Tensor, State]:
        mean, square, count = state
        mean = self.beta1 * mean + (1 - self.beta1) * grad
        square = self.beta2 * square + (1 - self.beta2) * grad.square()
        count = count + 1  # not t: a sentence whose step was refused begins again
        size = (square / (1 - self.beta2**count)).sqrt() + self.eps
        return mean / (1 - self.beta1**count) / size, (mean, square, count)


@dataclass(frozen=True)
class ClipNorm:
    """Shorten a sentence's gradient to a greatest length: g * min(1, limit / |g|).

    |g| is the Euclidean norm over the positions and words of one sentence.
    """

    limit: float

    def init(self, like: Tensor) -> State:
        return ()

    def step(self, grad: Tensor, state: State, t: int) -> tuple[Tensor, State]:
        norm = torch.linalg.vector_norm(grad, dim=(-2, -1), keepdim=True)
        return grad * (self.limit / norm.clamp_min(self.limit)), ()


@dataclass(frozen=True)
class Chain:
    """Apply updates from first to last; each sees the step of the one before."""

    updates: tuple[Update, ...]

    def init(self, like: Tensor) -> State:
        return tuple(update.init(like) for update in self.updates)

    def step(self, grad: Tensor, state: State, t: int) -> tuple[Tensor, State]:
        states = []
        for update, mine in zip(self.updates, state, strict=True):
            grad, mine = update.step(grad, mine, t)
            states.append(mine)
        return grad, tuple(states)


def _counters(like: Tensor) -> Tensor:
    """A zero for each sentence, to be broadcast against `like`."""
    return per_sentence(like.new_zeros(like.shape[0]), like)
