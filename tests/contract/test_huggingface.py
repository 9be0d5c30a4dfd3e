"""Encoder-decoders of transformers: scored as they score themselves, hard and soft."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import pytest
import torch
import transformers
from torch import Tensor, nn
from torch.autograd import gradcheck
from transformers import (
    BartConfig,
    BartForConditionalGeneration,
    GPT2Config,
    GPT2LMHeadModel,
    MarianConfig,
    MarianMTModel,
)

from simplexity.errors import SimplexityError
from simplexity.models.huggingface import HuggingFaceSeq2Seq, adapt
from simplexity.models.soft_inputs import embedding
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


def stacked(name: str, **own: Any) -> Callable[..., Any]:
    """A model of a family that shares the sizes of BART's."""

    def make(**changes: Any) -> Any:
        config = getattr(transformers, f"{name}Config")
        options = {"vocab_size": WORDS, **SIZES, **own, **changes}
        return getattr(transformers, f"{name}ForConditionalGeneration")(config(**options))

    return make


def led(**changes: Any) -> Any:
    sizes = {f"max_{side}_position_embeddings": 48 for side in ("encoder", "decoder")}
    return stacked("LED", attention_window=8, max_position_embeddings=48, **sizes)(**changes)


def fsmt(**changes: Any) -> Any:
    words = {"src_vocab_size": WORDS, "tgt_vocab_size": WORDS}
    return stacked("FSMT", langs=["de", "en"], scale_embedding=True, **words)(**changes)


def t5_like(name: str, **own: Any) -> Callable[..., Any]:
    """A model of T5's kind."""

    def make(**changes: Any) -> Any:
        sizes = {"d_model": 16, "d_kv": 8, "d_ff": 24, "num_layers": 2, "num_heads": 2}
        options = {**sizes, "tie_word_embeddings": False, **own, **changes}
        config = getattr(transformers, f"{name}Config")
        model = getattr(transformers, f"{name}ForConditionalGeneration")(
            config(vocab_size=WORDS, decoder_start_token_id=0, **options)
        )
        return double_norms(model)

    return make


def double_norms(model: Any) -> Any:
    """T5's own norms compute in single precision, too coarse for finite differences."""
    for parent in list(model.modules()):
        for name, child in parent.named_children():
            if type(child).__name__.endswith("LayerNorm") and hasattr(child, "variance_epsilon"):
                setattr(parent, name, nn.RMSNorm(16, child.variance_epsilon))
    return model


t5 = t5_like("T5")


def t5gemma(**changes: Any) -> Any:
    side = {
        "vocab_size": WORDS,
        "hidden_size": 16,
        "intermediate_size": 24,
        "num_hidden_layers": 2,
        "num_attention_heads": 2,
        "num_key_value_heads": 1,
        "head_dim": 8,
        "max_position_embeddings": 48,
        "layer_types": ["full_attention", "full_attention"],
        "pad_token_id": 0,
        "bos_token_id": 2,
        "eos_token_id": 1,
        "initializer_range": 0.4,
    }
    config = transformers.T5GemmaConfig(encoder=side, decoder=side, vocab_size=WORDS, **changes)
    return transformers.T5GemmaForConditionalGeneration(config)


def two_berts(**changes: Any) -> Any:
    """A pair of BERTs, one made a decoder."""
    sizes = {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2}
    half = {"vocab_size": WORDS, "intermediate_size": 24, "max_position_embeddings": 48, **sizes}
    half["initializer_range"] = 0.4
    config = transformers.EncoderDecoderConfig.from_encoder_decoder_configs(
        transformers.BertConfig(**half),
        transformers.BertConfig(**half, is_decoder=True, add_cross_attention=True),
        pad_token_id=0,
        decoder_start_token_id=1,
        eos_token_id=2,
    )
    model = transformers.EncoderDecoderModel(config)
    model.generation_config.eos_token_id = 2
    return model


SCALED: dict[str, Any] = {"scale_embedding": True}
MODELS: dict[str, Callable[..., Any]] = {
    "marian": marian,
    "marian, two vocabularies": marian_two_vocabularies,
    "bart": bart,
    "mbart": stacked("MBart", decoder_start_token_id=3, **SCALED),
    "m2m100, nllb": stacked("M2M100", **SCALED),
    "pegasus": stacked("Pegasus", **SCALED),
    "pegasus-x": stacked("PegasusX", block_size=8, num_global_tokens=2, **SCALED),
    "blenderbot": stacked("Blenderbot", **SCALED),
    "blenderbot-small": stacked("BlenderbotSmall", **SCALED),
    "plbart": stacked("PLBart", decoder_start_token_id=3),
    "mvp": stacked("Mvp"),
    "bigbird-pegasus": stacked("BigBirdPegasus", attention_type="original_full"),
    "fsmt": fsmt,
    "t5": t5,
    "mt5": t5_like("MT5", feed_forward_proj="gated-gelu"),
    "umt5": t5_like("UMT5"),
    "longt5": t5_like("LongT5", local_radius=4, initializer_factor=0.3),
    "t5gemma": t5gemma,
    "encoder-decoder": two_berts,
}


@pytest.fixture(autouse=True, scope="module")
def masks_in_double_precision() -> Iterator[None]:
    """FSMT makes its mask in single precision, which cannot hold the least double."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            "transformers.models.fsmt.modeling_fsmt.fill_with_neg_inf",
            lambda mask: torch.full_like(mask, -1e30),
        )
        yield


def build(make: Callable[..., Any], seed: int = 0, **changes: Any) -> Any:
    """A random model in double precision; the random state is left as it was."""
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        return make(**changes).double()


# These compute their attention or norms in single precision, whatever the model's own.
SINGLE = ("LongT5", "T5Gemma")


def check_gradient(
    adapter: HuggingFaceSeq2Seq, score: Callable[[Tensor], Tensor], at: Tensor, fast: bool = False
) -> None:
    """Compare with finite differences, wide ones where single precision lies between."""
    coarse = type(adapter.model).__name__.startswith(SINGLE)
    size = {"eps": 4e-3, "atol": 0.15, "rtol": 5e-2} if coarse else {}
    assert gradcheck(score, (at.clone().requires_grad_(),), fast_mode=fast, **size)


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
    return embedding(adapter.model.get_encoder()).num_embeddings


def own_log_probs(model: Any, source: list[int], target: list[int], eos: int) -> Tensor:
    """What the model says of one sentence when it is trained on it."""
    labels = torch.tensor([[*target, eos]])
    # FSMT's forward makes no inputs of the labels, and hides the future only without a cache.
    given = {"labels": labels}
    if model.config.model_type == "fsmt":
        given = {"decoder_input_ids": model.prepare_decoder_input_ids_from_labels(labels)}
    # These begin with the last label, a language code behind the end.
    if model.config.model_type in ("mbart", "plbart"):
        given = {"labels": torch.tensor([[*target, eos, model.config.decoder_start_token_id]])}
    with torch.no_grad(), warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)
        found = model(input_ids=torch.tensor([[*source, eos]]), use_cache=False, **given)
    return found.logits[0, : len(target) + 1].log_softmax(-1)


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

    check_gradient(adapter, score, target.probs)


def test_gradients_of_soft_sources(adapter):
    source = soft(SOURCE, 3)

    def score(probs: Tensor) -> Tensor:
        memory = adapter.encode(source.with_probs(probs))
        return adapter.log_probs(memory, TARGET).total(TARGET)

    check_gradient(adapter, score, source.probs)


def test_gradients_over_the_whole_vocabulary(adapter):
    target = dense(soft(TARGET, 5), WORDS)
    memory = adapter.encode(SOURCE)

    def score(probs: Tensor) -> Tensor:
        tokens = target.with_probs(probs)
        return adapter.log_probs(memory, tokens).total(tokens)

    check_gradient(adapter, score, target.probs, fast=True)


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
    kept = (*adapter.target_prefix[1:], adapter.eos)
    free = [[word] for word in adapter.banned if word not in kept]
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


def test_scores_are_the_sequence_scores_of_generate(adapter):
    source = many_sources(12)
    frame = [[*adapter.source_prefix, *words, *adapter.source_suffix] for words in source]
    batch = pad_batch(frame, adapter.pad)
    found = adapter.model.generate(
        input_ids=batch.ids,
        attention_mask=batch.mask.long(),
        do_sample=False,
        num_beams=3,
        max_new_tokens=6,
        early_stopping=False,
        length_penalty=1.0,
        return_dict_in_generate=True,
        output_scores=True,
    )
    strings = found.sequences[:, len(adapter.target_prefix) :].tolist()
    for x, y, score in zip(source, strings, found.sequences_scores.tolist(), strict=True):
        words = y[: y.index(adapter.eos)] if adapter.eos in y else y
        ours = adapter.score(
            adapter.encode(pad_batch([x], adapter.pad)), pad_batch([words], adapter.pad)
        )
        ends = len(words) < len(y)
        total = float(ours.words.sum() + ours.end * ends)
        assert total / (len(words) + ends) == pytest.approx(score, rel=1e-5)


def test_a_forced_first_word_is_part_of_the_prefix():
    model = ending(build(bart), 5.0)
    model.generation_config.forced_bos_token_id = 7
    adapter, source = adapt(model, source_prefix=(0,)), many_sources()
    assert adapter.target_prefix == (2, 7)
    assert adapter.max_length == 45
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
    assert adapter.banned == (0, 1, 2, 3, 9, 10, 11, 14)
    found = beam_search(adapter, SOURCE)
    assert not torch.isin(found.ids[found.mask], torch.tensor(adapter.banned)).any()


def test_the_model_is_frozen_and_does_not_drop_out():
    model = build(marian, dropout=0.5)
    adapter = adapt(model.train())
    assert not model.training
    assert not any(parameter.requires_grad for parameter in model.parameters())
    assert torch.equal(adapter.encode(SOURCE).states, adapter.encode(SOURCE).states)


def test_hooks_are_gone_after_use(adapter):
    layer = embedding(adapter.model.get_encoder())
    with pytest.raises(SimplexityError, match="too long"):
        replace(adapter, max_source=2).encode(soft(SOURCE, 3))
    adapter.log_probs(adapter.encode(soft(SOURCE, 3)), soft(TARGET, 3))
    assert not layer._forward_hooks
    assert not embedding(adapter.model.get_decoder())._forward_hooks


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


def prophetnet() -> Any:
    sizes = {f"num_{side}_{part}": 2 for side in ("encoder", "decoder") for part in PARTS}
    config = transformers.ProphetNetConfig(
        vocab_size=WORDS,
        hidden_size=16,
        encoder_ffn_dim=24,
        decoder_ffn_dim=24,
        max_position_embeddings=48,
        init_std=0.4,
        **sizes,
    )
    return transformers.ProphetNetForConditionalGeneration(config)


PARTS = ("layers", "attention_heads")


@pytest.mark.parametrize(
    ("make", "check"),
    [
        # Its predictions depend on how long the rest of the string is, against its own steps.
        (prophetnet, "hard"),
        # In double precision its masked rows have no derivative; in single precision they have.
        (lambda: led().double(), "gradient"),
        # Where experts have room for so many words, sentences depend on one another.
        (t5_like("SwitchTransformers", num_experts=2), "hard"),
    ],
)
def test_models_that_do_not_score_like_a_model_are_refused(make, check):
    with torch.random.fork_rng():
        torch.manual_seed(0)
        model = make()
    with pytest.raises(SimplexityError, match=f"check '{check}'"):
        adapt(model)


def test_a_model_that_cannot_run_is_refused():
    class Broken(MarianMTModel):
        def forward(self, **inputs: Any) -> Any:
            raise RuntimeError("no such thing")

    with pytest.raises(SimplexityError, match=r"Broken .* 'hard' stopped with .*no such thing"):
        adapt(Broken(marian().config))
