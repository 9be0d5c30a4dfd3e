"""How a step moves a point of the simplex: the only place where EG and SGD differ.

A geometry has its own coordinates for the variables y. `lift` gives the coordinates of a start,
`probs` leads back to y, `pull` turns dQ/dy into what an update sees, and `move` takes a step.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from torch import Tensor

from simplexity.relax.simplex import project


class Geometry(Protocol):
    """Coordinates on a product of simplices, one for each row of the last dimension."""

    def lift(self, probs: Tensor) -> Tensor:
        """The coordinates of these distributions."""
        ...

    def probs(self, point: Tensor) -> Tensor:
        """The distributions at these coordinates."""
        ...

    def pull(self, point: Tensor, grad: Tensor) -> Tensor:
        """dQ/dy as this geometry hands it to an update."""
        ...

    def move(self, point: Tensor, step: Tensor) -> Tensor:
        """The point one step downhill."""
        ...


@dataclass(frozen=True)
class ExponentiatedGradient:
    """Multiply each probability and normalise (paper, Algorithm 1).

    y_i(w) <- y_i(w) exp(-step_i(w)) / Z_i, kept in logs, so that a word whose probability is too
    small to write can still come back. A word that starts with probability 0 is forbidden.
    """

    def lift(self, probs: Tensor) -> Tensor:
        return probs.log()

    def probs(self, point: Tensor) -> Tensor:
        return point.softmax(-1)

    def pull(self, point: Tensor, grad: Tensor) -> Tensor:
        return grad

    def move(self, point: Tensor, step: Tensor) -> Tensor:
        return (point - step).log_softmax(-1)


@dataclass(frozen=True)
class SoftmaxGradient:
    """Descend in the logits of a softmax (paper, Algorithm 2).

    r_i(w) <- r_i(w) - step_i(w) with y_i = softmax(r_i), so the chain rule gives
    dQ/dr_i(w) = y_i(w) (g_i(w) - <y_i, g_i>). Logits matter up to a constant for each position:
    log-probabilities are as good a start as a model's own. A word that starts with probability 0
    is forbidden.
    """

    def lift(self, probs: Tensor) -> Tensor:
        return probs.log()

    def probs(self, point: Tensor) -> Tensor:
        return point.softmax(-1)

    def pull(self, point: Tensor, grad: Tensor) -> Tensor:
        y = self.probs(point)
        return y * (grad - (y * grad).sum(-1, keepdim=True))

    def move(self, point: Tensor, step: Tensor) -> Tensor:
        return point - step


@dataclass(frozen=True)
class ProjectedGradient:
    """Step freely, then return to the nearest point of the simplex.

    y_i <- argmin_{u in simplex} |u - (y_i - step_i)|. Here probability 0 forbids nothing: a word
    can leave and come back.
    """

    def lift(self, probs: Tensor) -> Tensor:
        return probs

    def probs(self, point: Tensor) -> Tensor:
        return point

    def pull(self, point: Tensor, grad: Tensor) -> Tensor:
        return grad

    def move(self, point: Tensor, step: Tensor) -> Tensor:
        return project(point - step)
