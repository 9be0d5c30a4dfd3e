"""Relaxed search with edits: descents propose, exact scores decide, lengths are free.

The paper's descent keeps the length of its start and ends in the next local optimum. Here the
relaxation only proposes; what counts is the exact cost of strings. Each round takes the best string
of every sentence whose neighbours were not looked at yet, lifts it into the simplex, and scores
what the relaxed objective proposes there: single edits and the roundings of a short descent. Those
single edits that gain and do not touch one another are also made together.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor

from simplexity.decode import Detokenise, Hypothesis, best_first
from simplexity.edit.pool import Pool, first_of_equals, side_by_side
from simplexity.edit.propose import Proposals, shortlist
from simplexity.edit.slots import apply_each, apply_together, independent
from simplexity.initialise import Initialise, Starts
from simplexity.relax.tokens import Hard, lengths, unpad
from simplexity.terms.mix import Mix, MixEnergy


class Progress(NamedTuple):
    """The search so far, for the sentences still searched.

    row: their place in the batch. waited: rounds since the best string was found. spent: strings
    scored. why: for which reason a sentence was ended, as a place in REASONS.
    """

    row: Tensor
    pool: Pool
    support: Tensor
    rounds: Tensor
    waited: Tensor
    spent: Tensor
    why: Tensor

    def select(self, rows: Tensor) -> Progress:
        """The sentences of these rows, in this order."""
        return Progress(
            row=self.row[rows],
            pool=self.pool.select(rows),
            support=self.support if self.support.dim() == 1 else self.support[rows],
            rounds=self.rounds[rows],
            waited=self.waited[rows],
            spent=self.spent[rows],
            why=self.why[rows],
        )


REASONS = ("no better neighbour", "nothing new", "rounds", "evaluations", "time")


@dataclass(frozen=True)
class Budget:
    """When a sentence has had enough.

    patience: this many rounds without a better string end the search; rounds: so many end it in any
    case. evaluations: strings scored exactly, those of the start counted; milliseconds: time for
    each sentence of a batch, looked at between rounds. A search with more of any of these begins
    with the very steps of one with less, and so never ends worse.
    """

    patience: int = 1
    rounds: int = 20
    evaluations: int | None = None
    milliseconds: float | None = None

    def reached(self, now: Progress, milliseconds: float) -> Tensor:
        """The number of the reason to stop each sentence, -1 where there is none [batch]."""
        late = self.milliseconds is not None and milliseconds >= self.milliseconds
        most = torch.inf if self.evaluations is None else self.evaluations
        reasons = (
            now.waited >= self.patience,
            ~now.pool.next_open()[1],
            now.rounds >= self.rounds,
            now.spent >= most,
            torch.full_like(now.row, late, dtype=torch.bool),
        )
        number = torch.full_like(now.row, -1)
        for place, reason in reversed(list(enumerate(reasons))):
            number = torch.where(reason, place, number)
        return number


@dataclass(frozen=True)
class EditDecoder:
    """Best-first search for the string of least joint cost, guided by the relaxed objective.

    Every answer is the best string that was scored, the starts included: never worse than where it
    began. Complexity: a round costs a forward pass of the models that predict words, 1 + `descent`
    passes forward and back, and as many exact scores as it proposes strings.

    words: what may be chosen at all; candidates: how many of them a sentence is made of. longest:
    words that all models can read. chunk: strings scored at a time.
    """

    objective: Mix
    initialise: Initialise
    propose: Proposals
    budget: Budget
    words: Tensor
    longest: int
    detokenise: Detokenise
    candidates: int | None = None
    chunk: int = 256

    def __call__(self, source: Hard, starts: Starts | None = None) -> list[list[Hypothesis]]:
        begun = time.perf_counter()
        starts = starts or self.initialise(source)
        energy = self.objective.bind(source)
        running, initial = self._begin(energy, starts, len(source.ids))
        ended: list[Progress] = []
        while True:
            milliseconds = 1000 * (time.perf_counter() - begun) / len(source.ids)
            why = self.budget.reached(running, milliseconds)
            stopped = (why >= 0).nonzero().squeeze(-1)
            if len(stopped):
                ended.append(running._replace(why=why).select(stopped))
                running = running.select((why < 0).nonzero().squeeze(-1))
            if len(running.row) == 0:
                return self._answers(ended, initial)
            running = self._round(energy.select(running.row), running)

    @torch.no_grad()
    def _begin(self, energy: MixEnergy, starts: Starts, batch: int) -> tuple[Progress, Pool]:
        """Score the starts, and choose the words that each sentence may be made of."""
        place = place_within(starts.owner)
        costs = self._score(energy, starts.strings, starts.owner)
        start = Pool.of(
            (batch, int(place.max()) + 1),
            starts.owner,
            place,
            starts.strings,
            costs,
            energy.total(costs),
        )
        number = torch.bincount(starts.owner, minlength=batch)
        best, strings = start.at(torch.zeros_like(number)), Hard(start.ids, start.mask)
        support = shortlist(energy, best, strings, self.words, self.candidates)
        nought = torch.zeros_like(number)
        row = torch.arange(batch, device=number.device)
        return Progress(row, start.sorted(), support, nought, nought, number, nought - 1), start

    def _round(self, energy: MixEnergy, now: Progress) -> Progress:
        """Look around the best open string of every sentence."""
        place, _ = now.pool.next_open()
        centre = now.pool.at(place)
        edits, whole = self.propose(energy, centre, now.support)
        pool, cost = now.pool.close(place), now.pool.total.gather(1, place[:, None])
        with torch.no_grad():
            singles = apply_each(centre, edits)
            real = torch.cat([edits.real, whole.mask.any(-1)], 1)
            found, spent = self._try(energy, side_by_side(singles, whole), real, pool, now.spent)
            pool = pool.merge(found)
            chosen = independent(edits, cost - found.total[:, : edits.slot.shape[1]])
            several = chosen.sum(1, keepdim=True) > 1
            together = apply_together(centre, edits, chosen)
            joint = Hard(together.ids[:, None], together.mask[:, None])
            found, spent = self._try(energy, joint, several, pool, spent)
            pool = pool.merge(found)
        better = pool.total[:, 0] < now.pool.total[:, 0]
        waited = torch.where(better, 0, now.waited + 1)
        return now._replace(pool=pool, rounds=now.rounds + 1, waited=waited, spent=spent)

    def _try(
        self, energy: MixEnergy, strings: Hard, real: Tensor, pool: Pool, spent: Tensor
    ) -> tuple[Pool, Tensor]:
        """Score strings [rows, number, length] that are new, as far as the budget reaches."""
        length = strings.mask.sum(-1)
        new = real & (length > 0) & (length <= self.longest)
        new = first_of_equals(strings, new & ~pool.holds(strings))
        if self.budget.evaluations is not None:
            new = new & (new.cumsum(1) <= self.budget.evaluations - spent[:, None])
        row, place = new.nonzero(as_tuple=True)
        picked = Hard(strings.ids[row, place], strings.mask[row, place])
        costs = self._score(energy, picked, row) if len(row) else pool.costs[:0, 0]
        found = Pool.of(new.shape, row, place, picked, costs, energy.total(costs))
        return found, spent + new.sum(1)

    def _score(self, energy: MixEnergy, strings: Hard, owner: Tensor) -> Tensor:
        """The exact cost of every string by every term [strings, terms]."""
        length = lengths(strings)
        order = length.argsort(stable=True)
        costs = []
        for part in torch.split(order, self.chunk):
            longest = int(length[part[-1]])
            ids, mask = strings.ids[part, :longest], strings.mask[part, :longest]
            costs.append(energy.select(owner[part]).costs(Hard(ids, mask)))
        return torch.cat(costs)[order.argsort()]

    def _answers(self, ended: list[Progress], initial: Pool) -> list[list[Hypothesis]]:
        """The strings of every sentence, best first."""
        answers: list[list[Hypothesis]] = [[] for _ in initial.total]
        for progress in ended:
            for place, row in enumerate(progress.row.tolist()):
                answers[row] = best_first(self._hypotheses(progress, place, initial, row))
        return answers

    def _hypotheses(
        self, progress: Progress, place: int, initial: Pool, row: int
    ) -> Iterator[Hypothesis]:
        names = [part.name for part in self.objective.parts]
        pool = progress.pool
        begun = unpad(Hard(initial.ids[row], initial.mask[row]))[0]
        for ids, costs, total in zip(
            unpad(Hard(pool.ids[place], pool.mask[place])),
            pool.costs[place].tolist(),
            pool.total[place].tolist(),
            strict=True,
        ):
            if total == math.inf and ids != begun:
                continue  # a free place
            yield Hypothesis(
                text=self.detokenise(ids),
                ids=tuple(ids),
                score=-total,
                terms=dict(zip(names, costs, strict=True)),
                discrete_cost=total,
                initial_cost=float(initial.total[row, 0]),
                initial_text=self.detokenise(begun),
                iterations=int(progress.rounds[place]),
                stop=REASONS[int(progress.why[place])],
            )


def place_within(owner: Tensor) -> Tensor:
    """The number of each start among those of its sentence [rows]."""
    same = owner[:, None] == owner
    return same.tril(-1).sum(1)
