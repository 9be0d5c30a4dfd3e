"""Which changes to a string are promising: the relaxation looks one word ahead in all directions.

A string s is lifted to a point y inside the simplex, between its one-hot vectors and the models'
own predictions along it. There

    Q(s with w at i) - Q(s)  ~  g_i(w) - g_i(s_i),   g = dQ/dy                     (substitution)

to first order, for every word at every position by one forward and one backward pass of every
model, the reverse model included. A gap has no variable, but models that read up to it from either
side predict what may stand there:

    log p_l2r(w | s_<i, x) + log p_r2l(w | s_>=i, x)                              (insertion at i)

and the words that the models themselves find least likely are those to leave out (deletion).
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import islice
from typing import Protocol

import torch
from torch import Tensor
from torch.nn import functional as F

from simplexity.decode import InPrecision, Precision
from simplexity.edit.slots import NOTHING, Edits
from simplexity.initialise import own_and_likeliest
from simplexity.relax.geometry import ExponentiatedGradient
from simplexity.relax.optimise import Energy, Iterate, iterates
from simplexity.relax.tokens import Hard, Soft, harden, lengths
from simplexity.relax.updates import Update
from simplexity.terms.likelihood import LikelihoodEnergy
from simplexity.terms.mix import MixEnergy, PerWordEnergy
from simplexity.terms.through_text import ThroughTextEnergy


class Proposals(Protocol):
    """What a search looks at around a string."""

    def __call__(self, energy: MixEnergy, strings: Hard, support: Tensor) -> tuple[Edits, Hard]:
        """Single edits of each string, and whole strings [rows, number, length] in its place.

        `support` [rows, candidates], or [candidates] for all, are the words to choose from.
        """
        ...


@dataclass(frozen=True)
class Quota:
    """How many edits of each kind are proposed for a string."""

    substitutions: int = 8
    insertions: int = 4
    deletions: int = 2


@dataclass(frozen=True)
class Gradient:
    """The relaxed objective near a string: a gradient, and the first iterates of a descent.

    descent: iterations of exponentiated gradient; every string that they round to is proposed as a
    whole, which changes many words at once. per_word: costs are divided by length, which its steps
    must not be.
    """

    update: Update
    descent: int = 2
    per_word: bool = False
    precision: Precision = "fp32"

    def __call__(self, energy: Energy, strings: Hard, point: Soft) -> tuple[Iterate, list[Iterate]]:
        """The iterate at this point near the strings, and those of the descent from there."""
        scaled = PerString(energy, lengths(strings) + 1) if self.per_word else energy
        relaxed = InPrecision(scaled, self.precision)
        steps = iterates(relaxed, point, ExponentiatedGradient(), self.update)
        first, *later = islice(steps, 1 + self.descent)
        steps.close()
        return first, later


@dataclass(frozen=True)
class Propose:
    """Choose substitutions by the gradient, insertions and deletions by predictions.

    anchor: how much of the point is the string itself, the rest being the models' predictions.
    """

    gradient: Gradient
    quota: Quota
    anchor: float = 0.5

    def __call__(self, energy: MixEnergy, strings: Hard, support: Tensor) -> tuple[Edits, Hard]:
        here, gaps = outlook(energy, strings, support, self.gradient.precision)
        table = support.expand(len(strings.ids), -1)
        own, known = own_candidates(strings, table)
        kept = self.anchor * known[..., None]
        lifted = kept * F.one_hot(own, table.shape[1]) + (1 - kept) * here.softmax(-1)
        first, later = self.gradient(energy, strings, Soft(lifted, strings.mask, support))
        edits = joined(
            substitutions(first.grad, own, strings, table, self.quota.substitutions),
            insertions(gaps, strings, table, self.quota.insertions),
            deletions(here, own, strings, self.quota.deletions),
        )
        rounded = [harden(iterate.y).ids for iterate in later]
        whole = torch.stack(rounded, 1) if rounded else strings.ids[:, None][:, :0]
        return edits, Hard(whole, strings.mask[:, None].expand_as(whole))


@dataclass(frozen=True)
class PerString:
    """An energy times a constant of each string: it changes no minimum, only the size of steps.

    Costs divided by length would make the steps of long strings short.
    """

    energy: Energy
    factor: Tensor

    def __call__(self, y: Soft | Hard) -> Tensor:
        return self.energy(y) * self.factor

    def select(self, rows: Tensor) -> PerString:
        return PerString(self.energy.select(rows), self.factor[rows])


def shortlist(
    energy: MixEnergy, best: Hard, starts: Hard, words: Tensor, size: int | None
) -> Tensor:
    """The words of each sentence's starts, and those expected most along the best of them.

    best [batch, length]; starts [batch, number, length]; words: all that may be chosen. A list does
    not depend on what stands beside it in a batch.
    """
    if size is None or size >= len(words):
        return words
    _, gaps = outlook(energy, best, words)
    place = torch.arange(gaps.shape[1], device=words.device)
    gaps = gaps.masked_fill((place > lengths(best)[:, None])[..., None], -torch.inf)
    expected = gaps.new_full((len(gaps), int(words.max()) + 1), -torch.inf)
    expected[:, words] = gaps.amax(1)
    own = Hard(starts.ids.flatten(1), starts.mask.flatten(1))
    return own_and_likeliest(expected, own, words, size)


@torch.no_grad()
def outlook(
    energy: MixEnergy, strings: Hard, support: Tensor, precision: Precision = "fp32"
) -> tuple[Tensor, Tensor]:
    """What the reading models expect at the words and in the gaps of each string.

    Mean of log p over the models, at the words [rows, length, candidates] and in the gaps [rows,
    length + 1, candidates]: each sees what stands before its place in its own direction.
    """
    # One free column behind the longest string: there stands what is expected after the last word.
    room = Hard(F.pad(strings.ids, (0, 1)), F.pad(strings.mask, (0, 1)))
    here, gaps = [], []
    half = precision == "bf16"
    for reader in readers(energy):
        with torch.autocast(strings.ids.device.type, torch.bfloat16, enabled=half):
            log_p = reader.model.log_probs(reader.memory, room, support).words
        here.append(log_p[:, :-1])
        gaps.append(log_p if reader.model.direction == "l2r" else _before(log_p, lengths(strings)))
    return torch.stack(here).mean(0), torch.stack(gaps).mean(0)


def readers(energy: MixEnergy) -> list[LikelihoodEnergy]:
    """The terms that read the target along, and so predict its words."""
    bare = [term.energy if isinstance(term, PerWordEnergy) else term for term in energy.energies]
    bare = [
        term.inner if isinstance(term, ThroughTextEnergy) and term.bridge.same else term
        for term in bare
    ]
    return [term for term in bare if isinstance(term, LikelihoodEnergy)]


def _before(log_p: Tensor, length: Tensor) -> Tensor:
    """The right-to-left model's expectation in each gap.

    Having read the words from the last to word i it expects word i - 1, or the word in gap i: what
    stands at i - 1. At the beginning, having read all, it stands behind the last word.
    """
    place = torch.arange(log_p.shape[1], device=log_p.device) - 1
    index = torch.where(place < 0, length[:, None], place)
    return log_p.gather(1, index[..., None].expand_as(log_p))


def own_candidates(strings: Hard, support: Tensor) -> tuple[Tensor, Tensor]:
    """Where each word of a string stands in its support, and whether it does [rows, length]."""
    hit = (strings.ids[..., None] == support[:, None]) & strings.mask[..., None]
    return hit.int().argmax(-1), hit.any(-1)


def substitutions(grad: Tensor, own: Tensor, strings: Hard, support: Tensor, number: int) -> Edits:
    """The words whose exchange lowers the objective most, to first order."""
    place = 2 * torch.arange(grad.shape[1], device=grad.device) + 1
    slot = place.expand(len(grad), -1)
    return most_gaining(gains(grad, own, strings.mask), slot, support, number)


def gains(grad: Tensor, own: Tensor, mask: Tensor) -> Tensor:
    """What each candidate takes off in place of the own one, to first order; no own, no padding."""
    gain = grad.gather(-1, own[..., None]) - grad
    gain = gain.scatter(-1, own[..., None], -torch.inf)
    return gain.masked_fill(~mask[..., None], -torch.inf)


def insertions(gaps: Tensor, strings: Hard, support: Tensor, number: int) -> Edits:
    """The words that the models most expect in a gap."""
    place = torch.arange(gaps.shape[1], device=gaps.device)
    gaps = gaps.masked_fill((place > lengths(strings)[:, None])[..., None], -torch.inf)
    return most_gaining(gaps, (2 * place).expand(len(gaps), -1), support, number)


def deletions(here: Tensor, own: Tensor, strings: Hard, number: int) -> Edits:
    """The words that the models least expect; the last word of a string stays."""
    surprise = -here.gather(-1, own[..., None]).squeeze(-1)
    surprise = surprise.masked_fill(~strings.mask | (lengths(strings) < 2)[:, None], -torch.inf)
    value, place = surprise.topk(min(number, surprise.shape[1]))
    return Edits(2 * place + 1, torch.full_like(place, NOTHING), value.isfinite())


def most_gaining(gain: Tensor, slot: Tensor, support: Tensor, number: int) -> Edits:
    """The writings of highest gain [rows, places, candidates] into these slots [rows, places]."""
    candidates = gain.shape[-1]
    value, index = gain.flatten(1).topk(min(number, gain[0].numel()))
    word = support.gather(1, index % candidates)
    return Edits(slot.gather(1, index // candidates), word, value.isfinite())


def joined(*edits: Edits) -> Edits:
    """Lists of edits side by side."""
    return Edits(
        torch.cat([e.slot for e in edits], 1),
        torch.cat([e.word for e in edits], 1),
        torch.cat([e.real for e in edits], 1),
    )
