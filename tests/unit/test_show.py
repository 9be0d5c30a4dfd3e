"""A descent that is told: the figures are those of the models, the words those of the descent."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise
from xml.etree import ElementTree

import pytest
import torch

from simplexity import build
from simplexity.config import TranslateConfig
from simplexity.errors import SimplexityError
from simplexity.models.family import Family
from simplexity.relax.tokens import pad_batch
from simplexity.show.picture import drawn
from simplexity.show.story import Costs, Narrator, Story
from simplexity.show.terminal import Palette, explained, marked, sparkline, thinned

SENTENCE = "der hund ein rot tag"


def narrator(family: Family, **settings: object) -> Narrator:
    given = {"objective": "joint", "decoder": "eg", "precision": "fp32", "init": "greedy"}
    return build.narrator(TranslateConfig(**{**given, **settings}), family)


SEEDS = (0, 1, 5, 7)


@pytest.fixture(params=SEEDS)
def family(request: pytest.FixtureRequest, tiny_family: Callable[..., Family]) -> Family:
    found: Family = tiny_family(request.param, spread=1.0)
    return found


@pytest.fixture
def story(family: Family) -> Story:
    return narrator(family)(SENTENCE)


def exact(family: Family, texts: list[str]) -> dict[str, list[float]]:
    """-log P of strings by every member, from its plain scores."""
    ids = pad_batch([family["l2r"].target.encode(text) for text in texts], 0)
    source = pad_batch([family["l2r"].source.encode(SENTENCE)] * len(texts), 0)
    costs = {}
    for member in family:
        x, y = (ids, source) if member.name == "reverse" else (source, ids)
        costs[member.name] = (-member.model.score(member.model.encode(x), y).total).tolist()
    return costs


def check(family: Family, told: list[tuple[str, Costs]]) -> None:
    found = exact(family, [text for text, _ in told])
    for row, (_, costs) in enumerate(told):
        weighted = {"l2r": 0.34, "r2l": 0.33, "reverse": 0.33}
        for name, column in found.items():
            assert costs.terms[name] == pytest.approx(column[row], abs=1e-6)
        total = sum(weight * costs.terms[name] for name, weight in weighted.items())
        assert costs.total == pytest.approx(total, abs=1e-6)


def test_its_costs_are_those_of_the_models(family: Family, story: Story) -> None:
    told = [(" ".join(story.start), story.start_costs), (story.hypothesis.text, story.answer_costs)]
    check(family, told + [(frame.text, frame.rounded) for frame in story.frames])
    assert story.hypothesis.initial_cost == pytest.approx(story.start_costs.total)
    assert story.hypothesis.discrete_cost == pytest.approx(story.answer_costs.total)


def test_an_exchange_is_one_word_of_the_start_scored_anew(family: Family, story: Story) -> None:
    places = [
        i
        for i, pair in enumerate(zip(story.start, story.answer, strict=True))
        if len(set(pair)) > 1
    ]
    assert [exchange.place for exchange in story.exchanges] == places
    told = []
    for exchange in story.exchanges:
        words = list(story.start)
        assert words[exchange.place] == exchange.before
        words[exchange.place] = exchange.after
        before = story.start_costs
        terms = {name: before.terms[name] + exchange.adds.terms[name] for name in before.terms}
        told.append((" ".join(words), Costs(terms, before.total + exchange.adds.total)))
    if told:
        check(family, told)


def test_some_story_has_an_exchange(tiny_family: Callable[..., Family]) -> None:
    """Or the test above would look at nothing."""
    assert any(narrator(tiny_family(seed, spread=1.0))(SENTENCE).exchanges for seed in SEEDS)


def test_paths_hold_the_mass_of_every_frame(family: Family) -> None:
    story = narrator(family, iterations=5, candidates=None)(SENTENCE)
    assert len(story.frames) == 6
    assert len(story.paths) == len(story.start) == len(story.answer)
    for place, path in enumerate(story.paths):
        assert {story.start[place], story.answer[place]} <= set(path)
        rows = torch.tensor(list(path.values()))
        assert rows.shape[1] == 6
        assert (rows >= 0).all()
        assert (rows.sum(0) <= 1 + 1e-5).all()
        for number, frame in enumerate(story.frames):
            masses = {word: mass[number] for word, mass in path.items()}
            if frame.words[place] in masses:  # the likeliest word is the one it rounds to
                assert masses[frame.words[place]] == pytest.approx(max(masses.values()))


def test_the_descent_goes_downhill(tiny_family: Callable[..., Family]) -> None:
    frames = narrator(tiny_family(7, spread=1.0), step=0.05, momentum=0.0)(SENTENCE).frames
    assert all(b.relaxed.total <= a.relaxed.total + 1e-6 for a, b in pairwise(frames))


def test_telling_changes_nothing(family: Family, story: Story) -> None:
    config = TranslateConfig(objective="joint", decoder="eg", precision="fp32", init="greedy")
    (plain,) = build.translator(config, family)([SENTENCE])
    assert plain[0].text == story.hypothesis.text
    assert plain[0].discrete_cost == pytest.approx(story.hypothesis.discrete_cost)


def test_what_cannot_be_told(tiny_family: Callable[..., Family]) -> None:
    tell = narrator(tiny_family(0))
    with pytest.raises(SimplexityError, match="empty"):
        tell("  ")
    with pytest.raises(SimplexityError, match="split it"):
        tell("der " * 600)


@pytest.mark.parametrize("width", [10, 80, 200])
def test_text_without_colours_is_plain_and_with_them_the_same(story: Story, width: int) -> None:
    plain = "\n".join(explained(story, Palette(False), width))
    coloured = "\n".join(explained(story, Palette(True), width))
    assert "\x1b" not in plain
    assert re.sub(r"\x1b\[\d+m", "", coloured) == plain
    assert SENTENCE in plain
    assert f"{story.answer_costs.total:.2f}" in plain
    for exchange in story.exchanges:
        assert (
            f'"{exchange.after}" for "{exchange.before}" at position {exchange.place + 1}' in plain
        )


def test_a_story_in_which_nothing_changes_says_so(story: Story) -> None:
    still = replace(
        story,
        answer=story.start,
        exchanges=(),
        frames=tuple(replace(frame, words=story.start) for frame in story.frames),
    )
    assert "Nothing changed" in list(explained(still, Palette(False)))[-1]
    passed = replace(story.frames[0], words=("other",), text="other")
    moved = replace(still, frames=(passed, *still.frames))
    assert 'came by "other"' in list(explained(moved, Palette(False)))[-1]


def test_marks_stand_at_what_differs() -> None:
    def mark(text: str) -> str:
        return f"[{text}]"

    texts = ("I have lost the keys", "I lost my keys")
    assert marked(texts, (mark, mark)) == ["I [have] lost [the] keys", "I lost [my] keys"]


def test_bars() -> None:
    assert sparkline([0, 0.25, 1, 2, -1], 0, 1) == " ▂██ "
    assert sparkline([3.0, 3.0], 3.0, 3.0) == "  "
    assert thinned([1, 2, 3, 4, 5], 3) == [1, 3, 5]
    assert thinned([1, 2], 3) == [1, 2]


@pytest.mark.parametrize("iterations", [0, 3, 100])
def test_the_picture_has_a_cell_for_every_word_and_iteration(
    tiny_family: Callable[..., Family], iterations: int
) -> None:
    story = narrator(tiny_family(5, spread=1.0), iterations=iterations)(SENTENCE)
    svg = ElementTree.fromstring(drawn(replace(story, source="a < b & c")))
    kinds = [element.tag.rpartition("}")[2] for element in svg.iter()]
    columns = min(iterations + 1, 41)
    background, legend = 1, 4
    assert kinds.count("rect") == background + legend + columns * len(story.start)
    assert kinds.count("polyline") == len(story.weights) + 3
    texts = [element.text for element in svg.iter() if element.text]
    assert "a < b & c" in texts
    assert str(iterations) in texts or columns > 20
    shown = [text for text in texts if text and text.startswith("Q ")]
    assert shown == [f"Q {story.frames[-1].relaxed.total:.2f}"]
    assert "nan" not in drawn(story)
