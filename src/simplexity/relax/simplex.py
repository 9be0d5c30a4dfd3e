"""What one can ask of a point on the simplex and of the gradient there."""

from __future__ import annotations

import torch
from torch import Tensor

from simplexity.relax.tokens import Soft


def entropy(y: Soft) -> Tensor:
    """How undecided each sentence is, in nats [batch].

    sum_i Entropy(y_i) = sum_i sum_w y_i(w) log(1 / y_i(w)), the prior that the paper weighs with
    gamma in the objective behind EG. A word without mass adds nothing; its derivative is finite.
    """
    # Not torch.special.entr: its derivative at 0 is infinite, and one such word spoils a sentence.
    logs = y.probs.clamp_min(torch.finfo(y.probs.dtype).tiny).log()
    return -(y.probs * logs).sum(-1).masked_fill(~y.mask, 0.0).sum(-1)


def centred(y: Soft, grad: Tensor) -> Tensor:
    """The gradient less its mean under the current distribution, 0 on padding.

    g_i - <y_i, g_i>: the direction that matters on the simplex. A constant added to all words of a
    position changes no step of the three geometries, but it would change norms and moments.
    """
    centre = (y.probs * grad).sum(-1, keepdim=True)
    return (grad - centre).masked_fill(~y.mask[..., None], 0.0)


def frank_wolfe_gap(y: Soft, grad: Tensor) -> Tensor:
    """How much the cost could still fall if it were linear [batch].

    sum_i <y_i, g_i> - min_w g_i(w). Where Q is convex, it bounds Q(y) - min Q.
    """
    mean = (y.probs * grad).sum(-1)
    return (mean - grad.amin(-1)).masked_fill(~y.mask, 0.0).sum(-1)


def gradient_norm(y: Soft, grad: Tensor) -> Tensor:
    """The length of a centred gradient as the simplex measures it [batch].

    sqrt(sum_i sum_w y_i(w) g_i(w)^2): words that have lost their mass no longer count, so it
    vanishes as the positions settle, which the Euclidean length does not.
    """
    return (y.probs * grad.square()).sum(-1).masked_fill(~y.mask, 0.0).sum(-1).sqrt()


def project(x: Tensor) -> Tensor:
    """The nearest point of the simplex, for each row of the last dimension.

    max(x - tau, 0) with tau such that the row sums to 1 (Duchi et al., 2008).
    """
    # Without the shift the running sum of ten thousand words loses the 1 in single precision.
    x = x - x.amax(-1, keepdim=True)
    ordered = x.sort(-1, descending=True).values
    rank = torch.arange(1, x.shape[-1] + 1, device=x.device, dtype=x.dtype)
    excess = ordered.cumsum(-1) - 1.0
    # At least the best word is kept; a row of NaN says not even that, and must not crash.
    kept = (ordered * rank > excess).sum(-1, keepdim=True).clamp_min(1)
    tau = excess.gather(-1, kept - 1) / kept
    y = (x - tau).clamp_min(0.0)
    return y / y.sum(-1, keepdim=True)
