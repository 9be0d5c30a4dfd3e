"""Encoder-decoders of transformers (Marian, BART, T5, ...) as Seq2Seq models."""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import Any, cast

import torch
from torch import Tensor
from transformers.modeling_outputs import BaseModelOutput

from simplexity.errors import SimplexityError
from simplexity.models.picked import WordScores
from simplexity.models.predictions import Predictions, log_softmax, split_end
from simplexity.models.probes import probe
from simplexity.models.seq2seq import Direction
from simplexity.models.soft_inputs import embedding, expected_embeddings, frame
from simplexity.relax.tokens import Hard, Tokens, lengths, restrict

UNLIMITED = 1_000_000
"""Words that a model with relative positions can read: more than anyone will ask for."""

FORBIDDING = -1e3
"""A bias on the logits as low as this one forbids its word."""


@dataclass(frozen=True)
class Memory:
    """Encoder states [batch, length, size] and which of them are real [batch, length]."""

    states: Tensor
    mask: Tensor

    def select(self, rows: Tensor) -> Memory:
        """The sentences of these rows, in this order."""
        return Memory(self.states[rows], self.mask[rows])

    def repeat(self, times: int) -> Memory:
        """Every sentence as often, one after the other."""
        if times == 1:
            return self
        return Memory(
            self.states.repeat_interleave(times, 0), self.mask.repeat_interleave(times, 0)
        )


@dataclass(frozen=True)
class State:
    """The keys and values of the words so far, and the sentence that each row belongs to."""

    cache: Any
    sentence: Tensor

    def select(self, rows: Tensor) -> State:
        """The hypotheses of these rows, in this order."""
        sentence = self.sentence[rows]
        if self.cache is None:
            return State(None, sentence)
        cache = fork(self.cache)
        cache.self_attention_cache.reorder_cache(rows)
        # Most steps reorder within sentences only, which leaves the keys of the source as they are.
        if not torch.equal(sentence, self.sentence):
            cache.cross_attention_cache.reorder_cache(rows)
        return State(cache, sentence)


def fork(cache: Any) -> Any:
    """A cache that can grow without changing this one; they share tensors, which never change."""
    forked = copy.copy(cache)
    forked.is_updated = dict(cache.is_updated)
    for name in ("self_attention_cache", "cross_attention_cache"):
        part = copy.copy(getattr(cache, name))
        part.layers = [copy.copy(layer) for layer in part.layers]
        setattr(forked, name, part)
    return forked


@dataclass(frozen=True)
class HuggingFaceSeq2Seq:
    """An encoder-decoder of transformers behind the protocol; `adapt` builds and checks one.

    It runs on word ids while its embedding layer answers with the expected embedding of each soft
    position. `inputs_embeds` would look simpler, but families disagree on who scales it.

    source_prefix, source_suffix: ids around the words of a source, such as a language code and the
    end of the sentence; target_prefix: ids before the first word of a target, the decoder's start
    and any word it is forced to begin with. Their probability is not counted.
    """

    model: Any
    source_prefix: tuple[int, ...]
    source_suffix: tuple[int, ...]
    target_prefix: tuple[int, ...]
    pad: int
    eos: int
    banned: tuple[int, ...]
    vocabulary_size: int
    max_source: int
    max_length: int

    @property
    def direction(self) -> Direction:
        return "l2r"

    @property
    def reads_gaps(self) -> bool:
        return False

    @property
    def device(self) -> torch.device:
        return cast(torch.device, self.model.device)

    def encode(self, source: Tokens) -> Memory:
        """Read the source, its boundaries put around the words."""
        longest = source.mask.shape[1]
        if longest > self.max_source:
            raise SimplexityError(
                f"A source of {longest} words is too long: {type(self.model).__name__} reads at "
                f"most {self.max_source}; split or shorten it."
            )
        encoder = self.model.get_encoder()
        ids, mask = frame(source, self.source_prefix, self.source_suffix, self.pad)
        with expected_embeddings(embedding(encoder), source, len(self.source_prefix)):
            found = encoder(input_ids=ids, attention_mask=mask.long())
        return Memory(found.last_hidden_state, mask)

    def log_probs(
        self, memory: Memory, target: Tokens, within: Tensor | None = None
    ) -> Predictions:
        """Score all positions of the target, and its end, in one pass."""
        ids, _ = frame(target, self.target_prefix, (), self.pad)
        layer, start = embedding(self.model.get_decoder()), len(self.target_prefix)
        with expected_embeddings(layer, target, start):
            logits = self._decode(memory, ids, use_cache=False).logits[:, start - 1 :]
        if within is not None:
            end = within.new_full((*within.shape[:-1], 1), self.eos)
            logits = restrict(logits, torch.cat([within, end], -1))
        return split_end(logits, lengths(target), self.eos, within)

    def score(self, memory: Memory, target: Hard) -> WordScores:
        """log p of the words of these strings, and of their ends, in one pass."""
        found = self.log_probs(memory, target)
        return WordScores(found.per_token(target), found.end)

    def start(self, memory: Memory) -> State:
        """The state before the first word, one row for each sentence of the memory."""
        return State(None, torch.arange(len(memory.mask), device=memory.mask.device))

    def step(self, memory: Memory, state: State, ids: Tensor | None) -> tuple[State, Tensor]:
        """Take one word for each row of the state (None: the prefix of the target)."""
        rows, sentences = len(state.sentence), len(memory.mask)
        words = self._prefix(rows) if ids is None else ids[:, None]
        cache = state.cache if state.cache is None else fork(state.cache)
        found = self._decode(
            memory.repeat(rows // sentences), words, use_cache=True, past_key_values=cache
        )
        return State(found.past_key_values, state.sentence), log_softmax(found.logits[:, -1])

    def _prefix(self, rows: int) -> Tensor:
        return torch.tensor(self.target_prefix, device=self.device).expand(rows, -1)

    def _decode(
        self, memory: Memory, ids: Tensor, use_cache: bool, past_key_values: Any = None
    ) -> Any:
        return self.model(
            input_ids=memory.mask.long(),  # not read, but without it FSMT does not hide the future
            encoder_outputs=BaseModelOutput(last_hidden_state=memory.states),
            attention_mask=memory.mask.long(),
            decoder_input_ids=ids,
            past_key_values=past_key_values,
            use_cache=use_cache,
        )


def adapt(
    model: Any,
    *,
    source_prefix: tuple[int, ...] = (),
    source_suffix: tuple[int, ...] | None = None,
    target_prefix: tuple[int, ...] | None = None,
    banned: tuple[int, ...] = (),
) -> HuggingFaceSeq2Seq:
    """Wrap an encoder-decoder of transformers, and make sure that it is scored rightly.

    What is not given is read from the model's configuration: the source ends with its end of
    sentence; the target begins with the decoder's start and the forced first word, if there is one;
    `banned` adds to the ids that the configuration forbids. The model is put into evaluation mode
    and frozen. `probe` compares its own forward with ours, and a SimplexityError names the check
    that fails.
    """
    name = type(model).__name__
    if not getattr(model.config, "is_encoder_decoder", False):
        raise SimplexityError(f"{name} is no encoder-decoder; it cannot score translations.")
    model.eval().requires_grad_(False)
    eos = end_of(model, name)
    pad = special(model, "pad_token_id")
    suffix = (eos,) if source_suffix is None else source_suffix
    prefix = opening(model) if target_prefix is None else target_prefix
    adapter = HuggingFaceSeq2Seq(
        model=model,
        source_prefix=source_prefix,
        source_suffix=suffix,
        target_prefix=prefix,
        pad=eos if pad is None else pad,
        eos=eos,
        banned=tuple(sorted(forbidden(model) | {*banned, *prefix, eos})),
        vocabulary_size=len(model.get_output_embeddings().weight),
        max_source=positions(model.get_encoder(), "encoder") - len(source_prefix) - len(suffix),
        # One place is left for the gap behind the last word, which edits look into.
        max_length=positions(model.get_decoder(), "decoder") - len(prefix) - 1,
    )
    probe(adapter)
    return adapter


def setting(model: Any, name: str) -> Any:
    """What `generate` would use: the generation settings first, then the model's."""
    found = getattr(model.generation_config, name, None)
    return getattr(model.config, name, None) if found is None else found


def special(model: Any, name: str) -> int | None:
    """A special id; of several, the first."""
    found = setting(model, name)
    if isinstance(found, list):
        return int(found[0]) if found else None
    return None if found is None else int(found)


def opening(model: Any) -> tuple[int, ...]:
    """The decoder's start, and the word that every translation is forced to begin with."""
    start = decoder_start(model)
    if start is None:
        raise SimplexityError(
            f"The configuration of {type(model).__name__} has no decoder_start_token_id; set it."
        )
    forced = special(model, "forced_bos_token_id")
    return (start,) if forced is None else (start, forced)


def decoder_start(model: Any) -> int | None:
    """What a decoder begins with: its own start, or the beginning of sentences as in `generate`."""
    start = special(model, "decoder_start_token_id")
    return special(model, "bos_token_id") if start is None else start


def end_of(model: Any, name: str) -> int:
    """What ends a sentence, without which no string has a score."""
    end = special(model, "eos_token_id")
    if end is None:
        raise SimplexityError(f"The configuration of {name} has no eos_token_id; set it.")
    return end


def positions(side: Any, name: str) -> int:
    """Most ids that an encoder or decoder can read; some families say it by its name."""
    config = getattr(side, "config", None)
    own = getattr(config, f"max_{name}_position_embeddings", UNLIMITED)
    return int(getattr(config, "max_position_embeddings", own))


def forbidden(model: Any) -> set[int]:
    """Ids that no translation holds: boundaries, unknown, and what the settings suppress.

    A forbidden sequence of several words cannot be expressed this way and is left out.
    """
    names = ("pad_token_id", "bos_token_id", "unk_token_id", "decoder_start_token_id")
    found = {special(model, name) for name in names} - {None}
    found |= set(setting(model, "suppress_tokens") or ())
    found |= {words[0] for words in setting(model, "bad_words_ids") or () if len(words) == 1}
    bias = getattr(model, "final_logits_bias", None)
    if bias is not None:
        found |= set((bias.flatten() <= FORBIDDING).nonzero().flatten().tolist())
    return cast(set[int], found)
