"""Beam search against full enumeration, and against a plain search of one sentence at a time."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass, field, replace
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from simplexity.errors import UsageError
from simplexity.models.predictions import Predictions
from simplexity.models.seq2seq import RightToLeft
from simplexity.relax.tokens import Hard, lengths, pad_batch, unpad
from simplexity.search.beam import BeamSettings, Found, beam_search, greedy_search

EOS = 2
BANNED = (0, 3)


@dataclass(frozen=True)
class Context:
    vector: Tensor

    def select(self, rows: Tensor) -> Context:
        return Context(self.vector[rows])


@dataclass(frozen=True)
class Running:
    total: Tensor
    words: int

    def select(self, rows: Tensor) -> Running:
        return replace(self, total=self.total[rows])


@dataclass(frozen=True)
class Toy:
    """p(next) = softmax(W tanh(source + sum_j cos(j) E[y_j])): both words and order matter."""

    source: Tensor
    target: Tensor
    output: Tensor
    bias: Tensor
    banned: tuple[int, ...] = BANNED
    max_length: int = 100
    reads_gaps: bool = False
    rows: list[int] = field(default_factory=list)
    direction = "l2r"
    eos = EOS

    @property
    def vocabulary_size(self) -> int:
        return self.output.shape[1]

    @property
    def device(self) -> torch.device:
        return self.output.device

    def encode(self, source: Hard) -> Context:
        place = torch.arange(source.mask.shape[1]).to(self.source).cos()
        words = self.source[source.ids] * (place * source.mask)[..., None]
        return Context(words.sum(1))

    def _predict(self, hidden: Tensor) -> Tensor:
        return (hidden.tanh() @ self.output + self.bias).log_softmax(-1)

    def log_probs(self, memory: Context, target: Hard, within: Tensor | None = None) -> Predictions:
        assert within is None  # a search asks for all words
        place = torch.arange(target.mask.shape[1]).to(self.target).cos()
        words = self.target[target.ids] * place[:, None]
        hidden = torch.cat([torch.zeros_like(memory.vector)[:, None], words.cumsum(1)], 1)
        scores = self._predict(memory.vector[:, None] + hidden)
        end = scores[..., EOS].gather(1, lengths(target)[:, None]).squeeze(1)
        return Predictions(scores[:, :-1], end)

    def start(self, memory: Context) -> Running:
        return Running(torch.zeros_like(memory.vector), 0)

    def step(self, memory: Context, state: Running, ids: Tensor | None) -> tuple[Running, Tensor]:
        if ids is not None:
            added = self.target[ids] * math.cos(state.words)
            state = Running(state.total + added, state.words + 1)
        self.rows.append(len(state.total))
        context = memory.vector.repeat_interleave(len(state.total) // len(memory.vector), 0)
        return state, self._predict(context + state.total)


def toy(seed: int, vocabulary: int = 6, end: float = 0.0, **changes: Any) -> Toy:
    random = torch.Generator().manual_seed(seed)

    def normal(*shape: int) -> Tensor:
        return 1.5 * torch.randn(shape, generator=random, dtype=torch.float64)

    bias = torch.zeros(vocabulary, dtype=torch.float64)
    bias[EOS] = end
    return Toy(normal(12, 4), normal(vocabulary, 4), normal(4, vocabulary), bias, **changes)


def sources(seed: int, count: int, longest: int = 6) -> list[list[int]]:
    random = torch.Generator().manual_seed(seed)
    sizes = torch.randint(1, longest + 1, (count,), generator=random).tolist()
    return [torch.randint(12, (size,), generator=random).tolist() for size in sizes]


def batch(sentences: list[list[int]]) -> Hard:
    return pad_batch(sentences, 0)


def strings(found: Found, place: int = 0) -> list[list[int]]:
    return unpad(Hard(found.ids[:, place], found.mask[:, place]))


def total(model: Any, source: Hard, target: Hard) -> Tensor:
    return model.log_probs(model.encode(source), target).total(target)


def words_of(model: Any) -> list[int]:
    return [w for w in range(model.vocabulary_size) if w not in (*model.banned, EOS)]


def search_plainly(
    model: Toy, source: list[int], limit: int, size: int, penalty: float, exact: bool = False
) -> list[tuple[list[int], float]]:
    """The same search with lists, scored through `log_probs` alone."""
    memory = model.encode(batch([source]))
    live: list[tuple[float, list[int]]] = [(0.0, [])]
    pool: list[tuple[float, list[int]]] = []
    while live:
        candidates = []
        for log_p, prefix in live:
            after = model.log_probs(memory, batch([[*prefix, 1]])).words[0, -1]
            words = [*words_of(model), EOS] if len(prefix) < limit else [EOS]
            candidates += [(log_p + float(after[w]), prefix, w) for w in words]
        candidates.sort(key=lambda c: -c[0])
        for log_p, prefix, word in candidates[:size]:
            if word == EOS:
                pool.append((log_p / (len(prefix) + 1) ** penalty, prefix))
        pool = sorted(pool, key=lambda p: -p[0])[:size]
        live = [(log_p, [*prefix, w]) for log_p, prefix, w in candidates if w != EOS][:size]
        if live and len(pool) == size:
            length = limit + 1 if exact else len(live[0][1])
            if live[0][0] / length**penalty <= pool[-1][0]:
                break
    return [(words, score) for score, words in pool]


@pytest.mark.parametrize("penalty", [0.0, 0.6, 1.0])
@pytest.mark.parametrize("backwards", [False, True])
@pytest.mark.parametrize("seed", range(3))
def test_a_very_wide_beam_is_full_enumeration(seed, backwards, penalty):
    model: Any = RightToLeft(toy(seed)) if backwards else toy(seed)
    every = [list(s) for n in range(4) for s in itertools.product(words_of(model), repeat=n)]
    source = sources(seed, 3)
    wide = BeamSettings(len(every), len(every), penalty, max_ratio=0.0, max_extra=3)
    found = beam_search(model, batch(source), wide)
    assert found.count.tolist() == [len(every)] * 3
    for row, sentence in enumerate(source):
        log_p = total(model, batch([sentence] * len(every)), batch(every))
        score = log_p / torch.tensor([len(s) + 1.0 for s in every]).double() ** penalty
        best = score.argsort(descending=True)
        torch.testing.assert_close(found.score[row], score[best])
        torch.testing.assert_close(found.log_prob[row], log_p[best])
        assert unpad(Hard(found.ids[row], found.mask[row])) == [every[i] for i in best.tolist()]


@given(
    st.integers(0, 10_000),
    st.integers(1, 7),
    st.sampled_from([0.0, 0.6, 1.0, 1.5]),
    st.booleans(),
    st.integers(4, 9),
)
@settings(max_examples=40, deadline=None)
def test_the_search_is_the_plain_search(seed, size, penalty, exact, vocabulary):
    model = toy(seed, vocabulary, end=0.5, banned=(0,))
    source = sources(seed, 4, longest=3)
    chosen = BeamSettings(size, size, penalty, max_ratio=1.5, max_extra=2, exact=exact)
    found = beam_search(model, batch(source), chosen)
    for row, sentence in enumerate(source):
        limit = math.ceil(1.5 * len(sentence)) + 2
        plain = search_plainly(model, sentence, limit, size, penalty, exact)
        assert int(found.count[row]) == len(plain)
        here = unpad(Hard(found.ids[row], found.mask[row]))[: len(plain)]
        assert here == [words for words, _ in plain]
        expected = torch.tensor([score for _, score in plain], dtype=torch.float64)
        torch.testing.assert_close(found.score[row, : len(plain)], expected)


@given(st.integers(0, 10_000), st.integers(1, 6), st.booleans())
@settings(max_examples=30, deadline=None)
def test_found_strings_are_sorted_unique_allowed_and_rightly_scored(seed, size, backwards):
    model: Any = RightToLeft(toy(seed, 8)) if backwards else toy(seed, 8)
    source = batch(sources(seed, 5))
    found = beam_search(model, source, BeamSettings(size, size, length_penalty=0.8))
    assert (found.score[:, 1:] <= found.score[:, :-1]).all()
    assert not torch.isin(found.ids[found.mask], torch.tensor([*BANNED, EOS])).any()
    assert found.count.tolist() == [size] * 5
    for place in range(size):
        target = Hard(found.ids[:, place], found.mask[:, place])
        torch.testing.assert_close(found.log_prob[:, place], total(model, source, target))
        length = (lengths(target) + 1).double()
        torch.testing.assert_close(found.score[:, place], found.log_prob[:, place] / length**0.8)
    for row in range(5):
        here = unpad(Hard(found.ids[row], found.mask[row]))
        assert len({tuple(s) for s in here}) == size


@pytest.mark.parametrize("seed", range(5))
def test_greedy_is_beam_one_is_a_loop(seed):
    model = toy(seed, 9, end=1.0)
    source = sources(seed, 8)
    greedy = greedy_search(model, batch(source), BeamSettings(5, 3))
    one = beam_search(model, batch(source), BeamSettings(1))
    assert strings(greedy) == strings(one)
    torch.testing.assert_close(greedy.log_prob, one.log_prob)
    allowed = [*words_of(model), EOS]
    for sentence, found in zip(source, strings(greedy), strict=True):
        memory, words = model.encode(batch([sentence])), []
        while len(words) < 2 * len(sentence) + 10:
            after = model.log_probs(memory, batch([[*words, 1]])).words[0, -1]
            word = allowed[int(after[allowed].argmax())]
            if word == EOS:
                break
            words.append(word)
        assert found == words


@pytest.mark.parametrize("backwards", [False, True])
def test_batches_order_and_padding_change_nothing(backwards):
    model: Any = RightToLeft(toy(7, 12, end=1.0)) if backwards else toy(7, 12, end=1.0)
    source = sources(7, 64, longest=9)
    chosen = BeamSettings(5, 5)
    whole = beam_search(model, batch(source), chosen)
    expected = [strings(whole, place) for place in range(5)]
    assert len({len(s) for s in expected[0]}) > 3
    for size in (1, 3):
        parts = [
            beam_search(model, batch(source[i : i + size]), chosen) for i in range(0, 64, size)
        ]
        for place in range(5):
            assert [s for part in parts for s in strings(part, place)] == expected[place]
        torch.testing.assert_close(torch.cat([part.score for part in parts]), whole.score)
    order = torch.randperm(64, generator=torch.Generator().manual_seed(0)).tolist()
    shuffled = beam_search(model, batch([source[i] for i in order]), chosen)
    assert strings(shuffled) == [expected[0][i] for i in order]
    padded = batch([*source, [1] * 15]).select(torch.arange(64))
    assert strings(beam_search(model, padded, chosen)) == expected[0]


def test_finished_sentences_leave_the_batch():
    model = toy(1, 8)
    source = batch([[1], [2, 3, 4, 5, 6, 7]])
    beam_search(model, source, BeamSettings(2, max_ratio=3.0, max_extra=0, exact=True))
    assert model.rows[0] == 2
    assert max(model.rows) == 4
    assert model.rows[-1] == 2


def constant(*, end: float) -> Toy:
    """One word and the end, with the same probabilities everywhere."""
    nothing = torch.zeros(12, 4, dtype=torch.float64)
    bias = torch.tensor([-torch.inf, math.log(1 - end), math.log(end)], dtype=torch.float64)
    return Toy(nothing, nothing[:3], nothing[:3].T, bias, banned=(0,))


@pytest.mark.parametrize(("penalty", "words"), [(0.0, 0), (1.0, 12)])
def test_the_length_penalty_favours_length(penalty, words):
    # (n log 0.7 + log 0.3) / (n + 1)^penalty falls with n for 0 and rises for 1.
    chosen = BeamSettings(20, 13, penalty)
    found = beam_search(constant(end=0.3), batch([[4]]), chosen)
    assert len(strings(found)[0]) == words
    order = found.mask[0].sum(-1).tolist()
    assert order == sorted(range(13), reverse=words == 12)


@given(st.integers(0, 30), st.integers(0, 4), st.integers(1, 9), st.integers(0, 6))
@settings(max_examples=30, deadline=None)
def test_the_limit_is_kept_and_reached(tenths, extra, size, most):
    ratio = tenths / 10
    model = replace(constant(end=1e-9), max_length=most)
    source = batch([[1] * n for n in (1, 2, 10)])
    chosen = BeamSettings(size, max_ratio=ratio, max_extra=extra)
    found = beam_search(model, source, chosen)
    limits = [min(most, math.ceil(round(ratio * n, 9)) + extra) for n in (1, 2, 10)]
    assert [len(s) for s in strings(found)] == limits
    torch.testing.assert_close(found.log_prob[:, 0], total(model, source, found.best()))


def test_a_ratio_that_floating_point_misses_does_not_round_up():
    model = constant(end=1e-9)
    found = beam_search(model, batch([[1] * 10]), BeamSettings(1, max_ratio=1.1, max_extra=0))
    assert len(strings(found)[0]) == 11


def late_bloomer() -> Toy:
    """The end is likeliest at once; after one word it is nearly certain."""
    source = torch.zeros(12, 1, dtype=torch.float64)
    target = torch.tensor([[0.0], [50.0], [0.0]], dtype=torch.float64)
    output = torch.tensor([[0.0, 0.0, 5.0]], dtype=torch.float64)
    bias = torch.tensor([-torch.inf, math.log(0.45), math.log(0.55)], dtype=torch.float64)
    return Toy(source, target, output, bias, banned=(0,))


def test_only_the_exact_bound_waits_for_a_long_string():
    # log 0.45 < log 0.55 for one word each, but log 0.45 / 2 > log 0.55 when the end is free.
    usual = BeamSettings(1, max_ratio=0.0, max_extra=1)
    assert strings(beam_search(late_bloomer(), batch([[5]]), usual)) == [[]]
    exact = replace(usual, exact=True)
    assert strings(beam_search(late_bloomer(), batch([[5]]), exact)) == [[1]]


@given(st.integers(0, 10_000), st.integers(1, 5))
@settings(max_examples=30, deadline=None)
def test_the_exact_bound_never_scores_worse(seed, size):
    model, source = toy(seed, 8, end=1.0), batch(sources(seed, 6))
    usual = beam_search(model, source, BeamSettings(size))
    exact = beam_search(model, source, BeamSettings(size, exact=True))
    assert (exact.score >= usual.score - 1e-12).all()


@pytest.mark.parametrize("backwards", [False, True])
def test_an_empty_source_gives_the_empty_string(backwards):
    model: Any = RightToLeft(toy(2)) if backwards else toy(2)
    source = batch([[], [4, 5]])
    found = beam_search(model, source, BeamSettings(3, 3))
    assert strings(found)[0] == []
    assert found.count.tolist() == [1, 3]
    torch.testing.assert_close(found.log_prob[:, 0], total(model, source, found.best()))
    alone = beam_search(model, batch([[]]), BeamSettings(3))
    assert strings(alone) == [[]]


def test_missing_hypotheses_are_marked():
    found = beam_search(
        constant(end=0.5), batch([[3]]), BeamSettings(4, 4, max_ratio=0.0, max_extra=1)
    )
    assert found.count.tolist() == [2]
    assert found.score[0, 2:].tolist() == [-math.inf] * 2
    assert not found.mask[0, 2:].any()


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_scores_keep_the_precision_of_the_model(dtype):
    wide = toy(3)
    model = Toy(*(t.to(dtype) for t in (wide.source, wide.target, wide.output, wide.bias)))
    found = beam_search(model, batch([[1, 2]]))
    assert found.score.dtype == found.log_prob.dtype == dtype


def test_the_search_needs_no_gradient():
    model = toy(3)
    model.output.requires_grad_()
    assert not beam_search(model, batch([[1, 2]])).score.requires_grad


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        ({"size": 0}, "beam size"),
        ({"size": 4, "n_best": 5}, "n-best size"),
        ({"n_best": 0}, "n-best size"),
        ({"length_penalty": -0.1}, "length penalty"),
        ({"max_ratio": -1.0}, "length limit"),
        ({"max_extra": -1}, "length limit"),
    ],
)
def test_senseless_settings_are_refused(wrong, says):
    with pytest.raises(UsageError, match=says):
        BeamSettings(**wrong)


def test_a_model_that_answers_nan_does_not_keep_the_search_from_ending() -> None:
    broken = replace(toy(0), bias=torch.full((6,), torch.nan))
    found = beam_search(broken, batch([[1, 2]]), BeamSettings(size=2))
    assert found.count.tolist() == [0]
