"""Updates against their printed recurrences and against torch's own optimisers."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor

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

STEPS = 6


def gradients(seed: int = 0) -> list[Tensor]:
    generator = torch.Generator().manual_seed(seed)
    return [torch.randn(2, 3, 4, generator=generator, dtype=torch.float64) for _ in range(STEPS)]


def run(update: Update, grads: list[Tensor]) -> list[Tensor]:
    state, steps = update.init(grads[0]), []
    for t, grad in enumerate(grads):
        step, state = update.step(grad, state, t)
        steps.append(step)
    return steps


def torch_steps(
    make: Callable[[list[Tensor]], torch.optim.Optimizer], grads: list[Tensor]
) -> list[Tensor]:
    """What an optimiser of torch subtracts with a learning rate of 1."""
    point = torch.zeros_like(grads[0]).requires_grad_()
    optimiser, steps = make([point]), []
    for grad in grads:
        before = point.detach().clone()
        point.grad = grad.clone()
        optimiser.step()
        steps.append(before - point.detach())
    return steps


def test_scaled_momentum_is_the_papers_recurrence() -> None:
    """nabla^{t-1} = gamma nabla^{t-2} + eta dQ/dy."""
    grads, eta, gamma = gradients(), 50.0, 0.9
    steps = run(Chain((Scale(eta), Momentum(gamma))), grads)
    for t, step in enumerate(steps):
        expected = sum(gamma ** (t - s) * eta * grads[s] for s in range(t + 1))
        torch.testing.assert_close(step, expected, rtol=1e-13, atol=1e-13)


def test_momentum_is_torchs() -> None:
    grads = gradients(1)
    theirs = torch_steps(lambda p: torch.optim.SGD(p, lr=1.0, momentum=0.8), grads)
    torch.testing.assert_close(run(Momentum(0.8), grads), theirs)


def test_nesterov_is_torchs() -> None:
    grads = gradients(2)
    theirs = torch_steps(lambda p: torch.optim.SGD(p, lr=1.0, momentum=0.8, nesterov=True), grads)
    torch.testing.assert_close(run(Nesterov(0.8), grads), theirs)


def test_adaptive_is_adam() -> None:
    grads = gradients(3)
    theirs = torch_steps(lambda p: torch.optim.Adam(p, lr=1.0, betas=(0.7, 0.95), eps=1e-3), grads)
    ours = run(Adaptive(beta1=0.7, beta2=0.95, eps=1e-3), grads)
    torch.testing.assert_close(ours, theirs, rtol=1e-9, atol=1e-9)


def test_adaptive_begins_again_whatever_the_iteration() -> None:
    """Its correction for a short memory counts the sentence's own gradients."""
    grads, update = gradients(3), Adaptive()
    late, _ = update.step(grads[0], update.init(grads[0]), 40)
    torch.testing.assert_close(late, run(update, grads)[0], rtol=0, atol=0)


def test_optimistic_extrapolates_after_its_first_step() -> None:
    grads = gradients(4)
    steps = run(Optimistic(), grads)
    torch.testing.assert_close(steps[0], grads[0], rtol=0, atol=0)
    for t in range(1, STEPS):
        torch.testing.assert_close(steps[t], 2 * grads[t] - grads[t - 1])


def test_clipping_is_per_sentence_and_keeps_the_direction() -> None:
    grad = torch.zeros(3, 2, 2, dtype=torch.float64)
    grad[0, 0, 0], grad[0, 1, 1] = 3.0, 4.0  # length 5: too long
    grad[1, 0, 1] = 1.5  # short enough
    (step,) = run(ClipNorm(2.0), [grad])
    torch.testing.assert_close(step[0], grad[0] * 2 / 5)
    torch.testing.assert_close(step[1], grad[1], rtol=0, atol=0)
    assert (step[2] == 0).all()


def test_clipping_is_torchs_one_sentence_at_a_time() -> None:
    grad = gradients(5)[0]
    (ours,) = run(ClipNorm(1.25), [grad])
    for row in range(2):
        parameter = torch.zeros(3, 4, dtype=torch.float64, requires_grad=True)
        parameter.grad = grad[row].clone()
        torch.nn.utils.clip_grad_norm_([parameter], 1.25)
        torch.testing.assert_close(ours[row], parameter.grad, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(
    ("schedule", "expected"),
    [
        (Constant(3.0), [3.0, 3.0, 3.0]),
        (InverseDecay(8.0, 1.0), [8.0, 4.0, 8.0 / 3]),
        (InverseDecay(8.0, 3.0, 0.5), [8.0, 4.0, 8.0 / 7**0.5]),
        (ExponentialDecay(8.0, 0.5), [8.0, 4.0, 2.0]),
    ],
)
def test_schedules(schedule: Callable[[int], float], expected: list[float]) -> None:
    assert [schedule(t) for t in range(3)] == pytest.approx(expected)
    ones = [torch.ones(1, 1, 1, dtype=torch.float64)] * 3
    assert [s.item() for s in run(Scale(schedule), ones)] == pytest.approx(expected)


def test_a_chain_applies_from_first_to_last() -> None:
    grads = gradients(6)
    clipped = run(ClipNorm(1.0), grads)
    expected = run(Momentum(0.5), [0.25 * g for g in clipped])
    chained = run(Chain((ClipNorm(1.0), Scale(0.25), Momentum(0.5))), grads)
    torch.testing.assert_close(chained, expected)
    other = run(Chain((Scale(0.25), Momentum(0.5), ClipNorm(1.0))), grads)
    assert not torch.allclose(other[-1], chained[-1])
