"""Encoder-decoders of transformers: scored as they score themselves, hard and soft."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.autograd import gradcheck
from transformers import (
    BartConfig,
    BartForConditionalGeneration,
    GPT2Config,
    GPT2LMHeadModel,
    MarianConfig,
    MarianMTModel,
    T5Config,
    T5ForConditionalGeneration,
)
from transformers.models.t5.modeling_t5 import T5LayerNorm

from simplexity.errors import SimplexityError
from simplexity.models.huggingface import HuggingFaceSeq2Seq, adapt
from simplexity.relax.tokens import Hard, Soft, lengths, one_hot, pad_batch, unpad
from simplexity.search.beam import BeamSettings, beam_search, greedy_search

WORDS = 32
SIZES = {
    "d_model": 16,
    "encoder_layers": 2,
    "decoder_layers": 2,
    "encoder_attention_heads": 2,
    "decoder_attention_heads": 2,
    "encoder_ffn_dim": 24,
    "decoder_ffn_dim": 24,
    "max_position_embeddings": 48,
    "init_std": 0.4,
    "forced_eos_token_id": None,
}


def marian(**changes: Any) -> Any:
    special = {"pad_token_id": 31, "eos_token_id": 0, "decoder_start_token_id": 31}
    options = {"vocab_size": WORDS, "decoder_vocab_size": WORDS, **special, **SIZES, **changes}
    return MarianMTModel(MarianConfig(scale_embedding=True, **options))


def marian_two_vocabularies() -> Any:
    return marian(vocab_size=40, share_encoder_decoder_embeddings=False, tie_word_embeddings=False)


def bart(**changes: Any) -> Any:
    options = {"vocab_size": WORDS, "scale_embedding": True, **SIZES, **changes}
    return BartForConditionalGeneration(BartConfig(**options))


def t5(**changes: Any) -> Any:
    options = {"d_model": 16, "d_kv": 8, "d_ff": 24, "num_layers": 2, "num_heads": 2, **changes}
    model = T5ForConditionalGeneration(
        T5Config(vocab_size=WORDS, decoder_start_token_id=0, tie_word_embeddings=False, **options)
    )
    # T5's own norm computes in single precision, too coarse for finite differences.
    for parent in list(model.modules()):
        for name, child in parent.named_children():
            if isinstance(child, T5LayerNorm):
                setattr(parent, name, nn.RMSNorm(16, child.variance_epsilon))
    return model


MODELS: dict[str, Callable[..., Any]] = {
    "marian": marian,
    "marian, two vocabularies": marian_two_vocabularies,
    "bart": bart,
    "t5": t5,
}


def build(make: Callable[..., Any], seed: int = 0, **changes: Any) -> Any:
    """A random model in double precision; the random state is left as it was."""
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        return make(**changes).double()


@pytest.fixture(scope="module", params=MODELS)
def adapter(request: pytest.FixtureRequest) -> HuggingFaceSeq2Seq:
    return adapt(build(MODELS[request.param]))


SOURCE = pad_batch([[5, 9, 14, 7], [20, 6], [11, 8, 30]], 3)
TARGET = pad_batch([[4, 13], [25, 6, 9], [7, 7, 19]], 3)


def ending(model: Any, bonus: float = 3.0) -> Any:
    """The same model, surer of the end: random ones hardly ever stop."""
    eos = model.config.eos_token_id
    if hasattr(model, "final_logits_bias"):
        model.final_logits_bias[0, eos] += bonus
        return model
    # T5 has no bias; its mean hidden state serves as one.
    with torch.no_grad():
        encoded = model.encoder(torch.arange(4, 30)[None])[0]
        hidden = model.decoder(torch.arange(4, 30)[None], encoder_hidden_states=encoded)[0]
        mean = hidden.mean((0, 1)) * model.model_dim**-0.5
        model.lm_head.weight[eos] += bonus * mean / mean.square().sum()
    return model


def soft(target: Hard, candidates: int, seed: int = 0) -> Soft:
    """Random distributions over some words, others for each sentence."""
    random = torch.Generator().manual_seed(seed)
    shape = (*target.ids.shape, candidates)
    logits = torch.randn(shape, generator=random, dtype=torch.float64)
    rows = [4 + torch.randperm(26, generator=random)[:candidates] for _ in range(len(target.ids))]
    return Soft(logits.softmax(-1), target.mask, torch.stack(rows))


def dense(tokens: Soft, vocabulary: int) -> Soft:
    """The same distributions over the whole vocabulary."""
    assert tokens.support is not None
    support = tokens.support if tokens.support.dim() == 2 else tokens.support[None]
    index = support[:, None].expand_as(tokens.probs)
    probs = torch.zeros(*tokens.mask.shape, vocabulary, dtype=tokens.probs.dtype)
    return Soft(probs.scatter(-1, index, tokens.probs), tokens.mask)


def source_size(adapter: HuggingFaceSeq2Seq) -> int:
    return adapter.model.get_encoder().get_input_embeddings().num_embeddings


def own_log_probs(model: Any, source: list[int], target: list[int], eos: int) -> Tensor:
    """What the model says of one sentence when it is trained on it."""
    with torch.no_grad():
        found = model(
            input_ids=torch.tensor([[*source, eos]]), labels=torch.tensor([[*target, eos]])
        )
    return found.logits[0].log_softmax(-1)


def test_own_forward_equals_hard_equals_soft(adapter):
    hard = adapter.log_probs(adapter.encode(SOURCE), TARGET)
    vertex = adapter.log_probs(
        adapter.encode(one_hot(SOURCE, source_size(adapter), torch.float64)),
        one_hot(TARGET, WORDS, torch.float64),
    )
    for row, (x, y) in enumerate(zip(unpad(SOURCE), unpad(TARGET), strict=True)):
        own = own_log_probs(adapter.model, x, y, adapter.eos)
        for found in (hard, vertex):
            torch.testing.assert_close(found.words[row, : len(y)], own[:-1])
            torch.testing.assert_close(found.end[row], own[-1, adapter.eos])


@pytest.mark.parametrize("shared", [False, True])
def test_a_support_stands_for_its_words(adapter, shared):
    source, target = soft(SOURCE, 6, seed=1), soft(TARGET, 5)
    if shared:
        source, target = (
            replace(source, support=source.support[0]),
            replace(target, support=target.support[0]),
        )
    narrow = adapter.log_probs(adapter.encode(source), target)
    wide = adapter.log_probs(
        adapter.encode(dense(source, source_size(adapter))), dense(target, WORDS)
    )
    real = TARGET.mask
    torch.testing.assert_close(narrow.words[real], wide.words[real])
    torch.testing.assert_close(narrow.total(target), wide.total(dense(target, WORDS)))


def test_gradients_of_soft_targets(adapter):
    memory, target = adapter.encode(SOURCE), soft(TARGET, 4)

    def score(probs: Tensor) -> Tensor:
        tokens = target.with_probs(probs)
        return adapter.log_probs(memory, tokens).total(tokens)

    assert gradcheck(score, (target.probs.clone().requires_grad_(),))


def test_gradients_of_soft_sources(adapter):
    source = soft(SOURCE, 3)

    def score(probs: Tensor) -> Tensor:
        memory = adapter.encode(source.with_probs(probs))
        return adapter.log_probs(memory, TARGET).total(TARGET)

    assert gradcheck(score, (source.probs.clone().requires_grad_(),))


def test_gradients_over_the_whole_vocabulary(adapter):
    target = dense(soft(TARGET, 5), WORDS)
    memory = adapter.encode(SOURCE)

    def score(probs: Tensor) -> Tensor:
        tokens = target.with_probs(probs)
        return adapter.log_probs(memory, tokens).total(tokens)

    assert gradcheck(score, (target.probs.clone().requires_grad_(),), fast_mode=True)


def widen(tokens: Hard, junk: int) -> Hard:
    """The same sentences in more columns, with any word on the padding."""
    columns = torch.full((len(tokens.ids), 3), junk)
    mask = torch.cat([tokens.mask, torch.zeros_like(columns, dtype=torch.bool)], 1)
    return Hard(torch.cat([tokens.ids, columns], 1).masked_fill(~mask, junk), mask)


def test_padding_is_inert(adapter):
    expected = adapter.log_probs(adapter.encode(SOURCE), TARGET)
    source, target = widen(SOURCE, 17), widen(TARGET, 21)
    found = adapter.log_probs(adapter.encode(source), target)
    torch.testing.assert_close(found.words[:, :3][TARGET.mask], expected.words[TARGET.mask])
    torch.testing.assert_close(found.end, expected.end)


def test_soft_padding_is_inert(adapter):
    source, target = soft(SOURCE, 4), soft(TARGET, 4)
    source.probs.requires_grad_()
    target.probs.requires_grad_()
    total = adapter.log_probs(adapter.encode(source), target).total(target).sum()
    for tokens, grad in zip(
        (source, target), torch.autograd.grad(total, (source.probs, target.probs)), strict=True
    ):
        assert grad[~tokens.mask].abs().max() == 0
        assert grad[tokens.mask].abs().amax(-1).min() > 0


def test_sentences_are_independent(adapter):
    whole = adapter.log_probs(adapter.encode(SOURCE), TARGET)
    for row, (x, y) in enumerate(zip(unpad(SOURCE), unpad(TARGET), strict=True)):
        found = adapter.log_probs(adapter.encode(pad_batch([x], 3)), pad_batch([y], 3))
        torch.testing.assert_close(found.words[0], whole.words[row, : len(y)])
        torch.testing.assert_close(found.end[0], whole.end[row])


def test_a_prediction_knows_only_the_words_before_it(adapter):
    memory, target = adapter.encode(SOURCE), soft(TARGET, 4)
    expected = adapter.log_probs(memory, target).words
    for place in range(3):
        probs = target.probs.clone()
        probs[:, place] = probs[:, place].flip(-1)
        found = adapter.log_probs(memory, target.with_probs(probs)).words
        torch.testing.assert_close(found[:, : place + 1], expected[:, : place + 1])
        if place < 2:
            assert (found[1:, place + 1] - expected[1:, place + 1]).abs().max() > 1e-4


def test_no_words_have_an_end(adapter):
    nothing = Hard(TARGET.ids[:, :0], TARGET.mask[:, :0])
    memory = adapter.encode(SOURCE)
    found = adapter.log_probs(memory, nothing)
    assert found.words.shape == (3, 0, adapter.vocabulary_size)
    torch.testing.assert_close(
        found.end, adapter.log_probs(memory, TARGET).words[..., 0, adapter.eos]
    )
    empty = adapter.log_probs(memory, Soft(torch.zeros(3, 0, WORDS).double(), nothing.mask))
    torch.testing.assert_close(empty.end, found.end)


def steps(adapter: HuggingFaceSeq2Seq, source: Hard, target: Hard) -> Iterator[Tensor]:
    memory = adapter.encode(source)
    state, scores = adapter.step(memory, adapter.start(memory), None)
    yield scores
    for word in target.ids.unbind(1):
        state, scores = adapter.step(memory, state, word)
        yield scores


def test_steps_equal_one_pass(adapter):
    found = torch.stack(list(steps(adapter, SOURCE, TARGET)), 1)
    expected = adapter.log_probs(adapter.encode(SOURCE), TARGET)
    torch.testing.assert_close(found[:, :-1][TARGET.mask], expected.words[TARGET.mask])
    end = found[torch.arange(3), lengths(TARGET), adapter.eos]
    torch.testing.assert_close(end, expected.end)


def test_states_can_be_chosen_and_kept(adapter):
    # Two hypotheses a sentence, crossed over; then the middle sentence leaves.
    memory = adapter.encode(SOURCE)
    state, _ = adapter.step(memory, adapter.start(memory), None)
    state = state.select(torch.tensor([0, 0, 1, 1, 2, 2]))
    words = torch.tensor([4, 5, 6, 7, 8, 9])
    before, _ = adapter.step(memory, state, words)
    crossed = before.select(torch.tensor([1, 0, 3, 2, 5, 4]))
    kept, few = crossed.select(torch.tensor([0, 1, 4, 5])), memory.select(torch.tensor([0, 2]))
    _, found = adapter.step(few, kept, torch.tensor([10, 11, 12, 13]))

    rows = torch.tensor([0, 0, 2, 2])
    target = pad_batch([[5, 10, 3], [4, 11, 3], [9, 12, 3], [8, 13, 3]], 3)
    expected = adapter.log_probs(adapter.encode(SOURCE.select(rows)), target).words[:, 2]
    torch.testing.assert_close(found, expected)

    # The states that were stepped from are what they were.
    again, _ = adapter.step(memory, state, words)
    first = adapter.step(memory, before, words)[1]
    torch.testing.assert_close(adapter.step(memory, again, words)[1], first)


def generated(adapter: HuggingFaceSeq2Seq, source: list[list[int]], **options: Any) -> Any:
    """What `generate` finds under our banned words: the strings that end, None for others."""
    frame = [[*adapter.source_prefix, *words, *adapter.source_suffix] for words in source]
    batch = pad_batch(frame, adapter.pad)
    free = [[word] for word in adapter.banned if word not in adapter.target_prefix[1:]]
    found = adapter.model.generate(
        input_ids=batch.ids,
        attention_mask=batch.mask.long(),
        do_sample=False,
        max_new_tokens=MOST + 1,
        bad_words_ids=free,
        return_dict_in_generate=True,
        output_scores=True,
        **options,
    )
    rows = []
    for row in found.sequences.tolist():
        words = row[len(adapter.target_prefix) :]
        rows.append(words[: words.index(adapter.eos)] if adapter.eos in words else None)
    return rows, getattr(found, "sequences_scores", None)


MOST = 24
LIMIT = BeamSettings(5, 5, max_ratio=0.0, max_extra=MOST)


def many_sources(count: int = 24) -> list[list[int]]:
    random = torch.Generator().manual_seed(5)
    sizes = torch.randint(1, 7, (count,), generator=random).tolist()
    return [torch.randint(4, 30, (size,), generator=random).tolist() for size in sizes]


@pytest.mark.parametrize("penalty", [0.0, 1.0])
@pytest.mark.parametrize("make", [marian, bart, t5])
def test_nbest_lists_are_those_of_generate(make, penalty):
    # Both divide by the number of words and the end; neither counts the decoder's start. At the
    # limit we close what lives with its end, and generate does not: those lists are left out.
    compared, words = 0, 0
    for seed in range(3):
        adapter, source = adapt(ending(build(make, seed))), many_sources()
        theirs, scores = generated(
            adapter,
            source,
            num_beams=5,
            num_return_sequences=5,
            length_penalty=penalty,
            early_stopping=False,
        )
        ours = beam_search(
            adapter, pad_batch(source, adapter.pad), replace(LIMIT, length_penalty=penalty)
        )
        for row in range(len(source)):
            expected = theirs[5 * row : 5 * row + 5]
            if None in expected:
                continue
            assert unpad(Hard(ours.ids[row], ours.mask[row])) == expected
            torch.testing.assert_close(
                ours.score[row].float(), scores[5 * row : 5 * row + 5].float()
            )
            compared, words = compared + 1, words + sum(map(len, expected))
    assert compared >= 10
    assert words > 5 * compared


@pytest.mark.parametrize("make", [marian, bart, t5])
def test_greedy_strings_are_those_of_generate(make):
    compared, words = 0, 0
    for seed in range(3):
        adapter, source = adapt(ending(build(make, seed))), many_sources()
        theirs, _ = generated(adapter, source, num_beams=1)
        ours = unpad(greedy_search(adapter, pad_batch(source, adapter.pad), LIMIT).best())
        for mine, other in zip(ours, theirs, strict=True):
            if other is not None:
                assert mine == other
                compared, words = compared + 1, words + len(other)
    assert compared >= 10
    assert words >= 10


def test_a_forced_first_word_is_part_of_the_prefix():
    model = ending(build(bart), 5.0)
    model.generation_config.forced_bos_token_id = 7
    adapter, source = adapt(model, source_prefix=(0,)), many_sources()
    assert adapter.target_prefix == (2, 7)
    assert adapter.max_length == 46
    theirs, _ = generated(adapter, source, num_beams=1)
    ours = unpad(greedy_search(adapter, pad_batch(source, 1), LIMIT).best())
    ended = [(mine, other) for mine, other in zip(ours, theirs, strict=True) if other is not None]
    assert len(ended) >= 3
    assert all(mine == other for mine, other in ended)


def test_forbidden_words_are_read_from_the_settings():
    model = build(bart)
    model.final_logits_bias[0, 9] = -1e4
    model.final_logits_bias[0, 10] = -torch.inf
    model.generation_config.bad_words_ids = [[11], [12, 13]]
    model.generation_config.suppress_tokens = [14]
    adapter = adapt(model, banned=(3,))
    # 0 begins and 1 pads; 2 both starts the decoder and ends the sentence.
    assert adapter.banned == (0, 1, 3, 9, 10, 11, 14)
    found = beam_search(adapter, SOURCE)
    assert not torch.isin(found.ids[found.mask], torch.tensor(adapter.banned)).any()


def test_the_model_is_frozen_and_does_not_drop_out():
    model = build(marian, dropout=0.5)
    adapter = adapt(model.train())
    assert not model.training
    assert not any(parameter.requires_grad for parameter in model.parameters())
    assert torch.equal(adapter.encode(SOURCE).states, adapter.encode(SOURCE).states)


def test_hooks_are_gone_after_use(adapter):
    layer = adapter.model.get_encoder().get_input_embeddings()
    with pytest.raises(SimplexityError, match="too long"):
        replace(adapter, max_source=2).encode(soft(SOURCE, 3))
    adapter.log_probs(adapter.encode(soft(SOURCE, 3)), soft(TARGET, 3))
    assert not layer._forward_hooks
    assert not adapter.model.get_decoder().get_input_embeddings()._forward_hooks


def test_half_precision_scores_in_single():
    with torch.random.fork_rng():
        torch.manual_seed(0)
        adapter = adapt(marian().bfloat16())
    found = adapter.log_probs(adapter.encode(soft(SOURCE, 3)), soft(TARGET, 3))
    assert found.words.dtype == torch.float32


def test_a_decoder_only_model_is_refused():
    with pytest.raises(SimplexityError, match="GPT2LMHeadModel is no encoder-decoder"):
        adapt(GPT2LMHeadModel(GPT2Config(n_layer=1, n_head=1, n_embd=8, vocab_size=10)))


@pytest.mark.parametrize("name", ["eos_token_id", "decoder_start_token_id"])
def test_missing_special_words_are_named(name):
    model = build(t5)
    setattr(model.config, name, None)
    setattr(model.generation_config, name, None)
    with pytest.raises(SimplexityError, match=f"T5ForConditionalGeneration has no {name}; set it"):
        adapt(model)


def test_a_wrong_start_fails_the_hard_check():
    with pytest.raises(SimplexityError, match=r"MarianMTModel .* check 'hard'"):
        adapt(build(marian), target_prefix=(5,))


def test_an_embedding_that_knows_places_fails_the_soft_check():
    model = build(marian)
    layer = model.get_decoder().get_input_embeddings()
    layer.register_forward_hook(
        lambda _m, _i, out: out * torch.arange(1, out.shape[-2] + 1)[:, None]
    )
    with pytest.raises(SimplexityError, match="check 'soft'"):
        adapt(model)


def test_a_broken_cache_fails_the_step_check():
    class Forgetful(MarianMTModel):
        def forward(self, past_key_values: Any = None, **inputs: Any) -> Any:
            return super().forward(**inputs)

    model = build(lambda: Forgetful(marian().config))
    with pytest.raises(SimplexityError, match="check 'steps'"):
        adapt(model)


def test_a_model_that_cannot_run_is_refused():
    class Broken(MarianMTModel):
        def forward(self, **inputs: Any) -> Any:
            raise RuntimeError("no such thing")

    with pytest.raises(SimplexityError, match=r"Broken .* 'hard' stopped with .*no such thing"):
        adapt(Broken(marian().config))
