"""Choosing from cached lists by weights: ties, empty lists, speed, gains that are only noise."""

from __future__ import annotations

import time
from dataclasses import dataclass

import numpy as np
import pytest
import sacrebleu

from simplexity.errors import SimplexityError, UsageError
from simplexity.evaluate.metrics import Bleu, ChrF, Ter, sufficient_lists
from simplexity.evaluate.significance import paired_bootstrap
from simplexity.evaluate.tuning import (
    Cached,
    gain,
    held_out_gain,
    mert,
    random_search,
    score_weights,
    select,
    selected,
)

WORDS = ["the", "cat", "sat", "on", "a", "red", "mat", "while", "it", "was", "raining", "in"]


@dataclass(frozen=True)
class Hits:
    """Share of right choices: statistics are [hits, 1]."""

    name: str = "hits"
    label: str = "hits"
    higher_is_better: bool = True

    def counter(self):
        raise NotImplementedError

    def from_sums(self, sums):
        return sums[..., 0] / np.maximum(sums[..., 1], 1)


def hits(features, good):
    """Lists of features where hypothesis `good[i]` of list i is the right one."""
    features = [np.array(f, dtype=float) for f in features]
    statistics = [
        np.array([[float(n == g), 1.0] for n in range(len(f))]).reshape(len(f), 2)
        for f, g in zip(features, good, strict=True)
    ]
    return Cached(features, statistics, tuple("abc"[: features[0].shape[1]]))


def made(seed, metric, sentences=40, size=12, informative=True):
    """N-best lists of corrupted references; feature `a` follows the corruption, `b` is noise."""
    rng = np.random.default_rng(seed)
    references, lists, features = [], [], []
    for _ in range(sentences):
        words = [str(w) for w in rng.choice(WORDS, rng.integers(6, 14))]
        shares = rng.uniform(0.1, 0.6, size)
        lists.append(
            [
                " ".join(str(rng.choice(WORDS)) if rng.random() < s else w for w in words)
                for s in shares
            ]
        )
        references.append(" ".join(words))
        signal = -10 * shares if informative else rng.normal(size=size)
        features.append(np.stack([signal + rng.normal(size=size), rng.normal(size=size)], -1))
    stats = sufficient_lists(metric, lists, [references])
    return Cached(features, stats, ("a", "b")), lists, references


def test_the_best_is_chosen_and_the_first_wins_ties():
    cached = hits([[[1, 0], [0, 1], [1, 0]], [[2, 2], [2, 2]], [[0, 0]]], [0, 0, 0])
    np.testing.assert_array_equal(select(cached, np.array([1.0, 0.0])), [0, 0, 0])
    weights = np.array([[0.0, 1.0], [-1.0, 0.0], [0.5, 0.5]])
    np.testing.assert_array_equal(select(cached, weights), [[1, 0, 0], [1, 0, 0], [0, 0, 0]])


def test_equal_features_tie_at_any_weights_and_any_place():
    rng = np.random.default_rng(0)
    cached = hits([np.tile(rng.normal(size=3), (n, 1)) for n in range(1, 40)], [0] * 39)
    assert not select(cached, rng.normal(size=(50, 3))).any()


def test_empty_lists_choose_nothing_and_count_for_nothing():
    cached = hits([np.empty((0, 1)), [[1.0], [2.0]], np.empty((0, 1))], [0, 1, 0])
    np.testing.assert_array_equal(select(cached, np.array([1.0])), [-1, 1, -1])
    np.testing.assert_array_equal(selected(cached, np.array([1.0])), [[0, 0], [1, 1], [0, 0]])
    assert score_weights(cached, np.array([[1.0], [-1.0]]), Hits()).tolist() == [1, 0]


@pytest.mark.parametrize("metric", [Bleu(), ChrF(), Ter()], ids=lambda m: m.name)
def test_scores_are_sacrebleus_of_the_chosen_lines(metric):
    cached, lists, references = made(1, metric)
    weights = np.random.default_rng(2).normal(size=(5, 2))
    judge = {
        "bleu": lambda h: sacrebleu.corpus_bleu(h, [references], lowercase=True),
        "chrf": lambda h: sacrebleu.corpus_chrf(h, [references]),
        "ter": lambda h: sacrebleu.corpus_ter(h, [references]),
    }[metric.name]
    known = [
        judge([lines[max(range(len(lines)), key=lambda n: float(f[n] @ w))] for lines, f in pairs])
        for w in weights
        for pairs in [list(zip(lists, cached.features, strict=True))]
    ]
    found = score_weights(cached, weights, metric)
    np.testing.assert_allclose(found, [score.score for score in known], atol=1e-9)


def test_a_thousand_weights_over_a_thousand_hundred_best_lists_take_seconds(record_property):
    rng = np.random.default_rng(3)
    features = list(rng.normal(size=(1000, 100, 3)))
    statistics = list(rng.integers(1, 30, size=(1000, 100, 10)).astype(float))
    cached = Cached(features, statistics, ("l2r", "r2l", "reverse"))
    started = time.process_time()
    scores = score_weights(cached, rng.dirichlet(np.ones(3), size=1000), Bleu())
    seconds = time.process_time() - started
    record_property("seconds", seconds)
    print(f"1,000 weights, 1,000 lists of 100: {seconds:.2f} s")
    assert len(np.unique(scores)) > 500
    assert seconds < 10


def test_random_search_returns_the_best_it_saw():
    cached, _, _ = made(4, ChrF())
    tuned = random_search(cached, ChrF(), samples=200, seed=5)
    drawn = np.random.default_rng(5).dirichlet(np.ones(2), size=200)
    assert tuned.score == score_weights(cached, drawn, ChrF()).max()
    assert tuned.weights.sum() == pytest.approx(1)
    assert [t.score for t in tuned.history] == sorted({t.score for t in tuned.history})
    again = random_search(cached, ChrF(), samples=200, seed=5)
    np.testing.assert_array_equal(tuned.weights, again.weights)


def test_an_error_rate_is_tuned_downwards():
    cached, _, _ = made(6, Ter())
    start = np.array([0.0, 1.0])
    before = score_weights(cached, start, Ter())[0]
    assert random_search(cached, Ter(), 50).score < before
    assert mert(cached, Ter(), start, restarts=1).score < before


def test_gain_is_the_paired_bootstrap_of_the_choices():
    cached, _, _ = made(7, Bleu(), sentences=100)
    weights, baseline = np.array([1.0, 0.0]), np.array([0.0, 1.0])
    found = gain(cached, weights, baseline, Bleu())
    stats = [
        np.stack([s[i] for s, i in zip(cached.statistics, select(cached, w), strict=True)])
        for w in (weights, baseline)
    ]
    assert found == paired_bootstrap(*stats, Bleu())
    scores = score_weights(cached, np.stack([weights, baseline]), Bleu())
    assert found.difference == pytest.approx(scores[0] - scores[1])
    assert found.low > 0
    assert found.p_value < 0.01
    assert gain(cached, weights, 2 * weights, Bleu()).p_value == 1


def test_held_out_gain_does_not_take_noise_for_a_gain():
    def tune(lists):
        return mert(lists, ChrF(), np.array([1.0, 0.0]), restarts=2)

    baseline = np.array([1.0, 0.0])
    noise, _, _ = made(8, ChrF(), informative=False)
    flattered = gain(noise, tune(noise).weights, baseline, ChrF())
    honest = held_out_gain(noise, tune, baseline, ChrF())
    assert flattered.difference > 2
    assert honest.difference < 0.5 * flattered.difference
    assert honest.p_value > 0.05
    signal, _, _ = made(9, ChrF())
    assert held_out_gain(signal, tune, np.array([0.0, 1.0]), ChrF()).p_value < 0.01


def test_held_out_choices_never_saw_their_own_sentence():
    cached, _, _ = made(10, ChrF(), sentences=6)
    seen = []

    def tune(lists):
        seen.append({id(f) for f in lists.features})
        return random_search(lists, ChrF(), 3)

    held_out_gain(cached, tune, np.array([1.0, 0.0]), ChrF(), folds=3)
    everything = {id(f) for f in cached.features}
    held = [everything - part for part in seen]
    assert [len(part) for part in held] == [2, 2, 2]
    assert set.union(*held) == everything


@pytest.mark.parametrize(
    ("features", "statistics", "words"),
    [
        ([], [], "at least one"),
        ([np.ones((2, 2))], [], "1 lists of features and 0 of statistics"),
        ([np.ones((2, 2)), np.ones((2, 3))], [np.ones((2, 4))] * 2, "sentence 2 has features"),
        ([np.ones((2, 2))] * 2, [np.ones((2, 4)), np.ones((2, 5))], "sentence 2 has"),
        ([np.ones((2, 2))], [np.ones((3, 4))], "sentence 1 has"),
        ([np.array([[1.0, np.nan]])], [np.ones((1, 4))], "sentence 1 has a feature"),
    ],
)
def test_lists_that_do_not_fit_are_refused(features, statistics, words):
    with pytest.raises(SimplexityError, match=words):
        Cached(features, statistics, ("a", "b"))


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda c: score_weights(c, np.ones((1, 3)), Hits()), r"2 features \(a, b\)"),
        (lambda c: score_weights(c, np.ones((0, 2)), Hits()), "do not fit"),
        (lambda c: select(c, np.array([np.inf, 1])), "no finite number"),
        (lambda c: mert(c, Hits(), np.zeros(2)), "all zero"),
        (lambda c: mert(c, Hits(), np.array([1.0, -1.0]), non_negative=True), "negative"),
        (lambda c: random_search(c, Hits(), 0), "at least one sample"),
        (lambda c: held_out_gain(c, lambda x: x, np.ones(2), Hits(), folds=2), "2 folds"),
        (lambda c: Cached([np.ones((1, 0))], [np.ones((1, 2))], ()), "no feature"),
    ],
)
def test_requests_that_make_no_sense(call, words):
    with pytest.raises(UsageError, match=words):
        call(hits([[[1, 0], [0, 1]]], [0]))
