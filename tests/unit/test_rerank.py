"""Reranking: hand-made lists, the scorer of lists against single strings, decoders and starts."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from simplexity import build
from simplexity.api import Loaded
from simplexity.decode import Hypothesis, RelaxedDecoder
from simplexity.initialise import Predicted
from simplexity.models.family import MEMBERS, Family
from simplexity.pipeline import WINDOW
from simplexity.relax.geometry import ExponentiatedGradient, SoftmaxGradient
from simplexity.relax.stopping import MaxIterations
from simplexity.relax.tokens import Hard, Tokens, lengths, pad_batch, unpad
from simplexity.relax.updates import Scale
from simplexity.rerank import (
    FromRerank,
    RerankDecoder,
    ScoredBeam,
    Scorer,
    ToScore,
    nbest_lines,
    reranked,
    score_nbest,
)
from simplexity.rescore import Rescorer, ranked
from simplexity.score import score_pairs
from simplexity.search.beam import BeamSettings, beam_search
from simplexity.search.nbest import NBestLine, format_line, parse_line
from simplexity.search.rerank import Rerank, show_weights
from simplexity.terms.likelihood import Likelihood, Reverse
from simplexity.terms.mix import Mix, Part

JOINT = {"l2r": 0.34, "r2l": 0.33, "reverse": 0.33}
SOURCES = [[4, 5, 8], [6], [7, 7, 4, 5, 6], [8, 4], []]


def features(l2r: float, r2l: float, tokens: int, reverse: float = 0.0) -> dict[str, float]:
    return {"l2r": l2r, "r2l": r2l, "reverse": reverse, "tokens": tokens, "source_tokens": 3}


# The one-best has three words. By sum the short one wins, by length the long one.
LIST = [features(-4, -9, 3), features(-5, -7, 1), features(-6, -8, 7), features(-4, -8.5, 3)]


@pytest.mark.parametrize(
    ("normalise", "filtered", "expected"),
    [
        ("sum", False, [1, 3, 0, 2]),  # 13, 12, 14, 12.5
        ("sum", True, [1, 3, 0]),
        ("length", False, [2, 3, 0, 1]),  # 13 / 4, 12 / 2, 14 / 8, 12.5 / 4
        ("length", True, [3, 0, 1]),
    ],
)
def test_a_list_in_its_new_order(normalise, filtered, expected):
    rerank = Rerank({"l2r": 0.5, "r2l": 0.5}, normalise, filtered)
    assert rerank.order(LIST) == expected


def test_the_reverse_model_counts_the_words_of_the_source():
    line = features(-4, -9, 3, reverse=-6)
    assert Rerank({"l2r": 0.25, "reverse": 0.75}).score(line) == -(0.25 * 4 / 4 + 0.75 * 6 / 4)
    longer = {**line, "source_tokens": 7}
    assert Rerank({"l2r": 0.25, "reverse": 0.75}).score(longer) == -(0.25 * 1 + 0.75 * 6 / 8)


def test_a_count_is_a_feature_that_is_never_divided():
    rerank = Rerank({"l2r": 1.0, "tokens": 0.5})
    assert rerank.score(features(-4, 0, 3)) == -1 + 0.5 * 3
    assert rerank.needs() == ("l2r", "tokens")


@pytest.mark.parametrize(
    ("normalise", "filtered", "needs"),
    [
        ("sum", False, ("l2r", "reverse")),
        ("sum", True, ("l2r", "reverse", "tokens")),
        ("length", False, ("l2r", "reverse", "tokens", "source_tokens")),
    ],
)
def test_what_a_list_must_have(normalise, filtered, needs):
    rerank = Rerank({"l2r": 0.5, "reverse": 0.5}, normalise, filtered)
    assert rerank.needs() == needs
    assert rerank.order([{name: LIST[0][name] for name in needs}]) == [0]


def test_the_first_wins_ties_and_an_empty_list_stays_empty():
    assert Rerank({"l2r": 1.0}, "sum").order([LIST[0], LIST[3], LIST[0]]) == [0, 1, 2]
    assert Rerank({"l2r": 1.0}, filtered=True).order([]) == []


@pytest.mark.parametrize("weight", [1.0, -1.0])
def test_what_a_model_cannot_score_comes_last(weight):
    worst = features(-math.inf, -1, 2)
    rerank = Rerank({"l2r": weight, "r2l": 1.0})
    assert rerank.order([worst, *LIST])[-1] == 0
    assert rerank.order([worst]) == [0]


@given(st.dictionaries(st.sampled_from("abc"), st.floats(-9, 9).filter(bool), min_size=1))
def test_shown_weights_rank_alike(weights):
    from simplexity.objectives import parse_weights

    read = parse_weights(show_weights(weights))
    assert list(read) == list(weights)
    assert list(read.values()) == pytest.approx(list(weights.values()), rel=1e-5)


def term(family: Family, name: str) -> Likelihood | Reverse:
    model = family[name].model
    return Reverse(model) if name == "reverse" else Likelihood(model)


def mix(family: Family, weights: dict[str, float] = JOINT) -> Mix:
    return Mix(tuple(Part(name, weight, term(family, name)) for name, weight in weights.items()))


def scorer(family: Family, batch_size: int = 4, longest: int = 50) -> Scorer:
    return Scorer(mix(family), batch_size, longest)


strings = st.lists(st.integers(4, 7), max_size=4)
lists = st.lists(
    st.tuples(st.lists(st.integers(4, 8), max_size=4), st.lists(strings, max_size=5)), max_size=6
)


@settings(deadline=None, max_examples=25)
@given(lists=lists, batch_size=st.integers(1, 7))
def test_every_hypothesis_is_scored_as_if_alone(tiny_family, lists, batch_size):
    family = tiny_family()
    tables = list(score_nbest(iter(lists), scorer(family, batch_size)))
    assert len(tables) == len(lists)
    for (source, hypotheses), table in zip(lists, tables, strict=True):
        assert table.shape == (len(hypotheses), 3)
        for ids, row in zip(hypotheses, table, strict=True):
            energy = mix(family).bind(pad_batch([source], 0))
            torch.testing.assert_close(energy.costs(pad_batch([ids], 0))[0], row)


def test_costs_are_those_of_the_score_command(tiny_family: Callable[..., Family]):
    family = tiny_family()
    source, texts = "der rot hund", ["red dog", "a day dog", "", "a unicorn"]
    pair = (family["l2r"].source.encode(source), [family["l2r"].target.encode(t) for t in texts])
    (table,) = score_nbest([pair], scorer(family))
    for name, costs in zip(MEMBERS, table.T, strict=True):
        scores = score_pairs([(source, text) for text in texts], family[name], 8)
        torch.testing.assert_close(-costs, torch.tensor([s.total for s in scores]).double())


def test_per_word_scores_are_those_of_the_objective(tiny_family: Callable[..., Family]):
    family = tiny_family()
    ids, source = [4, 6, 6], [5, 8]
    y = pad_batch([ids], 0)
    energy = mix(family).bind(pad_batch([source], 0))
    costs = energy.costs(y)
    names = dict(zip(JOINT, (-costs[0]).tolist(), strict=True))
    counted = {**names, "tokens": len(ids), "source_tokens": len(source)}
    assert Rerank(JOINT).score(counted) == pytest.approx(-energy.per_word(costs, y).item())
    assert Rerank(JOINT, "sum").score(counted) == pytest.approx(-energy(y).item())


def test_what_is_too_long_to_read_costs_infinity(tiny_family: Callable[..., Family]):
    lists = [([4, 5], [[4, 4, 4], [5], []]), ([4, 5, 6], [[5]])]
    first, second = score_nbest(lists, scorer(tiny_family(), longest=2))
    assert torch.isinf(first).all(1).tolist() == [True, False, False]
    assert torch.isinf(second).all()


def test_a_cost_that_is_no_number_is_infinite():
    @dataclass(frozen=True)
    class Broken:
        def bind(self, source: Hard) -> Broken:
            return self

        def select(self, rows: Tensor) -> Broken:
            return self

        def factors(self, y: Tokens) -> Tensor:
            return lengths(y)

        def __call__(self, y: Tokens) -> Tensor:
            return torch.where(lengths(y) > 1, torch.nan, 1.0)

    objective = Mix((Part("broken", 1.0, Broken()),))
    (table,) = score_nbest([([4], [[4], [4, 4]])], Scorer(objective, 8, 9))
    assert table.tolist() == [[1.0], [math.inf]]


@dataclass(frozen=True)
class Watched:
    """A term that notes how many sources it reads and which strings it scores at a time."""

    read: list[int] = field(default_factory=list)
    scored: list[list[list[int]]] = field(default_factory=list)

    def bind(self, source: Hard) -> Watched:
        self.read.append(len(source.ids))
        return self

    def select(self, rows: Tensor) -> Watched:
        return self

    def factors(self, y: Tokens) -> Tensor:
        return lengths(y)

    def __call__(self, y: Tokens) -> Tensor:
        assert isinstance(y, Hard)
        self.scored.append(unpad(y))
        return lengths(y).float()


def test_work_is_shared_and_bounded():
    term = Watched()
    lists = [([4] * n, [[4] * (m % 9) for m in range(30)]) for n in range(1, 5)]
    lists.append(([4], [[5], [5], [6]]))
    list(score_nbest(lists, Scorer(Mix((Part("watched", 1.0, term),)), 8, 50)))
    assert sum(term.read) == len(lists)  # each source is read once
    assert max(map(len, term.scored)) <= 8
    assert sum(map(len, term.scored)) == 4 * 9 + 2  # each string once
    for batch in term.scored:
        assert len(batch) < 8 or max(map(len, batch)) - min(map(len, batch)) <= 8


def test_lists_are_read_as_they_are_needed():
    taken = 0

    def endless() -> Iterator[ToScore]:
        nonlocal taken
        while True:
            taken += 1
            yield [4], [[4]] * 10

    tables = score_nbest(endless(), Scorer(Mix((Part("watched", 1.0, Watched()),)), 5, 50))
    assert len(next(tables)) == 10
    assert taken <= 5 * WINDOW / 10 + 1


def text(ids) -> str:
    return " ".join(map(str, ids))


def beam(family: Family, size: int = 12, batch_size: int = 4) -> ScoredBeam:
    return ScoredBeam(
        family["l2r"].model, BeamSettings(size, size), scorer(family, batch_size), text
    )


def test_the_scored_beam_is_the_beam_with_costs(tiny_family: Callable[..., Family]):
    family, source = tiny_family(), pad_batch(SOURCES, 0)
    lists = beam(family)
    found = beam_search(family["l2r"].model, source, lists.settings)
    answers = lists(source)
    assert [len(answer) for answer in answers] == found.count.tolist()
    for row, answer in enumerate(answers):
        assert [list(h.ids) for h in answer] == unpad(Hard(found.ids[row], found.mask[row]))[
            : len(answer)
        ]
        costs = torch.tensor([h.terms["l2r"] for h in answer], dtype=torch.float64)
        torch.testing.assert_close(-costs, found.log_prob[row, : len(answer)].double())
        for h in answer:
            assert h.discrete_cost == pytest.approx(sum(w * h.terms[n] for n, w in JOINT.items()))


@pytest.mark.parametrize("filtered", [False, True])
@pytest.mark.parametrize("normalise", ["sum", "length"])
def test_the_decoder_takes_the_best_of_the_beam(tiny_family, normalise, filtered):
    family, source = tiny_family(3, spread=1.5), pad_batch(SOURCES, 0)
    rerank = Rerank(JOINT, normalise, filtered)
    moved = 0
    for before, after in zip(
        beam(family)(source), RerankDecoder(beam(family), rerank)(source), strict=True
    ):
        limit = len(before[0].ids) if filtered else 99
        kept = [h for h in before if len(h.ids) <= limit]
        assert {h.text for h in after} == {h.text for h in kept}
        assert [h.score for h in after] == sorted((h.score for h in after), reverse=True)
        assert all(h.initial_text == before[0].text for h in after)
        assert all(h.initial_cost == before[0].discrete_cost for h in after)
        if normalise == "sum":
            assert after[0].discrete_cost == min(h.discrete_cost for h in kept)
        moved += after[0].text != before[0].text
    assert moved


def test_batching_changes_nothing(tiny_family: Callable[..., Family]):
    family, rerank = tiny_family(), Rerank(JOINT)
    together = RerankDecoder(beam(family, batch_size=64), rerank)(pad_batch(SOURCES, 0))
    for source, expected in zip(SOURCES, together, strict=True):
        (alone,) = RerankDecoder(beam(family, batch_size=1), rerank)(pad_batch([source], 0))
        assert [h.ids for h in alone] == [h.ids for h in expected]
        assert [h.score for h in alone] == pytest.approx([h.score for h in expected])


def test_strings_that_read_alike_are_given_once(tiny_family: Callable[..., Family]):
    lists = replace(beam(tiny_family()), detokenise=lambda ids: text(sorted(ids)))
    for answer in lists(pad_batch(SOURCES, 0)):
        assert len({h.text for h in answer}) == len(answer)


def test_starts_are_the_best_of_reranking(tiny_family: Callable[..., Family]):
    family, source, rerank = tiny_family(1), pad_batch(SOURCES, 0), Rerank(JOINT)
    expected = RerankDecoder(beam(family), rerank)(source)
    starts = FromRerank(beam(family), rerank, starts=3)(source)
    found: list[list[tuple[int, ...]]] = [[] for _ in SOURCES]
    for owner, ids in zip(starts.owner.tolist(), unpad(starts.strings), strict=True):
        found[owner].append(tuple(ids))
    assert found == [[h.ids for h in answer[:3]] for answer in expected]


@pytest.mark.parametrize("geometry", [ExponentiatedGradient(), SoftmaxGradient()])
def test_descent_from_reranking_is_never_worse_than_reranking(tiny_family, geometry):
    family, source, rerank = tiny_family(2), pad_batch(SOURCES[:4], 0), Rerank(JOINT)
    decoder = RelaxedDecoder(
        objective=mix(family),
        initialise=FromRerank(beam(family), rerank),
        lift=Predicted((family["l2r"].model,)),
        geometry=geometry,
        update=Scale(1.0),
        stop=MaxIterations(8),
        support=torch.arange(4, 8),
        detokenise=text,
    )
    best = [answer[0] for answer in RerankDecoder(beam(family), rerank)(source)]
    for start, (found,) in zip(best, decoder(source), strict=True):
        assert found.initial_text == start.text
        assert found.initial_cost == pytest.approx(start.discrete_cost)
        assert found.discrete_cost <= start.discrete_cost + 1e-9


def test_lines_of_a_file_rank_as_the_decoder_does(tiny_family: Callable[..., Family]):
    """Scores that went through a file give the same order without a model."""
    family, source = tiny_family(1), pad_batch(SOURCES, 0)
    rerank = Rerank(JOINT, filtered=True)
    for n, (ids, answer) in enumerate(zip(SOURCES, beam(family)(source), strict=True)):
        lines = [parse_line(format_line(line)) for line in nbest_lines(n, answer, len(ids))]
        again = ranked(lines, rerank)
        expected = reranked(answer, len(ids), rerank)
        for h, e in zip(again, expected, strict=True):
            assert (h.text, h.score, h.terms, h.initial_cost) == (
                (e.text, e.score, e.terms, e.initial_cost)
            )
            assert h.discrete_cost == e.discrete_cost


def test_text_is_scored_through_the_vocabularies(tiny_family: Callable[..., Family]):
    family = tiny_family()
    member = family["l2r"]
    lists = [
        ("der hund", [NBestLine(0, "a dog", {"F0": -1.5}, -2.0), NBestLine(0, "", {}, -3.0)]),
        ("", [NBestLine(1, "", {}, 0.0)]),
        ("rot", []),
    ]
    first, second, third = Rescorer(member.source, member.target, scorer(family))(iter(lists))
    (table,) = score_nbest([([4, 5], [[4, 6], []])], scorer(family))
    assert list(first[0].features) == ["F0", "l2r", "r2l", "reverse", "tokens", "source_tokens"]
    expected = [[-1.5, *(-table[0]).tolist(), 2, 2], [*(-table[1]).tolist(), 0, 2]]
    for line, values in zip(first, expected, strict=True):
        assert list(line.features.values()) == pytest.approx(values)
    assert [line.score for line in first] == [-2.0, -3.0]
    assert second == lists[1][1]  # an empty source line: no model is asked
    assert third == []
    counted = next(Rescorer(member.source, member.target, None)(iter(lists)))
    assert counted[0].features == {"F0": -1.5, "tokens": 2, "source_tokens": 2}


def test_an_empty_source_line_has_no_features_in_a_file():
    nothing = Hypothesis("", (), 0.0, {}, 0.0)
    assert nbest_lines(3, [nothing], 0) == [NBestLine(3, "", {}, 0.0)]


def test_lists_are_reranked_from_python(tiny_family: Callable[..., Family]):
    texts = ["red dog", "a day dog", "dog"]
    lists = [("der rot hund", texts), ("tag", []), ("", [""])]
    first, second, third = Loaded(tiny_family(3, spread=1.5)).rerank(lists, "bidirectional")
    assert sorted(h.text for h in first) == sorted(texts)
    assert [h.score for h in first] == sorted((h.score for h in first), reverse=True)
    assert first[0].initial_text == "red dog"
    assert second == []
    assert [h.text for h in third] == [""]


def test_a_family_of_one_model_scores_from_its_own_side(tiny_family: Callable[..., Family]):
    """The reverse model reads the target; counts and scores must not change sides."""
    line = ("der rot hund", [NBestLine(0, "a dog", {}, 0.0)])
    whole = tiny_family()
    for name in MEMBERS:
        ((found,),) = build.rescorer([name], tiny_family(0, (name,)), 8)([line])
        ((expected,),) = build.rescorer(list(MEMBERS), whole, 8)([line])
        assert found.features == {
            key: expected.features[key] for key in (name, "tokens", "source_tokens")
        }
        assert (found.features["tokens"], found.features["source_tokens"]) == (2, 3)
