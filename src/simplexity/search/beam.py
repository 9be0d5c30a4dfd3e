"""Beam search: the discrete baseline, and the usual start of the relaxed decoders."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace

import torch
from torch import Tensor
from torch.nn import functional as F

from simplexity.errors import UsageError
from simplexity.models.seq2seq import Seq2Seq
from simplexity.relax.tokens import Hard, flip, lengths


@dataclass(frozen=True)
class BeamSettings:
    """How wide and how long to search, and how strings of different length compare.

    A string of n words scores log P / (n + 1)^length_penalty: the end of the sentence counts as a
    word, and 0 leaves the plain sum. The limit of a sentence is ceil(max_ratio * source words) +
    max_extra words, and never more than the model can score.

    A sentence stops when its pool of `size` finished strings is full and no live string promises to
    beat the worst of them. What a live string promises is its score at its present length, the
    usual rule (transformers' `early_stopping=False`). A long string may still overtake under a
    length penalty; with `exact` it promises log P / (limit + 1)^length_penalty, which no
    continuation can exceed, at the price of more steps.
    """

    size: int = 5
    n_best: int = 1
    length_penalty: float = 1.0
    max_ratio: float = 2.0
    max_extra: int = 10
    exact: bool = False

    def __post_init__(self) -> None:
        if self.size < 1:
            raise UsageError(f"The beam size must be at least 1, not {self.size}.")
        if not 1 <= self.n_best <= self.size:
            raise UsageError(
                f"The n-best size must lie between 1 and the beam size, {self.size}, "
                f"but it is {self.n_best}; raise the beam size."
            )
        if self.length_penalty < 0:
            raise UsageError(f"The length penalty must be 0 or more, not {self.length_penalty}.")
        if self.max_ratio < 0 or self.max_extra < 0:
            raise UsageError(
                "The length limit must not be negative: "
                f"max_ratio is {self.max_ratio} and max_extra is {self.max_extra}."
            )


DEFAULTS = BeamSettings()


@dataclass(frozen=True)
class Found:
    """The strings found for each sentence in reading order, best first.

    ids and mask: [batch, n_best, length]; log_prob: their log P, the end counted, and score: the
    same normalised by length [batch, n_best]; count: how many exist [batch]. The others have empty
    masks and a score of -inf.
    """

    ids: Tensor
    mask: Tensor
    log_prob: Tensor
    score: Tensor
    count: Tensor

    def best(self) -> Hard:
        """The best string of each sentence."""
        return Hard(self.ids[:, 0], self.mask[:, 0])


def beam_search(model: Seq2Seq, source: Hard, settings: BeamSettings = DEFAULTS) -> Found:
    """Search the strings of high probability, `size` at a time, word by word.

    Each step extends the live strings of a sentence by every word and keeps the `size` best. Those
    among them that end go to the pool of finished strings; the best that do not end live on. At the
    limit whatever lives is closed by its end. Banned words are left out and the rest is not
    renormalised, so that log_prob is the model's own. A source without words gives the empty
    string, with the probability that the model gives it.
    """
    with torch.no_grad():
        memory = model.encode(source)
        state = model.start(memory)
        beam = _start(source, word_limits(model, source, settings), settings.size)
        banned = banned_words(model)
        words, finished = None, []
        while len(beam.row) > 0:
            state, log_probs = model.step(memory, state, words)
            width = beam.width
            beam = _advance(beam, log_probs, banned, model.eos, settings)
            done = _done(beam, settings)
            keep = torch.arange(len(done), device=done.device)
            if bool(done.any()):
                finished.append(beam.select(done))
                keep = keep[~done]
                beam, memory = beam.select(keep), memory.select(keep)
            state = state.select((keep[:, None] * width + beam.parent).flatten())
            words = beam.ids[..., -1].flatten()
        return _collect(finished, settings.n_best, backwards=model.direction == "r2l")


def greedy_search(model: Seq2Seq, source: Hard, settings: BeamSettings = DEFAULTS) -> Found:
    """Take the likeliest word at every step until it is the end.

    This is beam search with one live string. Its limits come from the settings, its size does not.
    """
    return beam_search(model, source, replace(settings, size=1, n_best=1, exact=False))


@dataclass(frozen=True)
class _Pool:
    """Finished strings [batch, size], best first; a score of -inf marks a free place."""

    ids: Tensor
    length: Tensor
    log_prob: Tensor
    score: Tensor

    def select(self, rows: Tensor) -> _Pool:
        return _Pool(*(getattr(self, field.name)[rows] for field in fields(self)))

    def merge(self, other: _Pool) -> _Pool:
        """The best of both, as many as this one holds."""
        score, best = torch.cat([self.score, other.score], 1).topk(self.score.shape[1])
        ids = torch.cat([self.ids, other.ids], 1)
        return _Pool(
            ids.gather(1, best[..., None].expand(-1, -1, ids.shape[-1])),
            torch.cat([self.length, other.length], 1).gather(1, best),
            torch.cat([self.log_prob, other.log_prob], 1).gather(1, best),
            score,
        )


@dataclass(frozen=True)
class _Beam:
    """The sentences still searched.

    row: their place in the batch, limit: most words [batch]; ids, log_prob, parent: the live
    strings, best first, and which string of the step before each extends [batch, width].
    """

    row: Tensor
    limit: Tensor
    ids: Tensor
    log_prob: Tensor
    parent: Tensor
    pool: _Pool

    @property
    def width(self) -> int:
        return self.log_prob.shape[1]

    @property
    def words(self) -> int:
        return self.ids.shape[-1]

    def select(self, rows: Tensor) -> _Beam:
        return _Beam(
            self.row[rows],
            self.limit[rows],
            self.ids[rows],
            self.log_prob[rows],
            self.parent[rows],
            self.pool.select(rows),
        )


def word_limits(model: Seq2Seq, source: Hard, settings: BeamSettings) -> Tensor:
    """Most words of each translation [batch]; none for a source without words."""
    words = lengths(source)
    # In double precision: a ratio such as 1.1 times 10 must not round up to 12.
    limit = (words.double() * settings.max_ratio - 1e-9).ceil().long() + settings.max_extra
    return limit.clamp(max=model.max_length).masked_fill(words == 0, 0)


def banned_words(model: Seq2Seq) -> Tensor:
    """Words that no string may hold; the end is never among them."""
    banned = [word for word in model.banned if word != model.eos]
    return torch.tensor(banned, dtype=torch.long, device=model.device)


def _start(source: Hard, limit: Tensor, size: int) -> _Beam:
    """One empty live string and an empty pool for each sentence."""
    batch, device = len(source.ids), source.ids.device
    longest = int(limit.max())
    nothing = torch.full((batch, size), -torch.inf, device=device)
    counts = torch.zeros((batch, size), dtype=torch.long, device=device)
    ids = torch.zeros((batch, size, longest), dtype=torch.long, device=device)
    return _Beam(
        row=torch.arange(batch, device=device),
        limit=limit,
        ids=ids[:, :1, :0],
        log_prob=torch.zeros((batch, 1), device=device),
        parent=counts[:, :1],
        pool=_Pool(ids, counts, nothing, nothing),
    )


def _advance(
    beam: _Beam, log_probs: Tensor, banned: Tensor, eos: int, settings: BeamSettings
) -> _Beam:
    """Extend every live string by one word: the ended go to the pool, the best others live on."""
    size, vocabulary = settings.size, log_probs.shape[-1]
    total = beam.log_prob[..., None] + log_probs.view(*beam.log_prob.shape, vocabulary)
    # A model that answers with NaN must not keep the search from ending.
    total.masked_fill_(total.isnan(), -torch.inf)
    end = total[..., eos].clone()
    total.index_fill_(-1, banned, -torch.inf)
    total[beam.limit <= beam.words] = -torch.inf
    total[..., eos] = end

    # A live string has one end, so twice the size always holds `size` words that are none.
    flat = total.flatten(1)
    value, index = flat.topk(min(2 * size, flat.shape[1]))
    parent, word = index // vocabulary, index % vocabulary
    ids = _extend(beam.ids, parent)
    pool = beam.pool.merge(_ended(value, ids, word == eos, beam.pool, settings))

    log_prob, best = value.masked_fill(word == eos, -torch.inf).topk(min(size, value.shape[1]))
    kept = torch.cat([ids, word[..., None]], -1)
    return replace(
        beam, ids=_extend(kept, best), log_prob=log_prob, parent=parent.gather(1, best), pool=pool
    )


def _extend(ids: Tensor, parent: Tensor) -> Tensor:
    """The strings that these places name [batch, places, words]."""
    return ids.gather(1, parent[..., None].expand(-1, -1, ids.shape[-1]))


def _ended(value: Tensor, ids: Tensor, end: Tensor, pool: _Pool, settings: BeamSettings) -> _Pool:
    """The ended strings among the `size` best candidates."""
    value, ids, end = value[:, : settings.size], ids[:, : settings.size], end[:, : settings.size]
    words = ids.shape[-1]
    log_prob = value.masked_fill(~end, -torch.inf)
    return _Pool(
        F.pad(ids, (0, pool.ids.shape[-1] - words)),
        torch.full_like(end, words, dtype=torch.long),
        log_prob,
        log_prob / (words + 1) ** settings.length_penalty,
    )


def _done(beam: _Beam, settings: BeamSettings) -> Tensor:
    """No live string promises to beat the worst of a full pool [batch]."""
    # A dead beam and a pool with a free place are both -inf: the first ends the search even so.
    length = beam.limit + 1 if settings.exact else torch.full_like(beam.limit, beam.words)
    promise = beam.log_prob[:, 0] / length.to(beam.log_prob.dtype) ** settings.length_penalty
    return promise <= beam.pool.score[:, -1]


def _collect(finished: list[_Beam], n_best: int, backwards: bool) -> Found:
    """The pools in the order of the batch."""
    order = torch.cat([beam.row for beam in finished]).argsort()
    pools = [beam.pool for beam in finished]
    pool = _Pool(
        *(torch.cat([getattr(p, field.name) for p in pools])[order] for field in fields(_Pool))
    )
    ids, length, log_prob, score = (
        field[:, :n_best] for field in (pool.ids, pool.length, pool.log_prob, pool.score)
    )
    return as_found(ids, length, log_prob, score, backwards)


def as_found(
    ids: Tensor, length: Tensor, log_prob: Tensor, score: Tensor, backwards: bool
) -> Found:
    """Strings [batch, n_best, words] in reading order; a score of -inf stands for none."""
    exists = score > -torch.inf
    length = length * exists
    longest = int(length.max())
    mask = torch.arange(longest, device=length.device) < length[..., None]
    ids = ids[..., :longest].masked_fill(~mask, 0)
    if backwards:
        ids = flip(ids.flatten(0, 1), mask.flatten(0, 1)).view_as(ids)
    return Found(ids, mask, log_prob, score, exists.sum(1))
