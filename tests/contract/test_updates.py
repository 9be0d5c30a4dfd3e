"""What every update must do; a new one is one line in the table."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from simplexity.relax.updates import (
    Adaptive,
    Chain,
    ClipNorm,
    InverseDecay,
    Momentum,
    Nesterov,
    Optimistic,
    Scale,
    State,
    Update,
    choose_state,
    select_state,
)

UPDATES: dict[str, Update] = {
    "constant": Scale(0.5),
    "annealed": Scale(InverseDecay(2.0, 0.5, 0.5)),
    "momentum": Momentum(0.9),
    "nesterov": Nesterov(0.9),
    "optimistic": Optimistic(),
    "adaptive": Adaptive(),
    "clipped": ClipNorm(1.0),
    "chain": Chain((ClipNorm(1.0), Adaptive(), Optimistic(), Scale(3.0), Momentum(0.9))),
    "nested": Chain((Chain((Scale(2.0), Momentum(0.5))), Nesterov(0.5))),
    "empty": Chain(()),
}

pytestmark = pytest.mark.parametrize("update", UPDATES.values(), ids=UPDATES.keys())


def gradients(steps: int = 5) -> list[Tensor]:
    generator = torch.Generator().manual_seed(0)
    grads = torch.randn(steps, 4, 3, 5, generator=generator, dtype=torch.float64)
    grads[:, 2, 1:] = 0  # padding
    return list(grads)


def run(
    update: Update, grads: list[Tensor], state: State = None, first: int = 0
) -> tuple[list[Tensor], State]:
    state = update.init(grads[0]) if state is None else state
    steps = []
    for t, grad in enumerate(grads, first):
        step, state = update.step(grad, state, t)
        steps.append(step)
    return steps, state


def tensors(state: State) -> list[Tensor]:
    return [x for part in state for x in tensors(part)] if isinstance(state, tuple) else [state]


def test_sentences_are_independent(update: Update) -> None:
    together, _ = run(update, gradients())
    for row in range(4):
        alone, _ = run(update, [g[row : row + 1] for g in gradients()])
        torch.testing.assert_close([s[row : row + 1] for s in together], alone)


def test_sentences_can_leave_and_change_places(update: Update) -> None:
    rows, grads = torch.tensor([3, 0]), gradients()
    _, state = run(update, grads[:3])
    expected, _ = run(update, grads[3:], state, 3)
    got, _ = run(update, [g[rows] for g in grads[3:]], select_state(state, rows), 3)
    torch.testing.assert_close(got, [s[rows] for s in expected])


def test_a_sentence_can_begin_again(update: Update) -> None:
    """As when its step was refused. Schedules go by the iteration and do not begin again."""
    which, grads = torch.tensor([True, False, False, True]), gradients()
    _, state = run(update, grads[:3])
    mixed, _ = run(update, grads[3:], choose_state(which, update.init(grads[0]), state), 3)
    new, _ = run(update, grads[3:], None, 3)
    old, _ = run(update, grads[3:], state, 3)
    torch.testing.assert_close([s[which] for s in mixed], [s[which] for s in new])
    torch.testing.assert_close([s[~which] for s in mixed], [s[~which] for s in old])


def test_every_part_of_a_state_starts_with_the_batch(update: Update) -> None:
    _, state = run(update, gradients())
    assert all(part.shape[0] == 4 for part in tensors(state))


def test_padding_stays_put(update: Update) -> None:
    steps, _ = run(update, gradients())
    assert all((step[2, 1:] == 0).all() for step in steps)
    assert all((step[2, :1] != 0).all() for step in steps)


def test_nothing_moves_without_a_gradient(update: Update) -> None:
    steps, _ = run(update, [torch.zeros(2, 3, 4)] * 3)
    assert all((step == 0).all() for step in steps)


def test_a_step_changes_neither_the_gradient_nor_the_old_state(update: Update) -> None:
    grads = gradients()
    _, state = run(update, grads[:2])
    before = [part.clone() for part in tensors(state)]
    update.step(grads[2], state, 2)
    torch.testing.assert_close(tensors(state), before, rtol=0, atol=0)
    torch.testing.assert_close(grads[2], gradients()[2], rtol=0, atol=0)


def test_the_first_step_goes_downhill(update: Update) -> None:
    (step, *_), _ = run(update, gradients(1))
    assert ((step * gradients(1)[0]).sum((-1, -2)) > 0).all()


def test_sentences_without_positions_are_no_trouble(update: Update) -> None:
    steps, _ = run(update, [torch.zeros(2, 0, 4)] * 2)
    assert all(step.shape == (2, 0, 4) for step in steps)
