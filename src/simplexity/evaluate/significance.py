"""Whether a difference between two systems could be chance.

Both tests resample sentence statistics. Their definitions and random numbers are sacrebleu's, so
the p-values agree with it (seed 12345), but for ties: sacrebleu counts resampled differences
*above* the observed one and so calls identical outputs significant (p = 0.001); here those *equal*
to it count as well, and identical outputs have p = 1. This matters when few sentences differ.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from simplexity.errors import UsageError
from simplexity.evaluate.metrics import Array, Metric, from_sufficient

_BLOCK = 1 << 21
_TIE = 1e-9


@dataclass(frozen=True)
class Interval:
    """Mean and 95% interval of a corpus score over bootstrap resamples."""

    mean: float
    low: float
    high: float


@dataclass(frozen=True)
class Difference:
    """A system's score minus its baseline's: size, p-value and 95% bootstrap interval."""

    test: str
    difference: float
    p_value: float
    low: float
    high: float
    samples: int
    seed: int


Test = Callable[[Array, Array, Metric, int, int], Difference]


def paired_bootstrap(
    stats_a: Array, stats_b: Array, metric: Metric, samples: int = 1000, seed: int = 12345
) -> Difference:
    """Draw the corpus again with replacement, both systems alike (Koehn, 2004).

    With observed difference D and resampled differences d_s,
    p = (1 + #{s : |d_s| - mean |d| >= |D|}) / (1 + samples). For a clear difference that is a
    one-sided p-value, about half of what `approximate_randomisation` gives.
    """
    _check(stats_a, stats_b, samples)
    observed = _difference(stats_a.sum(0), stats_b.sum(0), metric)
    drawn = _resampled_differences(stats_a, stats_b, metric, samples, seed)
    spread = np.abs(drawn)
    low, high = _central(drawn)
    p_value = _p_value(spread - spread.mean(), float(observed))
    return Difference("bootstrap", float(observed), p_value, low, high, samples, seed)


def approximate_randomisation(
    stats_a: Array, stats_b: Array, metric: Metric, samples: int = 10000, seed: int = 12345
) -> Difference:
    """Swap the two systems' outputs at random, sentence by sentence (Riezler and Maxwell, 2005).

    p = (1 + #{s : |d_s| >= |D|}) / (1 + samples), two-sided. The interval comes from 1,000
    bootstrap resamples, since swapped corpora say nothing about the size of a difference.
    """
    _check(stats_a, stats_b, samples)
    sum_a, sum_b = stats_a.sum(0), stats_b.sum(0)
    observed = float(_difference(sum_a, sum_b, metric))
    gap = stats_b - stats_a
    moved = [swap @ gap for swap in _swaps(len(gap), samples, seed)]
    shuffled = [_difference(sum_a + part, sum_b - part, metric) for part in moved]
    low, high = _central(_resampled_differences(stats_a, stats_b, metric, 1000, seed))
    p_value = _p_value(np.abs(np.concatenate(shuffled)), observed)
    return Difference("randomisation", observed, p_value, low, high, samples, seed)


def bootstrap_interval(
    stats: Array, metric: Metric, samples: int = 1000, seed: int = 12345
) -> Interval:
    """Mean and 95% interval of one system's corpus score over resampled corpora."""
    _check(stats, stats, samples)
    scores = np.concatenate(
        [from_sufficient(metric, counts @ stats) for counts in _draws(len(stats), samples, seed)]
    )
    return Interval(float(scores.mean()), *_central(scores))


def _difference(sums_a: Array, sums_b: Array, metric: Metric) -> Array:
    return from_sufficient(metric, sums_a) - from_sufficient(metric, sums_b)


def _resampled_differences(
    stats_a: Array, stats_b: Array, metric: Metric, samples: int, seed: int
) -> Array:
    return np.concatenate(
        [
            _difference(counts @ stats_a, counts @ stats_b, metric)
            for counts in _draws(len(stats_a), samples, seed)
        ]
    )


def _draws(sentences: int, samples: int, seed: int) -> Iterator[Array]:
    """How often each resampled corpus holds each sentence [block, sentences]."""
    rng = np.random.default_rng(seed)
    rows = max(1, _BLOCK // sentences)
    for start in range(0, samples, rows):
        block = min(rows, samples - start)
        drawn = rng.choice(sentences, size=(block, sentences), replace=True)
        drawn += sentences * np.arange(block)[:, None]
        counts = np.bincount(drawn.ravel(), minlength=block * sentences)
        yield counts.reshape(block, sentences).astype(np.float64)


def _swaps(sentences: int, samples: int, seed: int) -> Iterator[Array]:
    """Which sentences change sides in each trial [block, sentences], as 0 and 1."""
    rng = np.random.default_rng(seed)
    # numpy draws 32 bits at once and drops what is left: blocks of 32 rows leave nothing.
    rows = max(32, _BLOCK // sentences // 32 * 32)
    for start in range(0, samples, rows):
        block = min(rows, samples - start)
        yield rng.integers(2, size=(block, sentences), dtype=bool).astype(np.float64)


def _p_value(resampled: Array, observed: float) -> float:
    # Sums of floats in another order differ in their last digits: a tie is no exact equality.
    extreme = int((resampled >= abs(observed) - _TIE).sum())
    return (extreme + 1) / (len(resampled) + 1)


def _central(values: Array) -> tuple[float, float]:
    """The central 95% of the values: sacrebleu's, one fortieth cut off at either end."""
    ordered = np.sort(values)
    cut = len(ordered) // 40
    return float(ordered[cut]), float(ordered[-cut - 1])


def _check(stats_a: Array, stats_b: Array, samples: int) -> None:
    if stats_a.shape != stats_b.shape or stats_a.ndim != 2 or len(stats_a) == 0:
        raise UsageError(
            "a paired test needs the statistics of the same sentences from both systems, "
            f"but got shapes {stats_a.shape} and {stats_b.shape}"
        )
    if samples < 1:
        raise UsageError(f"a test needs at least one sample, not {samples}")
