"""Weights of an objective, tuned offline on cached n-best lists."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from simplexity.errors import UsageError
from simplexity.evaluate.line_search import LineOptimum, line_search, search_line
from simplexity.evaluate.lists import (
    Cached,
    Lists,
    checked,
    corpus_scores,
    padded,
    score_weights,
    select,
    selected,
)
from simplexity.evaluate.metrics import Array, Metric
from simplexity.evaluate.significance import Difference, paired_bootstrap

__all__ = [
    "Cached",
    "LineOptimum",
    "Trial",
    "Tuned",
    "gain",
    "held_out_gain",
    "line_search",
    "mert",
    "random_search",
    "score_weights",
    "select",
    "selected",
]

_GAIN = 1e-9


@dataclass(frozen=True)
class Trial:
    """Weights that were accepted on the way, from this start."""

    start: int
    weights: Array
    score: float


@dataclass(frozen=True)
class Tuned:
    """The best weights found, sum |w| = 1, and how the search came to them."""

    weights: Array
    score: float
    history: tuple[Trial, ...]


def mert(
    cached: Cached,
    metric: Metric,
    start: Array,
    restarts: int = 10,
    seed: int = 12345,
    non_negative: bool = False,
) -> Tuned:
    """Minimum error rate training (Och, 2003): line searches until none improves the score.

    Each round searches along every coordinate and as many random directions and takes the best
    step. The climb begins at `start`, scaled to sum |w| = 1, and at random weights, `restarts`
    times; the result is never worse than that start. `non_negative` keeps all weights at 0 or
    above, as a sum of costs that is to be minimised needs them.
    """
    first = checked(np.atleast_2d(np.asarray(start, dtype=np.float64)), cached)
    if non_negative and (first < 0).any():
        raise UsageError(
            "the starting weights are negative where only weights of 0 or above may be"
        )
    if not first.any():
        raise UsageError("the starting weights are all zero, so they choose nothing")
    rng = np.random.default_rng(seed)
    drawn = rng.dirichlet(np.ones(first.shape[1]), size=restarts)
    signs = 1 if non_negative else rng.choice([-1.0, 1.0], size=drawn.shape)
    lists = padded(cached)
    history: list[Trial] = []
    for number, weights in enumerate(np.concatenate([_normalised(first), drawn * signs])):
        history += _climb(lists, metric, weights, number, rng, non_negative)
    return _best(history, metric)


def random_search(cached: Cached, metric: Metric, samples: int = 1000, seed: int = 12345) -> Tuned:
    """The best of weights drawn uniformly from the simplex; history holds each improvement."""
    if samples < 1:
        raise UsageError(f"random search needs at least one sample, not {samples}")
    weights = np.random.default_rng(seed).dirichlet(np.ones(len(cached.names)), size=samples)
    scores = score_weights(cached, weights, metric)
    sign = 1 if metric.higher_is_better else -1
    record = np.maximum.accumulate(sign * scores)
    fresh = np.flatnonzero(np.diff(record, prepend=-np.inf) > 0)
    history = [Trial(0, weights[i], float(scores[i])) for i in fresh]
    return _best(history, metric)


def gain(
    cached: Cached,
    weights: Array,
    baseline_weights: Array,
    metric: Metric,
    samples: int = 1000,
    seed: int = 12345,
) -> Difference:
    """What the weights gain over others on these lists, with interval and p by paired bootstrap.

    On the lists that the weights were tuned on this flatters them: the bootstrap does not know
    that they were chosen to look good here. `held_out_gain` is the honest figure.
    """
    return paired_bootstrap(
        selected(cached, weights), selected(cached, baseline_weights), metric, samples, seed
    )


def held_out_gain(
    cached: Cached,
    tune: Callable[[Cached], Tuned],
    baseline_weights: Array,
    metric: Metric,
    folds: int = 5,
    samples: int = 1000,
    seed: int = 12345,
) -> Difference:
    """What tuning gains on sentences it has not seen, by cross-validation.

    The weights that choose a sentence's hypothesis are tuned on the other folds; the choices of
    all folds together are compared with the baseline's.
    """
    size = len(cached.features)
    if not 2 <= folds <= size:
        raise UsageError(f"{size} sentences cannot be divided into {folds} folds")
    fold = np.random.default_rng(seed).permutation(np.arange(size) % folds)
    chosen = selected(cached, baseline_weights)
    tuned = np.empty_like(chosen)
    for number in range(folds):
        weights = tune(cached.sentences(np.flatnonzero(fold != number))).weights
        tuned[fold == number] = selected(cached, weights)[fold == number]
    return paired_bootstrap(tuned, chosen, metric, samples, seed)


def _climb(
    lists: Lists,
    metric: Metric,
    weights: Array,
    number: int,
    rng: np.random.Generator,
    non_negative: bool,
) -> list[Trial]:
    """Best steps from these weights until no direction improves the score."""
    sign = 1 if metric.higher_is_better else -1
    size = len(weights)
    trials = [Trial(number, weights, float(corpus_scores(lists, weights[None], metric)[0]))]
    while True:
        directions = np.concatenate([np.eye(size), rng.standard_normal((size, size))])
        steps = [
            search_line(lists, weights, d, metric, _room(weights, d, non_negative)).position
            for d in directions
        ]
        points = weights + np.array(steps)[:, None] * directions
        points = _normalised(points.clip(0) if non_negative else points)
        # Scored afresh: on a breakpoint's very edge rounding may choose otherwise than the line.
        scores = corpus_scores(lists, points, metric)
        best = int((sign * scores).argmax())
        if sign * (scores[best] - trials[-1].score) <= _GAIN:
            return trials
        weights = points[best]
        trials.append(Trial(number, weights, float(scores[best])))


def _room(weights: Array, direction: Array, non_negative: bool) -> tuple[float, float]:
    """How far one may go along a direction before a weight turns negative."""
    if not non_negative:
        return -np.inf, np.inf
    limits = np.divide(-weights, direction, out=np.zeros_like(weights), where=direction != 0)
    low = limits[direction > 0].max(initial=-np.inf)
    high = limits[direction < 0].min(initial=np.inf)
    return float(low), float(high)


def _best(history: Sequence[Trial], metric: Metric) -> Tuned:
    sign = 1 if metric.higher_is_better else -1
    best = max(history, key=lambda trial: sign * trial.score)
    return Tuned(best.weights, best.score, tuple(history))


def _normalised(weights: Array) -> Array:
    """Weights [..., F] scaled to sum |w| = 1, which changes no choice."""
    total = np.abs(weights).sum(-1, keepdims=True)
    return weights / np.where(total > 0, total, 1)
