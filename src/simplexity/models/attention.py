"""The attentional translation model of the paper (section 2), equation by equation.

    h_j     = biRNN_enc(E_S^{x_j})                               one bidirectional LSTM layer
    e_ij    = v . tanh(W g_{i-1} + U h_j),  a_i = softmax(e_i)   alignment
    c_i     = sum_j a_ij h_j                                     context
    g_i     = RNN_dec(c_i, E_T^{y_{i-1}}, g_{i-1})               two LSTM layers
    log p_i = log softmax(W_o tanh(MLP[c_i, E_T^{y_{i-1}}, g_i]) + b_o)

The alignment looks at g_{i-1}, the top layer's previous state, so positions are computed one after
the other; all that does not depend on the recurrence is done for all positions at once.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from transformers import AutoConfig, AutoModelForSeq2SeqLM, PretrainedConfig, PreTrainedModel
from transformers.modeling_outputs import Seq2SeqLMOutput

from simplexity.models.gaps import lstm_past_gaps
from simplexity.relax.tokens import flip

TINY = 1e-9
"""The least presence of a position that attention can tell from none."""


class AttentionalConfig(PretrainedConfig):  # type: ignore[misc]
    """Sizes of the model; the defaults are the paper's."""

    model_type = "simplexity-attentional"

    def __init__(
        self,
        source_vocab_size: int = 8000,
        vocab_size: int = 8000,
        embedding_size: int = 512,
        hidden_size: int = 512,
        alignment_size: int = 256,
        encoder_layers: int = 1,
        decoder_layers: int = 2,
        dropout: float = 0.2,
        tie_word_embeddings: bool = False,
        max_positions: int = 512,
        pad_token_id: int = 0,
        bos_token_id: int = 1,
        eos_token_id: int = 2,
        unk_token_id: int = 3,
        **others: Any,  # the base class's own keys, when a saved configuration is read back
    ) -> None:
        self.source_vocab_size = source_vocab_size
        self.vocab_size = vocab_size
        self.embedding_size = embedding_size
        self.hidden_size = hidden_size
        self.alignment_size = alignment_size
        self.encoder_layers = encoder_layers
        self.decoder_layers = decoder_layers
        self.dropout = dropout
        self.max_positions = max_positions
        self.unk_token_id = unk_token_id
        fixed = {"is_encoder_decoder": True, "tie_word_embeddings": tie_word_embeddings}
        ids = {"pad_token_id": pad_token_id, "bos_token_id": bos_token_id}
        ids |= {"eos_token_id": eos_token_id, "decoder_start_token_id": bos_token_id}
        super().__init__(**{**ids, **fixed, **others})


@dataclass(frozen=True)
class AttentionalMemory:
    """An encoded batch: h_j, U h_j, and where the decoder starts."""

    states: Tensor
    keys: Tensor
    mask: Tensor
    start: DecoderState
    log_presence: Tensor | None = None
    """log of the probability that a word stands at each position, where some may be empty."""

    def select(self, rows: Tensor) -> AttentionalMemory:
        """The sentences of these rows, in this order."""
        presence = None if self.log_presence is None else self.log_presence[rows]
        start = self.start.select(rows)
        return AttentionalMemory(
            self.states[rows], self.keys[rows], self.mask[rows], start, presence
        )

    def in_working_precision(self) -> AttentionalMemory:
        """The same as autocast would have it: cast once, not at every word."""
        kind = self.states.device.type
        if self.states.dtype != torch.float32 or not torch.is_autocast_enabled(kind):
            return self
        working = torch.get_autocast_dtype(kind)
        return replace(self, states=self.states.to(working), keys=self.keys.to(working))


@dataclass(frozen=True)
class DecoderState:
    """g_i: output and cell of every layer [rows, layers, hidden]."""

    output: Tensor
    cell: Tensor

    def towards(self, other: DecoderState, share: Tensor) -> DecoderState:
        """Between this state and another, so far on the way [rows]."""
        wide = share[:, None, None]
        return DecoderState(
            torch.lerp(self.output, other.output, wide), torch.lerp(self.cell, other.cell, wide)
        )

    def select(self, rows: Tensor) -> DecoderState:
        """The hypotheses of these rows, in this order."""
        return DecoderState(self.output[rows], self.cell[rows])


class Attentional(PreTrainedModel):  # type: ignore[misc]
    """The network itself: embeddings in, log-probabilities' logits out."""

    config_class = AttentionalConfig
    base_model_prefix = "attentional"
    main_input_name = "input_ids"
    _tied_weights_keys: ClassVar = {"output.weight": "target_embedding.weight"}

    def __init__(self, config: AttentionalConfig) -> None:
        super().__init__(config)
        size, hidden, embedding = config.hidden_size, config.hidden_size, config.embedding_size
        self.source_embedding = nn.Embedding(config.source_vocab_size, embedding)
        self.target_embedding = nn.Embedding(config.vocab_size, embedding)
        widths = [embedding] + [2 * size] * (config.encoder_layers - 1)
        self.readers = nn.ModuleList(nn.LSTM(n, size, batch_first=True) for n in widths)
        self.backward_readers = nn.ModuleList(nn.LSTM(n, size, batch_first=True) for n in widths)
        self.attention_key = nn.Linear(2 * size, config.alignment_size)
        self.attention_query = nn.Linear(hidden, config.alignment_size, bias=False)
        self.attention_score = nn.Linear(config.alignment_size, 1, bias=False)
        self.start_output = nn.Linear(2 * size, config.decoder_layers * hidden)
        self.start_cell = nn.Linear(2 * size, config.decoder_layers * hidden)
        self.word_gates = nn.Linear(embedding, 4 * hidden)
        self.context_gates = nn.Linear(2 * size, 4 * hidden, bias=False)
        self.recurrent_gates = nn.ModuleList(
            nn.Linear(hidden, 4 * hidden, bias=False) for _ in range(config.decoder_layers)
        )
        self.input_gates = nn.ModuleList(
            nn.Linear(hidden, 4 * hidden) for _ in range(config.decoder_layers - 1)
        )
        self.readout = nn.Linear(2 * size + embedding + hidden, hidden)
        self.output = nn.Linear(hidden, config.vocab_size)
        self.dropout = nn.Dropout(config.dropout)
        self.post_init()

    @torch.no_grad()
    def _init_weights(self, module: nn.Module) -> None:
        if isinstance(module, nn.Embedding):
            nn.init.normal_(module.weight, std=module.embedding_dim**-0.5)
        elif isinstance(module, nn.Linear):
            nn.init.xavier_uniform_(module.weight)
            if module.bias is not None:
                nn.init.zeros_(module.bias)
        elif isinstance(module, nn.LSTM):
            for name, weight in module.named_parameters():
                (nn.init.zeros_ if "bias" in name else nn.init.xavier_uniform_)(weight)

    def get_input_embeddings(self) -> nn.Embedding:
        return self.source_embedding

    def read(
        self, words: Tensor, mask: Tensor, presence: Tensor | None = None
    ) -> AttentionalMemory:
        """Encode embedded source words [batch, length, embedding], the end included.

        presence: the probability that a word stands at each position, if some may be empty.
        """
        states = self.dropout(words)
        for ahead, back in zip(self.readers, self.backward_readers, strict=True):
            # Each row is reversed within its own length, so padding never comes before a word.
            backwards = flip(states, mask)
            if presence is None:
                pair = (ahead(states)[0], back(backwards)[0])
            else:
                past = lstm_past_gaps(back, backwards, flip(presence, mask))
                pair = (lstm_past_gaps(ahead, states, presence), past)
            states = torch.cat([pair[0], flip(pair[1], mask)], -1)
            states = self.dropout(states).masked_fill(~mask[..., None], 0.0)
        share = mask.to(states.dtype) if presence is None else presence
        mean = (share[..., None] * states).sum(1) / share.sum(1, keepdim=True)
        layers = (len(mean), self.config.decoder_layers, self.config.hidden_size)
        output, cell = torch.tanh(self.start_output(mean)), self.start_cell(mean)
        # What is carried from word to word stays in single precision at least.
        carried = torch.promote_types(output.dtype, torch.float32)
        start = DecoderState(output.view(layers).to(carried), cell.view(layers).to(carried))
        log_presence = None if presence is None else presence.clamp_min(TINY).log()
        return AttentionalMemory(states, self.attention_key(states), mask, start, log_presence)

    def attend(self, memory: AttentionalMemory, query: Tensor) -> Tensor:
        """c_i for each of several states a sentence [batch, group, hidden]."""
        seen = torch.tanh(self.attention_query(query)[:, :, None] + memory.keys[:, None])
        scores = self.attention_score(seen).squeeze(-1)
        if memory.log_presence is not None:
            scores = scores + memory.log_presence[:, None]
        weights = scores.masked_fill(~memory.mask[:, None], -torch.inf).softmax(-1)
        context: Tensor = weights.to(memory.states.dtype) @ memory.states
        return context

    def advance(
        self, memory: AttentionalMemory, state: DecoderState, word_gates: Tensor
    ) -> tuple[DecoderState, Tensor]:
        """One step of the recurrence: g_{i-1}, y_{i-1} -> g_i, c_i; rows in groups by sentence."""
        groups = (len(memory.mask), -1, self.config.hidden_size)
        # A strided query would make the product copy its weights for every sentence.
        query = state.output[:, -1].contiguous().view(groups)
        context = self.attend(memory, query).flatten(0, 1)
        gates = word_gates + self.context_gates(context)
        outputs: list[Tensor] = []
        cells: list[Tensor] = []
        for layer, recurrent in enumerate(self.recurrent_gates):
            if layer:
                gates = self.input_gates[layer - 1](self.dropout(outputs[-1]))
            gates = gates + recurrent(state.output[:, layer])
            kept, written, shown, new = gates.chunk(4, -1)
            cell = state.cell[:, layer] * kept.sigmoid() + written.sigmoid() * new.tanh()
            outputs.append(shown.sigmoid() * cell.tanh())
            cells.append(cell)
        return DecoderState(torch.stack(outputs, 1), torch.stack(cells, 1)), context

    def readout_of(self, context: Tensor, previous: Tensor, top: Tensor) -> Tensor:
        """MLP[c_i, y_{i-1}, g_i]: the layer before the output."""
        hidden = torch.tanh(self.readout(torch.cat([context, previous, top], -1)))
        kept: Tensor = self.dropout(hidden)
        return kept

    def read_along(
        self, memory: AttentionalMemory, previous: Tensor, presence: Tensor | None = None
    ) -> Tensor:
        """The readout at every position, given every previous word [batch, length, embedding].

        presence: the probability that a word stands at each position but the last, which is the
        end, if some may be empty.
        """
        previous, memory = self.dropout(previous), memory.in_working_precision()
        state, tops, contexts = memory.start, [], []
        for place, gates in enumerate(self.word_gates(previous).unbind(1)):
            following, context = self.advance(memory, state, gates)
            tops.append(following.output[:, -1])
            contexts.append(context)
            if presence is None or place == presence.shape[1]:
                state = following
            else:
                state = state.towards(following, presence[:, place])
        return self.readout_of(torch.stack(contexts, 1), previous, torch.stack(tops, 1))

    def forward(
        self,
        input_ids: Tensor,
        attention_mask: Tensor,
        decoder_input_ids: Tensor,
        labels: Tensor | None = None,
    ) -> Seq2SeqLMOutput:
        """Hugging Face's call: source ids with their end, target ids with their beginning."""
        memory = self.read(self.source_embedding(input_ids), attention_mask.bool())
        logits = self.output(self.read_along(memory, self.target_embedding(decoder_input_ids)))
        loss = None
        if labels is not None:
            loss = F.cross_entropy(logits.flatten(0, 1).float(), labels.flatten())
        return Seq2SeqLMOutput(loss=loss, logits=logits, encoder_last_hidden_state=memory.states)


def register() -> None:
    """Teach transformers' Auto classes to load directories of this architecture."""
    AutoConfig.register(AttentionalConfig.model_type, AttentionalConfig, exist_ok=True)
    AutoModelForSeq2SeqLM.register(AttentionalConfig, Attentional, exist_ok=True)
