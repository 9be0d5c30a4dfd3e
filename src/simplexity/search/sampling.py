"""Ancestral sampling: strings drawn word by word from the model's own distribution."""

from __future__ import annotations

from zlib import crc32

import torch
from torch import Tensor

from simplexity.models.seq2seq import Seq2Seq
from simplexity.relax.tokens import Hard, unpad
from simplexity.search.beam import BeamSettings, Found, as_found, banned_words, word_limits


@torch.no_grad()
def sample_strings(model: Seq2Seq, source: Hard, settings: BeamSettings, seed: int) -> Found:
    """Draw `settings.size` strings a sentence, best first; strings that were drawn twice stay.

    What a sentence gets depends on nothing but itself and the seed. Banned words are never drawn;
    a string at its limit is closed by its end. Complexity: that of a beam search of the same size.
    """
    memory = model.encode(source)
    state, banned = model.start(memory), banned_words(model)
    limit = word_limits(model, source, settings)
    batch, size = len(source.ids), settings.size
    rows = torch.arange(batch, device=limit.device).repeat_interleave(size)
    luck = _uniform(source, size, int(limit.max()) + 1, seed).to(limit.device)
    ids = torch.zeros((batch, size, 0), dtype=torch.long, device=limit.device)
    log_prob = torch.zeros((batch, size), device=limit.device)
    length = limit[:, None].expand(-1, size).clone()
    words = None
    for place, chance in enumerate(luck.unbind(-1)):
        state, log_p = model.step(memory, state, words)
        if place == 0:  # one string a sentence becomes `size` of them
            state, log_p = state.select(rows), log_p[rows]
        log_p = log_p.nan_to_num(-torch.inf)
        word = _draw(log_p, chance.flatten(), banned).view(batch, size)
        alive = place <= length
        word = word.masked_fill(place >= limit[:, None], model.eos)
        log_prob += log_p.gather(1, word.view(-1, 1)).view(batch, size).masked_fill(~alive, 0.0)
        length = torch.where(alive & (word == model.eos), place, length)
        words = word.flatten()
        ids = torch.cat([ids, word[..., None]], -1)
        if place % 4 == 3 and bool((length <= place).all()):
            break
    return _ranked(ids, length, log_prob, settings, backwards=model.direction == "r2l")


def _uniform(source: Hard, size: int, steps: int, seed: int) -> Tensor:
    """Numbers between 0 and 1 [batch, size, steps] that each sentence brings about by itself."""
    found = []
    for sentence in unpad(source):
        generator = torch.Generator().manual_seed(crc32(repr((seed, sentence)).encode()))
        # Step by step, so that a longer batch draws the same first words.
        found.append(torch.rand((steps, size), generator=generator, dtype=torch.float64).T)
    return torch.stack(found)


def _draw(log_p: Tensor, chance: Tensor, banned: Tensor) -> Tensor:
    """The word at which the distribution function passes each chance [rows]."""
    mass = log_p.double().exp().index_fill(-1, banned, 0.0).cumsum(-1)
    passed = torch.searchsorted(mass, (chance * mass[:, -1])[:, None], right=True)
    return passed.squeeze(1).clamp_max(log_p.shape[1] - 1)


def _ranked(
    ids: Tensor, length: Tensor, log_prob: Tensor, settings: BeamSettings, backwards: bool
) -> Found:
    """The strings of each sentence in the order of their scores, in reading order."""
    score = log_prob / (length + 1) ** settings.length_penalty
    score, order = score.sort(dim=1, descending=True, stable=True)
    score, order = score[:, : settings.n_best], order[:, : settings.n_best]
    ids = ids.gather(1, order[..., None].expand(-1, -1, ids.shape[-1]))
    return as_found(ids, length.gather(1, order), log_prob.gather(1, order), score, backwards)
