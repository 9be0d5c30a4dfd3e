"""Hypotheses are scored as their text would be read."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pytest
import torch
from torch import Tensor

from simplexity.decode import Hypothesis
from simplexity.relax.tokens import Hard, Tokens, lengths, pad_batch
from simplexity.reread import Reread
from simplexity.terms.mix import Mix, Part
from simplexity.terms.through_text import Bridge, ThroughText

PIECES = ("", "a", "b", "ab")


class Letters:
    """A vocabulary that writes ab as one piece, and reads also a b."""

    fingerprint = "letters"

    def encode(self, line: str) -> list[int]:
        ids = []
        while line:
            ids.append(3 if line.startswith("ab") else PIECES.index(line[0]))
            line = line[len(PIECES[ids[-1]]) :]
        return ids

    def decode(self, ids: Sequence[int]) -> str:
        return "".join(PIECES[n] for n in ids)

    def __len__(self) -> int:
        return len(PIECES)


@dataclass(frozen=True)
class Count:
    """Costs one for every piece."""

    def bind(self, source: Hard) -> Count:
        return self

    def __call__(self, y: Tokens) -> Tensor:
        return lengths(y).float()

    def factors(self, y: Tokens) -> Tensor:
        return lengths(y) + 1

    def select(self, rows: Tensor) -> Count:
        return self


def term() -> ThroughText:
    letters = Letters()
    return ThroughText(Count(), None, Bridge(letters, letters, 10))  # type: ignore[arg-type]


def test_what_reads_otherwise_is_scored_anew_and_ranked_anew():
    split = Hypothesis("ab", (1, 2), -0.5, {"l2r": 1.5}, 1.5)
    other = Hypothesis("aa", (1, 1), -0.4, {"l2r": 1.2}, 1.2)
    reread = Reread(
        lambda source: [[other, split]], Mix((Part("l2r", 1.0, term()),)), Letters().encode, 1.0
    )
    (found,) = reread(pad_batch([[1]], 0))
    assert [h.text for h in found] == ["aa", "ab"]
    assert found[0] is other
    assert found[1].ids == (3,)
    assert found[1].discrete_cost == found[1].terms["l2r"] == 1.0
    assert found[1].score == pytest.approx(-1 / 2)


def test_a_term_through_text_scores_the_text():
    source = pad_batch([[1], [1]], 0)
    energy = term().bind(source)
    assert energy(pad_batch([[1, 2, 1], [1, 1]], 0)).tolist() == [2.0, 2.0]
    assert energy.factors(pad_batch([[1, 2, 1], [1, 1]], 0)).tolist() == [4, 3]
    chosen = energy.select(torch.tensor([1]))
    assert chosen(pad_batch([[1, 2]], 0)).tolist() == [1.0]


def test_a_string_that_does_not_fit_costs_infinity():
    letters = Letters()
    short = ThroughText(Count(), None, Bridge(letters, letters, 1))  # type: ignore[arg-type]
    energy = short.bind(pad_batch([[1], [1]], 0))
    assert energy(pad_batch([[1, 1], [1, 2]], 0)).tolist() == [torch.inf, 1.0]
