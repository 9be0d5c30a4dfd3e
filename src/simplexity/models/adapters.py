"""The paper's network, seen through the `Seq2Seq` protocol."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional as F

from simplexity.models.attention import Attentional
from simplexity.models.gaps import last_words
from simplexity.models.picked import WordScores, picked_log_probs, word_scores
from simplexity.models.predictions import Predictions, log_softmax, split_end
from simplexity.models.recurrence import TINY, AttentionalMemory, DecoderState
from simplexity.models.seq2seq import Direction
from simplexity.relax.tokens import Hard, Tokens, embed, lengths, presence


@dataclass(frozen=True)
class AttentionalSeq2Seq:
    """P(y | x) by the attentional model; its parameters are constants here."""

    network: Attentional

    @property
    def direction(self) -> Direction:
        return "l2r"

    @property
    def eos(self) -> int:
        return int(self.network.config.eos_token_id)

    @property
    def vocabulary_size(self) -> int:
        return int(self.network.config.vocab_size)

    @property
    def banned(self) -> tuple[int, ...]:
        config = self.network.config
        return (config.pad_token_id, config.bos_token_id, config.eos_token_id, config.unk_token_id)

    @property
    def max_length(self) -> int:
        return int(self.network.config.max_positions)

    @property
    def reads_gaps(self) -> bool:
        return True

    @property
    def device(self) -> torch.device:
        return self.network.source_embedding.weight.device

    def encode(self, source: Tokens) -> AttentionalMemory:
        """Read the source and its end."""
        table, present = self.network.source_embedding.weight, presence(source)
        words = embed(source, table)
        if present is None:
            return self.network.read(*append(words, source.mask, table[self.eos]))
        # What stands there if anything does; the end always does.
        words, mask = append(
            words / present.clamp_min(TINY)[..., None], source.mask, table[self.eos]
        )
        end = mask ^ F.pad(source.mask, (0, 1))
        return self.network.read(words, mask, F.pad(present, (0, 1)) + end)

    def log_probs(
        self, memory: AttentionalMemory, target: Tokens, within: Tensor | None = None
    ) -> Predictions:
        """Score every position and the end in one pass."""
        hidden = self._read(memory, target)
        return split_end(self._logits(hidden, within), lengths(target), self.eos, within)

    def score(self, memory: AttentionalMemory, target: Hard) -> WordScores:
        """log p of the words of these strings, and of their ends, in one pass."""
        hidden, output = self._read(memory, target), self.network.output
        ids, length = F.pad(target.ids, (0, 1)), lengths(target)
        ids = ids.scatter(1, length[:, None], self.eos)
        return word_scores(picked_log_probs(hidden, output.weight, output.bias, ids), length)

    def _read(self, memory: AttentionalMemory, target: Tokens) -> Tensor:
        """The readout at every position, and behind the last [batch, length + 1, hidden]."""
        table = self.network.target_embedding.weight
        words = embed(target, table)
        begin = table[self.network.config.bos_token_id].to(words.dtype)
        present = presence(target)
        if present is None:
            previous = torch.cat([begin.expand(len(words), 1, -1), words], 1)
        else:
            previous = last_words(begin, words, present)
        return self.network.read_along(memory, previous, present)

    def _logits(self, hidden: Tensor, within: Tensor | None) -> Tensor:
        """Logits of the candidates and, last, of the end; or of all words in order."""
        output = self.network.output
        if within is None:
            logits: Tensor = output(hidden)
            return logits
        end = within.new_full((*within.shape[:-1], 1), self.eos)
        words = torch.cat([within, end], -1)
        bias = output.bias[words]
        return hidden @ output.weight[words].mT + (bias if words.dim() == 1 else bias[:, None])

    def start(self, memory: AttentionalMemory) -> DecoderState:
        return memory.start

    def step(
        self, memory: AttentionalMemory, state: DecoderState, ids: Tensor | None
    ) -> tuple[DecoderState, Tensor]:
        """g_{i-1}, y_{i-1} -> g_i and log p_i."""
        if ids is None:
            begin = self.network.config.bos_token_id
            ids = torch.full((len(state.output),), begin, device=self.device)
        words = self.network.target_embedding(ids)
        word = self.network.of_words(memory.cell, words)
        state, share = self.network.advance(memory, state, word)
        hidden = self.network.readout_of(memory.cell, share, state.output[:, -1])
        return state, log_softmax(self.network.output(hidden))


def append(states: Tensor, mask: Tensor, last: Tensor) -> tuple[Tensor, Tensor]:
    """Put one vector behind the last real position of each row [batch, length, size]."""
    rows, longest, size = states.shape
    room = torch.cat([states, states.new_zeros(rows, 1, size)], 1)
    position = torch.arange(longest + 1, device=mask.device)
    length = mask.sum(1, keepdim=True)
    room = torch.where((position == length)[..., None], last.to(states.dtype), room)
    return room, position <= length
