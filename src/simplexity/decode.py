"""Decoders: a batch of sources in, hypotheses out. All have the same call and the same answer."""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeAlias

import torch
from torch import Tensor

from simplexity.initialise import Initialise, Lift, Starts
from simplexity.models.seq2seq import Seq2Seq
from simplexity.relax.geometry import Geometry
from simplexity.relax.optimise import Backtracking, Iterate, Solution, iterates, minimise
from simplexity.relax.stopping import Stop
from simplexity.relax.tokens import Hard, harden, unpad
from simplexity.relax.updates import Update
from simplexity.search.beam import BeamSettings, beam_search
from simplexity.terms.mix import Mix, MixEnergy

Detokenise: TypeAlias = Callable[[Sequence[int]], str]
Descent: TypeAlias = Generator[Iterate, Tensor | None, None]
Watch: TypeAlias = Callable[[Descent, Tensor], Descent]
"""Sees every iterate on its way to `minimise`, and whose each start is: traces are made so."""


@dataclass(frozen=True)
class Hypothesis:
    """A translation and how it came about.

    score: minus the joint cost per word, higher is better. terms: -log P of each term by itself.
    discrete_cost: the weighted sum of the terms at this string; initial_cost: the same at the
    string that the search began from; continuous_cost: the least relaxed cost of the descent.
    """

    text: str
    ids: tuple[int, ...]
    score: float
    terms: dict[str, float]
    discrete_cost: float
    continuous_cost: float | None = None
    initial_cost: float | None = None
    initial_text: str | None = None
    iterations: int = 0
    stop: str | None = None


class Decoder(Protocol):
    """Anything that translates: for each source its hypotheses, best first."""

    def __call__(self, source: Hard) -> list[list[Hypothesis]]: ...


@dataclass(frozen=True)
class BeamDecoder:
    """Greedy and beam search with one model (complexity: one model step a word)."""

    model: Seq2Seq
    settings: BeamSettings
    name: str
    detokenise: Detokenise

    def __call__(self, source: Hard) -> list[list[Hypothesis]]:
        found = beam_search(self.model, source, self.settings)
        answers: list[list[Hypothesis]] = []
        columns = (found.ids, found.mask.sum(-1), found.log_prob, found.score)
        for rows in zip(*(column.tolist() for column in columns), found.count.tolist()):
            answers.append([])
            for ids, length, log_prob, score in zip(*(r[: rows[-1]] for r in rows[:-1])):
                words = tuple(ids[:length])
                text = self.detokenise(words)
                if all(text != other.text for other in answers[-1]):
                    terms = {self.name: -log_prob}
                    answers[-1].append(Hypothesis(text, words, score, terms, -log_prob))
        return answers


@dataclass(frozen=True)
class RelaxedDecoder:
    """Decoding as continuous optimisation (paper, section 3): start, descend, round.

    With `guard` the answer is the best *discrete* string seen, the start's own string included, so
    it is never worse than where it began. Without, it is the paper's: the rounding of
    argmin_t Q(y_t). Several starts of a sentence descend side by side; the best joint cost per
    word wins. Complexity: `iterations` forward and backward passes over all positions at once.
    """

    objective: Mix
    initialise: Initialise
    lift: Lift
    geometry: Geometry
    update: Update
    stop: Stop
    support: Tensor
    detokenise: Detokenise
    search: Backtracking | None = None
    guard: bool = True
    watch: Watch | None = None

    def __call__(self, source: Hard, starts: Starts | None = None) -> list[list[Hypothesis]]:
        starts = starts or self.initialise(source)
        bound = self.objective.bind(source)
        energy = bound.select(starts.owner)
        point = self.lift(source, starts, self.support)
        descent = iterates(energy, point, self.geometry, self.update, self.search)
        if self.watch:
            descent = self.watch(descent, starts.owner)
        solution = minimise(descent, self.stop)
        outcome = self._outcome(energy, starts, solution)
        return self._hypotheses(len(source.ids), starts, solution, outcome)

    @torch.no_grad()
    def _outcome(self, energy: MixEnergy, starts: Starts, solution: Solution) -> Outcome:
        """Choose a string for every start and score it as the hard string it is."""
        initial = energy.costs(starts.strings)
        if not self.guard:
            strings = harden(solution.y)
            costs = energy.costs(strings)
        else:
            strings, costs = best_seen(energy, starts.strings, initial, solution)
        return Outcome(
            strings,
            costs,
            energy.total(costs),
            energy.per_word(costs, strings),
            energy.total(initial),
        )

    def _hypotheses(
        self, sentences: int, starts: Starts, solution: Solution, outcome: Outcome
    ) -> list[list[Hypothesis]]:
        names = [part.name for part in self.objective.parts]
        answers: list[list[Hypothesis]] = [[] for _ in range(sentences)]
        rows = zip(
            starts.owner.tolist(),
            unpad(outcome.strings),
            outcome.costs.tolist(),
            outcome.total.tolist(),
            outcome.per_word.tolist(),
            solution.cost.tolist(),
            outcome.initial.tolist(),
            unpad(starts.strings),
            solution.iterations.tolist(),
            solution.why(),
            strict=True,
        )
        for owner, ids, costs, total, per_word, continuous, initial, begun, iterations, why in rows:
            answers[owner].append(
                Hypothesis(
                    text=self.detokenise(ids),
                    ids=tuple(ids),
                    score=-per_word,
                    terms=dict(zip(names, costs, strict=True)),
                    discrete_cost=total,
                    continuous_cost=continuous,
                    initial_cost=initial,
                    initial_text=self.detokenise(begun),
                    iterations=iterations,
                    stop=why,
                )
            )
        return [sorted(found, key=lambda h: -h.score) for found in answers]


@dataclass(frozen=True)
class Outcome:
    """The string of every start: its cost by term [rows, terms], in all, per word; the start's."""

    strings: Hard
    costs: Tensor
    total: Tensor
    per_word: Tensor
    initial: Tensor


def best_seen(
    energy: MixEnergy, start: Hard, initial: Tensor, solution: Solution
) -> tuple[Hard, Tensor]:
    """The string of least discrete cost among the start and all roundings of the descent.

    Every new rounding is scored once, as a hard string, after the descent: one forward pass for
    all of them together costs less than one an iteration.
    """
    when, row = solution.fresh.nonzero(as_tuple=True)
    seen = Hard(solution.roundings[when, row], start.mask[row])
    size = max(len(start.ids), 1)
    costs = torch.cat(
        [initial.new_zeros(0, initial.shape[-1])]
        + [
            energy.select(row[i : i + size]).costs(
                seen.select(torch.arange(i, min(i + size, len(row)), device=row.device))
            )
            for i in range(0, len(row), size)
        ]
    )
    table = initial.new_full((len(solution.fresh) + 1, *initial.shape), torch.inf)
    table[0] = initial
    table[when + 1, row] = costs
    best = energy.total(table.nan_to_num(nan=torch.inf)).argmin(0)
    strings = torch.cat([start.ids[None], solution.roundings])
    rows = torch.arange(len(best), device=best.device)
    return Hard(strings[best, rows], start.mask), table[best, rows]
