"""Names and weights of objectives."""

from __future__ import annotations

import re

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from simplexity.errors import UsageError
from simplexity.objectives import NAMED, parse_objective, usual_objective

TERMS = ["l2r", "r2l", "reverse"]


def test_the_named_objectives_are_those_of_the_paper_and_all_three_together() -> None:
    assert parse_objective("forward") == {"l2r": 1.0}
    assert parse_objective("bidirectional") == {"l2r": 0.5, "r2l": 0.5}
    assert parse_objective("bilingual") == {"l2r": 0.5, "reverse": 0.5}
    assert parse_objective("joint").keys() == set(TERMS)


@pytest.mark.parametrize("name", NAMED)
def test_the_weights_of_a_named_objective_sum_to_one(name: str) -> None:
    assert sum(parse_objective(name).values()) == pytest.approx(1)


def test_explicit_weights() -> None:
    assert parse_objective("l2r=0.7,reverse=0.3") == {"l2r": 0.7, "reverse": 0.3}
    assert parse_objective(" r2l = 1 ") == {"r2l": 1.0}
    assert list(parse_objective("reverse=0.5, l2r=0.5")) == ["reverse", "l2r"]
    assert parse_objective("l2r=0.3333,r2l=0.3333,reverse=0.3333")["l2r"] == 0.3333


weights = st.dictionaries(st.sampled_from(TERMS), st.floats(1e-3, 1e3), min_size=1)


@given(weights)
def test_weights_of_another_sum_are_refused_with_weights_that_are_not(
    given_weights: dict[str, float],
) -> None:
    assume(abs(sum(given_weights.values()) - 1) > 2e-3)
    text = ",".join(f"{name}={weight!r}" for name, weight in given_weights.items())
    with pytest.raises(UsageError, match="sum to 1, not") as refused:
        parse_objective(text)
    proposed = re.search(r"try (\S+)\.$", str(refused.value))
    assert proposed is not None
    scaled = parse_objective(proposed[1])
    total = sum(given_weights.values())
    assert list(scaled) == list(given_weights)
    for name, weight in given_weights.items():
        assert scaled[name] == pytest.approx(weight / total, rel=1e-3)


@given(weights)
def test_weights_that_sum_to_one_are_taken(given_weights: dict[str, float]) -> None:
    total = sum(given_weights.values())
    scaled = {name: weight / total for name, weight in given_weights.items()}
    text = ",".join(f"{name}={weight!r}" for name, weight in scaled.items())
    assert parse_objective(text) == scaled


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("bidirectionel", "did you mean 'bidirectional'"),
        ("", "choose from forward, bidirectional, bilingual, joint"),
        ("zzz", "choose from forward"),
        ("l2r=half,r2l=0.5", "weight of l2r is 'half', not a number"),
        ("l2r=", "weight of l2r is ''"),
        ("left=1", "no term 'left'; an objective is made of l2r, r2l, reverse"),
        ("l2r=0.5,", "no term ''"),
        ("l2r=0.5,l2r=0.5", "names a term twice"),
        ("l2r=1,r2l=0", "weight of r2l must be above 0"),
        ("l2r=2,r2l=-1", "weight of r2l must be above 0"),
        ("l2r=nan", "weight of l2r must be above 0"),
        ("l2r=inf", "weight of l2r must be above 0"),
    ],
)
def test_mistakes_are_named(text: str, message: str) -> None:
    with pytest.raises(UsageError, match=re.escape(message)):
        parse_objective(text)


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("lm", [False, True])
def test_models_that_are_named_take_part(reverse: bool, lm: bool) -> None:
    weights = parse_objective(usual_objective(reverse, lm))
    assert set(weights) == {"l2r"} | ({"reverse"} if reverse else set()) | ({"lm"} if lm else set())
