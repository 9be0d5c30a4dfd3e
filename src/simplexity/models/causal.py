"""Causal language models of transformers (GPT-2, Llama, Qwen, ...): log P(y)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, cast

import torch
from torch import Tensor

from simplexity.errors import SimplexityError
from simplexity.models.huggingface import UNLIMITED, end_of, special
from simplexity.models.predictions import Predictions, split_end
from simplexity.models.probes import close, refusing, spread, vertex
from simplexity.models.soft_inputs import embedding, expected_embeddings, frame
from simplexity.relax.tokens import Hard, Tokens, lengths, pad_batch, unpad


@dataclass(frozen=True)
class CausalLM:
    """A decoder-only model; `adapt_causal` builds and checks one.

    begin: the id that stands before the first word. A model without a beginning of sentences of its
    own begins behind the end of another, as it was trained to. end: what ends a sentence.
    """

    model: Any
    begin: int
    end: int
    max_length: int

    @property
    def device(self) -> torch.device:
        return cast(torch.device, self.model.device)

    def log_probs(self, target: Tokens) -> Predictions:
        """log p of every word at every position, and of the end, in one pass."""
        ids, mask = frame(target, (self.begin,), (), self.end)
        with expected_embeddings(embedding(self.model), target, 1):
            found = self.model(input_ids=ids, attention_mask=mask.long(), use_cache=False)
        return split_end(found.logits, lengths(target), self.end)

    def log_prob(self, target: Tokens) -> Tensor:
        """log P(y), the end included [batch]."""
        return self.log_probs(target).total(target)


def adapt_causal(model: Any) -> CausalLM:
    """Wrap a causal model, and make sure that it is scored rightly; a SimplexityError if not."""
    name = type(model).__name__
    if getattr(model.config, "is_encoder_decoder", False):
        raise SimplexityError(f"{name} translates; a language model has no encoder.")
    model.eval().requires_grad_(False)
    end = end_of(model, name)
    begin = special(model, "bos_token_id")
    positions = int(getattr(model.config, "max_position_embeddings", UNLIMITED))
    adapter = CausalLM(model, end if begin is None else begin, end, positions - 1)
    _probe(adapter, name)
    return adapter


def _probe(adapter: CausalLM, name: str) -> None:
    """The model's own forward, alone and unpadded, is the padded score, hard and soft."""
    table: Any = embedding(adapter.model).weight
    words = spread(len(table), {adapter.begin, adapter.end})
    target = pad_batch([words[:2], words[2:]], adapter.end, adapter.device)
    with torch.no_grad():
        with refusing(name, "hard"):
            own = torch.cat([_own_forward(adapter, row) for row in unpad(target)])
        for label, tokens in (("hard", target), ("soft", vertex(target, adapter.model.dtype))):
            with refusing(name, label):
                found = _join(adapter.log_probs(tokens), target)
            if not close(found, own, adapter.model.dtype):
                raise SimplexityError(
                    f"{name} cannot be used: the check {label!r} found other log-probabilities "
                    "than its own forward gives; use another model."
                )


def _own_forward(adapter: CausalLM, words: list[int]) -> Tensor:
    ids = torch.tensor([[adapter.begin, *words]], device=adapter.device)
    logits = adapter.model(input_ids=ids).logits[0]
    log_p: Tensor = logits.log_softmax(-1, dtype=torch.promote_types(logits.dtype, torch.float32))
    return torch.cat([log_p[:-1].flatten(), log_p[-1, adapter.end, None]])


def _join(found: Predictions, target: Hard) -> Tensor:
    """All scores of real positions and the end, sentence by sentence."""
    counts = lengths(target).tolist()
    rows = zip(found.words, found.end, counts, strict=True)
    return torch.cat([torch.cat([words[:n].flatten(), end[None]]) for words, end, n in rows])
