"""Where descent begins: strings, and the points that stand for them."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from simplexity.initialise import (
    FromSearch,
    Lift,
    Predicted,
    Smoothed,
    Starts,
    Uniform,
    shortlist,
    varied,
)
from simplexity.models.family import Family
from simplexity.relax.tokens import Hard, harden, pad_batch, unpad
from simplexity.search.beam import BeamSettings, Found, beam_search

WORDS = torch.tensor([5, 7, 4, 6])
SOURCE = pad_batch([[4, 5, 8], [6], [7, 7]], 0)


def n_best(*lists: list[list[int]]) -> Found:
    """Strings of sentences, best first; the lists need not be of one length."""
    size = max(map(len, lists))
    rows = pad_batch([ids for found in lists for ids in found + [[]] * (size - len(found))], 0)
    shape = (len(lists), size, rows.ids.shape[1])
    count = torch.tensor([len(found) for found in lists])
    place = torch.arange(size)
    score = torch.where(place < count[:, None], -1.0 - place, -torch.inf)
    return Found(rows.ids.view(shape), rows.mask.view(shape), score, score, count)


def by_owner(starts: Starts, sentences: int) -> list[list[list[int]]]:
    found: list[list[list[int]]] = [[] for _ in range(sentences)]
    for owner, string in zip(starts.owner.tolist(), unpad(starts.strings), strict=True):
        found[owner].append(string)
    return found


def test_the_best_string_of_each_length_comes_first() -> None:
    found = n_best([[4, 4], [5, 5], [6], [7, 7], [4, 5, 6]])
    assert by_owner(varied(found, 1), 1) == [[[4, 4]]]
    assert by_owner(varied(found, 2), 1) == [[[4, 4], [6]]]
    assert by_owner(varied(found, 3), 1) == [[[4, 4], [6], [4, 5, 6]]]
    assert by_owner(varied(found, 4), 1) == [[[4, 4], [6], [4, 5, 6], [5, 5]]]
    assert by_owner(varied(found, 9), 1) == [[[4, 4], [6], [4, 5, 6], [5, 5], [7, 7]]]


def test_sentences_with_fewer_strings_have_fewer_starts() -> None:
    found = n_best([[4], [5], [6, 6]], [[7]], [[], [4], []], [])
    assert by_owner(varied(found, 2), 4) == [[[4], [6, 6]], [[7]], [[], [4]], [[]]]


lists = st.lists(st.lists(st.integers(4, 7), max_size=3), max_size=6)


@given(st.lists(lists, min_size=1, max_size=4).filter(lambda some: any(some)), st.integers(1, 7))
def test_varied_takes_in_turn_what_a_reader_would(
    found: list[list[list[int]]], number: int
) -> None:
    expected = []
    for strings in found:
        first: dict[int, int] = {}
        for place, string in enumerate(strings):
            first.setdefault(len(string), place)
        order = sorted(range(len(strings)), key=lambda n: (n not in first.values(), n))
        expected.append([strings[n] for n in order[:number]] or [[]])
    assert by_owner(varied(n_best(*found), number), len(found)) == expected


def test_one_start_is_the_best_string_of_the_search(tiny_family: Callable[..., Family]) -> None:
    model = tiny_family(10, spread=1.0)["l2r"].model
    for size in (1, 4):
        settings = BeamSettings(size=size)
        starts = FromSearch(model, settings)(SOURCE)
        assert starts.owner.tolist() == [0, 1, 2]
        assert unpad(starts.strings) == unpad(beam_search(model, SOURCE, settings).best())


def test_several_starts_are_chosen_among_all_that_the_beam_holds(
    tiny_family: Callable[..., Family],
) -> None:
    """The settings ask for one string; lengths that differ may stand far down the beam."""
    model = tiny_family(10, spread=1.0)["l2r"].model
    starts = FromSearch(model, BeamSettings(size=6), starts=3)(SOURCE)
    found = beam_search(model, SOURCE, BeamSettings(size=6, n_best=6))
    assert by_owner(starts, 3) == by_owner(varied(found, 3), 3)
    assert [len(strings) for strings in by_owner(starts, 3)] == [3, 3, 3]


def lifted(lift: Lift, support: Tensor = WORDS) -> Tensor:
    strings = pad_batch([[4, 6, 7], [5], [], [7, 7]], 0)
    y = lift(SOURCE, Starts(strings, torch.tensor([0, 2, 1, 0])), support)
    assert torch.equal(y.mask, strings.mask)
    assert y.support is support
    real = y.probs[y.mask]
    assert (real > 0).all()
    torch.testing.assert_close(real.sum(-1), torch.ones_like(real[:, 0]))
    return y.probs


def test_predicted_is_what_the_model_expects_along_the_string(
    tiny_family: Callable[..., Family],
) -> None:
    """p(w | y_<i, x), word by word, among the words of the support."""
    model = tiny_family(3)["l2r"].model
    probs = lifted(Predicted((model,)))
    for row, (source, string) in enumerate([(0, [4, 6, 7]), (2, [5]), (1, []), (0, [7, 7])]):
        memory = model.encode(SOURCE.select(torch.tensor([source])))
        state, log_p = model.step(memory, model.start(memory), None)
        for place, word in enumerate(string):
            p = log_p[0, WORDS].exp()
            torch.testing.assert_close(probs[row, place], p / p.sum())
            state, log_p = model.step(memory, state, torch.tensor([word]))


def test_predicted_forbids_no_word_however_unlikely(tiny_family: Callable[..., Family]) -> None:
    """In single precision most words of a sharp model underflow."""
    model = tiny_family(3, spread=60.0)["l2r"].model
    probs = lifted(Predicted((model,)))
    assert probs.log().isfinite().all()


def test_smoothed_puts_most_on_the_word_and_the_rest_on_all() -> None:
    probs = lifted(Smoothed(0.2))
    torch.testing.assert_close(probs[0, 0], torch.tensor([0.05, 0.05, 0.85, 0.05]))
    torch.testing.assert_close(probs[1, 0], torch.tensor([0.85, 0.05, 0.05, 0.05]))


def test_smoothed_knows_nothing_of_a_word_outside_the_support() -> None:
    probs = lifted(Smoothed(), support=torch.tensor([4, 6]))
    torch.testing.assert_close(probs[1, 0], torch.tensor([0.5, 0.5]))
    torch.testing.assert_close(probs[0, 1], torch.tensor([0.05, 0.95]))


def test_uniform_keeps_only_the_length() -> None:
    assert (lifted(Uniform()) == 0.25).all()


@pytest.mark.parametrize("mass", [0.1, 0.5])
def test_a_smoothed_string_rounds_to_itself(mass: float) -> None:
    strings = pad_batch([[4, 6, 7], [5], []], 0)
    y = Smoothed(mass)(SOURCE, Starts(strings, torch.arange(3)), WORDS)
    assert unpad(harden(y)) == unpad(strings)


def test_a_shortlist_holds_the_strings_own_words_and_the_likeliest() -> None:
    scores = torch.full((2, 3, 9), -9.0)
    scores[0, 1, 7], scores[0, 2, 8], scores[0, 0, 2] = -1.0, -2.0, 0.0
    scores[1, 2, 5] = 0.0  # on padding: nobody reads it
    strings = pad_batch([[4, 4, 3], [6, 3]], 0)
    words = torch.tensor([3, 4, 5, 6, 7, 8])  # 2 is likely, but may not be chosen
    found = shortlist(scores, strings, words, 4)
    assert set(found[0].tolist()) == {3, 4, 7, 8}
    assert {3, 6} < set(found[1].tolist())
    assert shortlist(scores, strings, words, 99).shape == (2, 6)


def test_a_shortlist_does_not_depend_on_the_batch() -> None:
    torch.manual_seed(5)
    scores, words = torch.randn(2, 4, 30), torch.arange(4, 30)
    strings = pad_batch([[5, 6, 7, 8], [9]], 0)
    together = shortlist(scores, strings, words, 10)
    for row, n in enumerate((4, 1)):
        one = torch.tensor([row])
        alone = Hard(strings.ids[one, :n], strings.mask[one, :n])
        assert torch.equal(shortlist(scores[one, :n], alone, words, 10)[0], together[row])


def test_candidates_narrow_the_start_to_a_shortlist(tiny_family: Callable[..., Family]) -> None:
    model = tiny_family(3)["l2r"].model
    starts = Starts(pad_batch([[4, 6, 7], [5], [], [7, 7]], 0), torch.tensor([0, 2, 1, 0]))
    narrow = Predicted((model,), candidates=3)(SOURCE, starts, WORDS)
    assert narrow.support is not None
    assert set(narrow.support[0].tolist()) == {4, 6, 7}  # as many words as it has of its own
    wide = Predicted((model,))(SOURCE, starts, WORDS)
    place = (narrow.support[..., None] == WORDS).int().argmax(-1)
    picked = wide.probs.gather(-1, place[:, None].expand(-1, 3, -1))
    expected = picked / picked.sum(-1, keepdim=True)
    torch.testing.assert_close(narrow.probs[narrow.mask], expected[narrow.mask])


def test_the_start_is_the_mean_over_the_models(tiny_family: Callable[..., Family]) -> None:
    models = [tiny_family(3)[name].model for name in ("l2r", "r2l")]
    apart = [lifted(Predicted((model,))) for model in models]
    starts = Starts(pad_batch([[4, 6, 7], [5], [], [7, 7]], 0), torch.tensor([0, 2, 1, 0]))
    memories = [model.encode(SOURCE).select(starts.owner) for model in models]
    pairs = zip(models, memories, strict=True)
    mean = sum(m.log_probs(memory, starts.strings).words.exp() for m, memory in pairs)[..., WORDS]
    found = lifted(Predicted(tuple(models)))
    real = starts.strings.mask
    torch.testing.assert_close(found[real], (mean / mean.sum(-1, keepdim=True))[real])
    assert not torch.allclose(found[real], apart[0][real])
