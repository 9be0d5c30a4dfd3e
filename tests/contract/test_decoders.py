"""What every decoder promises: batches, order and empty lines change nothing."""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
import torch

from simplexity import build
from simplexity.config import TranslateConfig
from simplexity.decode import BeamDecoder, Hypothesis, RelaxedDecoder, best_first
from simplexity.errors import SimplexityError
from simplexity.initialise import Starts
from simplexity.models.adapters import AttentionalSeq2Seq
from simplexity.models.attention import Attentional
from simplexity.models.family import Family
from simplexity.objectives import NAMED
from simplexity.pipeline import in_batches
from simplexity.relax.tokens import Hard, pad_batch
from simplexity.search.beam import BeamSettings
from simplexity.translate import Translator

WORDS = ["der", "hund", "ein", "rot", "tag", "unbekannt"]

DECODERS: dict[str, dict[str, Any]] = {
    "greedy": {"decoder": "greedy"},
    "beam": {"decoder": "beam", "beam_size": 3},
    "beam r2l": {"decoder": "beam", "member": "r2l"},
    "beam n-best": {"decoder": "beam", "n_best": 3, "output_type": "json"},
    "beam reranked": {"decoder": "rerank", "objective": "joint", "beam_size": 4},
    "beam filtered": {"decoder": "rerank", "objective": "bilingual", "filtered": True},
    "eg forward": {"decoder": "eg", "init": "greedy"},
    "eg joint of reranked starts": {
        "decoder": "eg",
        "objective": "joint",
        "init": "rerank",
        "starts": 2,
    },
    "eg bidirectional": {"decoder": "eg", "objective": "bidirectional"},
    "eg joint": {"decoder": "eg", "objective": "joint", "iterations": 4},
    "eg bilingual of several starts": {"decoder": "eg", "objective": "bilingual", "starts": 3},
    "eg joint, no more than it takes": {
        "decoder": "eg",
        "objective": "joint",
        "unchanged": 2,
        "iterations": 20,
    },
    "eg with a line search": {"decoder": "eg", "objective": "joint", "line_search": True},
    "eg as in the paper": {
        "decoder": "eg",
        "objective": "bidirectional",
        "preset": "paper",
        "iterations": 10,
    },
    "eg with confidence": {"decoder": "eg", "objective": "bilingual", "entropy": 0.5},
    "sgd bidirectional": {"decoder": "sgd", "objective": "bidirectional", "step": 5.0},
    "sgd uniform": {"decoder": "sgd", "objective": "joint", "init": "uniform"},
    "projected bilingual": {"decoder": "projected", "objective": "bilingual", "step": 0.2},
    "projected smoothed": {
        "decoder": "projected",
        "objective": "joint",
        "lift": "smoothed",
        "starts": 2,
    },
    "beam drawn and reranked": {
        "decoder": "rerank",
        "objective": "joint",
        "lists": "sample",
        "beam_size": 6,
    },
    "edits joint": {"decoder": "edits", "objective": "joint"},
    "edits bidirectional of reranked starts": {
        "decoder": "edits",
        "objective": "bidirectional",
        "init": "rerank",
        "starts": 2,
    },
    "edits bilingual, costs summed": {
        "decoder": "edits",
        "objective": "bilingual",
        "normalise": "sum",
        "length_reward": 0.5,
    },
    "edits joint of relaxed lengths": {
        "decoder": "edits",
        "objective": "joint",
        "lengths": "relaxed",
    },
    "edits forward within a budget": {"decoder": "edits", "budget": "20"},
}
RELAXED = [name for name in DECODERS if name.split()[0] not in ("greedy", "beam")]


def translator(name: str, family: Family, **settings: Any) -> Translator:
    config = TranslateConfig(model=Path("tiny"), **{**DECODERS[name], **settings})
    return build.translator(config, family)


@pytest.fixture(scope="module")
def family(tiny_family: Callable[..., Family]) -> Family:
    return tiny_family(0, spread=1.0)


def some_lines(number: int, seed: int = 0) -> list[str]:
    """Lines of 0 to 5 words; lines 3 and 4 are empty."""
    dice = random.Random(seed)
    lines = [" ".join(dice.choices(WORDS, k=dice.randint(1, 5))) for _ in range(number)]
    lines[3:5] = ["", "  \t"]
    return lines


def assert_same(found: list[list[Hypothesis]], expected: list[list[Hypothesis]]) -> None:
    """Identical strings; costs within 1e-5."""
    for mine, others in zip(found, expected, strict=True):
        assert [h.text for h in mine] == [h.text for h in others]
        for one, other in zip(mine, others, strict=True):
            assert (one.ids, one.initial_text) == (other.ids, other.initial_text)
            assert (one.stop, one.iterations) == (other.stop, other.iterations)
            assert one.score == pytest.approx(other.score, abs=1e-5)
            assert one.discrete_cost == pytest.approx(other.discrete_cost, abs=1e-5)
            assert one.terms == pytest.approx(other.terms, abs=1e-5)
            assert one.continuous_cost == pytest.approx(other.continuous_cost, abs=1e-5)


@pytest.mark.parametrize("name", DECODERS)
def test_batches_and_order_change_nothing(name: str, family: Family) -> None:
    lines = some_lines(10)
    expected = list(translator(name, family, batch_size=1)(lines))
    for size in (3, 64):
        assert_same(list(translator(name, family, batch_size=size)(lines)), expected)
    order = random.Random(1).sample(range(10), 10)
    mixed = translator(name, family, batch_size=4)([lines[n] for n in order])
    assert_same(list(mixed), [expected[n] for n in order])


@pytest.mark.parametrize("name", DECODERS)
def test_as_many_answers_as_lines_best_first(name: str, family: Family) -> None:
    lines = some_lines(9, seed=2)
    answers = list(translator(name, family)(lines))
    assert len(answers) == 9
    for line, found in zip(lines, answers, strict=True):
        assert len(found) >= 1
        scores = [h.score for h in found]
        assert scores == sorted(scores, reverse=True)
        assert len({h.text for h in found}) == len(found)
        if not line.strip():
            assert [(h.text, h.ids, h.stop) for h in found] == [("", (), "empty")]
        for hypothesis in found:
            assert hypothesis.text == family["l2r"].target.decode(hypothesis.ids)
            assert math.isfinite(hypothesis.score)


@pytest.mark.parametrize("name", DECODERS)
def test_only_empty_lines_and_no_lines(name: str, family: Family) -> None:
    decode = translator(name, family)
    assert list(decode([])) == []
    assert [found[0].text for found in decode(["", " "])] == ["", ""]


@pytest.mark.parametrize("name", [name for name in RELAXED if "paper" not in name])
def test_the_guard_holds_for_whole_files(name: str, family: Family) -> None:
    for found in translator(name, family)(some_lines(9, seed=3)):
        # A search with edits also lists what it passed by.
        for hypothesis in found[:1] if name.startswith("edits") else found:
            if hypothesis.stop != "empty":
                assert hypothesis.initial_cost is not None
                assert hypothesis.discrete_cost <= hypothesis.initial_cost


@pytest.mark.parametrize("name", RELAXED)
def test_descent_starts_from_given_strings(name: str, family: Family) -> None:
    """Sorting by length must not give one line the start of another."""
    lines = [line for line in some_lines(9, seed=4) if line.strip()]
    dice = random.Random(5)
    given = [" ".join(dice.choices(["a", "day", "dog", "red"], k=n % 5)) for n in range(len(lines))]
    pairs = list(zip(lines, given, strict=True))
    expected = [next(translator(name, family, batch_size=1).improve([pair])) for pair in pairs]
    assert_same(list(translator(name, family, batch_size=4).improve(pairs)), expected)
    for found, string in zip(expected, given, strict=True):
        assert {h.initial_text for h in found} == {string}
        if not name.startswith("edits"):
            assert len(found[0].ids) == len(string.split())


def test_an_empty_line_stays_empty_whatever_its_start(family: Family) -> None:
    decode = translator("eg joint", family)
    found = list(decode.improve([("", "a dog"), ("ein hund", ""), ("hund", "red dog")]))
    assert [h.text for (h,) in found[:2]] == ["", ""]
    assert [h.stop for (h,) in found] == ["empty", "iterations", "iterations"]
    assert found[2][0].initial_text == "red dog"


def test_an_unknown_word_in_a_start_is_replaced_or_kept(family: Family) -> None:
    for lift in ("predicted", "smoothed"):
        decode = translator("eg joint", family, lift=lift)
        ((hypothesis,),) = decode.improve([("ein hund", "a katze dog")])
        assert hypothesis.initial_text == "a <unk> dog"
        assert len(hypothesis.ids) == 3


@pytest.mark.parametrize("name", ["greedy", "beam"])
def test_a_discrete_search_cannot_start_from_strings(name: str, family: Family) -> None:
    with pytest.raises(SimplexityError, match="eg, sgd, projected and edits"):
        translator(name, family).improve([("ein", "a")])


def test_a_line_that_is_too_long_is_named(family: Family) -> None:
    decode = replace(translator("eg forward", family), longest=3)
    with pytest.raises(SimplexityError, match="Line 2 of the source has 4 tokens") as refused:
        list(decode(["ein hund", "ein hund rot tag"]))
    assert "3 at most" in str(refused.value)
    with pytest.raises(SimplexityError, match="Line 1 of the given translations has 5 tokens"):
        list(decode.improve([("ein hund", "a dog a dog a")]))


@pytest.mark.parametrize("objective", NAMED)
def test_of_several_starts_the_best_per_word_wins(
    objective: str, tiny_family: Callable[..., Family]
) -> None:
    """All strings of a beam as starts, each by itself, against all of them at once."""
    family = tiny_family(10, spread=1.0)
    settings = {"objective": objective, "beam_size": 4}
    lines = [line for line in some_lines(7, seed=6) if line.strip()]
    together = translator("eg joint", family, starts=4, **settings)
    beams = translator("beam", family, beam_size=4, n_best=4, output_type="json")(lines)
    alone = translator("eg joint", family, **settings)
    gained = 0
    for line, found, beam in zip(lines, together(lines), beams, strict=True):
        begun = [next(alone.improve([(line, h.text)]))[0] for h in beam]
        begun.sort(key=lambda h: -h.score)
        assert found[0].score == pytest.approx(begun[0].score)
        assert found[0].text == begun[0].text
        assert {h.text for h in found} == {h.text for h in begun}
        gained += found[0].text != next(alone([line]))[0].text
    assert gained or objective == "forward"


@dataclass(frozen=True)
class Chosen:
    """An initialisation that gives two starts of one string to the second source alone."""

    def __call__(self, source: Hard) -> Starts:
        return Starts(pad_batch([[4], [5, 6], [5, 6]], 0), torch.tensor([0, 1, 1]))


def test_starts_that_meet_are_one_hypothesis(family: Family) -> None:
    decode = translator("eg joint", family).decoder
    assert isinstance(decode, RelaxedDecoder)
    one, two = replace(decode, initialise=Chosen())(pad_batch([[4, 5], [6]], 0))
    assert (len(one), len(two)) == (1, 1)


def hypothesis(text: str, word: int, score: float) -> Hypothesis:
    return Hypothesis(text, (word,), score, {}, -score)


def test_hypotheses_stand_in_the_order_of_their_scores() -> None:
    found = [
        hypothesis("ill", 1, math.nan),
        hypothesis("b", 2, -2.0),
        hypothesis("a", 3, -1.0),
        hypothesis("none", 4, -math.inf),
        hypothesis("b", 5, -0.5),
    ]
    for turn in range(5):
        ordered = best_first(found[turn:] + found[:turn])
        assert [h.text for h in ordered] == ["b", "a", "none", "ill"]
        assert ordered[0].score == -0.5


def test_rounding_does_not_decide_whose_start_led_to_a_string() -> None:
    first, second = hypothesis("a", 4, -1.0), hypothesis("a", 4, -1.0 + 1e-9)
    assert best_first([first, second]) == [first]


def endless_model(family: Family) -> AttentionalSeq2Seq:
    """A model for which no sentence ever ends."""
    old = family["l2r"].model
    assert isinstance(old, AttentionalSeq2Seq)
    network = Attentional(old.network.config).double().eval().requires_grad_(False)
    network.load_state_dict(old.network.state_dict())
    network.output.bias[old.eos] = -math.inf
    return AttentionalSeq2Seq(network)


@pytest.mark.parametrize("name", ["greedy", "beam n-best", "eg forward", "eg joint"])
def test_a_model_that_never_ends_a_sentence_loses_no_line(name: str, family: Family) -> None:
    member = replace(family["l2r"], model=endless_model(family))
    never = replace(family, members={**family.members, "l2r": member})
    answers = list(translator(name, never)(["ein hund", "", "tag"]))
    assert [[h.text for h in found] for found in answers] == [[""]] * 3
    assert answers[0][0].score == -math.inf


def test_the_beam_decoder_says_what_the_beam_found(family: Family) -> None:
    model = family["l2r"].model
    decode = BeamDecoder(model, BeamSettings(size=3, n_best=3), "l2r", family["l2r"].target.decode)
    (answers,) = decode(pad_batch([[4, 6, 5]], 0))
    for h in answers:
        target = pad_batch([list(h.ids)], 0)
        memory = model.encode(pad_batch([[4, 6, 5]], 0))
        cost = -float(model.log_probs(memory, target).total(target))
        assert h.terms == {"l2r": pytest.approx(cost)}
        assert h.discrete_cost == pytest.approx(cost)
        assert h.score == pytest.approx(-cost / (len(h.ids) + 1))


def test_nobody_waits_for_the_end_of_a_stream() -> None:
    answers = in_batches(itertools.count(), lambda number: number, 2, list[int])
    assert list(itertools.islice(answers, 100)) == list(range(100))


def test_work_comes_in_batches_of_like_length_and_leaves_in_order() -> None:
    seen: list[list[str]] = []

    def work(batch: list[str]) -> list[str]:
        seen.append(batch)
        return [word.upper() for word in batch]

    words = ["ccc", "a", "dddd", "bb", "e"]
    assert list(in_batches(words, len, 2, work)) == ["CCC", "A", "DDDD", "BB", "E"]
    assert seen == [["a", "e"], ["bb", "ccc"], ["dddd"]]
