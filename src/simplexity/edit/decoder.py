"""Relaxed search with edits: descents propose, exact scores decide, lengths are free.

The paper's descent keeps the length of its start and ends in the next local optimum. Here the
relaxation only proposes; what counts is the exact cost of strings. Each round takes the best string
of every sentence whose neighbours were not looked at yet, lifts it into the simplex, and scores
what the relaxed objective proposes there: single edits and the roundings of a short descent. All
are scored roughly, in half precision; those that look best, and the edits that gain and do not
touch one another made together, are scored exactly. Only exact costs are compared or returned.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor

from simplexity.decode import Detokenise, Hypothesis, InPrecision, Precision, best_first
from simplexity.edit.pool import Pool, first_of_equals, in_order, side_by_side
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
    passes forward and back, a rough score of every proposal, and 1 + `checked` exact scores.

    words: what may be chosen at all; candidates: how many of them a sentence is made of. longest:
    words that all models can read. checked: strings of a round, and starts besides the first, that
    are scored exactly. precision: the arithmetic of rough scores. chunk: strings scored at a time.
    """

    objective: Mix
    initialise: Initialise
    propose: Proposals
    budget: Budget
    words: Tensor
    longest: int
    detokenise: Detokenise
    candidates: int | None = None
    checked: int = 4
    precision: Precision = "fp32"
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
        starts = self._promising(energy, starts, batch)
        place = place_within(starts.owner)
        costs = self._exactly(energy, starts.strings, starts.owner)
        shape, total = (batch, int(place.max()) + 1), energy.total(costs)
        start = Pool.of(shape, starts.owner, place, starts.strings, costs, total)
        number = torch.bincount(starts.owner, minlength=batch)
        best, strings = start.at(torch.zeros_like(number)), Hard(start.ids, start.mask)
        support = shortlist(energy, best, strings, self.words, self.candidates)
        nought = torch.zeros_like(number)
        row = torch.arange(batch, device=number.device)
        return Progress(row, start.sorted(), support, nought, nought, number, nought - 1), start

    def _promising(self, energy: MixEnergy, starts: Starts, batch: int) -> Starts:
        """The first start of each sentence, and of its others those that are roughly best."""
        place = place_within(starts.owner)
        number = int(place.max()) + 1
        if number <= self.checked + 1:
            return starts
        rough = self._roughly(energy, starts.strings, starts.owner)
        table = rough.new_full((batch, number), torch.inf).index_put((starts.owner, place), rough)
        table[:, 0] = -torch.inf
        rank = table.argsort(dim=1, stable=True).argsort(1)
        kept = (rank[starts.owner, place] <= self.checked).nonzero().squeeze(1)
        return Starts(starts.strings.select(kept), starts.owner[kept])

    def _round(self, energy: MixEnergy, now: Progress) -> Progress:
        """Look around the best open string of every sentence."""
        place, _ = now.pool.next_open()
        centre, pool = now.pool.at(place), now.pool.close(place)
        edits, whole = self.propose(energy, centre, now.support)
        with torch.no_grad():
            around = side_by_side(apply_each(centre, edits), whole)
            new = self._new(around, torch.cat([edits.real, whole.mask.any(-1)], 1), pool)
            rough, here = self._around(energy, around, new, centre)
            chosen = independent(edits, here[:, None] - rough[:, : edits.slot.shape[1]])
            together = apply_together(centre, edits, chosen)
            several = chosen.sum(1, keepdim=True) > 1
            value, best = rough.topk(min(self.checked, rough.shape[1]), largest=False)
            strings = side_by_side(
                Hard(together.ids[:, None], together.mask[:, None]),
                Hard(in_order(around.ids, best), in_order(around.mask, best)),
            )
            new = self._new(strings, torch.cat([several, value.isfinite()], 1), pool)
            if self.budget.evaluations is not None:
                new &= new.cumsum(1) <= self.budget.evaluations - now.spent[:, None]
            pool = pool.merge(self._found(energy, strings, new, pool))
        better = pool.total[:, 0] < now.pool.total[:, 0]
        return now._replace(
            pool=pool,
            rounds=now.rounds + 1,
            waited=torch.where(better, 0, now.waited + 1),
            spent=now.spent + new.sum(1),
        )

    def _new(self, strings: Hard, real: Tensor, pool: Pool) -> Tensor:
        """Which of the real strings [rows, number, length] can be scored, and were not yet."""
        length = strings.mask.sum(-1)
        fits = (length > 0) & (length <= self.longest)
        return first_of_equals(strings, real & fits & ~pool.holds(strings))

    def _around(
        self, energy: MixEnergy, strings: Hard, new: Tensor, centre: Hard
    ) -> tuple[Tensor, Tensor]:
        """The rough costs of new strings [rows, number], else infinite, and of their centres."""
        row, place = new.nonzero(as_tuple=True)
        every = side_by_side(Hard(centre.ids[:, None], centre.mask[:, None]), strings)
        rows = torch.arange(len(new), device=new.device)
        owner, column = torch.cat([rows, row]), torch.cat([torch.zeros_like(rows), place + 1])
        picked = Hard(every.ids[owner, column], every.mask[owner, column])
        costs = self._roughly(energy, picked, owner)
        table = costs.new_full((len(new), new.shape[1] + 1), torch.inf)
        table = table.index_put((owner, column), costs.nan_to_num(torch.inf))
        return table[:, 1:], table[:, 0]

    def _found(self, energy: MixEnergy, strings: Hard, new: Tensor, pool: Pool) -> Pool:
        """The new strings with their exact costs."""
        row, place = new.nonzero(as_tuple=True)
        picked = Hard(strings.ids[row, place], strings.mask[row, place])
        costs = self._exactly(energy, picked, row) if len(row) else pool.costs[:0, 0]
        return Pool.of(new.shape, row, place, picked, costs, energy.total(costs))

    def _exactly(self, energy: MixEnergy, strings: Hard, owner: Tensor) -> Tensor:
        """The cost of every string by every term [strings, terms], in single precision."""
        return in_parts(strings, owner, self.chunk, lambda o, y: energy.select(o).costs(y))

    def _roughly(self, energy: MixEnergy, strings: Hard, owner: Tensor) -> Tensor:
        """The cost of every string [strings] in the arithmetic of the descent."""
        rough = InPrecision(energy, self.precision)
        return in_parts(strings, owner, self.chunk, lambda o, y: rough.select(o)(y))

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


def in_parts(
    strings: Hard, owner: Tensor, chunk: int, score: Callable[[Tensor, Hard], Tensor]
) -> Tensor:
    """What `score(owner, strings)` gives for all strings, those of about one length at a time."""
    length = lengths(strings)
    order = length.argsort(stable=True)
    found = []
    for part in torch.split(order, chunk):
        longest = int(length[part[-1]])
        found.append(
            score(owner[part], Hard(strings.ids[part, :longest], strings.mask[part, :longest]))
        )
    return torch.cat(found)[order.argsort()]


def place_within(owner: Tensor) -> Tensor:
    """The number of each start among those of its sentence [rows]."""
    same = owner[:, None] == owner
    return same.tril(-1).sum(1)
