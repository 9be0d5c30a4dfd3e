"""The exact optimum of a corpus score along a line of weights."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from simplexity.errors import UsageError
from simplexity.evaluate.lists import Cached, Indices, Lists, checked, mix, padded
from simplexity.evaluate.metrics import Array, Metric, from_sufficient

_NARROW = 1e-9
_SAME = 1e-9


@dataclass(frozen=True)
class LineOptimum:
    """The best step along a direction, its corpus score, and the interval that shares it."""

    position: float
    score: float
    interval: tuple[float, float]


def line_search(
    cached: Cached,
    start: Array,
    direction: Array,
    metric: Metric,
    within: tuple[float, float] = (-np.inf, np.inf),
) -> LineOptimum:
    """The best of all points w + gamma d on a line, exactly (Och, 2003).

    Along the line each hypothesis scores f.w + gamma f.d, a straight line in gamma; the upper
    envelope of a sentence's lines tells which one is chosen where. Between two breakpoints of any
    sentence nothing changes, so the score of every interval follows from running sums. Returned
    is the middle of the best interval, the widest among equals; an open end counts as wide as all
    breakpoints together, at least 1. Intervals too narrow to stand in (1e-9) are passed over.
    """
    if not within[0] < within[1]:
        raise UsageError(f"there is no room for a step between {within[0]} and {within[1]}")
    lists = padded(cached)
    pair = checked(np.stack([start, direction]).astype(np.float64), cached)
    return search_line(lists, pair[0], pair[1], metric, within)


def search_line(
    lists: Lists, start: Array, direction: Array, metric: Metric, within: tuple[float, float]
) -> LineOptimum:
    """`line_search` on padded lists."""
    slopes, heights = mix(lists, np.stack([direction, start]))
    first, events = _envelopes(slopes, heights)
    sentences = np.arange(len(first))
    totals = lists.statistics[sentences, first].sum(0, keepdims=True)
    gammas, rows, before, after = events
    change = lists.statistics[rows, after] - lists.statistics[rows, before]
    order = np.argsort(gammas, kind="stable")
    sums = np.concatenate([totals, totals + np.cumsum(change[order], axis=0)])
    edges = np.concatenate([[-np.inf], gammas[order], [np.inf]]).clip(*within)
    return _best_interval(edges, from_sufficient(metric, sums), metric)


def _envelopes(
    slopes: Array, heights: Array
) -> tuple[Indices, tuple[Array, Indices, Indices, Indices]]:
    """Upper envelopes of all sentences' lines height + gamma slope [S, N] at once.

    Returns the line chosen at gamma = -infinity [S], and the breakpoints: gamma, sentence, line
    before, line after. Each round walks every sentence to its next breakpoint, the nearest
    crossing with a steeper line.
    """
    real = np.isfinite(heights)
    lowest = np.where(real, slopes, np.inf).min(1, keepdims=True)
    current = np.where(slopes == lowest, heights, -np.inf).argmax(1)
    first, rows = current, np.arange(len(slopes))
    at = np.full(len(slopes), -np.inf)
    found: list[tuple[Array, Indices, Indices, Indices]] = []
    while len(rows):
        crossing = _crossings(slopes[rows], heights[rows], current)
        nearest = crossing.min(1, initial=np.inf)
        going = np.isfinite(nearest)
        rows, current, at, crossing = rows[going], current[going], at[going], crossing[going]
        nearest = nearest[going]
        meeting = np.where(crossing == nearest[:, None], slopes[rows], -np.inf)
        steepest = meeting == meeting.max(1, keepdims=True, initial=-np.inf)
        upper = np.where(steepest, heights[rows], -np.inf).argmax(1)
        # Three lines that all but meet in a point can seem to cross in the wrong order.
        at = np.maximum(at, nearest)
        found.append((at, rows, current, upper))
        current = upper
    gammas, sentences, before, after = (
        np.concatenate([part[i] for part in found]) for i in range(4)
    )
    return first, (gammas, sentences, before, after)


def _crossings(slopes: Array, heights: Array, current: Indices) -> Array:
    """Where each line overtakes the current one [S, N]; infinity if it never does."""
    slope = np.take_along_axis(slopes, current[:, None], 1)
    height = np.take_along_axis(heights, current[:, None], 1)
    steeper = np.isfinite(heights) & (slopes > slope)
    # A list without hypotheses is all -inf, and nearly parallel lines meet beyond all numbers.
    with np.errstate(over="ignore", invalid="ignore"):
        return np.divide(
            height - heights, slopes - slope, out=np.full_like(slopes, np.inf), where=steeper
        )


def _best_interval(edges: Array, scores: Array, metric: Metric) -> LineOptimum:
    bounded = edges[np.isfinite(edges)]
    low, high = (bounded[0], bounded[-1]) if len(bounded) else (0.0, 0.0)
    reach = max(1.0, high - low)
    left, right = edges[:-1].clip(low - reach), edges[1:].clip(None, high + reach)
    width = right - left
    middle = left + width / 2
    stands = width > _NARROW * np.maximum(1, np.abs(middle))
    worth = np.where(stands, scores if metric.higher_is_better else -scores, -np.inf)
    best = int(np.where(worth >= worth.max() - _SAME, width, -1).argmax())
    return LineOptimum(
        float(middle[best]), float(scores[best]), (float(edges[best]), float(edges[best + 1]))
    )
