"""Recurrences over positions that may be empty, so that lengths can be relaxed.

A word stands at position i with probability q_i. A recurrent network passes an empty position by,
so its expected state goes on as

    g_i = q_i RNN(g_{i-1}, ...) + (1 - q_i) g_{i-1}

and the word that it reads last is the expectation of that, too. Where every q_i is 0 or 1 this is
the network reading the string that is left, in either direction; in between it is differentiable,
so a descent can open and close positions.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional as F


def last_words(begin: Tensor, words: Tensor, presence: Tensor) -> Tensor:
    """The expected embedding of the last word before each position [batch, length + 1, embedding].

    words: sum_w y_i(w) E^w, which falls short by the share that is empty; presence: q.
    """
    last = [begin.expand(len(words), -1)]
    for word, present in zip(words.unbind(1), presence.unbind(1), strict=True):
        last.append(word + (1 - present)[:, None] * last[-1])
    return torch.stack(last, 1)


def lstm_past_gaps(layer: nn.Module, words: Tensor, presence: Tensor) -> Tensor:
    """The outputs of an LSTM of one layer [batch, length, hidden], empty positions passed by.

    words: what stands at each position if anything does.
    """
    kinds = ("weight_ih", "weight_hh", "bias_ih", "bias_hh")
    into, recurrent, bias, recurrent_bias = (getattr(layer, f"{kind}_l0") for kind in kinds)
    inputs = F.linear(words, into, bias + recurrent_bias)
    output = cell = inputs.new_zeros(len(words), recurrent.shape[1])
    outputs = []
    for gates, present in zip(inputs.unbind(1), presence[..., None].unbind(1), strict=True):
        written, kept, new, shown = (gates + F.linear(output, recurrent)).chunk(4, -1)
        next_cell = kept.sigmoid() * cell + written.sigmoid() * new.tanh()
        outputs.append(shown.sigmoid() * next_cell.tanh())
        output = torch.lerp(output, outputs[-1], present.to(output.dtype))
        cell = torch.lerp(cell, next_cell, present.to(cell.dtype))
    return torch.stack(outputs, 1)
