"""The loop against the printed algorithms, sentences decoded alone, and brute force."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import islice, pairwise, product

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from simplexity.relax.geometry import ExponentiatedGradient, ProjectedGradient, SoftmaxGradient
from simplexity.relax.optimise import (
    Backtracking,
    Energy,
    Solution,
    evaluate,
    iterates,
    minimise,
)
from simplexity.relax.stopping import FirstOf, MaxIterations, RelativeChange, RoundingUnchanged
from simplexity.relax.tokens import Hard, Soft, Tokens, harden, one_hot
from simplexity.relax.updates import Adaptive, Chain, ClipNorm, Momentum, Nesterov, Scale, Update

EG = ExponentiatedGradient()
GEOMETRIES = [EG, SoftmaxGradient(), ProjectedGradient()]
MOMENTUM = Chain((Scale(0.5), Momentum(0.9)))
SEEDS = st.integers(0, 10_000)


def draw(seed: int, *shape: int) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(*shape, generator=generator, dtype=torch.float64)


@dataclass(frozen=True)
class Coupled:
    """sum_i <y_i, c_i> + y_i' W y_{i+1}; it remembers the batch sizes it was asked about."""

    c: Tensor
    w: Tensor
    asked: list[int] = field(default_factory=list)

    def __call__(self, y: Tokens) -> Tensor:
        p = one_hot(y, self.c.shape[-1], self.c.dtype).probs if isinstance(y, Hard) else y.probs
        self.asked.append(len(p))
        p = p * y.mask[..., None]
        return (p * self.c).sum((-1, -2)) + ((p[:, :-1] @ self.w) * p[:, 1:]).sum((-1, -2))

    def select(self, rows: Tensor) -> Coupled:
        return Coupled(self.c[rows], self.w[rows], self.asked)


@dataclass(frozen=True)
class Quadratic:
    """scale/2 |y - a|^2."""

    a: Tensor
    scale: float

    def __call__(self, y: Tokens) -> Tensor:
        assert isinstance(y, Soft)
        square = (y.probs - self.a).square().sum(-1)
        return self.scale * (square * y.mask).sum(-1) / 2

    def select(self, rows: Tensor) -> Quadratic:
        return Quadratic(self.a[rows], self.scale)


@dataclass(frozen=True)
class Broken:
    """An energy that answers `value` for some sentences from their `when`-th evaluation on."""

    inner: Energy
    when: Tensor
    value: float
    calls: list[int]

    def __call__(self, y: Tokens) -> Tensor:
        self.calls[0] += 1
        return torch.where(self.when < self.calls[0], self.value, 1.0) * self.inner(y)

    def select(self, rows: Tensor) -> Broken:
        return Broken(self.inner.select(rows), self.when[rows], self.value, self.calls)


def problem(seed: int, batch: int, length: int, k: int) -> tuple[Coupled, Soft]:
    """Sentences of various lengths, the first one the longest."""
    energy = Coupled(draw(seed, batch, length, k), 2 * draw(seed + 1, batch, k, k))
    n = torch.randint(1, length + 1, (batch,), generator=torch.Generator().manual_seed(seed))
    n[0] = length
    mask = torch.arange(length) < n[:, None]
    return energy, Soft((2 * draw(seed + 2, batch, length, k)).softmax(-1), mask)


def raw_gradient(energy: Energy, y: Soft) -> Tensor:
    probs = y.probs.clone().requires_grad_()
    (grad,) = torch.autograd.grad(energy(y.with_probs(probs)).sum(), probs)
    return grad


def test_iterates_are_algorithm_1_as_printed() -> None:
    """Also: centring the gradient leaves EG's iterates as they were."""
    energy, start = problem(0, 3, 4, 5)
    y, eta = start, 0.4
    for it in islice(iterates(energy, start, EG, Scale(eta)), 25):
        torch.testing.assert_close(it.y.probs[y.mask], y.probs[y.mask], rtol=1e-12, atol=1e-12)
        torch.testing.assert_close(it.cost, energy(y), rtol=1e-12, atol=1e-12)
        weights = y.probs * (-eta * raw_gradient(energy, y)).exp()
        y = y.with_probs(weights / weights.sum(-1, keepdim=True))


def test_iterates_with_momentum_are_the_paper_as_printed() -> None:
    energy, start = problem(1, 3, 4, 5)
    y, eta, gamma, nabla = start, 0.2, 0.9, torch.zeros_like(start.probs)
    for it in islice(iterates(energy, start, EG, Chain((Scale(eta), Momentum(gamma)))), 25):
        torch.testing.assert_close(it.y.probs[y.mask], y.probs[y.mask], rtol=1e-12, atol=1e-12)
        nabla = gamma * nabla + eta * raw_gradient(energy, y)
        weights = y.probs * (-nabla).exp()
        y = y.with_probs(weights / weights.sum(-1, keepdim=True))


def test_iterates_are_algorithm_2_by_autograd_in_the_logits() -> None:
    energy, start = problem(2, 3, 4, 5)
    r, eta = start.probs.log().requires_grad_(), 0.8
    for it in islice(iterates(energy, start, SoftmaxGradient(), Scale(eta)), 25):
        y = start.with_probs(r.softmax(-1))
        cost = energy(y)
        torch.testing.assert_close(it.cost, cost.detach(), rtol=1e-12, atol=1e-12)
        (grad,) = torch.autograd.grad(cost.sum(), r)
        r = (r.detach() - eta * grad).requires_grad_()


def test_gradients_flow_where_the_caller_has_switched_them_off() -> None:
    energy, start = problem(0, 2, 3, 4)
    expected = list(islice(iterates(energy, start, EG, MOMENTUM), 3))[-1]
    with torch.no_grad():
        got = list(islice(iterates(energy, start, EG, MOMENTUM), 3))[-1]
    torch.testing.assert_close(got.y.probs, expected.y.probs, rtol=0, atol=0)
    assert not got.y.probs.requires_grad


def test_nothing_that_comes_out_hangs_on_a_graph() -> None:
    energy, start = problem(0, 2, 3, 4)
    start.probs.requires_grad_()
    for it in islice(iterates(energy, start, ProjectedGradient(), MOMENTUM), 3):
        assert not any(x.requires_grad for x in (it.y.probs, it.cost, it.grad))


def test_the_gradient_is_taken_in_y_alone() -> None:
    c = draw(0, 2, 3, 4).requires_grad_()
    energy, start = Coupled(c, draw(1, 2, 4, 4)), problem(0, 2, 3, 4)[1]
    minimise(iterates(energy, start, EG, MOMENTUM), MaxIterations(2))
    assert c.grad is None


STOP = FirstOf((RoundingUnchanged(4), RelativeChange(2e-3), MaxIterations(17)))
UPDATES = [
    MOMENTUM,
    Chain((ClipNorm(2.0), Scale(0.7), Nesterov(0.9))),
    Chain((Adaptive(), Scale(0.3))),
]


def solve(
    seed: int,
    rows: list[int],
    update: Update,
    search: Backtracking | None,
    geometry: int = 0,
    check_every: int = 1,
) -> Solution:
    energy, start = problem(seed, 6, 4, 5)
    chosen = torch.tensor(rows)
    its = iterates(
        energy.select(chosen), start.select(chosen), GEOMETRIES[geometry], update, search
    )
    return minimise(its, STOP, check_every=check_every)


def strings(found: Solution, row: int) -> list[list[int]]:
    return found.roundings[:, row][found.fresh[:, row]].tolist()


def same(one: Solution, i: int, other: Solution, j: int) -> None:
    torch.testing.assert_close(one.y.probs[i], other.y.probs[j], rtol=1e-12, atol=1e-12)
    torch.testing.assert_close(one.cost[i], other.cost[j], rtol=1e-12, atol=1e-12)
    assert one.iterations[i] == other.iterations[j]
    assert one.why()[i] == other.why()[j]
    assert strings(one, i) == strings(other, j)


@pytest.mark.parametrize("search", [None, Backtracking()], ids=["plain", "backtracking"])
@pytest.mark.parametrize("update", UPDATES, ids=["momentum", "nesterov", "adaptive"])
@given(seed=SEEDS, geometry=st.integers(0, 2))
@settings(max_examples=8, deadline=None)
def test_each_sentence_is_decoded_as_if_alone(
    update: Update, search: Backtracking | None, seed: int, geometry: int
) -> None:
    together = solve(seed, list(range(6)), update, search, geometry)
    for row in range(6):
        same(together, row, solve(seed, [row], update, search, geometry), 0)


@given(seed=SEEDS, order=st.permutations(range(6)), search=st.sampled_from([None, Backtracking()]))
@settings(max_examples=15, deadline=None)
def test_the_order_of_the_batch_does_not_matter(
    seed: int, order: list[int], search: Backtracking | None
) -> None:
    plain = solve(seed, list(range(6)), MOMENTUM, search)
    permuted = solve(seed, order, MOMENTUM, search)
    for place, row in enumerate(order):
        same(permuted, place, plain, row)


@given(seed=SEEDS, check_every=st.integers(2, 7))
@settings(max_examples=15, deadline=None)
def test_looking_less_often_changes_no_result(seed: int, check_every: int) -> None:
    every = solve(seed, list(range(6)), MOMENTUM, None)
    seldom = solve(seed, list(range(6)), MOMENTUM, None, check_every=check_every)
    for row in range(6):
        same(seldom, row, every, row)


def test_the_host_looks_only_when_asked() -> None:
    energy, start = problem(3, 6, 4, 5)
    minimise(iterates(energy, start, EG, MOMENTUM), MaxIterations(4), check_every=3)
    assert energy.asked == [6] * 7  # iterates 0 to 6: done at 4, noticed at 6


def test_finished_sentences_leave_the_batch() -> None:
    energy, start = problem(3, 6, 4, 5)
    found = minimise(iterates(energy, start, EG, MOMENTUM), STOP)
    assert len(set(found.iterations.tolist())) > 1
    # A sentence that made n updates was evaluated n + 1 times, and never again.
    assert sum(energy.asked) == int((found.iterations + 1).sum())
    assert energy.asked == sorted(energy.asked, reverse=True)


def test_the_best_iterate_is_kept_and_the_reason_is_true() -> None:
    energy, start = problem(4, 6, 4, 5)
    update = Chain((Scale(3.0), Momentum(0.9)))  # far too large: the cost goes up and down
    costs = torch.stack([i.cost for i in islice(iterates(energy, start, EG, update), 18)])
    found = minimise(iterates(energy, start, EG, update), STOP)
    assert set(found.why()) > {"rounding unchanged"}
    for row in range(6):
        n = int(found.iterations[row])
        mine = costs[: n + 1, row]
        assert found.cost[row] == mine.min()
        assert found.start_cost[row] == mine[0]
        change = (mine[1:] - mine[:-1]).abs() / mine[:-1].abs()
        assert (change[:-1] > 2e-3).all()  # it did not stop too late
        match found.why()[row]:
            case "relative change":
                assert change[-1] <= 2e-3
            case "iterations":
                assert n == 17
    torch.testing.assert_close(found.cost, energy(found.y))


def test_roundings_are_the_strings_of_the_iterates() -> None:
    energy, start = problem(4, 6, 4, 5)
    update = Chain((Scale(3.0), Momentum(0.9)))
    seen = [harden(i.y).ids.tolist() for i in islice(iterates(energy, start, EG, update), 18)]
    found = minimise(iterates(energy, start, EG, update), STOP)
    assert found.roundings.shape == (int(found.iterations.max()) + 1, 6, 4)
    assert found.fresh[0].all()
    assert (found.fresh.sum(0) > 2).any()
    for row in range(6):
        mine = [step[row] for step in seen[: int(found.iterations[row]) + 1]]
        expected = mine[:1] + [b for a, b in pairwise(mine) if b != a]
        assert strings(found, row) == expected
        assert found.roundings[-1, row].tolist() == mine[-1]
        assert found.roundings[int(found.iterations[row]), row].tolist() == mine[-1]


def test_roundings_are_words_of_the_support() -> None:
    energy, start = problem(5, 3, 4, 5)
    support = torch.tensor([[9, 8, 7, 6, 5], [11, 12, 13, 14, 15], [21, 20, 22, 23, 24]])
    found = minimise(
        iterates(energy, Soft(start.probs, start.mask, support), EG, MOMENTUM), MaxIterations(5)
    )
    plain = minimise(iterates(energy, start, EG, MOMENTUM), MaxIterations(5))
    assert found.y.support is support
    for row in range(3):
        expected = support[row][plain.roundings[:, row]] * start.mask[row]
        assert (found.roundings[:, row] == expected).all()


def test_descent_finds_good_strings_among_all() -> None:
    """V = 4, length 3: all 64 strings are scored; EG with many starts finds the best of them."""
    energy, _ = problem(6, 8, 3, 4)
    mask = torch.ones(8, 3, dtype=torch.bool)
    everything = torch.tensor(list(product(range(4), repeat=3)))
    scores = torch.stack([energy(Hard(ids.expand(8, 3), mask)) for ids in everything])
    best = torch.full((8,), torch.inf, dtype=torch.float64)
    for seed in range(6):
        start = Soft(draw(100 + seed, 8, 3, 4).softmax(-1), mask)
        found = minimise(iterates(energy, start, EG, MOMENTUM), MaxIterations(60))
        best = torch.minimum(best, energy(harden(found.y)))
        # A multilinear energy has its least value at a vertex.
        assert (found.cost >= scores.amin(0) - 1e-9).all()
    torch.testing.assert_close(best, scores.amin(0))


def test_the_limit_ends_what_no_rule_ends() -> None:
    energy, start = problem(7, 3, 4, 5)
    found = minimise(iterates(energy, start, EG, MOMENTUM), RelativeChange(-1.0), limit=6)
    assert found.why() == ["limit"] * 3
    assert found.iterations.tolist() == [6] * 3
    assert found.roundings.shape[0] == 7


def test_no_update_at_all_returns_the_start() -> None:
    energy, start = problem(7, 3, 4, 5)
    found = minimise(iterates(energy, start, EG, MOMENTUM), MaxIterations(0))
    torch.testing.assert_close(found.y.probs[start.mask], start.probs[start.mask])
    assert found.iterations.tolist() == [0] * 3
    assert (found.cost == found.start_cost).all()


@pytest.mark.parametrize("shape", [(0, 3), (2, 0)], ids=["no sentences", "no positions"])
def test_nothing_to_decide_is_no_trouble(shape: tuple[int, int]) -> None:
    energy = Coupled(torch.zeros(*shape, 4), torch.zeros(shape[0], 4, 4))
    start = Soft(torch.full((*shape, 4), 0.25), torch.ones(shape, dtype=torch.bool))
    found = minimise(iterates(energy, start, EG, MOMENTUM, Backtracking()), MaxIterations(3))
    assert found.y.probs.shape == (*shape, 4)
    assert found.cost.tolist() == [0.0] * shape[0]


@pytest.mark.parametrize("value", [torch.nan, torch.inf, -torch.inf])
@pytest.mark.parametrize("search", [None, Backtracking()], ids=["plain", "backtracking"])
@pytest.mark.parametrize("check_every", [1, 4])
def test_a_cost_that_is_not_finite_stops_its_sentence(
    value: float, search: Backtracking | None, check_every: int
) -> None:
    energy, start = problem(8, 3, 4, 5)
    broken = Broken(energy, torch.tensor([100, 4, 0]), value, [0])
    its = iterates(broken, start, EG, MOMENTUM, search)
    found = minimise(its, MaxIterations(9), check_every=check_every)
    assert found.why() == ["iterations", "not finite", "not finite"]
    assert found.iterations.tolist() == [9, 4, 0]
    assert not found.cost[2].isfinite()
    torch.testing.assert_close(found.y.probs[2][start.mask[2]], start.probs[2][start.mask[2]])
    assert found.y.probs.isfinite().all()
    whole = minimise(iterates(energy, start, EG, MOMENTUM, search), MaxIterations(9))
    same(found, 0, whole, 0)
    first = minimise(iterates(energy, start, EG, MOMENTUM, search), MaxIterations(3))
    torch.testing.assert_close(found.y.probs[1], first.y.probs[1])
    torch.testing.assert_close(found.cost[1], first.cost[1])
    assert strings(found, 1) == strings(first, 1)
    assert found.fresh[0].all()


@pytest.mark.parametrize("geometry", GEOMETRIES, ids=["eg", "sgd", "projected"])
def test_a_sentence_that_is_not_a_number_disturbs_nobody(
    geometry: ExponentiatedGradient | SoftmaxGradient | ProjectedGradient,
) -> None:
    """Carried along until the next look, with NaN in every word of it."""
    energy, start = problem(4, 4, 4, 5)
    update = Chain((Scale(3.0), Momentum(0.9)))
    broken = Broken(energy, torch.tensor([100, 3, 100, 100]), torch.nan, [0])
    its = iterates(broken, start, geometry, update)
    found = minimise(its, MaxIterations(12), check_every=6)
    whole = minimise(iterates(energy, start, geometry, update), MaxIterations(12))
    first = minimise(iterates(energy, start, geometry, update), MaxIterations(2))
    for row in (0, 2, 3):
        same(found, row, whole, row)
    assert found.iterations[1] == 3
    assert found.why()[1] == "not finite"
    assert strings(found, 1) == strings(first, 1)


def test_a_string_of_an_iterate_without_a_finite_cost_is_not_kept() -> None:
    energy, start = problem(4, 6, 4, 5)
    update = Chain((Scale(3.0), Momentum(0.9)))
    broken = Broken(energy, torch.full((6,), 1), torch.inf, [0])
    second = list(islice(iterates(energy, start, EG, update), 2))[1]
    found = minimise(iterates(broken, start, EG, update), MaxIterations(5))
    assert (harden(second.y).ids != harden(start).ids).any()
    for row in range(6):
        assert strings(found, row) == [harden(start).ids[row].tolist()]


def bouncing() -> tuple[Quadratic, Soft]:
    """Steps so large that a constant step size jumps from vertex to vertex for ever."""
    a = draw(0, 4, 2, 5).softmax(-1)
    return Quadratic(a, 30.0), Soft(
        (0.3 * draw(1, 4, 2, 5) + a.log()).softmax(-1), torch.ones(4, 2, dtype=torch.bool)
    )


@pytest.mark.parametrize("geometry", GEOMETRIES, ids=["eg", "sgd", "projected"])
@pytest.mark.parametrize(
    "update",
    [Scale(10.0), Chain((Scale(10.0), Momentum(0.9)))],
    ids=["constant", "momentum"],
)
def test_backtracking_descends_where_a_constant_step_diverges(
    geometry: ExponentiatedGradient | SoftmaxGradient | ProjectedGradient, update: Update
) -> None:
    energy, start = bouncing()
    plain = minimise(iterates(energy, start, geometry, update), MaxIterations(100))
    last = next(islice(iterates(energy, start, geometry, update), 100, None))
    assert (last.cost > plain.start_cost).all()
    its = iterates(energy, start, geometry, update, Backtracking())
    found = minimise(its, MaxIterations(100))
    assert (found.cost < 0.2 * found.start_cost).all()
    assert (found.cost < plain.cost).all()


def backtrack(energy: Energy, start: Soft, update: Update, steps: int) -> list[float]:
    """One sentence by EG with backtracking, told as a story: the costs it looks at."""
    y, scale, costs = start.probs, 1.0, []
    best, home, home_grad, state = None, y, y, update.init(y)
    for t in range(steps):
        cost, grad = evaluate(energy, start.with_probs(y))
        costs.append(float(cost))
        if best is None or costs[-1] <= best:
            home, home_grad = y, grad
            scale *= 1.0 if best is None else 1.2
            best = costs[-1]
        else:
            scale *= 0.5
            state = update.init(y)
        step, state = update.step(home_grad, state, t)
        weights = home * (-scale * step).exp()
        y = weights / weights.sum(-1, keepdim=True)
    return costs


@pytest.mark.parametrize("update", UPDATES, ids=["momentum", "nesterov", "adaptive"])
def test_backtracking_is_the_story_told_one_sentence_at_a_time(update: Update) -> None:
    energy, start = bouncing()
    search = Backtracking(tolerance=0.0)
    its = islice(iterates(energy, start, EG, update, search), 40)
    costs = torch.stack([it.cost for it in its], 1)
    for row in range(4):
        one = torch.tensor([row])
        expected = backtrack(energy.select(one), start.select(one), update, 40)
        assert costs[row].tolist() == pytest.approx(expected, rel=1e-9, abs=1e-12)
        assert any(b > min(expected[: i + 1]) for i, b in enumerate(expected))
        assert min(expected) < 0.5 * expected[0]


def test_a_refused_step_is_tried_again_shorter_from_the_same_point() -> None:
    energy, start = bouncing()
    search = Backtracking(shrink=0.25)
    update = Chain((Scale(10.0), Momentum(0.9)))
    first, second, third = islice(iterates(energy, start, EG, update, search), 3)
    assert (second.cost > first.cost).all()
    for it, scale in ((second, 1.0), (third, 0.25)):
        weights = start.probs * (-scale * 10.0 * raw_gradient(energy, start)).exp()
        expected = weights / weights.sum(-1, keepdim=True)
        torch.testing.assert_close(it.y.probs, expected, rtol=1e-10, atol=1e-12)


def test_an_accepted_step_lengthens_the_next_up_to_a_limit() -> None:
    energy = Coupled(draw(0, 1, 1, 3), torch.zeros(1, 3, 3, dtype=torch.float64))
    start = Soft(torch.full((1, 1, 3), 1 / 3, dtype=torch.float64), torch.tensor([[True]]))
    search = Backtracking(grow=2.0, largest=3.0)
    logs = [i.y.probs.log() for i in islice(iterates(energy, start, EG, Scale(0.1), search), 5)]
    moved = [float((b - a)[0, 0].diff()[0]) for a, b in pairwise(logs)]
    unit = -0.1 * float(energy.c[0, 0].diff()[0])
    assert moved == pytest.approx([unit, 2 * unit, 3 * unit, 3 * unit])


def test_a_rise_within_the_tolerance_is_accepted() -> None:
    """A cost that only flickers, as single precision does, must not shorten the steps."""
    search = Backtracking(tolerance=1e-3)
    point, grad = torch.zeros(3, 1, 2), torch.ones(3, 1, 2)
    held, _ = search.judge(search.begin(point), point, grad, torch.tensor([100.0, 100.0, -100.0]))
    new = torch.tensor([100.05, 100.2, -99.95])
    held, refused = search.judge(held, point + 1, 2 * grad, new)
    assert refused.tolist() == [False, True, False]
    assert held.point[:, 0, 0].tolist() == [1.0, 0.0, 1.0]
    assert held.grad[:, 0, 0].tolist() == [2.0, 1.0, 2.0]
    # The bar stays where it was: many small rises do not add up.
    assert held.cost.tolist() == [100.0, 100.0, -100.0]


def test_backtracking_refuses_what_is_not_a_number() -> None:
    search, point = Backtracking(), torch.zeros(2, 1, 2)
    held, _ = search.judge(search.begin(point), point, point, torch.tensor([1.0, 1.0]))
    junk = torch.full_like(point, torch.nan)
    held, refused = search.judge(held, junk, junk, torch.tensor([torch.nan, torch.inf]))
    assert refused.all()
    assert held.point.isfinite().all()
    assert held.cost.tolist() == [1.0, 1.0]


def test_the_gradient_is_centred_and_zero_on_padding() -> None:
    energy, start = problem(9, 4, 4, 5)
    cost, grad = evaluate(energy, start)
    torch.testing.assert_close(cost, energy(start))
    torch.testing.assert_close(
        (start.probs * grad).sum(-1), torch.zeros(4, 4, dtype=torch.float64), rtol=0, atol=1e-14
    )
    assert (grad[~start.mask] == 0).all()
    difference = grad - raw_gradient(energy, start)
    spread = (difference - difference[..., :1])[start.mask]
    torch.testing.assert_close(spread, torch.zeros_like(spread), rtol=0, atol=1e-13)


def test_sent_rows_are_counted_in_the_batch_just_yielded() -> None:
    energy, start = problem(10, 5, 3, 4)
    its = iterates(energy, start, EG, MOMENTUM)
    assert next(its).rows.tolist() == [0, 1, 2, 3, 4]
    assert its.send(torch.tensor([4, 2, 0])).rows.tolist() == [4, 2, 0]
    it = its.send(torch.tensor([1, 0]))
    assert it.rows.tolist() == [2, 4]
    whole = list(islice(iterates(energy, start, EG, MOMENTUM), 3))[-1]
    torch.testing.assert_close(it.cost, whole.cost[it.rows], rtol=1e-13, atol=1e-13)
