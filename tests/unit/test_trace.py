"""The record of a descent: one line an iteration and sentence, with the right names."""

from __future__ import annotations

import io
import json
import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from simplexity import build
from simplexity.config import TranslateConfig
from simplexity.decode import Hypothesis
from simplexity.models.family import Family
from simplexity.relax.geometry import ExponentiatedGradient
from simplexity.relax.optimise import iterates, minimise
from simplexity.relax.stopping import MaxIterations
from simplexity.relax.tokens import Soft, Tokens
from simplexity.relax.updates import Scale
from simplexity.text.vocabulary import WordVocabulary
from simplexity.trace import TOP, Trace

# Of different lengths and out of order, so that batches are sorted; one is empty.
LINES = ["ein rot hund tag rot", "tag", "der hund", "", "rot tag der", "hund"]


@pytest.fixture
def family(tiny_family: Callable[..., Family]) -> Family:
    return tiny_family(2, spread=1.0)


def traced(
    family: Family, **settings: Any
) -> tuple[list[list[Hypothesis]], list[list[Hypothesis]], list[dict[str, Any]]]:
    """Answers with a trace, the same without, and what the trace says."""
    config = TranslateConfig(
        model=Path("tiny"),
        **{"decoder": "eg", "objective": "joint", "iterations": 5, "batch_size": 2, **settings},
    )
    file = io.StringIO()
    trace = Trace(file, family["l2r"].target)
    found = list(build.translator(config, family, trace)(LINES))
    records = [json.loads(line) for line in file.getvalue().splitlines()]
    return found, list(build.translator(config, family)(LINES)), records


def descents(records: list[dict[str, Any]]) -> dict[tuple[int, int], list[dict[str, Any]]]:
    """The lines of each start, in the order of the file."""
    found: dict[tuple[int, int], list[dict[str, Any]]] = {}
    for record in records:
        found.setdefault((record["sentence_id"], record["start"]), []).append(record)
    return found


@pytest.mark.parametrize("decoder", ["eg", "sgd", "projected"])
def test_there_is_one_line_for_each_iteration_of_each_sentence(
    decoder: str, family: Family
) -> None:
    found, untraced, records = traced(family, decoder=decoder, iterations=8, unchanged=2)
    assert found == untraced
    lines = descents(records)
    assert sorted(lines) == [(n, 0) for n in (0, 1, 2, 4, 5)]  # line 3 is empty
    for (sentence, _), descent in lines.items():
        (hypothesis,) = found[sentence]
        assert [record["iteration"] for record in descent] == list(range(hypothesis.iterations + 1))
        least = min(record["continuous_cost"] for record in descent)
        assert least == hypothesis.continuous_cost
    assert len({found[n][0].iterations for n in (0, 1, 2, 4, 5)}) > 1  # some left early


def test_the_answer_of_the_paper_is_the_string_of_least_cost(family: Family) -> None:
    found, _, records = traced(family, preset="paper", iterations=12)
    for (sentence, _), descent in descents(records).items():
        best = min(descent, key=lambda record: record["continuous_cost"])
        assert found[sentence][0].text == best["translation"]


def test_every_start_has_its_own_descent(family: Family) -> None:
    found, _, records = traced(family, starts=3)
    lines = descents(records)
    for sentence in (0, 1, 2, 4, 5):
        mine = [lines[start] for start in sorted(lines) if start[0] == sentence]
        assert [descent[0]["start"] for descent in mine] == [0, 1, 2]
        costs = {min(record["continuous_cost"] for record in descent) for descent in mine}
        assert {hypothesis.continuous_cost for hypothesis in found[sentence]} <= costs


def test_the_likeliest_words_come_with_their_probabilities(family: Family) -> None:
    _, _, records = traced(family)
    pieces = family["l2r"].target.pieces
    words = set(pieces(range(4, 8)))
    for record in records:
        assert len(record["top"]) == len(record["translation"].split())
        for position, word in zip(record["top"], record["translation"].split(), strict=True):
            assert position.keys() == words  # all four: the support has no more
            masses = list(position.values())
            assert masses == sorted(masses, reverse=True)
            assert sum(masses) == pytest.approx(1)
            assert position[word] == masses[0]


@dataclass(frozen=True)
class Falling:
    """A linear energy; NaN for the sentences that are ill."""

    slopes: Tensor
    ill: Tensor

    def __call__(self, y: Tokens) -> Tensor:
        assert isinstance(y, Soft)
        cost = (y.probs * self.slopes).sum((-2, -1))
        return cost.masked_fill(self.ill, math.nan)

    def select(self, rows: Tensor) -> Falling:
        return replace(self, slopes=self.slopes[rows], ill=self.ill[rows])


def descend(
    mask: Tensor, slopes: Tensor, ill: Tensor, owner: Tensor, sentences: list[int]
) -> list[dict[str, Any]]:
    vocabulary = WordVocabulary(tuple("abcdefgh"), lowercase=False)
    size = slopes.shape[-1]
    start = Soft(torch.full((*mask.shape, size), 1 / size), mask, torch.arange(4, 4 + size))
    file = io.StringIO()
    descent = iterates(Falling(slopes, ill), start, ExponentiatedGradient(), Scale(1.0))
    minimise(Trace(file, vocabulary).of(sentences)(descent, owner), MaxIterations(2))

    def refuse(word: str) -> float:
        raise ValueError(word)

    return [json.loads(line, parse_constant=refuse) for line in file.getvalue().splitlines()]


def test_only_the_top_words_are_shown_and_padding_is_not() -> None:
    slopes = torch.arange(8.0).expand(2, 3, 8)
    mask = torch.tensor([[True, True, True], [True, False, False]])
    records = descend(mask, slopes, torch.tensor([False, False]), torch.tensor([0, 1]), [31, 17])
    assert [record["sentence_id"] for record in records] == [31, 17] * 3
    last = records[-2:]
    assert [record["translation"] for record in last] == ["a a a", "a"]
    assert [len(record["top"]) for record in last] == [3, 1]
    assert all(list(position) == list("abcdefgh"[:TOP]) for position in last[0]["top"])


def test_a_cost_that_is_no_number_is_null_and_its_sentence_leaves() -> None:
    slopes = torch.arange(4.0).expand(3, 1, 4)
    ill = torch.tensor([False, True, False])
    owner = torch.tensor([0, 1, 1])
    records = descend(torch.ones(3, 1, dtype=torch.bool), slopes, ill, owner, [5, 9])
    names = [(r["sentence_id"], r["start"], r["iteration"]) for r in records]
    assert names == [(5, 0, 0), (9, 0, 0), (9, 1, 0), (5, 0, 1), (9, 1, 1), (5, 0, 2), (9, 1, 2)]
    assert [r["continuous_cost"] is None for r in records] == [n == (9, 0, 0) for n in names]


def test_positions_of_given_strings(family: Family) -> None:
    """A hard start is no iterate: the first line is the rounding of its lift."""
    config = TranslateConfig(
        model=Path("tiny"), decoder="eg", objective="joint", iterations=0, lift="smoothed"
    )
    file = io.StringIO()
    decode = build.translator(config, family, Trace(file, family["l2r"].target))
    list(decode.improve([("hund", "a dog"), ("tag", "red")]))
    records = [json.loads(line) for line in file.getvalue().splitlines()]
    assert {r["sentence_id"]: r["translation"] for r in records} == {0: "a dog", 1: "red"}
