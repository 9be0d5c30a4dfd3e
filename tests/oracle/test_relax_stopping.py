"""Stop rules on histories written by hand, and the promises they make on convex energies."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import islice

import pytest
import torch
from torch import Tensor

from simplexity.relax.geometry import ExponentiatedGradient, ProjectedGradient
from simplexity.relax.optimise import iterates, minimise
from simplexity.relax.stopping import (
    FirstOf,
    GradientRatio,
    History,
    MaxIterations,
    RelativeChange,
    RoundingUnchanged,
    SmallGap,
    Stop,
)
from simplexity.relax.tokens import Hard, Soft, Tokens, harden
from simplexity.relax.updates import Scale

NAN = torch.nan


def history(
    t: int = 3,
    cost: tuple[float, ...] = (1.0, 1.0, 1.0),
    previous: tuple[float, ...] = (NAN, NAN, NAN),
    unchanged: tuple[int, ...] = (0, 0, 0),
    gradient: tuple[float, ...] = (9.0, 9.0, 9.0),
    first: tuple[float, ...] = (9.0, 9.0, 9.0),
) -> History:
    """One position, two words with half of the mass each and the gradient (-x, x)."""
    x = torch.tensor(gradient)[:, None, None]
    return History(
        t=t,
        cost=torch.tensor(cost),
        previous=torch.tensor(previous),
        best=torch.tensor(cost),
        unchanged=torch.tensor(unchanged),
        y=Soft(torch.full((3, 1, 2), 0.5), torch.ones(3, 1, dtype=torch.bool)),
        grad=torch.cat([-x, x], -1),
        first_gradient=torch.tensor(first),
    )


@pytest.mark.parametrize(
    ("rule", "seen", "expected"),
    [
        (MaxIterations(3), history(t=2), [False, False, False]),
        (MaxIterations(3), history(t=3), [True, True, True]),
        (
            RelativeChange(0.1),
            history(cost=(9.5, 8.0, 10.5), previous=(10.0, 10.0, 10.0)),
            [True, False, True],
        ),
        (
            RelativeChange(0.1),
            history(cost=(-9.5, 0.0, 0.0), previous=(-10.0, 0.0, 1.0)),
            [True, True, False],
        ),
        (RelativeChange(0.1), history(t=0), [False, False, False]),
        (RelativeChange(0.1), history(cost=(NAN, 1.0, 1.0)), [False, False, False]),
        (RoundingUnchanged(2), history(unchanged=(1, 2, 3)), [False, True, True]),
        (
            GradientRatio(0.5),
            history(gradient=(2.0, 1.9, 2.1), first=(4.0, 4.0, 4.0)),
            [True, True, False],
        ),
        (GradientRatio(0.5), history(gradient=(0.0,) * 3, first=(0.0,) * 3), [True, True, True]),
        (SmallGap(2.0), history(gradient=(2.0, 1.9, 2.1)), [True, True, False]),
    ],
)
def test_a_rule_says_who_is_done(rule: Stop, seen: History, expected: list[bool]) -> None:
    done = rule(seen)
    assert done.dtype == torch.bool
    assert done.tolist() == expected


def test_the_first_of_several_rules_is_the_reason() -> None:
    rules = FirstOf((RoundingUnchanged(4), SmallGap(1.0), RoundingUnchanged(2)))
    seen = history(unchanged=(4, 2, 1), gradient=(0.5, 0.5, 0.5))
    assert rules.which(seen).tolist() == [0, 1, 1]
    seen = history(unchanged=(4, 2, 1), gradient=(9.0, 9.0, 9.0))
    assert rules.which(seen).tolist() == [0, 2, -1]
    assert rules(seen).tolist() == [True, True, False]


def test_no_rule_never_stops() -> None:
    assert FirstOf(()).which(history()).tolist() == [-1, -1, -1]


@dataclass(frozen=True)
class Quadratic:
    """1/2 |y - a|^2."""

    a: Tensor

    def __call__(self, y: Tokens) -> Tensor:
        assert not isinstance(y, Hard)
        return ((y.probs - self.a).square().sum(-1) * y.mask).sum(-1) / 2

    def select(self, rows: Tensor) -> Quadratic:
        return Quadratic(self.a[rows])


def problem() -> tuple[Quadratic, Soft]:
    generator = torch.Generator().manual_seed(0)
    a = torch.randn(5, 3, 4, generator=generator, dtype=torch.float64)
    mask = torch.tensor([[True] * 3, [True] * 3, [True, True, False], [True] * 3, [True] * 3])
    return Quadratic(a), Soft(torch.full((5, 3, 4), 0.25, dtype=torch.float64), mask)


def test_the_gap_bounds_what_is_left_on_a_convex_energy() -> None:
    energy, start = problem()
    optimum = minimise(
        iterates(energy, start, ProjectedGradient(), Scale(0.5)), MaxIterations(200)
    ).cost
    its = iterates(energy, start, ExponentiatedGradient(), Scale(0.5))
    found = minimise(its, SmallGap(1e-2))
    assert found.why() == ["gap"] * 5
    assert (found.cost - optimum >= -1e-12).all()
    assert (found.cost - optimum <= 1e-2).all()
    assert (found.start_cost - optimum > 1e-2).all()


def test_the_gradient_shrinks_to_the_ratio_just_when_it_says_so() -> None:
    energy, start = problem()
    found = minimise(
        iterates(energy, start, ExponentiatedGradient(), Scale(0.5)), GradientRatio(0.2)
    )
    assert found.why() == ["gradient ratio"] * 5
    its = islice(iterates(energy, start, ExponentiatedGradient(), Scale(0.5)), 200)
    norms = torch.stack(
        [((it.y.probs * it.grad**2).sum(-1) * start.mask).sum(-1).sqrt() for it in its]
    )
    for row, n in enumerate(found.iterations.tolist()):
        assert norms[n, row] <= 0.2 * norms[0, row]
        assert (norms[:n, row] > 0.2 * norms[0, row]).all()


def test_a_rounding_that_never_changes_is_counted_from_the_start() -> None:
    a = torch.eye(4, dtype=torch.float64)[None, :2]
    start = Soft(0.5 * a + 0.125, torch.ones(1, 2, dtype=torch.bool))
    its = iterates(Quadratic(a), start, ExponentiatedGradient(), Scale(0.1))
    found = minimise(its, RoundingUnchanged(2))
    assert found.iterations.tolist() == [2]
    assert found.fresh.sum(0).tolist() == [1]


def test_the_rounding_has_really_stayed_the_same() -> None:
    energy, start = problem()
    its = list(islice(iterates(energy, start, ExponentiatedGradient(), Scale(0.5)), 50))
    strings = torch.stack([harden(it.y).ids for it in its])
    found = minimise(
        iterates(energy, start, ExponentiatedGradient(), Scale(0.5)), RoundingUnchanged(3)
    )
    for row, n in enumerate(found.iterations.tolist()):
        same = (strings[1:, row] == strings[:-1, row]).all(-1)  # same[t]: t and t + 1 agree
        assert same[n - 3 : n].all()
        assert n == 3 or not same[n - 4]
