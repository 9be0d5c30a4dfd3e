"""Minimise an energy over the simplex: an endless generator of iterates, and what consumes it."""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass
from itertools import count
from typing import NamedTuple, Protocol

import torch
from torch import Tensor

from simplexity.relax.geometry import Geometry
from simplexity.relax.simplex import centred, gradient_norm
from simplexity.relax.stopping import FirstOf, History, Stop
from simplexity.relax.tokens import Soft, Tokens, harden
from simplexity.relax.updates import Update, choose_state, per_sentence, select_state


class Energy(Protocol):
    """What is minimised: Q, bound to a batch of sources."""

    def __call__(self, y: Tokens) -> Tensor:
        """The cost of each sentence [batch], soft or hard; finite on the whole support."""
        ...

    def select(self, rows: Tensor) -> Energy:
        """The same energy for some of its sentences; nothing is encoded again."""
        ...


@dataclass(frozen=True)
class Iterate:
    """One point of the descent.

    t: updates made so far. rows [batch]: which sentences of the start these are. cost [batch]:
    Q(y). grad: the centred dQ/dy [batch, length, candidates], 0 on padding.
    """

    t: int
    rows: Tensor
    y: Soft
    cost: Tensor
    grad: Tensor


class Held(NamedTuple):
    """The last accepted point of each sentence, where a refused step returns to.

    cost is the least accepted cost; scale multiplies the next step.
    """

    point: Tensor
    grad: Tensor
    cost: Tensor
    scale: Tensor


@dataclass(frozen=True)
class Backtracking:
    """Let each sentence find its own step size, without further evaluations.

    A step that leads above the least accepted cost (by more than `tolerance`, relative) is taken
    back: the sentence returns to its last accepted point, forgets its momentum, so that it goes
    straight downhill, and steps `shrink` as far. Any other step lets the next be `grow` as far, up
    to `largest` times what the update asks for.
    """

    shrink: float = 0.5
    grow: float = 1.2
    tolerance: float = 1e-6
    largest: float = 100.0

    def begin(self, point: Tensor) -> Held:
        """Before the first evaluation: whatever is finite will be accepted, with scale 1."""
        batch = point.shape[0]
        scale = point.new_full((batch,), 1 / self.grow)
        return Held(point, torch.zeros_like(point), point.new_full((batch,), torch.inf), scale)

    def judge(self, held: Held, point: Tensor, grad: Tensor, cost: Tensor) -> tuple[Held, Tensor]:
        """Where to go on from, and which sentences [batch] had their last step taken back."""
        fine = cost.isfinite() & (cost <= held.cost + self.tolerance * cost.abs())
        wide = per_sentence(fine, point)
        scale = torch.where(fine, held.scale * self.grow, held.scale * self.shrink)
        return Held(
            point=torch.where(wide, point, held.point),
            grad=torch.where(wide, grad, held.grad),
            cost=torch.where(fine, torch.minimum(cost, held.cost), held.cost),
            scale=scale.clamp_max(self.largest),
        ), ~fine


def iterates(
    energy: Energy,
    start: Soft,
    geometry: Geometry,
    update: Update,
    search: Backtracking | None = None,
) -> Generator[Iterate, Tensor | None, None]:
    """Yield y_0, y_1, ... for ever; the caller decides when to stop (paper, Algorithms 1 and 2).

    `send(rows)` instead of `next` goes on with these sentences alone, counted in the batch just
    yielded. The loop never waits for the device.
    """
    y, rows = _fill_padding(start), torch.arange(start.probs.shape[0], device=start.probs.device)
    point = geometry.lift(y.probs)
    state = update.init(point)
    held = search.begin(point) if search else None
    for t in count():
        y = y.with_probs(geometry.probs(point))
        cost, grad = evaluate(energy, y)
        keep = yield Iterate(t, rows, y, cost, grad)
        if keep is not None:
            energy, y, state = energy.select(keep), y.select(keep), select_state(state, keep)
            rows, point, cost, grad = (x[keep] for x in (rows, point, cost, grad))
            held = Held(*(x[keep] for x in held)) if held else None
        if search and held:
            held, refused = search.judge(held, point, grad, cost)
            state = choose_state(refused, update.init(point), state)
            point, grad = held.point, held.grad
        step, state = update.step(geometry.pull(point, grad), state, t)
        point = geometry.move(point, per_sentence(held.scale, step) * step if held else step)


def evaluate(energy: Energy, y: Soft) -> tuple[Tensor, Tensor]:
    """Q(y) of each sentence [batch] and its centred gradient with respect to y alone."""
    with torch.enable_grad():
        probs = y.probs.detach().requires_grad_()
        cost = energy(y.with_probs(probs))
        (grad,) = torch.autograd.grad(cost.sum(), probs)
    return cost.detach(), centred(y, grad)


@dataclass(frozen=True)
class Solution:
    """What a descent found for each sentence, in the order of the start.

    y: the iterate of least continuous cost, argmin_t Q, the start included. cost, start_cost
    [batch]: its cost and the start's. iterations [batch]: updates made until the sentence stopped.
    stopped [batch]: why, as a place in `reasons`.

    roundings [iterations + 1, batch, length]: the string that each iterate rounds to, the start's
    first; a sentence that has stopped repeats its last. fresh [iterations + 1, batch]: True where
    the string differs from the one before it. A string that comes back later is fresh again.
    """

    y: Soft
    cost: Tensor
    start_cost: Tensor
    iterations: Tensor
    stopped: Tensor
    reasons: tuple[str, ...]
    roundings: Tensor
    fresh: Tensor

    def why(self) -> list[str]:
        """The reason for which each sentence stopped."""
        return [self.reasons[number] for number in self.stopped.tolist()]


def minimise(
    its: Generator[Iterate, Tensor | None, None],
    stop: Stop,
    limit: int = 1000,
    check_every: int = 1,
) -> Solution:
    """Follow each sentence until its rule says stop, and keep its best iterate.

    A sentence that is done leaves the batch. To learn who is done the host must wait for the
    device: it does so once every `check_every` iterations. In between, sentences that are done are
    carried along unchanged, so the solution is the same whatever `check_every` is.

    A cost that is NaN or infinite stops its sentence at once ("not finite") with the best finite
    iterate before it, or the start. `limit` ends a descent that no rule ends ("limit").
    """
    rules = stop if isinstance(stop, FirstOf) else FirstOf((stop,))
    first = it = next(its)
    run, done, trail = _begin(it), [], []
    while True:
        run, fresh = _advance(run, it, rules)
        trail.append((run.rows, run.rounding, fresh))
        keep = None
        if it.t >= limit:
            done.append(_mark(run, len(rules.rules) + 1))
            break
        if it.t % check_every == 0:
            left = (run.stopped < 0).nonzero().squeeze(-1)
            if len(left) == 0:
                done.append(run)
                break
            if len(left) < len(run.rows):
                done.append(_select(run, (run.stopped >= 0).nonzero().squeeze(-1)))
                run, keep = _select(run, left), left
        it = its.send(keep)
    its.close()
    return _collect(first.y, done, trail, (*(r.name for r in rules.rules), "not finite", "limit"))


class _Run(NamedTuple):
    """What `minimise` remembers of each sentence in the batch; every field starts with it."""

    rows: Tensor
    probs: Tensor  # of the best iterate
    cost: Tensor  # of the best iterate
    start_cost: Tensor
    previous: Tensor
    first_gradient: Tensor
    rounding: Tensor
    unchanged: Tensor
    iterations: Tensor
    stopped: Tensor  # -1 while it runs


def _begin(it: Iterate) -> _Run:
    """Nothing is known yet; only a finite cost can replace the start."""
    return _Run(
        rows=it.rows,
        probs=it.y.probs,
        cost=it.cost,
        start_cost=it.cost,
        previous=torch.full_like(it.cost, torch.nan),
        first_gradient=gradient_norm(it.y, it.grad),
        rounding=harden(it.y).ids,
        unchanged=torch.full_like(it.rows, -1),
        iterations=torch.zeros_like(it.rows),
        stopped=torch.full_like(it.rows, -1),
    )


def _advance(run: _Run, it: Iterate, rules: FirstOf) -> tuple[_Run, Tensor]:
    """Take one iterate into account; also tells whose rounding is new [batch]."""
    running, finite = run.stopped < 0, it.cost.isfinite()
    better = running & finite & (it.cost < run.cost)
    rounding = harden(it.y).ids
    fresh = running & finite & (rounding != run.rounding).any(-1)
    unchanged = torch.where(fresh, 0, run.unchanged + 1)
    cost = torch.where(better, it.cost, run.cost)
    history = History(
        it.t, it.cost, run.previous, cost, unchanged, it.y, it.grad, run.first_gradient
    )
    number = torch.where(finite, rules.which(history), len(rules.rules))
    after = run._replace(
        probs=torch.where(per_sentence(better, run.probs), it.y.probs, run.probs),
        cost=cost,
        previous=it.cost,
        rounding=torch.where(fresh[:, None], rounding, run.rounding),
        unchanged=unchanged,
        iterations=torch.where(running, it.t, run.iterations),
        stopped=torch.where(running, number, run.stopped),
    )
    return after, fresh if it.t else torch.ones_like(fresh)


def _mark(run: _Run, number: int) -> _Run:
    """Give those who still run this reason to stop."""
    return run._replace(stopped=torch.where(run.stopped < 0, number, run.stopped))


def _select(run: _Run, rows: Tensor) -> _Run:
    return _Run(*(field[rows] for field in run))


def _collect(
    start: Soft,
    done: list[_Run],
    trail: list[tuple[Tensor, Tensor, Tensor]],
    reasons: tuple[str, ...],
) -> Solution:
    """Put the sentences back into the order of the start."""
    run = _Run(*(torch.cat(field) for field in zip(*done, strict=True)))
    run = _select(run, run.rows.argsort())
    strings, news = [trail[0][1]], [trail[0][2]]
    for rows, rounding, fresh in trail[1:]:
        strings.append(strings[-1].index_copy(0, rows, rounding))
        news.append(torch.zeros_like(news[0]).index_copy(0, rows, fresh))
    return Solution(
        y=start.with_probs(run.probs),
        cost=run.cost,
        start_cost=run.start_cost,
        iterations=run.iterations,
        stopped=run.stopped,
        reasons=reasons,
        roundings=torch.stack(strings),
        fresh=torch.stack(news),
    )


def _fill_padding(start: Soft) -> Soft:
    """Whatever stands on padding, a distribution: it must not become NaN and spread."""
    uniform = 1 / start.probs.shape[-1]
    return start.with_probs(torch.where(start.mask[..., None], start.probs.detach(), uniform))
