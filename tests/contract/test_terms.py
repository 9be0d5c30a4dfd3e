"""What every term of an objective promises, and every sum of terms."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from dataclasses import dataclass

import pytest
import torch
from torch import Tensor
from torch.autograd import gradcheck

from simplexity.errors import UsageError
from simplexity.models.family import Family
from simplexity.models.seq2seq import Seq2Seq
from simplexity.relax.tokens import Hard, Soft, lengths, one_hot, pad_batch, unpad
from simplexity.terms.likelihood import Likelihood, Reverse
from simplexity.terms.mix import Confidence, Mix, Part, PerWord, Term

Models = dict[str, Seq2Seq]

WORDS = [4, 5, 6, 7]
SOURCE = pad_batch([[4, 5, 8], [6], [7, 7, 4, 5]], 0)
TARGET = pad_batch([[5, 4, 6], [7], [6, 6]], 0)
KINDS = ["words", "shared support", "own support"]


def mixed(**parts: tuple[float, Term]) -> Mix:
    return Mix(tuple(Part(name, weight, term) for name, (weight, term) in parts.items()))


TERMS: dict[str, Callable[[Models], Term]] = {
    "l2r": lambda m: Likelihood(m["l2r"]),
    "r2l": lambda m: Likelihood(m["r2l"]),
    "reverse": lambda m: Reverse(m["reverse"]),
    "confidence": lambda m: Confidence(),
    "l2r per word": lambda m: PerWord(Likelihood(m["l2r"])),
    "r2l per word": lambda m: PerWord(Likelihood(m["r2l"])),
    "reverse per word": lambda m: PerWord(Reverse(m["reverse"])),
    "confidence per word": lambda m: PerWord(Confidence()),
    "bidirectional": lambda m: mixed(
        l2r=(0.5, Likelihood(m["l2r"])), r2l=(0.5, Likelihood(m["r2l"]))
    ),
    "bilingual": lambda m: mixed(
        l2r=(0.6, PerWord(Likelihood(m["l2r"]))), reverse=(0.4, PerWord(Reverse(m["reverse"])))
    ),
    "joint with confidence": lambda m: mixed(
        l2r=(0.3, Likelihood(m["l2r"])),
        r2l=(0.3, Likelihood(m["r2l"])),
        reverse=(0.4, Reverse(m["reverse"])),
        confidence=(0.2, Confidence()),
    ),
}


@pytest.fixture(scope="module")
def models(tiny_family: Callable[..., Family]) -> Models:
    return {member.name: member.model for member in tiny_family()}


@pytest.fixture(params=TERMS)
def term(request: pytest.FixtureRequest, models: Models) -> Term:
    return TERMS[request.param](models)


def draw(mask: Tensor, kind: str, seed: int = 0) -> Soft:
    """Random points inside the simplex; supports leave out words, each sentence its own."""
    generator = torch.Generator().manual_seed(seed)
    support = {
        "words": None,
        "shared support": torch.tensor([5, 7, 4]),
        "own support": torch.tensor([[5, 7, 4], [4, 6, 7], [6, 5, 4]]),
    }[kind]
    size = 8 if support is None else 3
    scores = torch.randn(*mask.shape, size, generator=generator, dtype=torch.float64)
    return Soft(scores.softmax(-1), mask, support)


@pytest.mark.parametrize("kind", KINDS)
def test_its_gradient_is_that_of_finite_differences(term: Term, kind: str) -> None:
    energy = term.bind(SOURCE)
    y = draw(TARGET.mask, kind)
    assert gradcheck(lambda probs: energy(y.with_probs(probs)), (y.probs.requires_grad_(),))


@pytest.mark.parametrize("kind", KINDS)
def test_sentences_are_independent(term: Term, kind: str) -> None:
    """Padding is inert, too: alone, a sentence has none."""
    y = draw(TARGET.mask, kind)
    together = term.bind(SOURCE)(y)
    for row in range(3):
        n, m = int(SOURCE.mask[row].sum()), int(TARGET.mask[row].sum())
        support = y.support[[row]] if kind == "own support" and y.support is not None else y.support
        alone = Soft(y.probs[[row], :m], y.mask[[row], :m], support)
        source = Hard(SOURCE.ids[[row], :n], SOURCE.mask[[row], :n])
        torch.testing.assert_close(term.bind(source)(alone)[0], together[row], rtol=0, atol=1e-12)


@pytest.mark.parametrize("kind", KINDS)
def test_what_stands_on_padding_changes_neither_costs_nor_gradients(term: Term, kind: str) -> None:
    energy = term.bind(SOURCE)
    found = []
    for seed in (1, 2):
        y = draw(TARGET.mask, kind)
        noise = draw(TARGET.mask, kind, seed).probs
        probs = torch.where(TARGET.mask[..., None], y.probs, noise).requires_grad_()
        cost = energy(y.with_probs(probs))
        (grad,) = torch.autograd.grad(cost.sum(), probs)
        assert (grad[~TARGET.mask] == 0).all()
        found.append((cost, grad))
    torch.testing.assert_close(found[0], found[1], rtol=0, atol=1e-12)


def test_a_vertex_of_the_simplex_costs_what_the_string_costs(term: Term) -> None:
    energy = term.bind(SOURCE)
    hard = energy(TARGET)
    assert hard.shape == (3,)
    torch.testing.assert_close(energy(one_hot(TARGET, 8, torch.float64)).to(hard.dtype), hard)
    support = torch.tensor([7, 5, 6, 4])
    vertex = (TARGET.ids[..., None] == support).double()
    torch.testing.assert_close(energy(Soft(vertex, TARGET.mask, support)).to(hard.dtype), hard)


@pytest.mark.parametrize("rows", [[1], [2, 0], [0, 0, 1, 2]])
def test_some_sentences_cost_what_they_cost_in_the_batch(term: Term, rows: list[int]) -> None:
    chosen = torch.tensor(rows)
    energy = term.bind(SOURCE)
    y = draw(TARGET.mask, "own support")
    some = energy.select(chosen)
    torch.testing.assert_close(some(y.select(chosen)), energy(y)[chosen])
    torch.testing.assert_close(some(TARGET.select(chosen)), energy(TARGET)[chosen])
    again = some.select(torch.tensor([0]))
    torch.testing.assert_close(again(y.select(chosen[:1])), energy(y)[chosen[:1]])
    expected = term.bind(SOURCE.select(chosen)).factors(TARGET.select(chosen))
    torch.testing.assert_close(some.factors(TARGET.select(chosen)), expected)


def test_empty_strings_have_a_cost(term: Term) -> None:
    energy = term.bind(SOURCE)
    empty = pad_batch([[], [], []], 0)
    soft = Soft(torch.zeros(3, 0, 4, dtype=torch.float64), empty.mask, torch.tensor(WORDS))
    assert energy(empty).isfinite().all()
    torch.testing.assert_close(energy(soft).to(energy(empty).dtype), energy(empty))
    padded = energy(pad_batch([[], [5], []], 0))
    torch.testing.assert_close(padded[[0, 2]], energy(empty)[[0, 2]])


def test_expected_embeddings_of_single_precision_fit_models_of_double(term: Term) -> None:
    y = draw(TARGET.mask, "shared support")
    rough = y.with_probs(y.probs.float())
    energy = term.bind(SOURCE)
    torch.testing.assert_close(energy(rough).double(), energy(y), rtol=1e-5, atol=1e-6)


FACTORS = {
    "l2r": [4, 2, 3],
    "r2l": [4, 2, 3],
    "reverse": [4, 2, 5],
    "confidence": [3, 1, 2],
    "l2r per word": [1, 1, 1],
    "r2l per word": [1, 1, 1],
    "reverse per word": [1, 1, 1],
    "confidence per word": [1, 1, 1],
    "bidirectional": [4, 2, 3],
    "bilingual": [4, 2, 3],
    "joint with confidence": [4, 2, 3],
}


@pytest.mark.parametrize("name", TERMS)
def test_factors_are_the_words_predicted_and_their_end(name: str, models: Models) -> None:
    """Targets of 3, 1 and 2 words for sources of 3, 1 and 4."""
    assert TERMS[name](models).bind(SOURCE).factors(TARGET).tolist() == FACTORS[name]


@pytest.mark.parametrize("name", ["l2r", "r2l", "reverse", "confidence"])
def test_a_term_per_word_is_the_term_divided_by_its_factors(name: str, models: Models) -> None:
    term = TERMS[name](models)
    energy, y = term.bind(SOURCE), draw(TARGET.mask, "words")
    expected = energy(y) / torch.tensor(FACTORS[name])
    torch.testing.assert_close(PerWord(term).bind(SOURCE)(y), expected)


@pytest.mark.parametrize("name", ["l2r", "r2l"])
def test_all_strings_and_all_open_beginnings_have_probability_one(
    name: str, models: Models
) -> None:
    """Strings of at most 2 words, any but the end, and what begins with 3: nothing else is left."""
    words = [word for word in range(8) if word != 2]
    energy = TERMS[name](models).bind(SOURCE)
    closed = torch.zeros(3, dtype=torch.float64)
    for length in (0, 1, 2):
        for string in itertools.product(words, repeat=length):
            closed += (-energy(pad_batch([list(string)] * 3, 0))).exp()
    model = models[name]
    memory = model.encode(SOURCE)
    longer = torch.zeros(3, dtype=torch.float64)
    for string in itertools.product(words, repeat=3):
        target = pad_batch([list(string)] * 3, 0)
        longer += model.log_probs(memory, target).per_token(target).sum(-1).exp()
    assert (closed < 1).all()
    torch.testing.assert_close(closed + longer, torch.ones(3, dtype=torch.float64))


@pytest.mark.parametrize("name", ["l2r", "r2l"])
def test_a_shortlist_leaves_out_only_the_other_words(name: str, models: Models) -> None:
    """Soft strings compete among their candidates; hard ones are scored exactly."""
    exact = Likelihood(models[name]).bind(SOURCE)
    short = Likelihood(models[name], shortlisted=True).bind(SOURCE)
    torch.testing.assert_close(short(TARGET), exact(TARGET))
    everything = torch.tensor([0, 1, 3, 4, 5, 6, 7])  # and the end, which always competes
    scores = torch.randn(3, 3, 7, generator=torch.Generator().manual_seed(5), dtype=torch.float64)
    y = Soft(scores.softmax(-1), TARGET.mask, everything)
    torch.testing.assert_close(short(y), exact(y))
    for kind in ("shared support", "own support"):
        y = draw(TARGET.mask, kind)
        assert (short(y) < exact(y)).all()
        assert gradcheck(lambda probs, y=y: short(y.with_probs(probs)), (y.probs.requires_grad_(),))
        rows = torch.tensor([2, 0])
        torch.testing.assert_close(short.select(rows)(y.select(rows)), short(y)[rows])


def by_steps(model: Seq2Seq, source: list[int], target: list[int]) -> float:
    """log P(target | source), word by word as a search sees it."""
    order = target if model.direction == "l2r" else target[::-1]
    memory = model.encode(pad_batch([source], 0))
    state, log_p = model.step(memory, model.start(memory), None)
    total = 0.0
    for word in [*order, model.eos]:
        total += float(log_p[0, word])
        state, log_p = model.step(memory, state, torch.tensor([word]))
    return total


def test_likelihoods_are_what_the_models_say_word_by_word(models: Models) -> None:
    pairs = list(zip(unpad(SOURCE), unpad(TARGET), strict=True))
    for name in ("l2r", "r2l"):
        found = TERMS[name](models).bind(SOURCE)(TARGET).tolist()
        assert found == pytest.approx([-by_steps(models[name], x, y) for x, y in pairs])
    found = TERMS["reverse"](models).bind(SOURCE)(TARGET).tolist()
    assert found == pytest.approx([-by_steps(models["reverse"], y, x) for x, y in pairs])


def test_confidence_is_minus_the_entropy() -> None:
    y = draw(TARGET.mask, "shared support")
    expected = [
        sum(p * math.log(p) for position in row[:n] for p in position)
        for row, n in zip(y.probs.tolist(), lengths(y).tolist(), strict=True)
    ]
    assert Confidence().bind(SOURCE)(y).tolist() == pytest.approx(expected)


@dataclass(frozen=True)
class Given:
    """A term whose costs are known."""

    costs: tuple[float, ...]
    words: tuple[int, ...]

    def bind(self, source: Hard) -> Given:
        return self

    def __call__(self, y: Hard | Soft) -> Tensor:
        return torch.tensor(self.costs, dtype=torch.float64)

    def factors(self, y: Hard | Soft) -> Tensor:
        return torch.tensor(self.words)

    def select(self, rows: Tensor) -> Given:
        return self


def test_a_mix_is_the_weighted_sum_of_its_terms() -> None:
    """Equations 8 and 9, with a = 0.25; per word, each term by its own factors."""
    one, other = Given((4.0, 8.0, 1.0), (4, 2, 1)), Given((2.0, 0.0, 6.0), (2, 3, 3))
    energy = mixed(one=(0.25, one), other=(0.75, other)).bind(SOURCE)
    assert energy(TARGET).tolist() == [2.5, 2.0, 4.75]
    assert energy.costs(TARGET).tolist() == [[4.0, 2.0], [8.0, 0.0], [1.0, 6.0]]
    costs = energy.costs(TARGET)
    assert energy.total(costs).tolist() == [2.5, 2.0, 4.75]
    assert energy.total(torch.stack([costs, 2 * costs])).tolist()[1] == [5.0, 4.0, 9.5]
    assert energy.per_word(costs, TARGET).tolist() == [1.0, 1.0, 1.75]


@pytest.mark.parametrize("weight", [0.0, math.nan, math.inf])
def test_a_weight_that_means_nothing_is_refused(weight: float) -> None:
    with pytest.raises(UsageError, match="weight of r2l is"):
        mixed(r2l=(weight, Confidence()))


def test_an_objective_of_nothing_is_refused() -> None:
    with pytest.raises(UsageError, match="at least one term"):
        Mix(())
