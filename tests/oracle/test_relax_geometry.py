"""Geometries and simplex functions against printed formulas, autograd and independent solvers."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor
from torch.autograd import gradcheck

from simplexity.relax.geometry import ExponentiatedGradient, ProjectedGradient, SoftmaxGradient
from simplexity.relax.simplex import (
    centred,
    entropy,
    frank_wolfe_gap,
    gradient_norm,
    project,
)
from simplexity.relax.tokens import Soft

SEEDS = st.integers(0, 10_000)


def draw(seed: int, *shape: int) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(*shape, generator=generator, dtype=torch.float64)


def simplex(seed: int, *shape: int) -> Tensor:
    return draw(seed, *shape).softmax(-1)


def test_one_eg_step_is_the_printed_update() -> None:
    y = torch.tensor([[[0.1, 0.2, 0.3, 0.4]]], dtype=torch.float64)
    g = torch.tensor([[[1.5, -0.5, 0.25, 3.0]]], dtype=torch.float64)
    eta = 0.7
    eg = ExponentiatedGradient()
    got = eg.probs(eg.move(eg.lift(y), eta * eg.pull(eg.lift(y), g)))
    weights = [
        p * 2.718281828459045 ** (-eta * d)
        for p, d in zip(y[0, 0].tolist(), g[0, 0].tolist(), strict=True)
    ]
    expected = torch.tensor([[[w / sum(weights) for w in weights]]], dtype=torch.float64)
    torch.testing.assert_close(got, expected, rtol=1e-14, atol=0)


@given(SEEDS, st.integers(1, 3), st.integers(1, 4), st.integers(2, 9))
@settings(max_examples=25, deadline=None)
def test_sgd_pull_is_autograds_vector_jacobian_product(seed: int, b: int, t: int, k: int) -> None:
    geometry = SoftmaxGradient()
    r = draw(seed, b, t, k).requires_grad_()
    g = draw(seed + 1, b, t, k)
    (expected,) = torch.autograd.grad(r.softmax(-1), r, g)
    torch.testing.assert_close(geometry.pull(r.detach(), g), expected, rtol=1e-12, atol=1e-14)


def test_sgd_step_is_algorithm_2() -> None:
    geometry, y, g = SoftmaxGradient(), simplex(0, 2, 3, 4), draw(1, 2, 3, 4)
    r = geometry.lift(y)
    jacobian = torch.diag_embed(y) - y[..., :, None] * y[..., None, :]
    expected = (y.log() - 0.3 * (jacobian @ g[..., None]).squeeze(-1)).softmax(-1)
    got = geometry.probs(geometry.move(r, 0.3 * geometry.pull(r, g)))
    torch.testing.assert_close(got, expected, rtol=1e-12, atol=1e-14)


def bisect_projection(x: Tensor) -> Tensor:
    """max(x - tau, 0), with tau found by halving an interval."""
    low, high = x.amin(-1, keepdim=True) - 1, x.amax(-1, keepdim=True)
    for _ in range(200):
        tau = (low + high) / 2
        over = (x - tau).clamp_min(0).sum(-1, keepdim=True) > 1
        low, high = torch.where(over, tau, low), torch.where(over, high, tau)
    return (x - high).clamp_min(0)


@given(SEEDS, st.integers(1, 40), st.floats(1e-3, 400))
@settings(max_examples=60, deadline=None)
def test_projection_is_the_nearest_point(seed: int, k: int, scale: float) -> None:
    x = scale * draw(seed, 2, 3, k)
    y = project(x)
    torch.testing.assert_close(y, bisect_projection(x), rtol=0, atol=1e-10 * max(1.0, scale))
    # The optimality condition: no vertex v has <v - y, x - y> > 0.
    residual = x - y
    inner = residual.amax(-1) - (y * residual).sum(-1)
    assert (inner <= 1e-9 * max(1.0, scale)).all()


def test_projection_is_safe_in_single_precision() -> None:
    generator = torch.Generator().manual_seed(0)
    spread = torch.randn(4, 10_000, generator=generator)
    half = torch.full((1, 10_000), -0.5 + 1e-4)
    half[0, 0] = 0.0
    for x in (spread, 400 * spread, 1e-5 * spread, half, 1e3 + 1e-3 * spread):
        y = project(x)
        assert (y >= 0).all()
        torch.testing.assert_close(y.sum(-1), torch.ones(len(x)), rtol=0, atol=1e-5)
        exact = bisect_projection(x.double())
        torch.testing.assert_close(y.double(), exact, rtol=1e-3, atol=1e-6)


@pytest.mark.parametrize("geometry", [ExponentiatedGradient(), SoftmaxGradient()])
def test_a_word_that_starts_with_zero_stays_forbidden_and_nothing_is_nan(
    geometry: ExponentiatedGradient | SoftmaxGradient,
) -> None:
    y = torch.tensor([[[0.0, 0.25, 0.75], [0.0, 1.0, 0.0]]], dtype=torch.float64)
    g = torch.tensor([[[-50.0, 1.0, -1.0], [-9.0, 9.0, -9.0]]], dtype=torch.float64)
    point = geometry.lift(y)
    torch.testing.assert_close(geometry.probs(point), y, rtol=0, atol=1e-15)
    for _ in range(5):
        pulled = geometry.pull(point, g)
        assert pulled.isfinite().all()
        point = geometry.move(point, 400 * pulled)
        now = geometry.probs(point)
        assert not now.isnan().any()
        assert (now[y == 0] == 0).all()
        torch.testing.assert_close(now.sum(-1), torch.ones(1, 2, dtype=torch.float64))


def test_projection_lets_a_forbidden_word_return() -> None:
    geometry = ProjectedGradient()
    y = torch.tensor([[[0.0, 1.0]]], dtype=torch.float64)
    step = torch.tensor([[[-0.25, 0.25]]], dtype=torch.float64)
    moved = geometry.move(geometry.lift(y), step)
    torch.testing.assert_close(moved, torch.tensor([[[0.25, 0.75]]], dtype=torch.float64))


def test_eg_remembers_probabilities_too_small_to_write() -> None:
    eg = ExponentiatedGradient()
    point = eg.lift(torch.tensor([[[0.5, 0.5]]]))
    away = torch.tensor([[[0.0, 400.0]]])
    there = eg.move(point, away)
    assert eg.probs(there)[0, 0, 1] == 0
    torch.testing.assert_close(eg.probs(eg.move(there, -away)), eg.probs(point))


def test_eg_does_not_lose_precision_to_a_drift() -> None:
    """Its coordinates stay log-probabilities, however much a step moves all words together."""
    eg = ExponentiatedGradient()
    point = eg.lift(torch.tensor([[[0.5, 0.5]]]))
    for _ in range(500):
        point = eg.move(point, torch.tensor([[[400.0, 400.0 + 2**-10]]]))
    torch.testing.assert_close(point.exp().sum(-1), torch.ones(1, 1))
    odds = point[0, 0, 0] - point[0, 0, 1]
    torch.testing.assert_close(odds, torch.tensor(500 * 2**-10), rtol=1e-4, atol=0)


MASK = torch.tensor([[True, True, True], [True, False, False]])


def test_entropy_by_hand() -> None:
    y = torch.zeros(2, 3, 4, dtype=torch.float64)
    y[0, 0] = 0.25
    y[0, 1, 2] = 1.0
    y[0, 2, :2] = 0.5
    y[1, 0, :2] = torch.tensor([0.25, 0.75])
    y[1, 1:] = 0.25
    log4, log2, quarter = 1.3862943611198906, 0.6931471805599453, 0.5623351446188083
    expected = torch.tensor([log4 + log2, quarter], dtype=torch.float64)
    torch.testing.assert_close(entropy(Soft(y, MASK)), expected, rtol=1e-14, atol=0)


def test_entropy_passes_gradcheck_and_ignores_padding() -> None:
    y = simplex(0, 2, 3, 4).requires_grad_()
    assert gradcheck(lambda p: entropy(Soft(p, MASK)), (y,))
    (grad,) = torch.autograd.grad(entropy(Soft(y, MASK)).sum(), y)
    assert (grad[~MASK] == 0).all()


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_entropy_has_a_finite_gradient_at_a_vertex(dtype: torch.dtype) -> None:
    y = torch.eye(3, dtype=dtype)[None].requires_grad_()
    cost = entropy(Soft(y, torch.ones(1, 3, dtype=torch.bool)))
    (grad,) = torch.autograd.grad(cost.sum(), y)
    assert cost.item() == 0
    assert grad.isfinite().all()
    assert (grad[0][~torch.eye(3, dtype=torch.bool)] > 50).all()  # uphill, and steeply


def test_centred_gradient_by_hand() -> None:
    y = torch.tensor([[[0.25, 0.75], [0.5, 0.5]]], dtype=torch.float64)
    g = torch.tensor([[[4.0, 8.0], [1.0, 3.0]]], dtype=torch.float64)
    soft = Soft(y, torch.tensor([[True, False]]))
    expected = torch.tensor([[[-3.0, 1.0], [0.0, 0.0]]], dtype=torch.float64)
    torch.testing.assert_close(centred(soft, g), expected)


def test_gap_and_gradient_norm_by_hand() -> None:
    y = torch.tensor([[[0.25, 0.75], [0.5, 0.5], [1.0, 0.0]]], dtype=torch.float64)
    g = torch.tensor([[[-3.0, 1.0], [-100.0, 100.0], [0.0, 7.0]]], dtype=torch.float64)
    soft = Soft(y, torch.tensor([[True, False, True]]))
    torch.testing.assert_close(frank_wolfe_gap(soft, g), torch.tensor([3.0], dtype=torch.float64))
    expected = torch.tensor([3.0**0.5], dtype=torch.float64)  # 0.25 * 9 + 0.75 * 1
    torch.testing.assert_close(gradient_norm(soft, g), expected)
