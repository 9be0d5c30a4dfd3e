"""Where descent begins: which strings, and which points of the simplex stand for them.

The paper starts from the string of a discrete search, not as one-hot vectors, whose zeros EG could
never leave, but as the model's own predictions along it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Protocol

import torch
from torch import Tensor

from simplexity.models.seq2seq import Memory, Seq2Seq
from simplexity.relax.tokens import Hard, Soft, restrict
from simplexity.search.beam import BeamSettings, Found, beam_search


@dataclass(frozen=True)
class Starts:
    """Strings to begin from, several a sentence if wanted; `owner` [rows] says whose each is."""

    strings: Hard
    owner: Tensor


class Initialise(Protocol):
    """Choose starting strings for a batch of sources."""

    def __call__(self, source: Hard) -> Starts: ...


class Lift(Protocol):
    """Turn strings into points inside the simplex, over the words of the support [candidates]."""

    def __call__(self, source: Hard, starts: Starts, support: Tensor) -> Soft: ...


@dataclass(frozen=True)
class FromSearch:
    """The best string of a search; with `starts` > 1, so many of its strings, see `varied`."""

    model: Seq2Seq
    settings: BeamSettings
    starts: int = 1

    def __call__(self, source: Hard) -> Starts:
        # To find different lengths it takes all that the beam holds.
        n_best = 1 if self.starts == 1 else self.settings.size
        found = beam_search(self.model, source, replace(self.settings, n_best=n_best))
        return varied(found, self.starts)


def varied(found: Found, number: int) -> Starts:
    """The best string of each length first, then the others, `number` a sentence at most."""
    length = found.mask.sum(-1)
    size, device = length.shape[1], length.device
    place = torch.arange(size, device=device)
    earlier = place[:, None] > place
    repeats = (earlier & (length[:, :, None] == length[:, None])).any(-1)
    missing = place >= found.count[:, None]
    chosen = (place + repeats * size + missing * 2 * size).argsort(1)[:, :number]
    # A sentence for which nothing ends starts from the empty string that stands for it.
    exists = place[:number] < found.count.clamp_min(1)[:, None]
    owner, column = exists.nonzero(as_tuple=True)
    picked = chosen[owner, column]
    return Starts(Hard(found.ids[owner, picked], found.mask[owner, picked]), owner)


@dataclass(frozen=True)
class Predicted:
    """y_i = p(. | y_<i, x) of a model that reads along the string: the paper's start.

    Of several models the mean is taken: each sees what the others cannot. EG takes the
    probabilities, SGD their logarithms, which equal the logits up to a constant. With `candidates`,
    only so many words of each sentence can be chosen: its own, and the likeliest at any position.
    """

    models: tuple[Seq2Seq, ...]
    candidates: int | None = None

    def __call__(self, source: Hard, starts: Starts, support: Tensor) -> Soft:
        with torch.no_grad():
            log_p = [self._along(model, source, starts) for model in self.models]
            mixed = torch.stack(log_p).logsumexp(0)
            if self.candidates is not None:
                support = shortlist(mixed, starts.strings, support, self.candidates)
            probs = restrict(mixed, support).softmax(-1)
        # A probability that underflows to 0 would be forbidden for ever.
        tiny = torch.finfo(probs.dtype).tiny
        return Soft(probs.clamp_min(tiny), starts.strings.mask, support)

    def _along(self, model: Seq2Seq, source: Hard, starts: Starts) -> Tensor:
        memory: Memory = model.encode(source).select(starts.owner)
        return model.log_probs(memory, starts.strings).words


def shortlist(scores: Tensor, strings: Hard, words: Tensor, size: int) -> Tensor:
    """For each string its own words and those of highest score anywhere in it [rows, size].

    scores: [rows, length, vocabulary]; words: those that may be chosen. A sentence's list does not
    depend on what stands beside it in a batch.
    """
    hidden = scores.masked_fill(~strings.mask[..., None], -torch.inf)
    floor = scores.new_full((len(scores), 1, scores.shape[-1]), -torch.inf)
    return own_and_likeliest(torch.cat([hidden, floor], 1).amax(1), strings, words, size)


def own_and_likeliest(best: Tensor, own: Hard, words: Tensor, size: int) -> Tensor:
    """For each row the words of its own string and those that score best [rows, vocabulary]."""
    # Padding repeats the row's first word, which is in the list anyway.
    first = torch.where(own.mask, own.ids, own.ids[:, :1])
    scores = best.scatter(1, first, torch.inf)[:, words]
    return words[scores.topk(min(size, len(words))).indices]


@dataclass(frozen=True)
class Smoothed:
    """The string's one-hot vectors with `mass` spread evenly over all words."""

    mass: float = 0.1

    def __call__(self, source: Hard, starts: Starts, support: Tensor) -> Soft:
        hit = (starts.strings.ids[..., None] == support).float()
        # An unknown word is not in the support: nothing but the even share is known of it.
        lost = 1 - hit.sum(-1, keepdim=True)
        probs = (hit + lost / len(support)) * (1 - self.mass) + self.mass / len(support)
        return Soft(probs, starts.strings.mask, support)


@dataclass(frozen=True)
class Uniform:
    """The same probability for every word; of the string only the length remains."""

    def __call__(self, source: Hard, starts: Starts, support: Tensor) -> Soft:
        shape = (*starts.strings.ids.shape, len(support))
        even = torch.full(shape, 1 / len(support), device=support.device)
        return Soft(even, starts.strings.mask, support)
