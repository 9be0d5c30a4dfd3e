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

from typing import Any, ClassVar, cast

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from transformers import AutoConfig, AutoModelForSeq2SeqLM, PretrainedConfig, PreTrainedModel
from transformers.modeling_outputs import Seq2SeqLMOutput

from simplexity.models.gaps import lstm_past_gaps
from simplexity.models.recurrence import (
    TINY,
    AttentionalMemory,
    Cell,
    DecoderState,
    single,
    tanh,
)
from simplexity.relax.tokens import flip


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
                pair = (outputs_of(ahead, states), outputs_of(back, backwards))
            else:
                past = lstm_past_gaps(back, backwards, flip(presence, mask))
                pair = (lstm_past_gaps(ahead, states, presence), past)
            states = torch.cat([pair[0], flip(pair[1], mask)], -1)
            states = self.dropout(states).masked_fill(~mask[..., None], 0.0)
        share = mask.to(states.dtype) if presence is None else presence
        mean = (share[..., None] * states).sum(1) / share.sum(1, keepdim=True)
        layers = (len(mean), self.config.decoder_layers, self.config.hidden_size)
        output, memory_cell = torch.tanh(self.start_output(mean)), self.start_cell(mean)
        start = DecoderState(single(output).view(layers), single(memory_cell).view(layers))
        log_presence = None if presence is None else presence.clamp_min(TINY).log()
        cell, keys = self.cell(), single(2 * self.attention_key(states))
        values = single(states if self.training else F.linear(states, cell.context))
        return AttentionalMemory(values, keys, mask, start, cell, log_presence)

    def cell(self) -> Cell:
        """The weights of one step, arranged."""
        sizes = [2 * self.config.hidden_size, self.config.embedding_size, self.config.hidden_size]
        seen, word, top = torch.split(self.readout.weight, sizes, 1)
        return Cell(
            words=torch.cat([self.word_gates.weight, word]),
            words_bias=torch.cat([self.word_gates.bias, self.readout.bias]),
            context=torch.cat([self.context_gates.weight, seen]),
            top=top,
            query=2 * self.attention_query.weight,
            score=2 * self.attention_score.weight,
            recurrent=tuple(cast(Tensor, layer.weight) for layer in self.recurrent_gates),
            inputs=tuple(cast(Tensor, layer.weight) for layer in self.input_gates),
            inputs_bias=tuple(cast(Tensor, layer.bias) for layer in self.input_gates),
        )

    def attend(self, memory: AttentionalMemory, top: Tensor) -> Tensor:
        """What the context c_i gives to gates and readout; rows in groups by sentence."""
        cell = memory.cell
        query = F.linear(top.to(cell.query.dtype), cell.query)
        groups = query.view(len(memory.mask), -1, 1, query.shape[-1])
        seen = (groups + memory.keys[:, None]).sigmoid()
        scores = F.linear(seen.to(cell.score.dtype), cell.score).squeeze(-1)
        if memory.log_presence is not None:
            scores = scores + memory.log_presence[:, None]
        weights = scores.masked_fill(~memory.mask[:, None], -torch.inf).softmax(-1)
        context = (weights.to(memory.values.dtype) @ memory.values).flatten(0, 1)
        return F.linear(context.to(cell.context.dtype), cell.context) if self.training else context

    def advance(
        self, memory: AttentionalMemory, state: DecoderState, word: Tensor
    ) -> tuple[DecoderState, Tensor]:
        """One step of the recurrence: g_{i-1}, y_{i-1} -> g_i; rows in groups by sentence.

        word: what `of_words` says of y_{i-1}. The second answer is what y_{i-1} and c_i give to the
        readout.
        """
        cell, hidden = memory.cell, self.config.hidden_size
        both = word + self.attend(memory, state.output[:, -1])
        gates, share = both[:, : 4 * hidden], both[:, 4 * hidden :]
        outputs: list[Tensor] = []
        cells: list[Tensor] = []
        for layer, recurrent in enumerate(cell.recurrent):
            if layer:
                below = self.dropout(outputs[-1]).to(recurrent.dtype)
                gates = F.linear(below, cell.inputs[layer - 1], cell.inputs_bias[layer - 1])
            gates = gates + F.linear(state.output[:, layer].to(recurrent.dtype), recurrent)
            gates = single(gates)
            kept, written, shown = gates[:, : 3 * hidden].sigmoid().chunk(3, -1)
            cells.append(state.cell[:, layer] * kept + written * tanh(gates[:, 3 * hidden :]))
            outputs.append(shown * tanh(cells[-1]))
        return DecoderState(torch.stack(outputs, 1), torch.stack(cells, 1)), share

    def of_words(self, cell: Cell, words: Tensor) -> Tensor:
        """What embedded words give to gates and readout."""
        return F.linear(words.to(cell.words.dtype), cell.words, cell.words_bias)

    def readout_of(self, cell: Cell, share: Tensor, top: Tensor) -> Tensor:
        """MLP[c_i, y_{i-1}, g_i], the layer before the output; the first two come as a share."""
        hidden = tanh(single(share + F.linear(top.to(cell.top.dtype), cell.top)))
        kept: Tensor = self.dropout(hidden.to(cell.top.dtype))
        return kept

    def read_along(
        self, memory: AttentionalMemory, previous: Tensor, presence: Tensor | None = None
    ) -> Tensor:
        """The readout at every position, given every previous word [batch, length, embedding].

        presence: the probability that a word stands at each position but the last, which is the
        end, if some may be empty.
        """
        previous, memory = self.dropout(previous), memory.in_working_precision()
        state, tops, shares = memory.start, [], []
        with torch.autocast(previous.device.type, enabled=False):  # all is cast already
            for place, word in enumerate(self.of_words(memory.cell, previous).unbind(1)):
                following, share = self.advance(memory, state, word)
                tops.append(following.output[:, -1])
                shares.append(share)
                if presence is None or place == presence.shape[1]:
                    state = following
                else:
                    state = state.towards(following, presence[:, place])
            return self.readout_of(memory.cell, torch.stack(shares, 1), torch.stack(tops, 1))

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
        return Seq2SeqLMOutput(loss=loss, logits=logits)


def outputs_of(layer: nn.Module, words: Tensor) -> Tensor:
    """What an LSTM says at every word [batch, length, hidden]."""
    if words.requires_grad and not layer.training and words.is_cuda:
        # cuDNN's recurrence goes backward only while a network trains.
        with torch.backends.cudnn.flags(enabled=False):
            return cast(Tensor, layer(words)[0])
    return cast(Tensor, layer(words)[0])


def register() -> None:
    """Teach transformers' Auto classes to load directories of this architecture."""
    AutoConfig.register(AttentionalConfig.model_type, AttentionalConfig, exist_ok=True)
    AutoModelForSeq2SeqLM.register(AttentionalConfig, Attentional, exist_ok=True)
