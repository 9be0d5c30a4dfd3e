"""Och's line search and MERT against brute force."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations, pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from simplexity.errors import UsageError
from simplexity.evaluate.metrics import Bleu, ChrF, Ter
from simplexity.evaluate.tuning import Cached, line_search, mert, score_weights


@dataclass(frozen=True)
class Points:
    """The sum of points: a metric whose optimum is easily computed by hand."""

    name: str = "points"
    label: str = "points"
    higher_is_better: bool = True

    def counter(self):
        raise NotImplementedError

    def from_sums(self, sums):
        return sums[..., 0]


def lists(*sentences):
    """Each hypothesis is (features, points)."""
    size = len(sentences[0][0][0])
    return Cached(
        [np.array([f for f, _ in s], dtype=float).reshape(len(s), size) for s in sentences],
        [np.array([[p] for _, p in s], dtype=float).reshape(len(s), 1) for s in sentences],
        tuple(f"f{i}" for i in range(size)),
    )


# Along w = (1, 0) + gamma (0, 1) the lines are f0 + gamma f1.
# Sentence 1: 0 - gamma until -1, 1 until 2, -1 + gamma after.     points 0, 5, 2
# Sentence 2: 0 until 0, gamma after.                              points 0, 4
# Sentence 3: one hypothesis, always.                              points 7
HAND = lists(
    [((0, -1), 0), ((1, 0), 5), ((-1, 1), 2), ((-5, 0), 99)],
    [((0, 0), 0), ((0, 1), 4)],
    [((3, 3), 7)],
)


def test_hand_made_list():
    found = line_search(HAND, np.array([1.0, 0.0]), np.array([0.0, 1.0]), Points())
    assert found.score == 5 + 4 + 7
    assert found.interval == (0, 2)
    assert found.position == 1


def test_hand_made_list_equals_a_fine_grid():
    found = line_search(HAND, np.array([1.0, 0.0]), np.array([0.0, 1.0]), Points())
    grid = np.linspace(-5, 5, 2001) + 1e-4
    weights = np.stack([np.ones_like(grid), grid], -1)
    scores = score_weights(HAND, weights, Points())
    assert scores.max() == found.score
    best = grid[scores == found.score]
    assert best.min() == pytest.approx(found.interval[0], abs=0.005)
    assert best.max() == pytest.approx(found.interval[1], abs=0.005)


def test_open_ends_are_entered_by_a_finite_step():
    one = np.array([1.0, 0.0]), np.array([0.0, 1.0])
    right = line_search(lists([((0, 0), 0), ((-3, 1), 1)]), *one, Points())
    assert (right.score, right.interval) == (1, (3, np.inf))
    assert 3 < right.position < 10
    left = line_search(lists([((0, 0), 0), ((-3, -1), 1)]), *one, Points())
    assert (left.score, left.interval) == (1, (-np.inf, -3))
    assert -10 < left.position < -3


def test_a_line_without_choices_stays_where_it_is():
    same = lists([((1, 2), 3), ((1, 2), 9)], [((4, 5), 1)])
    found = line_search(same, np.ones(2), np.array([0.0, 1.0]), Points())
    assert found.score == 3 + 1
    assert found.position == 0
    assert found.interval == (-np.inf, np.inf)


def test_lists_without_hypotheses_count_for_nothing():
    with_empty = Cached(
        [np.empty((0, 2)), *HAND.features],
        [np.empty((0, 1)), *HAND.statistics],
        HAND.names,
    )
    line = np.array([1.0, 0.0]), np.array([0.0, 1.0])
    assert line_search(with_empty, *line, Points()) == line_search(HAND, *line, Points())
    nothing = Cached([np.empty((0, 2))], [np.empty((0, 1))], HAND.names)
    assert line_search(nothing, *line, Points()).score == 0


def test_of_equal_hypotheses_the_first_counts_on_the_whole_line():
    tied = lists([((0, 0), 0), ((0, 1), 1), ((0, 1), 8)])
    found = line_search(tied, np.array([1.0, 0.0]), np.array([0.0, 1.0]), Points())
    assert (found.score, found.interval) == (1, (0, np.inf))


def test_the_returned_point_is_no_tie():
    # At 0 all three score the same and the first, worst, would be chosen.
    tied = lists([((0, 0), 0), ((0, 1), 2), ((0, -1), 2)])
    found = line_search(tied, np.array([1.0, 0.0]), np.array([0.0, 1.0]), Points())
    assert found.score == 2
    assert found.position != 0


def test_the_widest_of_equally_good_intervals_is_taken():
    both = lists([((0, 0), 0), ((-1, 1), 3), ((-3, 2), 0), ((-7, 3), 3), ((-17, 4), 0)])
    found = line_search(both, np.array([1.0, 0.0]), np.array([0.0, 1.0]), Points())
    assert (found.score, found.interval, found.position) == (3, (4, 10), 7)


def test_bounds_are_kept():
    line = np.array([1.0, 0.0]), np.array([0.0, 1.0])
    found = line_search(HAND, *line, Points(), within=(-np.inf, -0.5))
    assert (found.score, found.interval) == (5 + 0 + 7, (-1, -0.5))
    found = line_search(HAND, *line, Points(), within=(2.5, 3.0))
    assert (found.score, found.interval) == (2 + 4 + 7, (2.5, 3.0))
    with pytest.raises(UsageError, match="no room"):
        line_search(HAND, *line, Points(), within=(1.0, 1.0))


@st.composite
def problems(draw, features=2):
    """Small whole-numbered lists, where ties, parallel lines and triple crossings abound."""
    value = st.integers(-3, 3)
    hypothesis_ = st.tuples(st.tuples(*[value] * features), st.integers(0, 5))
    sentences = draw(
        st.lists(st.lists(hypothesis_, min_size=0, max_size=5), min_size=1, max_size=4)
    )
    if not any(sentences):
        sentences[0] = [draw(hypothesis_)]
    sentences.sort(key=lambda s: -len(s))
    vector = st.tuples(*[value] * features)
    return lists(*sentences), draw(vector), draw(vector)


def points_at(cached, start, direction, gamma):
    """The corpus score at gamma in exact arithmetic: sum of first best hypotheses' points."""
    total = 0
    for features, stats in zip(cached.features, cached.statistics, strict=True):
        if len(features):
            scores = [
                sum(int(f) * (w + gamma * d) for f, w, d in zip(row, start, direction, strict=True))
                for row in features
            ]
            total += int(stats[scores.index(max(scores)), 0])
    return total


def crossings(cached, start, direction):
    """Every gamma at which any two hypotheses of a sentence score the same."""
    found = set()
    for features in cached.features:
        lines = [
            (
                sum(int(f) * d for f, d in zip(row, direction, strict=True)),
                sum(int(f) * w for f, w in zip(row, start, strict=True)),
            )
            for row in features
        ]
        found |= {Fraction(b - d, c - a) for (a, b), (c, d) in combinations(lines, 2) if a != c}
    return sorted(found)


@settings(max_examples=300, deadline=None)
@given(problems())
def test_line_search_finds_what_brute_force_finds(problem):
    cached, start, direction = problem
    cuts = crossings(cached, start, direction)
    edges = [cuts[0] - 1, *cuts, cuts[-1] + 1] if cuts else [Fraction(-1), Fraction(1)]
    middles = [(a + b) / 2 for a, b in pairwise(edges)]
    best = max(points_at(cached, start, direction, gamma) for gamma in middles)
    found = line_search(cached, np.array(start, float), np.array(direction, float), Points())
    assert found.score == best
    # The returned point and points all over the returned interval have that score.
    low, high = found.interval
    assert low < found.position < high
    left, right = max(low, found.position - 50), min(high, found.position + 50)
    for share in (Fraction(1, 1000), Fraction(1, 3), Fraction(999, 1000)):
        gamma = Fraction(left) + share * (Fraction(right) - Fraction(left))
        assert points_at(cached, start, direction, gamma) == best
    assert points_at(cached, start, direction, Fraction(found.position)) == best


def bleu_like(rng, sentences, size, features):
    """Random lists with statistics that BLEU could have counted."""
    lengths = rng.integers(5, 15, size=(sentences, size, 1))
    totals = np.maximum(lengths - np.arange(4), 1)
    matches = rng.binomial(totals, np.array([0.7, 0.5, 0.35, 0.2]))
    reference = rng.integers(5, 15, size=(sentences, 1, 1)).repeat(size, 1)
    stats = np.concatenate([lengths, reference, matches, totals], -1).astype(float)
    names = tuple(f"f{i}" for i in range(features))
    return Cached(list(rng.normal(size=(sentences, size, features))), list(stats), names)


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("metric", [Bleu(), Ter(), ChrF()], ids=lambda m: m.name)
def test_line_search_is_never_below_a_fine_grid_and_holds_at_its_point(seed, metric):
    rng = np.random.default_rng(seed)
    cached = bleu_like(rng, 10, 6, 3)
    if metric != Bleu():
        width = 2 if metric == Ter() else 18
        statistics = [np.sort(rng.integers(1, 20, (6, width)), -1)[:, ::-1].astype(float)] * 10
        cached = Cached(cached.features, statistics, cached.names)
    start, direction = rng.normal(size=(2, 3))
    found = line_search(cached, start, direction, metric)
    sign = 1 if metric.higher_is_better else -1
    grid = np.concatenate([np.linspace(-4, 4, 4001), np.linspace(-300, 300, 2001)])
    scores = score_weights(cached, start + grid[:, None] * direction, metric)
    assert sign * found.score >= (sign * scores).max() - 1e-9
    at = score_weights(cached, start + found.position * direction[None], metric)[0]
    assert at == pytest.approx(found.score, abs=1e-9)


@pytest.mark.parametrize("non_negative", [False, True])
@pytest.mark.parametrize("seed", range(4))
def test_mert_on_two_features_is_at_least_as_good_as_a_grid_over_all_angles(seed, non_negative):
    cached = bleu_like(np.random.default_rng(seed), 8, 5, 2)
    turn = np.pi / 2 if non_negative else 2 * np.pi
    angles = np.linspace(0, turn, 2000)
    grid = score_weights(cached, np.stack([np.cos(angles), np.sin(angles)], -1), Bleu()).max()
    tuned = mert(cached, Bleu(), np.array([1.0, 1.0]), non_negative=non_negative)
    assert tuned.score >= grid - 1e-9
    assert np.abs(tuned.weights).sum() == pytest.approx(1)
    assert (tuned.weights >= 0).all() or not non_negative


@settings(max_examples=60, deadline=None)
@given(problems(features=3), st.booleans(), st.integers(0, 3))
def test_mert_never_ends_below_its_start(problem, non_negative, restarts):
    cached, start, _ = problem
    start = np.abs(start) if non_negative else np.array(start)
    start = start.astype(float) if start.any() else np.ones(3)
    begin = score_weights(cached, start / np.abs(start).sum(), Points())[0]
    tuned = mert(cached, Points(), start, restarts=restarts, non_negative=non_negative)
    assert tuned.score >= begin
    assert tuned.history[0].score == begin
    assert score_weights(cached, tuned.weights, Points())[0] == tuned.score
    assert np.abs(tuned.weights).sum() == pytest.approx(1)
    assert (tuned.weights >= 0).all() or not non_negative
    climbs = {}
    for trial in tuned.history:
        climbs.setdefault(trial.start, []).append(trial.score)
    assert sorted(climbs) == list(range(restarts + 1))
    assert all(scores == sorted(set(scores)) for scores in climbs.values())


def test_mert_is_deterministic_and_restarts_help_or_do_no_harm():
    cached = bleu_like(np.random.default_rng(9), 20, 8, 4)
    one, again = (mert(cached, Bleu(), np.ones(4), restarts=3, seed=1) for _ in range(2))
    np.testing.assert_array_equal(one.weights, again.weights)
    assert [t.score for t in one.history] == [t.score for t in again.history]
    scores = [mert(cached, Bleu(), np.ones(4), restarts=n, seed=1).score for n in (0, 3, 6)]
    assert scores == sorted(scores)


def test_an_error_rate_is_minimised():
    cached = bleu_like(np.random.default_rng(10), 10, 5, 2)
    edits = Cached(cached.features, [s[:, [2, 0]] for s in cached.statistics], cached.names)
    angles = np.linspace(0, 2 * np.pi, 2000)
    grid = score_weights(edits, np.stack([np.cos(angles), np.sin(angles)], -1), Ter())
    assert mert(edits, Ter(), np.array([1.0, 1.0])).score <= grid.min() + 1e-9
