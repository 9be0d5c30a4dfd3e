"""Causal language models: scored as they score themselves, hard and soft."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
import transformers
from torch import Tensor
from torch.autograd import gradcheck

from simplexity.errors import SimplexityError
from simplexity.models.causal import CausalLM, adapt_causal
from simplexity.relax.tokens import Hard, Soft, one_hot, pad_batch, unpad

WORDS = 24
LLAMA = {
    "hidden_size": 16,
    "intermediate_size": 24,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "num_key_value_heads": 1,
    "max_position_embeddings": 32,
    "initializer_range": 0.4,
    "bos_token_id": 1,
    "eos_token_id": 2,
    "pad_token_id": 0,
}


def causal(name: str, **sizes: Any) -> Callable[[], Any]:
    def make() -> Any:
        config = getattr(transformers, f"{name}Config")(vocab_size=WORDS, **sizes)
        kind = {"GPT2": "GPT2LMHeadModel"}.get(name, f"{name}ForCausalLM")
        with torch.random.fork_rng():
            torch.manual_seed(0)
            return getattr(transformers, kind)(config).double()

    return make


ENDS = {"bos_token_id": 1, "eos_token_id": 1}
MODELS = {
    "gpt2": causal(
        "GPT2", n_embd=16, n_layer=2, n_head=2, n_positions=32, initializer_range=0.4, **ENDS
    ),
    "llama": causal("Llama", **LLAMA),
    "qwen2": causal("Qwen2", **{**LLAMA, "bos_token_id": None}),
    "qwen3": causal("Qwen3", head_dim=8, **LLAMA),
    "gemma": causal("Gemma", head_dim=8, **LLAMA),
    "gemma2": causal("Gemma2", head_dim=8, **LLAMA),
    "mistral": causal("Mistral", **LLAMA),
    "opt": causal(
        "OPT",
        hidden_size=16,
        ffn_dim=24,
        num_hidden_layers=2,
        num_attention_heads=2,
        max_position_embeddings=32,
        word_embed_proj_dim=8,
        init_std=0.4,
    ),
    "bloom": causal("Bloom", hidden_size=16, n_layer=2, n_head=2, initializer_range=0.4, **ENDS),
}
TARGET = pad_batch([[4, 13], [20, 6, 9], [7, 7, 19], []], 3)


@pytest.fixture(scope="module", params=MODELS)
def model(request: pytest.FixtureRequest) -> CausalLM:
    return adapt_causal(MODELS[request.param]())


def own(model: CausalLM, words: list[int]) -> Tensor:
    """log P of one string by the model's own loss on it, word by word."""
    ids = torch.tensor([[model.begin, *words, model.end]])
    log_p = model.model(input_ids=ids).logits[:, :-1].log_softmax(-1)
    return log_p.gather(-1, ids[:, 1:, None]).sum()


def test_own_forward_equals_hard_equals_soft(model):
    expected = torch.stack([own(model, words) for words in unpad(TARGET)])
    torch.testing.assert_close(model.log_prob(TARGET), expected, rtol=1e-5, atol=1e-5)
    vertex = one_hot(TARGET, WORDS, torch.float64)
    torch.testing.assert_close(model.log_prob(vertex), expected, rtol=1e-5, atol=1e-5)


def test_padding_is_inert(model):
    wide = Hard(
        torch.cat([TARGET.ids, torch.full((4, 2), 17)], 1),
        torch.cat([TARGET.mask, torch.zeros(4, 2, dtype=torch.bool)], 1),
    )
    torch.testing.assert_close(model.log_prob(wide), model.log_prob(TARGET))


def test_gradients(model):
    random = torch.Generator().manual_seed(0)
    probs = torch.randn(4, 3, 5, generator=random, dtype=torch.float64).softmax(-1)
    support = torch.tensor([4, 7, 9, 13, 20])

    def score(at: Tensor) -> Tensor:
        return model.log_prob(Soft(at, TARGET.mask, support))

    coarse = type(model.model).__name__.startswith(SINGLE)
    size = {"eps": 4e-3, "atol": 0.15, "rtol": 5e-2} if coarse else {}
    assert gradcheck(score, (probs.requires_grad_(),), fast_mode=True, **size)
    (grad,) = torch.autograd.grad(score(probs).sum(), probs)
    assert grad[~TARGET.mask].abs().max() == 0


# Their norms and attention are computed in single precision, whatever the model's own.
SINGLE = ("Llama", "Qwen", "Gemma", "Mistral", "OPT", "Bloom")


def test_a_translation_model_is_refused():
    model = transformers.T5ForConditionalGeneration(
        transformers.T5Config(vocab_size=9, d_model=8, num_layers=1)
    )
    with pytest.raises(SimplexityError, match="translates"):
        adapt_causal(model)


def test_a_model_whose_embedding_knows_places_is_refused():
    model = MODELS["gpt2"]()
    model.get_input_embeddings().register_forward_hook(
        lambda _m, _i, out: out * torch.arange(1, out.shape[-2] + 1)[:, None]
    )
    with pytest.raises(SimplexityError, match="check 'soft'"):
        adapt_causal(model)


def test_a_model_without_an_end_is_refused():
    model = MODELS["gpt2"]()
    model.config.eos_token_id = model.generation_config.eos_token_id = None
    with pytest.raises(SimplexityError, match="has no eos_token_id"):
        adapt_causal(model)
