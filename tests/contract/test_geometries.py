"""What every geometry must do with every update; a new one is one line in its table."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import islice

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from simplexity.relax.geometry import (
    ExponentiatedGradient,
    Geometry,
    ProjectedGradient,
    SoftmaxGradient,
)
from simplexity.relax.optimise import Backtracking, Iterate, iterates, minimise
from simplexity.relax.simplex import frank_wolfe_gap
from simplexity.relax.stopping import MaxIterations
from simplexity.relax.tokens import Hard, Soft, Tokens, harden, one_hot
from simplexity.relax.updates import (
    Adaptive,
    Chain,
    ClipNorm,
    Constant,
    ExponentialDecay,
    InverseDecay,
    Momentum,
    Nesterov,
    Optimistic,
    Scale,
    Update,
)

GEOMETRIES: dict[str, Geometry] = {
    "eg": ExponentiatedGradient(),
    "sgd": SoftmaxGradient(),
    "projected": ProjectedGradient(),
}


def updates(step: float) -> dict[str, Update]:
    """Every update, with this step size."""
    return {
        "constant": Scale(step),
        "schedule": Scale(Constant(step)),
        "inverse decay": Scale(InverseDecay(step, 0.1, 0.5)),
        "exponential decay": Scale(ExponentialDecay(step, 0.999)),
        "momentum": Chain((Scale(step), Momentum(0.9))),
        "nesterov": Chain((Scale(step), Nesterov(0.9))),
        "optimistic": Chain((Optimistic(), Scale(step))),
        "adaptive": Chain((Adaptive(), Scale(step))),
        "clipped": Chain((ClipNorm(1.0), Scale(step), Momentum(0.9))),
    }


STEP = {ExponentiatedGradient: 0.3, SoftmaxGradient: 1.0, ProjectedGradient: 0.05}
"""A step that suits each of them: SGD's pull is damped by the probabilities."""

EACH_GEOMETRY = pytest.mark.parametrize("geometry", GEOMETRIES.values(), ids=GEOMETRIES.keys())
EACH_UPDATE = pytest.mark.parametrize("name", updates(1.0))


def draw(seed: int, *shape: int, dtype: torch.dtype = torch.float64) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(*shape, generator=generator, dtype=dtype)


@dataclass(frozen=True)
class Linear:
    """sum_i <y_i, c_i>."""

    c: Tensor

    def __call__(self, y: Tokens) -> Tensor:
        p = one_hot(y, self.c.shape[-1], self.c.dtype).probs if isinstance(y, Hard) else y.probs
        return ((p * self.c).sum(-1) * y.mask).sum(-1)

    def select(self, rows: Tensor) -> Linear:
        return Linear(self.c[rows])


@dataclass(frozen=True)
class Coupled:
    """sum_i <y_i, c_i> + y_i' W y_{i+1}: neighbours matter and there are many local optima."""

    c: Tensor
    w: Tensor

    def __call__(self, y: Tokens) -> Tensor:
        p = one_hot(y, self.c.shape[-1], self.c.dtype).probs if isinstance(y, Hard) else y.probs
        p = p * y.mask[..., None]
        return (p * self.c).sum((-1, -2)) + ((p[:, :-1] @ self.w) * p[:, 1:]).sum((-1, -2))

    def select(self, rows: Tensor) -> Coupled:
        return Coupled(self.c[rows], self.w[rows])


@dataclass(frozen=True)
class Quadratic:
    """1/2 sum_i sum_w d_w (y_i(w) - a_i(w))^2."""

    a: Tensor
    d: Tensor

    def __call__(self, y: Tokens) -> Tensor:
        p = one_hot(y, self.a.shape[-1], self.a.dtype).probs if isinstance(y, Hard) else y.probs
        return ((self.d * (p - self.a).square()).sum(-1) * y.mask).sum(-1) / 2

    def select(self, rows: Tensor) -> Quadratic:
        return Quadratic(self.a[rows], self.d[rows])


MASK = torch.tensor([[True, True, True], [True, True, False], [True, False, False]])


def at(
    t: int, energy: Linear | Coupled | Quadratic, start: Soft, g: Geometry, u: Update
) -> Iterate:
    return next(islice(iterates(energy, start, g, u), t, None))


@EACH_GEOMETRY
@given(seed=st.integers(0, 10_000), k=st.integers(1, 12))
@settings(max_examples=20, deadline=None)
def test_lifting_loses_nothing(geometry: Geometry, seed: int, k: int) -> None:
    y = draw(seed, 2, 3, k).softmax(-1)
    torch.testing.assert_close(geometry.probs(geometry.lift(y)), y)


@EACH_GEOMETRY
def test_a_constant_for_each_position_changes_nothing(geometry: Geometry) -> None:
    y, g = draw(0, 2, 3, 5).softmax(-1), draw(1, 2, 3, 5)
    point, shift = geometry.lift(y), 10 * draw(2, 2, 3, 1)
    plain = geometry.probs(geometry.move(point, 0.3 * geometry.pull(point, g)))
    moved = geometry.probs(geometry.move(point, 0.3 * geometry.pull(point, g + shift)))
    torch.testing.assert_close(moved, plain, rtol=1e-12, atol=1e-13)


@EACH_GEOMETRY
@EACH_UPDATE
@given(
    seed=st.integers(0, 10_000),
    step=st.floats(0.01, 400),
    k=st.integers(1, 12),
    length=st.integers(1, 3),
)
@settings(max_examples=12, deadline=None)
def test_it_stays_on_the_simplex(
    geometry: Geometry, name: str, seed: int, step: float, k: int, length: int
) -> None:
    start = Soft(draw(seed, 3, length, k).float().softmax(-1), MASK[:, :length])
    energy = Coupled(3 * draw(seed + 1, 3, length, k).float(), draw(seed + 2, 3, k, k).float())
    for it in islice(iterates(energy, start, geometry, updates(step)[name]), 8):
        assert it.cost.isfinite().all()
        assert (it.y.probs >= 0).all()
        torch.testing.assert_close(it.y.probs.sum(-1), torch.ones(3, length))


@EACH_GEOMETRY
@EACH_UPDATE
def test_it_stays_on_the_simplex_with_ten_thousand_words(geometry: Geometry, name: str) -> None:
    start = Soft(draw(0, 2, 2, 10_000).float().softmax(-1), MASK[:2, :2])
    energy = Linear(10 * draw(1, 2, 2, 10_000).float())
    for it in islice(iterates(energy, start, geometry, updates(400.0)[name]), 4):
        assert (it.y.probs >= 0).all()
        torch.testing.assert_close(it.y.probs.sum(-1), torch.ones(2, 2), rtol=0, atol=1e-5)


@pytest.mark.parametrize("geometry", [ExponentiatedGradient(), SoftmaxGradient()])
@EACH_UPDATE
@pytest.mark.parametrize("search", [None, Backtracking()], ids=["plain", "backtracking"])
def test_forbidden_words_stay_forbidden_without_nan(
    geometry: Geometry, name: str, search: Backtracking | None
) -> None:
    """Probability 0 at the start, though the energy would like these words best."""
    forbidden = torch.zeros(3, 3, 5, dtype=torch.bool)
    forbidden[..., 1], forbidden[1, 0, 2:] = True, True
    start = Soft(draw(0, 3, 3, 5).float().masked_fill(forbidden, -torch.inf).softmax(-1), MASK)
    energy = Linear(draw(1, 3, 3, 5).float() - 50.0 * forbidden)
    banned = forbidden & MASK[..., None]
    for it in islice(iterates(energy, start, geometry, updates(400.0)[name], search), 12):
        assert it.y.probs.isfinite().all()
        assert it.grad.isfinite().all()
        assert (it.y.probs[banned] == 0).all()


@EACH_GEOMETRY
@EACH_UPDATE
def test_it_reaches_the_best_vertex_of_a_linear_energy(geometry: Geometry, name: str) -> None:
    c = draw(7, 3, 3, 6)
    start = Soft(torch.full((3, 3, 6), 1 / 6, dtype=torch.float64), MASK)
    it = at(600, Linear(c), start, geometry, updates(STEP[type(geometry)])[name])
    best = (c.amin(-1) * MASK).sum(-1)
    assert (harden(it.y).ids == c.argmin(-1) * MASK).all()
    torch.testing.assert_close(it.cost, best, rtol=0, atol=0.1)


@EACH_GEOMETRY
@EACH_UPDATE
@pytest.mark.parametrize("step", [0.1, 3.0, 400.0])
def test_the_solution_is_never_worse_than_the_start(
    geometry: Geometry, name: str, step: float
) -> None:
    energy = Coupled(draw(3, 3, 3, 5), 3 * draw(4, 3, 5, 5))
    start = Soft((3 * draw(5, 3, 3, 5)).softmax(-1), MASK)
    found = minimise(iterates(energy, start, geometry, updates(step)[name]), MaxIterations(15))
    torch.testing.assert_close(found.start_cost, energy(start))
    torch.testing.assert_close(found.cost, energy(found.y))
    assert (found.cost <= found.start_cost).all()


@EACH_GEOMETRY
@pytest.mark.parametrize("name", ["constant", "momentum", "nesterov", "optimistic"])
def test_it_finds_the_inner_optimum_of_a_convex_energy(geometry: Geometry, name: str) -> None:
    a = draw(8, 3, 3, 4).softmax(-1)
    energy = Quadratic(a, draw(9, 3, 1, 4).exp())
    start = Soft(torch.full((3, 3, 4), 0.25, dtype=torch.float64), MASK)
    it = at(1000, energy, start, geometry, updates(STEP[type(geometry)])[name])
    torch.testing.assert_close(it.y.probs[MASK], a[MASK], rtol=0, atol=1e-3)


@EACH_GEOMETRY
def test_it_finds_an_optimum_on_the_boundary_of_a_convex_energy(geometry: Geometry) -> None:
    """Certified by the gap, which bounds Q(y) - min Q where Q is convex."""
    energy = Quadratic(draw(10, 3, 3, 4), draw(11, 3, 1, 4).exp())
    start = Soft(torch.full((3, 3, 4), 0.25, dtype=torch.float64), MASK)
    it = at(1500, energy, start, geometry, updates(0.2)["nesterov"])
    assert (it.y.probs[MASK] < 1e-3).any()
    assert (frank_wolfe_gap(it.y, it.grad) < 5e-3).all()


@EACH_GEOMETRY
@EACH_UPDATE
def test_what_stands_on_padding_does_not_matter(geometry: Geometry, name: str) -> None:
    energy = Coupled(draw(3, 3, 3, 5), draw(4, 3, 5, 5))
    start = Soft(draw(5, 3, 3, 5).softmax(-1), MASK)
    expected = at(5, energy, start, geometry, updates(1.0)[name])
    for junk in (0.0, torch.nan, torch.inf):
        probs = torch.where(MASK[..., None], start.probs, junk)
        got = at(5, energy, Soft(probs, MASK), geometry, updates(1.0)[name])
        torch.testing.assert_close(got.y.probs[MASK], expected.y.probs[MASK], rtol=0, atol=0)
        torch.testing.assert_close(got.cost, expected.cost, rtol=0, atol=0)
        assert (got.grad[~MASK] == 0).all()


@EACH_GEOMETRY
@EACH_UPDATE
@pytest.mark.parametrize("search", [None, Backtracking()], ids=["plain", "backtracking"])
def test_the_loop_never_waits_for_the_device(
    geometry: Geometry, name: str, search: Backtracking | None
) -> None:
    """Tensors of the meta device have no values: whatever asks for one fails."""
    mask = MASK.to("meta")
    start = Soft(torch.empty(3, 3, 5, device="meta"), mask)
    energy = Coupled(torch.empty(3, 3, 5, device="meta"), torch.empty(3, 5, 5, device="meta"))
    its = iterates(energy, start, geometry, updates(1.0)[name], search)
    for it in islice(its, 3):
        assert it.grad.device.type == "meta"
    left = its.send(torch.empty(2, dtype=torch.long, device="meta"))
    assert left.y.probs.shape == (2, 3, 5)
