"""What the search with edits promises beyond what every decoder does: budgets, and its answers."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from simplexity import build
from simplexity.config import TranslateConfig
from simplexity.decode import Hypothesis
from simplexity.models.family import Family

LINES = ["der hund", "ein rot tag", "tag", "rot rot hund ein", "hund der tag ein"]
BUDGETS = [1, 3, 5, 8, 20, 50, 120]


def search(family: Family, lines: list[str] = LINES, **settings: Any) -> list[list[Hypothesis]]:
    given = {"decoder": "edits", "objective": "joint", "beam_size": 3, **settings}
    return list(build.translator(TranslateConfig(model=Path("tiny"), **given), family)(lines))


@pytest.fixture(scope="module")
def family(tiny_family: Callable[..., Family]) -> Family:
    return tiny_family(2, spread=1.0)


@pytest.mark.parametrize("objective", ["bidirectional", "bilingual", "joint"])
def test_more_evaluations_never_give_a_worse_string(objective: str, family: Family) -> None:
    costs = [
        [found[0].discrete_cost for found in search(family, objective=objective, budget=str(n))]
        for n in BUDGETS
    ]
    for less, more in itertools.pairwise(costs):
        # What is batched otherwise is rounded otherwise.
        assert all(b <= a + 1e-9 for a, b in zip(less, more, strict=True))
    assert sum(costs[-1]) < sum(costs[0]), "the budgets should make a difference"


def test_no_more_strings_are_scored_than_the_budget_allows(family: Family) -> None:
    for budget in BUDGETS:
        for found in search(family, budget=str(budget)):
            # The starts are scored in any case, or there would be no answer.
            assert len(found) <= max(budget, 3)


def test_more_rounds_and_patience_never_give_a_worse_string(family: Family) -> None:
    for setting in ("rounds", "patience"):
        costs = [
            [found[0].discrete_cost for found in search(family, **{setting: n})] for n in (1, 2, 5)
        ]
        for less, more in itertools.pairwise(costs):
            assert all(b <= a + 1e-9 for a, b in zip(less, more, strict=True))


def test_time_ends_a_search_with_its_best_string(family: Family) -> None:
    begun = search(family, budget="1")
    hurried = search(family, budget="0.001ms")
    for found, start in zip(hurried, begun, strict=True):
        assert found[0].stop == "time"
        assert found[0].discrete_cost <= start[0].discrete_cost


def test_the_same_search_gives_the_same_answers(family: Family) -> None:
    assert search(family) == search(family)


def test_without_insertions_deletions_and_other_starts_lengths_stay(family: Family) -> None:
    lengths = {"insertions": 0, "deletions": 0, "starts": 1}
    for found in search(family, **lengths):
        assert len({len(hypothesis.ids) for hypothesis in found}) == 1


def test_a_search_without_proposals_gives_back_its_start(family: Family) -> None:
    nothing = {"substitutions": 0, "insertions": 0, "deletions": 0, "iterations": 0, "starts": 1}
    for found in search(family, **nothing):
        (answer,) = found
        assert answer.text == answer.initial_text
        assert answer.stop == "nothing new"
