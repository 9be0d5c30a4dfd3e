"""What every user of the paper's model relies on."""

from __future__ import annotations

import itertools

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor
from torch.autograd import gradcheck

from simplexity.models.adapters import AttentionalSeq2Seq
from simplexity.models.attention import Attentional, AttentionalConfig
from simplexity.models.seq2seq import RightToLeft, Seq2Seq
from simplexity.relax.tokens import Hard, Soft, one_hot, pad_batch, reverse

WORDS = [4, 5, 6]  # the vocabulary's four special ids come first


def tiny(seed: int = 0, layers: int = 1) -> AttentionalSeq2Seq:
    torch.manual_seed(seed)
    config = AttentionalConfig(
        source_vocab_size=8,
        vocab_size=7,
        embedding_size=5,
        hidden_size=6,
        alignment_size=4,
        encoder_layers=layers,
    )
    network = Attentional(config).double().eval().requires_grad_(False)
    for parameter in network.parameters():
        torch.nn.init.normal_(parameter, std=0.6)
    return AttentionalSeq2Seq(network)


SOURCE = pad_batch([[4, 5, 6, 7], [6, 4], []], 0)
TARGET = pad_batch([[5, 4, 6], [4], [6, 6]], 0)
MODELS = {"l2r": tiny(), "two layers": tiny(1, layers=2), "r2l": RightToLeft(tiny(2))}


@pytest.fixture(params=MODELS)
def model(request: pytest.FixtureRequest) -> Seq2Seq:
    return MODELS[request.param]


def totals(model: Seq2Seq, source: Hard, target: Hard | Soft) -> Tensor:
    return model.log_probs(model.encode(source), target).total(target)


def test_the_network_and_the_adapter_agree() -> None:
    model = tiny()
    ids = torch.tensor([[4, 5, 6, 2]])
    previous = torch.tensor([[1, 5, 4]])
    logits = model.network(ids, torch.ones_like(ids), previous).logits.log_softmax(-1)
    found = model.log_probs(model.encode(pad_batch([[4, 5, 6]], 0)), pad_batch([[5, 4]], 0))
    torch.testing.assert_close(found.words, logits[:, :2])
    torch.testing.assert_close(found.end, logits[:, 2, 2])


def test_step_by_step_equals_one_pass(model: Seq2Seq) -> None:
    parallel = totals(model, SOURCE, TARGET)
    order = TARGET if model.direction == "l2r" else reverse(TARGET)
    for row, n in enumerate(TARGET.mask.sum(1).tolist()):
        one = torch.tensor([row])
        memory = model.encode(SOURCE).select(one)
        state, log_p = model.step(memory, model.start(memory), None)
        total = torch.zeros(())
        for word in [*order.ids[row, :n].tolist(), model.eos]:
            total = total + log_p[0, word]
            state, log_p = model.step(memory, state, torch.tensor([word]))
        torch.testing.assert_close(total.double(), parallel[row])


def test_several_rows_of_one_sentence_step_together(model: Seq2Seq) -> None:
    memory = model.encode(SOURCE)
    state, _ = model.step(memory, model.start(memory), None)
    pairs = state.select(torch.arange(3).repeat_interleave(2))
    words = torch.tensor([4, 5, 6, 4, 5, 6])
    _, together = model.step(memory, pairs, words)
    _, first = model.step(memory, state, words[::2])
    _, second = model.step(memory, state, words[1::2])
    torch.testing.assert_close(together[::2], first)
    torch.testing.assert_close(together[1::2], second)


def test_probabilities_of_all_strings_and_open_prefixes_sum_to_one(model: Seq2Seq) -> None:
    source = SOURCE.select(torch.tensor([0]))
    first, length = range(7), 2
    done = [[s] for s in first if s != 2] if length else []
    closed = [[], *done]
    mass = sum(totals(model, source, pad_batch([ids], 0)).exp() for ids in closed)
    for ids in itertools.product([w for w in first if w != 2], repeat=length):
        target = pad_batch([list(ids)], 0)
        found = model.log_probs(model.encode(source), target)
        mass = mass + found.per_token(target).sum(-1).exp()
    torch.testing.assert_close(mass, torch.ones(1, dtype=torch.float64))


def test_a_vertex_of_the_simplex_is_the_string(model: Seq2Seq) -> None:
    vertex = one_hot(TARGET, 7, torch.float64)
    torch.testing.assert_close(totals(model, SOURCE, vertex), totals(model, SOURCE, TARGET))
    source = one_hot(SOURCE, 8, torch.float64)
    torch.testing.assert_close(
        model.log_probs(model.encode(source), TARGET).words,
        model.log_probs(model.encode(SOURCE), TARGET).words,
    )


def test_a_support_is_the_vocabulary_with_the_other_words_at_zero(model: Seq2Seq) -> None:
    probs = torch.rand(3, 3, 3, dtype=torch.float64).softmax(-1)
    wide = torch.zeros(3, 3, 7, dtype=torch.float64)
    wide[..., WORDS] = probs
    dense = totals(model, SOURCE, Soft(wide, TARGET.mask))
    shared = Soft(probs, TARGET.mask, torch.tensor(WORDS))
    own = Soft(probs, TARGET.mask, torch.tensor(WORDS).expand(3, -1))
    torch.testing.assert_close(totals(model, SOURCE, shared), dense)
    torch.testing.assert_close(totals(model, SOURCE, own), dense)


def test_gradients_of_soft_targets_and_soft_sources(model: Seq2Seq) -> None:
    torch.manual_seed(3)
    words = torch.tensor(WORDS)
    target = torch.randn(3, 3, 3, dtype=torch.float64).softmax(-1).requires_grad_()
    source = torch.randn(3, 4, 8, dtype=torch.float64).softmax(-1).requires_grad_()
    assert gradcheck(lambda p: totals(model, SOURCE, Soft(p, TARGET.mask, words)), (target,))
    assert gradcheck(
        lambda p: model.log_probs(model.encode(Soft(p, SOURCE.mask)), TARGET).total(TARGET),
        (source,),
    )


def test_padding_is_inert(model: Seq2Seq) -> None:
    together = totals(model, SOURCE, TARGET)
    for row in range(3):
        n, m = int(SOURCE.mask[row].sum()), int(TARGET.mask[row].sum())
        alone = totals(
            model,
            pad_batch([SOURCE.ids[row, :n].tolist()], 0),
            pad_batch([TARGET.ids[row, :m].tolist()], 0),
        )
        torch.testing.assert_close(alone[0], together[row], rtol=0, atol=1e-12)


@given(st.lists(st.sampled_from(WORDS), min_size=2, max_size=5), st.data())
@settings(max_examples=25, deadline=None)
def test_no_position_looks_ahead(ids: list[int], data: st.DataObject) -> None:
    model = tiny()
    place = data.draw(st.integers(0, len(ids) - 1))
    other = [*ids[:place], data.draw(st.sampled_from(WORDS)), *ids[place + 1 :]]
    source = SOURCE.select(torch.tensor([0]))
    memory = model.encode(source)
    one = model.log_probs(memory, pad_batch([ids], 0)).words
    two = model.log_probs(memory, pad_batch([other], 0)).words
    torch.testing.assert_close(one[:, : place + 1], two[:, : place + 1])


def test_an_empty_target_has_the_probability_of_ending_at_once(model: Seq2Seq) -> None:
    empty = pad_batch([[], [], []], 0)
    memory = model.encode(SOURCE)
    _, log_p = model.step(memory, model.start(memory), None)
    torch.testing.assert_close(totals(model, SOURCE, empty), log_p[:, model.eos])


def test_a_shortlist_of_all_words_is_exact(model: Seq2Seq) -> None:
    everything = torch.tensor([0, 1, 3, 4, 5, 6])  # the end competes in any case
    exact = model.log_probs(model.encode(SOURCE), TARGET)
    short = model.log_probs(model.encode(SOURCE), TARGET, everything)
    torch.testing.assert_close(short.words, exact.words[..., everything])
    torch.testing.assert_close(short.end, exact.end)


def test_words_of_a_shortlist_compete_with_one_another_and_the_end(model: Seq2Seq) -> None:
    own = torch.tensor([[4, 5], [6, 4], [5, 6]])
    memory = model.encode(SOURCE)
    exact, short = model.log_probs(memory, TARGET), model.log_probs(memory, TARGET, own)
    for row in range(3):
        competing = exact.words[row][:, [*own[row].tolist(), model.eos]]
        expected = competing.log_softmax(-1)[:, :2]
        real = TARGET.mask[row]
        torch.testing.assert_close(short.words[row][real], expected[real])
    shared = model.log_probs(memory, TARGET, own[0])
    torch.testing.assert_close(shared.words[0], short.words[0])
    torch.testing.assert_close(shared.end[0], short.end[0])
