"""N-best lists as numbers: a weight vector chooses one hypothesis of each list.

A hypothesis scores w . f and the best of each list is taken; the first wins ties. No model is
touched, so thousands of weights cost a few products of arrays. An empty list contributes nothing
to the sums; to count it as an empty translation, give it one hypothesis, the empty string.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from simplexity.errors import SimplexityError, UsageError
from simplexity.evaluate.metrics import Array, Metric, from_sufficient

Indices = NDArray[np.intp]

_BLOCK = 1 << 18


@dataclass(frozen=True)
class Cached:
    """N-best lists as numbers: log-probabilities [n_i, F] and statistics [n_i, d] of a metric.

    A feature is better when higher; `names` are the features' names.
    """

    features: Sequence[Array]
    statistics: Sequence[Array]
    names: tuple[str, ...]

    def __post_init__(self) -> None:
        if not self.names:
            raise UsageError("there is no feature to weigh")
        if not self.features or len(self.features) != len(self.statistics):
            raise SimplexityError(
                "tuning needs features and statistics of the same sentences, at least one, but "
                f"there are {len(self.features)} lists of features and {len(self.statistics)} "
                "of statistics"
            )
        for line, (features, stats) in enumerate(
            zip(self.features, self.statistics, strict=True), 1
        ):
            width = self.statistics[0].shape[-1]
            if (features.shape, stats.shape) != (
                (len(stats), len(self.names)),
                (len(stats), width),
            ):
                raise SimplexityError(
                    f"sentence {line} has features of shape {features.shape} and statistics of "
                    f"shape {stats.shape}, where {len(self.names)} and {width} columns and equal "
                    "numbers of hypotheses are expected"
                )
            if not np.isfinite(features).all():
                raise SimplexityError(f"sentence {line} has a feature that is no finite number")

    def sentences(self, rows: Sequence[int] | Indices) -> Cached:
        """The lists of these sentences alone."""
        return Cached(
            [self.features[row] for row in rows], [self.statistics[row] for row in rows], self.names
        )


@dataclass(frozen=True)
class Lists:
    """Cached lists padded to arrays; `penalty` is -inf on padding and 0 elsewhere."""

    features: Array  # [F, S, N]
    statistics: Array  # [S, N, d]
    penalty: Array  # [S, N]


def select(cached: Cached, weights: Array) -> Indices:
    """The index argmax_n w . f_n of each list, for weights [F] or [W, F]; -1 for empty lists."""
    lists = padded(cached)
    rows = np.atleast_2d(np.asarray(weights, dtype=np.float64))
    chosen = np.concatenate([index for index, _ in choices(lists, checked(rows, cached))])
    empty = np.isinf(lists.penalty).all(-1)
    chosen = np.where(empty, -1, chosen)
    return chosen if np.ndim(weights) == 2 else chosen[0]


def selected(cached: Cached, weights: Array) -> Array:
    """Statistics [sentences, d] of the hypotheses that these weights [F] choose."""
    lists = padded(cached)
    index, _ = next(choices(lists, checked(np.atleast_2d(weights), cached)))
    statistics: Array = lists.statistics[np.arange(len(lists.statistics)), index[0]]
    return statistics


def score_weights(cached: Cached, weights: Array, metric: Metric) -> Array:
    """Corpus scores [W] of the hypotheses that each weight vector [W, F] chooses."""
    return corpus_scores(padded(cached), checked(np.atleast_2d(weights), cached), metric)


def padded(cached: Cached) -> Lists:
    """The lists as arrays, every list as long as the longest and at least 1."""
    sizes = [len(stats) for stats in cached.statistics]
    longest, width = max(1, *sizes), cached.statistics[0].shape[1]
    features = np.zeros((len(cached.names), len(sizes), longest))
    statistics = np.zeros((len(sizes), longest, width))
    penalty = np.full((len(sizes), longest), -np.inf)
    for row, size in enumerate(sizes):
        features[:, row, :size] = cached.features[row].T
        statistics[row, :size] = cached.statistics[row]
        penalty[row, :size] = 0
    return Lists(features, statistics, penalty)


def mix(lists: Lists, weights: Array) -> Array:
    """Scores [W, S, N] of all hypotheses under weights [W, F]; -inf on padding."""
    # Term by term, not by matrix product: hypotheses with equal features must tie to the last bit.
    scores: Array = lists.penalty + weights[:, 0, None, None] * lists.features[0]
    for weight, feature in zip(weights.T[1:], lists.features[1:], strict=True):
        scores += weight[:, None, None] * feature
    return scores


def choices(lists: Lists, weights: Array) -> Iterator[tuple[Indices, Array]]:
    """Chosen indices [block, S] and their summed statistics [block, d], block by block."""
    rows = max(1, _BLOCK // lists.penalty.size)
    sentences = np.arange(len(lists.statistics))
    for start in range(0, len(weights), rows):
        index = mix(lists, weights[start : start + rows]).argmax(-1)
        yield index, lists.statistics[sentences, index].sum(1)


def corpus_scores(lists: Lists, weights: Array, metric: Metric) -> Array:
    """Corpus scores [W] of the choices of weights [W, F]."""
    sums = np.concatenate([total for _, total in choices(lists, weights)])
    return from_sufficient(metric, sums)


def checked(weights: Array, cached: Cached) -> Array:
    """The weights [W, F] as they are, or an error that names the features they should fit."""
    if weights.ndim != 2 or len(weights) == 0 or weights.shape[1] != len(cached.names):
        raise UsageError(
            f"weights of shape {weights.shape} do not fit the {len(cached.names)} features "
            f"({', '.join(cached.names)})"
        )
    if not np.isfinite(weights).all():
        raise UsageError("a weight is no finite number")
    return weights
