"""Choices made on development data, and what is said of their gains."""

from __future__ import annotations

import json

import numpy as np
import pytest

from simplexity.evaluate.learn import (
    Candidate,
    Resampling,
    cached_lists,
    choose,
    drawn_weights,
    learn_weights,
)
from simplexity.evaluate.learn_report import render_chosen, render_learnt
from simplexity.evaluate.metrics import Bleu, Ter, score
from simplexity.evaluate.tuning import Tuned, mert, random_search
from simplexity.objectives import parse_weights
from simplexity.search.nbest import NBestLine
from simplexity.search.rerank import Rerank

QUICK = Resampling(resamples=50, folds=3)
REFERENCE = [f"the cat number {n} sat on the red mat" for n in range(12)]
WRONG = [f"a dog number {n} stood by the red wall" for n in range(12)]


def line(sentence: int, text: str, **features: float) -> NBestLine:
    return NBestLine(sentence, text, features, -1.0)


def two_each() -> list[list[NBestLine]]:
    """`good` knows which is right; `bad` is sure of the other, which comes first."""
    return [
        [line(n, WRONG[n], good=-3, bad=-1), line(n, REFERENCE[n], good=-2, bad=-5)]
        for n in range(12)
    ]


def test_lists_become_numbers():
    lists = [
        [line(0, "a b", l2r=-4, tokens=3), line(0, "a b c d", l2r=-6, tokens=5)],
        [],
        [line(2, "too long", l2r=-np.inf, tokens=1), line(2, "a", l2r=-8, tokens=1)],
        [line(3, "too long", l2r=-np.inf, tokens=1)],
    ]
    references = [["a b", "c", "a", "d"]]
    cached = cached_lists(lists, Rerank({"l2r": 0.5, "tokens": 1.0}), references, Bleu())
    assert cached.names == ("l2r", "tokens")
    assert [f.tolist() for f in cached.features] == [
        [[-1, 3], [-1, 5]],
        [[0, 0]],
        [[-4, 1]],
        [[0, 0]],
    ]
    assert [s[:, 0].tolist() for s in cached.statistics] == [[2, 4], [0], [1], [2]]
    filtered = cached_lists(lists, Rerank({"l2r": 1.0}, "sum", True), references, Bleu())
    assert [f.tolist() for f in filtered.features] == [[[-4]], [[0]], [[-8]], [[0]]]


def test_learnt_weights_and_their_gains():
    rerank = Rerank({"bad": 0.8, "good": 0.2}, "sum")
    cached = cached_lists(two_each(), rerank, [REFERENCE], Bleu())
    start = np.array([0.8, 0.2])
    learnt = learn_weights(
        cached, rerank.weights, Bleu(), lambda part: mert(part, Bleu(), start, 3), QUICK
    )
    wrong = score(Bleu(), WRONG, [REFERENCE]).value
    assert (learnt.one_best, learnt.before) == (pytest.approx(wrong), pytest.approx(wrong))
    assert learnt.after == pytest.approx(100)
    assert learnt.gain.difference == pytest.approx(100 - wrong)
    assert learnt.held_out is not None
    assert learnt.held_out.difference == pytest.approx(100 - wrong)
    # What is reported can be typed in again, and does what is said of it.
    last = render_learnt(learnt, "--normalise sum", "text").splitlines()[-1].split()
    again = Rerank(parse_weights(last[1]), "sum")
    texts = [found[again.order([h.features for h in found])[0]].text for found in two_each()]
    assert texts == REFERENCE
    assert json.loads(render_learnt(learnt, "", "json"))["weights"] == learnt.weights


def test_weights_sum_to_one_if_none_is_negative():
    cached = cached_lists(two_each(), Rerank({"bad": 1, "good": 1}, "sum"), [REFERENCE], Bleu())
    learnt = learn_weights(
        cached, {"bad": 1, "good": 1}, Bleu(), lambda part: random_search(part, Bleu(), 20), QUICK
    )
    assert sum(learnt.weights.values()) == pytest.approx(1, abs=1e-5)


@pytest.mark.parametrize("metric", [Bleu(), Ter()])
def test_a_search_that_finds_nothing_better_keeps_the_start(metric):
    start = {"bad": 0.0, "good": 2.0}
    cached = cached_lists(two_each(), Rerank(start, "sum"), [REFERENCE], metric)
    worst = Tuned(np.array([1.0, 0.0]), 50.0, ())
    learnt = learn_weights(cached, start, metric, lambda part: worst, QUICK)
    assert learnt.weights == {"bad": 0.0, "good": 1.0}
    assert learnt.gain.difference == 0


def test_with_too_few_sentences_nothing_is_held_out():
    cached = cached_lists(two_each()[:2], Rerank({"good": 1}, "sum"), [REFERENCE[:2]], Bleu())
    learnt = learn_weights(
        cached, {"good": 1}, Bleu(), lambda c: random_search(c, Bleu(), 1), QUICK
    )
    assert learnt.held_out is None
    assert "held out" not in render_learnt(learnt, "", "text")


def test_negative_weights_come_with_a_warning():
    start = {"good": 0.1, "bad": 1.0}
    cached = cached_lists(two_each(), Rerank(start, "sum"), [REFERENCE], Bleu())
    best = Tuned(np.array([0.4, -0.6]), 100.0, ())
    report = render_learnt(
        learn_weights(cached, start, Bleu(), lambda c: best, QUICK), "--normalise sum", "text"
    )
    assert "for reranking only" in report
    assert report.endswith("--objective good=0.4,bad=-0.6 --normalise sum\n")


def candidates() -> list[Candidate]:
    mixed = [*REFERENCE[:6], *WRONG[6:]]
    return [
        Candidate("0.1", WRONG, 9.0, 1.0),
        Candidate("1", mixed, 7.0, 2.0),
        Candidate("10", REFERENCE, 8.0, 3.0),
    ]


START = Candidate("start", WRONG, 9.5, 0.0)


def test_the_best_candidate_by_metric():
    chosen = choose(candidates(), START, 1, "metric", [REFERENCE], Bleu(), QUICK)
    expected = [score(Bleu(), c.translations, [REFERENCE]).value for c in candidates()]
    assert [c.score for c in chosen.candidates] == pytest.approx(expected)
    assert (chosen.best, chosen.baseline) == ("10", "1")
    assert chosen.gain.difference == pytest.approx(expected[2] - expected[1])
    assert chosen.held_out is not None
    assert chosen.held_out.difference == pytest.approx(expected[2] - expected[1])
    report = render_chosen(chosen, "--step", "text").splitlines()
    assert report[-1] == "--step 10"
    assert [row.split()[0] for row in report[:5]] == ["setting", "start", "0.1", "1", "10"]
    assert json.loads(render_chosen(chosen, "--step", "json"))["flags"] == "--step 10"


def test_the_best_candidate_by_cost_has_seen_no_reference():
    chosen = choose(candidates(), START, 0, "cost", [REFERENCE], Bleu(), QUICK)
    assert (chosen.best, chosen.held_out) == ("1", None)


def test_an_error_rate_is_best_when_low():
    assert choose(candidates(), START, 0, "metric", [REFERENCE], Ter(), QUICK).best == "10"


def test_what_was_best_by_chance_is_not_held_out_for_a_gain():
    """Candidates that differ by noise alone: the choice flatters itself, the held-out gain not."""
    rng = np.random.default_rng(1)
    made = [
        Candidate(str(n), [t if rng.random() < 0.5 else w for t, w in pairs], 0.0, 0.0)
        for n in range(8)
        for pairs in [list(zip(REFERENCE, WRONG, strict=True))]
    ]
    chosen = choose(made, START, 0, "metric", [REFERENCE], Bleu(), QUICK)
    assert chosen.held_out is not None
    assert chosen.held_out.difference < chosen.gain.difference


@pytest.mark.parametrize("names", [["l2r", "r2l"], ["l2r", "r2l", "reverse"]])
def test_drawn_weights_make_objectives(names):
    drawn = drawn_weights(names, 7, 1)
    assert len(drawn) == 7
    assert all(list(weights) == names for weights in drawn)
    assert all(min(weights.values()) > 0 for weights in drawn)
    assert all(abs(sum(weights.values()) - 1) < 1e-3 for weights in drawn)
    assert drawn == drawn_weights(names, 7, 1)


def test_two_terms_are_searched_along_a_line():
    shares = [weights["l2r"] for weights in drawn_weights(["l2r", "r2l"], 3, 1)]
    assert shares == [0.25, 0.5, 0.75]
