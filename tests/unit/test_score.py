"""Forced scoring agrees with the search that found the strings."""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import pytest
import torch

from simplexity.errors import SimplexityError
from simplexity.models.family import Family, Member
from simplexity.models.seq2seq import Seq2Seq
from simplexity.relax.tokens import pad_batch
from simplexity.score import score_pairs
from simplexity.search.beam import BeamSettings, beam_search

LINES = ["der hund", "tag", "", "ein rot hund tag", "rot", "der"]


@pytest.fixture
def family(tiny_family: Callable[..., Family]) -> Family:
    return tiny_family(0, spread=1.0)


@pytest.mark.parametrize("name", ["l2r", "r2l", "reverse"])
def test_a_score_is_what_the_beam_search_says_of_its_strings(name: Any, family: Family) -> None:
    member = family[name]
    lines = ["a dog", "red", "", "day a red"] if name == "reverse" else LINES
    source = pad_batch([member.source.encode(line) for line in lines], 0)
    found = beam_search(member.model, source, BeamSettings(size=3, n_best=3))
    pairs, expected = [], []
    for row, line in enumerate(lines):
        for column in range(int(found.count[row])):
            ids = found.ids[row, column][found.mask[row, column]].tolist()
            string = member.target.decode(ids)
            pairs.append((string, line) if name == "reverse" else (line, string))
            expected.append(float(found.log_prob[row, column]))
    for size in (1, 4, 64):
        scores = list(score_pairs(pairs, member, size))
        assert [score.total for score in scores] == pytest.approx(expected, abs=1e-5)


def steps(model: Seq2Seq, source: list[int], target: list[int]) -> list[float]:
    """log P of every word in reading order, the end last, as a search meets them."""
    order = target[::-1] if model.direction == "r2l" else target
    memory = model.encode(pad_batch([source], 0))
    state, log_p = model.step(memory, model.start(memory), None)
    found = []
    for word in [*order, model.eos]:
        found.append(float(log_p[0, word]))
        state, log_p = model.step(memory, state, torch.tensor([word]))
    *words, end = found
    return [*(words[::-1] if model.direction == "r2l" else words), end]


@pytest.mark.parametrize("name", ["l2r", "r2l", "reverse"])
def test_tokens_stand_in_reading_order_with_the_end_last(name: Any, family: Family) -> None:
    member = family[name]
    dice = random.Random(3)
    targets = [" ".join(dice.choices(["a", "day", "dog", "red", "cat"], k=n)) for n in (3, 1, 0, 5)]
    pairs = list(itertools.product(["ein hund", "rot", ""], targets))
    for (x, y), score in zip(pairs, score_pairs(pairs, member, 5), strict=True):
        given, scored = (y, x) if name == "reverse" else (x, y)
        ids = member.target.encode(scored)
        assert len(score.tokens) == len(ids) + 1
        expected = steps(member.model, member.source.encode(given), ids)
        assert score.tokens == pytest.approx(expected)
        assert sum(score.tokens) == pytest.approx(score.total)


def test_the_reverse_member_scores_the_source_given_the_target(family: Family) -> None:
    (score,) = score_pairs([("der hund", "a red dog")], family["reverse"], 1)
    assert len(score.tokens) == 3
    turned = steps(family["reverse"].model, [4, 7, 6], [4, 5])
    assert score.tokens == pytest.approx(turned)


def test_no_pairs_no_scores(family: Family) -> None:
    assert list(score_pairs([], family["l2r"], 8)) == []


@dataclass(frozen=True)
class Short:
    """A model that takes at most three words."""

    inner: Any
    max_length: int = 3
    reads_gaps: bool = False

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)


@pytest.mark.parametrize("pair", [("ein hund", "a a a a"), ("ein ein ein ein", "a")])
def test_a_line_that_is_too_long_is_named(pair: tuple[str, str], family: Family) -> None:
    member: Member = replace(family["l2r"], model=Short(family["l2r"].model))  # type: ignore[arg-type]
    assert len(list(score_pairs([("tag", "a a a")], member, 4))) == 1
    with pytest.raises(SimplexityError, match="Line 2 has 4 tokens, but the l2r model takes 3"):
        list(score_pairs([("tag", "a"), pair], member, 4))
