"""What the paper's model carries: an encoded source, the decoder's state, the weights of a step."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import Any

import torch
from torch import Tensor

TINY = 1e-9
"""The least presence of a position that attention can tell from none."""


@dataclass(frozen=True)
class Cell:
    """The weights that every word passes through, as products want them.

    What reads the same vector is one matrix, rows of the first gates before rows of the readout.
    The doublings turn tanh into the logistic function, which is several times as fast on a CPU:
    v . tanh(z) = 2 v . logistic(2 z) - sum(v), and a softmax does not see the sum.
    """

    words: Tensor
    words_bias: Tensor
    context: Tensor
    top: Tensor
    query: Tensor
    score: Tensor
    recurrent: tuple[Tensor, ...]
    inputs: tuple[Tensor, ...]
    inputs_bias: tuple[Tensor, ...]

    def to(self, kind: torch.dtype) -> Cell:
        """The same in another precision."""
        return Cell(*(_converted(getattr(self, field.name), kind) for field in fields(self)))


def _converted(weights: Any, kind: torch.dtype) -> Any:
    return tuple(w.to(kind) for w in weights) if isinstance(weights, tuple) else weights.to(kind)


@dataclass(frozen=True)
class AttentionalMemory:
    """An encoded batch: what can be attended to, 2 U h_j, and where the decoder starts.

    values: h_j while the network trains; else C h_j, their share in gates and readout, since
    C sum_j a_ij h_j = sum_j a_ij C h_j needs no product with C at every word.
    """

    values: Tensor
    keys: Tensor
    mask: Tensor
    start: DecoderState
    cell: Cell
    log_presence: Tensor | None = None
    """log of the probability that a word stands at each position, where some may be empty."""

    def select(self, rows: Tensor) -> AttentionalMemory:
        """The sentences of these rows, in this order."""
        presence = None if self.log_presence is None else self.log_presence[rows]
        start = self.start.select(rows)
        return AttentionalMemory(
            self.values[rows], self.keys[rows], self.mask[rows], start, self.cell, presence
        )

    def in_working_precision(self) -> AttentionalMemory:
        """The same with its weights as autocast would have them: cast once, not at every word."""
        kind = self.values.device.type
        if self.cell.words.dtype != torch.float32 or not torch.is_autocast_enabled(kind):
            return self
        return replace(self, cell=self.cell.to(torch.get_autocast_dtype(kind)))


@dataclass(frozen=True)
class DecoderState:
    """g_i: output and cell of every layer [rows, layers, hidden]."""

    output: Tensor
    cell: Tensor

    def towards(self, other: DecoderState, share: Tensor) -> DecoderState:
        """Between this state and another, so far on the way [rows]."""
        wide = share[:, None, None]
        return DecoderState(
            torch.lerp(self.output, other.output, wide), torch.lerp(self.cell, other.cell, wide)
        )

    def select(self, rows: Tensor) -> DecoderState:
        """The hypotheses of these rows, in this order."""
        return DecoderState(self.output[rows], self.cell[rows])


def single(numbers: Tensor) -> Tensor:
    """In single precision at least, as all that is carried from word to word."""
    return numbers.to(torch.promote_types(numbers.dtype, torch.float32))


def tanh(numbers: Tensor) -> Tensor:
    """tanh x = 2 logistic(2 x) - 1, which is the faster one on a CPU."""
    if numbers.is_cuda:
        return numbers.tanh()
    return (2 * numbers).sigmoid().sub(0.5).mul_(2)
