"""What a model says of a target: log-probabilities by position, and of the end."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from simplexity.relax.tokens import Hard, Soft, Tokens, restrict


@dataclass(frozen=True)
class Predictions:
    """log p of every candidate at every free position, in reading order, and of the end.

    words: [batch, length, candidates]; end: [batch]; support: the word of each candidate, as in
    `Soft`, None for the whole vocabulary.
    """

    words: Tensor
    end: Tensor
    support: Tensor | None = None

    def per_token(self, target: Tokens) -> Tensor:
        """y_i . log p_i for every position, 0 on padding [batch, length]."""
        match target:
            case Hard(ids=ids):
                picked = self.words.gather(-1, ids[..., None]).squeeze(-1)
            case Soft(probs=probs, support=support) if support is self.support:
                picked = (probs * self.words).sum(-1)
            case Soft(probs=probs, support=support):
                picked = (probs * restrict(self.words, support)).sum(-1)
        return picked.masked_fill(~target.mask, 0.0)

    def total(self, target: Tokens) -> Tensor:
        """sum_i y_i . log p_i + log p(end): the relaxed log-probability [batch] (paper, eq. 5)."""
        return self.per_token(target).sum(-1) + self.end


def split_end(
    logits: Tensor, length: Tensor, eos: int, within: Tensor | None = None
) -> Predictions:
    """Normalise [batch, length + 1, candidates]; log p(end) stands behind each row's last word.

    Candidates are all words, or those of `within` and after them the end.
    """
    log_p = log_softmax(logits)
    place = eos if within is None else -1
    end = log_p[..., place].gather(1, length[:, None]).squeeze(1)
    words = log_p[:, :-1] if within is None else log_p[:, :-1, :-1]
    return Predictions(words, end, within)


def log_softmax(logits: Tensor) -> Tensor:
    """log p, in single precision at least: a sum over many words needs the digits."""
    return logits.log_softmax(-1, dtype=torch.promote_types(logits.dtype, torch.float32))
