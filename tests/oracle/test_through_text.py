"""Strings that reach a model with another vocabulary: what is exact, and that it is."""

from __future__ import annotations

from itertools import pairwise

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from simplexity.models.tokenizer import Remembering
from simplexity.relax.tokens import Hard, Soft, harden, one_hot, pad_batch, unpad
from simplexity.terms.piece_map import MOST
from simplexity.terms.through_text import Bridge
from simplexity.text.surfaces import segment, surfaces
from simplexity.text.toy import write_toy
from simplexity.text.vocabulary import (
    Vocabulary,
    VocabularySettings,
    WordVocabulary,
    learn,
)


@pytest.fixture(scope="module")
def lines(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    corpus = write_toy(tmp_path_factory.mktemp("toy"), train=300, dev=5, test=5)
    return (corpus / "train.xb").read_text(encoding="utf-8").splitlines()


@pytest.fixture(scope="module")
def vocabularies(lines: list[str]) -> dict[str, Vocabulary]:
    return {
        "words": learn(lines, VocabularySettings(cutoff=1)),
        "large": learn(lines, VocabularySettings("unigram", 150)),
        "small": learn(lines, VocabularySettings("bpe", 60)),
    }


PAIRS = [("words", "small"), ("small", "words"), ("large", "small"), ("small", "large")]


def bridge(vocabularies: dict[str, Vocabulary], pair: tuple[str, str]) -> Bridge:
    return Bridge(vocabularies[pair[0]], vocabularies[pair[1]], 100)


def read(vocabulary: Vocabulary, lines: list[str]) -> Hard:
    return pad_batch([vocabulary.encode(line) for line in lines], 0)


@pytest.mark.parametrize("pair", PAIRS)
def test_a_string_is_the_other_vocabularys_reading_of_its_text(vocabularies, lines, pair):
    over = bridge(vocabularies, pair)
    found, fits = over.hard(read(over.here, lines[:9]))
    assert unpad(found) == [over.there.encode(line) for line in lines[:9]]
    assert fits.all()


@pytest.mark.parametrize("pair", PAIRS)
def test_a_vertex_is_that_reading_too(vocabularies, lines, pair):
    over = bridge(vocabularies, pair)
    hard = read(over.here, lines[:9])
    soft = over.soft(one_hot(hard, len(over.here)))
    expected, _ = over.hard(hard)
    assert unpad(harden(soft)) == unpad(expected)
    assert torch.allclose(soft.probs.amax(-1), torch.ones_like(soft.probs[..., 0]))


def dense(tokens: Soft, size: int) -> torch.Tensor:
    """The same rows over the whole vocabulary; a word may stand in a support several times."""
    index = tokens.support[:, None].expand_as(tokens.probs)
    return torch.zeros(*tokens.mask.shape, size).scatter_add(-1, index, tokens.probs)


@pytest.mark.parametrize("pair", PAIRS)
@pytest.mark.parametrize("shared", [False, True])
def test_every_row_is_a_distribution_linear_in_the_string(vocabularies, lines, pair, shared):
    over = bridge(vocabularies, pair)
    hard = read(over.here, lines[:4])
    support = torch.unique(hard.ids)
    own = torch.stack([support.roll(n) for n in range(4)])
    rows = support.expand(4, -1) if shared else own
    hit = (hard.ids[..., None] == rows[:, None]).float()
    random = torch.Generator().manual_seed(1)
    noise = torch.rand(hit.shape, generator=random).softmax(-1)
    points = [
        Soft(hit * (1 - n) + noise * n, hard.mask, support if shared else own) for n in (0, 0.4)
    ]
    middle = Soft((points[0].probs + points[1].probs) / 2, hard.mask, points[0].support)
    first, second, between = (
        dense(over.soft(point), len(over.there)) for point in (*points, middle)
    )
    mask = over.hard(hard)[0].mask
    assert (second[mask] >= -1e-6).all()
    assert torch.allclose(second[mask].sum(-1), torch.ones(int(mask.sum())), atol=1e-5)
    assert torch.allclose(between[mask], (first + second)[mask] / 2, atol=1e-5)


def test_an_exchange_of_words_of_as_many_pieces_is_exact(vocabularies):
    # A word in the place of another is where a gradient points.
    over, checked = bridge(vocabularies, ("words", "small")), 0
    words = [word for word in over.here.pieces(range(4, len(over.here))) if word.isalpha()]
    for one, other in pairwise(sorted(words, key=lambda word: len(over.there.encode(word)))):
        lines = [f"lo {word} vidu" for word in (one, other)]
        strings = [torch.tensor(over.there.encode(line)) for line in lines]
        if len(strings[0]) != len(strings[1]) or len(over.there.encode(other)) > MOST:
            continue
        ids = torch.tensor([over.here.encode(line) for line in lines])
        found = over.soft(Soft(mixed(ids, len(over.here))[None], torch.ones(1, 3) > 0))
        rows = dense(found, len(over.there))[0]
        torch.testing.assert_close(rows, mixed(torch.stack(strings), len(over.there)))
        checked += 1
    assert checked >= 5


def mixed(strings: torch.Tensor, size: int) -> torch.Tensor:
    """Six parts of the first string and four of the second [length, size]."""
    first, second = torch.nn.functional.one_hot(strings, size).float()
    return 0.6 * first + 0.4 * second


def test_what_does_not_fit_is_cut_off_and_said(vocabularies, lines):
    over = Bridge(vocabularies["words"], vocabularies["small"], 6)
    long, short = max(lines, key=len), "no"
    found, fits = over.hard(read(over.here, [long, short]))
    assert fits.tolist() == [False, True]
    assert found.mask.sum(1).tolist()[0] == 6


def test_the_line_itself_is_remembered():
    vocabulary = Remembering(WordVocabulary(("dog",), lowercase=False))
    ids = vocabulary.encode("dog 漢字")
    assert vocabulary.decode(ids) == "dog 漢字"
    assert vocabulary.inner.decode(ids) != "dog 漢字"
    assert vocabulary.decode([4]) == "dog"


@given(st.text("abc", max_size=12), st.sets(st.text("abc", min_size=1, max_size=3)))
def test_segments_make_the_text_or_there_are_none(text, words):
    pieces = {word: n for n, word in enumerate(sorted(words))}
    names = sorted(words)
    found = segment(text, pieces, 3)
    assert "".join(names[n] for n in found) in ((text,) if found or not text else ("",))
    if {"a", "b", "c"} <= words:
        assert text == "" or found


@pytest.mark.parametrize("kind", ["words", "large", "small"])
def test_surfaces_make_the_line(vocabularies, lines, kind):
    vocabulary = vocabularies[kind]
    table = surfaces(vocabulary)
    for line in lines[:20]:
        assert "".join(table[n] for n in vocabulary.encode(line)).strip() == line
