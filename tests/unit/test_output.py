"""Translations as they are written: text, n-best lists, JSON lines."""

from __future__ import annotations

import json
import math
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from simplexity.decode import Hypothesis
from simplexity.output import lines_of
from simplexity.search.nbest import parse_line
from simplexity.translate import NOTHING

KEYS = [
    *("sentence_id", "translation", "score", "translations", "scores", "terms"),
    *("continuous_cost", "discrete_cost", "initial_cost", "iterations", "stop"),
]

RELAXED = Hypothesis(
    text="ein Hund — 犬",
    ids=(4, 5),
    score=-1.5,
    terms={"l2r": 4.0, "reverse": 5.0},
    discrete_cost=4.5,
    continuous_cost=4.25,
    initial_cost=6.0,
    initial_text="ein Hut",
    iterations=8,
    stop="iterations",
)
BEAM = Hypothesis(text="b", ids=(6,), score=-2.0, terms={"l2r": 4.0}, discrete_cost=4.0)


def test_text_is_the_best_translation() -> None:
    assert lines_of(0, [RELAXED, BEAM], 1, "text") == ["ein Hund — 犬"]
    assert lines_of(0, [NOTHING], 1, "text") == [""]


def test_an_n_best_list_has_log_probabilities_by_term_and_the_score() -> None:
    assert lines_of(7, [RELAXED, BEAM], 5, "nbest") == [
        "7 ||| ein Hund — 犬 ||| l2r= -4.0 reverse= -5.0 ||| -1.5",
        "7 ||| b ||| l2r= -4.0 ||| -2.0",
    ]
    assert len(lines_of(7, [RELAXED, BEAM], 1, "nbest")) == 1


texts = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\r\n|&"))
costs = st.floats(-1e6, 1e6) | st.just(math.inf)


@given(st.integers(0, 10**6), texts, st.dictionaries(st.sampled_from("abc"), costs), costs)
def test_an_n_best_line_is_read_back(
    sentence: int, text: str, terms: dict[str, float], cost: float
) -> None:
    hypothesis = replace(BEAM, text=text, terms=terms, score=-cost)
    (line,) = lines_of(sentence, [hypothesis], 1, "nbest")
    read = parse_line(line)
    assert (read.sentence, read.text, read.score) == (sentence, text, -cost)
    assert read.features == {name: -value for name, value in terms.items()}


def test_json_has_these_keys_whatever_the_decoder() -> None:
    for found in ([RELAXED, BEAM], [BEAM], [NOTHING]):
        (line,) = lines_of(3, found, 2, "json")
        assert list(json.loads(line)) == KEYS
        assert "\n" not in line


def test_json_says_what_the_hypotheses_say() -> None:
    (line,) = lines_of(3, [RELAXED, BEAM], 2, "json")
    assert "犬" in line
    assert json.loads(line) == {
        "sentence_id": 3,
        "translation": "ein Hund — 犬",
        "score": -1.5,
        "translations": ["ein Hund — 犬", "b"],
        "scores": [-1.5, -2.0],
        "terms": {"l2r": 4.0, "reverse": 5.0},
        "continuous_cost": 4.25,
        "discrete_cost": 4.5,
        "initial_cost": 6.0,
        "iterations": 8,
        "stop": "iterations",
    }
    assert json.loads(lines_of(3, [RELAXED, BEAM], 1, "json")[0])["scores"] == [-1.5]


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_json_stays_json_when_costs_are_no_numbers(value: float) -> None:
    """The JSON standard has no word for them."""
    ill = replace(
        RELAXED,
        score=value,
        terms={"l2r": value, "reverse": 1.0},
        discrete_cost=value,
        continuous_cost=value,
        initial_cost=value,
    )

    def refuse(word: str) -> float:
        raise ValueError(word)

    (line,) = lines_of(0, [ill, BEAM], 2, "json")
    read = json.loads(line, parse_constant=refuse)
    assert read["scores"] == [None, -2.0]
    assert read["terms"] == {"l2r": None, "reverse": 1.0}
    names = ("score", "continuous_cost", "discrete_cost", "initial_cost")
    assert [read[name] for name in names] == [None] * 4
