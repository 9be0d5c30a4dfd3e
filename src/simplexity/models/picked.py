"""log p of given words, without ever holding the scores of all words at all positions.

A string that is known needs one number a position, but the sum over the vocabulary behind it is the
largest product of a small model. It is made a few rows at a time, and the derivative is kept
instead of the scores: what is held is as wide as a hidden state, not as the vocabulary.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, cast

import torch
from torch import Tensor

from simplexity.models.predictions import log_softmax

AT_ONCE = 400_000
"""Scores that are held at a time: some rows of a few thousand words stay in a core's cache."""


@dataclass(frozen=True)
class WordScores:
    """log p of the words of given strings in reading order [batch, length], 0 on padding, and of
    their ends [batch]."""

    words: Tensor
    end: Tensor

    @property
    def total(self) -> Tensor:
        """log P of each string, its end included [batch]."""
        return self.words.sum(-1) + self.end


def word_scores(log_p: Tensor, length: Tensor) -> WordScores:
    """From log p [batch, length + 1] of every word, and of the end behind the last."""
    mask = torch.arange(log_p.shape[1] - 1, device=length.device) < length[:, None]
    end = log_p.gather(1, length[:, None]).squeeze(1)
    return WordScores(log_p[:, :-1].masked_fill(~mask, 0.0), end)


def picked_log_probs(hidden: Tensor, weight: Tensor, bias: Tensor, ids: Tensor) -> Tensor:
    """log softmax(W h + b) at one word for each row: hidden [..., size], ids [...].

    W and b are constants here: only the hidden states have a derivative.
    """
    flat = _Picked.apply(hidden.flatten(0, -2), weight, bias, ids.flatten())  # type: ignore[no-untyped-call]
    return cast(Tensor, flat).view(ids.shape)


class _Picked(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, hidden: Tensor, weight: Tensor, bias: Tensor, ids: Tensor) -> Tensor:
        rows = max(1, AT_ONCE // len(bias))
        found, slopes = [], []
        weight, bias = weight.to(hidden.dtype), bias.to(hidden.dtype)
        for some, words in zip(torch.split(hidden, rows), torch.split(ids, rows), strict=True):
            log_p = log_softmax(torch.addmm(bias, some, weight.mT))
            found.append(log_p.gather(1, words[:, None]).squeeze(1))
            if ctx.needs_input_grad[0]:
                # d log p(w) / dh = W_w - sum_v p(v) W_v
                slopes.append(weight[words] - log_p.exp_().to(hidden.dtype) @ weight)
        if slopes:
            ctx.save_for_backward(torch.cat(slopes))
        return torch.cat(found)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None, None, None]:
        (slope,) = ctx.saved_tensors
        return grad[:, None].to(slope.dtype) * slope, None, None, None
