"""Decoders: a batch of sources in, hypotheses out. All have the same call and the same answer."""

from __future__ import annotations

import math
from collections.abc import Callable, Generator, Iterable, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol, TypeAlias

import torch
from torch import Tensor

from simplexity.initialise import Initialise, Lift, Starts
from simplexity.models.seq2seq import Seq2Seq
from simplexity.relax.geometry import Geometry
from simplexity.relax.optimise import (
    Backtracking,
    Energy,
    Iterate,
    Solution,
    iterates,
    minimise,
)
from simplexity.relax.stopping import Stop
from simplexity.relax.tokens import Hard, Tokens, harden, unpad
from simplexity.relax.updates import Update
from simplexity.search.beam import BeamSettings, beam_search
from simplexity.terms.mix import Mix, MixEnergy

Detokenise: TypeAlias = Callable[[Sequence[int]], str]
Precision: TypeAlias = Literal["bf16", "fp32"]
Descent: TypeAlias = Generator[Iterate, Tensor | None, None]
Watch: TypeAlias = Callable[[Descent, Tensor], Descent]
"""Sees every iterate on its way to `minimise`, and whose each start is: traces are made so."""


@dataclass(frozen=True)
class Hypothesis:
    """A translation and how it came about.

    score: minus the joint cost per word, higher is better. terms: the cost of each term by itself,
    as the objective has it: -log P, or that per word. discrete_cost: the weighted sum of the terms
    at this string; initial_cost: the same at the string that the search began from;
    continuous_cost: the least relaxed cost of the descent.
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
        columns = (found.ids, found.mask.sum(-1), found.log_prob, found.score)
        # A sentence for which nothing ends has the empty string, of probability 0.
        counts = found.count.clamp_min(1).tolist()
        answers = []
        for count, *row in zip(counts, *(column.tolist() for column in columns), strict=True):
            strings = zip(*(column[:count] for column in row), strict=True)
            answers.append(best_first(self._hypothesis(*string) for string in strings))
        return answers

    def _hypothesis(self, ids: list[int], length: int, log_prob: float, score: float) -> Hypothesis:
        words = tuple(ids[:length])
        terms = {self.name: -log_prob}
        return Hypothesis(self.detokenise(words), words, score, terms, -log_prob)


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
    precision: Precision = "fp32"
    watch: Watch | None = None

    def __call__(self, source: Hard, starts: Starts | None = None) -> list[list[Hypothesis]]:
        starts = starts or self.initialise(source)
        bound = self.objective.bind(source)
        energy = bound.select(starts.owner)
        with working(self.precision, source.mask.device):
            point = self.lift(source, starts, self.support)
        descent = iterates(
            InPrecision(energy, self.precision), point, self.geometry, self.update, self.search
        )
        if self.watch:
            descent = self.watch(descent, starts.owner)
        solution = minimise(descent, self.stop)
        outcome = self._outcome(energy, starts.strings, solution)
        answers: list[list[Hypothesis]] = [[] for _ in source.ids]
        found = self._hypotheses(starts.strings, solution, outcome)
        for owner, hypothesis in zip(starts.owner.tolist(), found, strict=True):
            answers[owner].append(hypothesis)
        return [best_first(hypotheses) for hypotheses in answers]

    @torch.no_grad()
    def _outcome(self, energy: MixEnergy, start: Hard, solution: Solution) -> Outcome:
        """Choose a string for every start and score it as the hard string it is."""
        initial = energy.costs(start)
        if self.guard:
            strings, costs = best_seen(energy, start, initial, solution)
        else:
            strings = harden(solution.y)
            costs = energy.costs(strings)
        return Outcome(
            strings,
            costs,
            energy.total(costs),
            energy.per_word(costs, strings),
            energy.total(initial),
        )

    def _hypotheses(self, start: Hard, solution: Solution, outcome: Outcome) -> list[Hypothesis]:
        """What came of every start."""
        names = [part.name for part in self.objective.parts]
        rows = zip(
            unpad(outcome.strings),
            outcome.costs.tolist(),
            outcome.total.tolist(),
            outcome.per_word.tolist(),
            outcome.initial.tolist(),
            unpad(start),
            solution.cost.tolist(),
            solution.iterations.tolist(),
            solution.why(),
            strict=True,
        )
        return [
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
            for ids, costs, total, per_word, initial, begun, continuous, iterations, why in rows
        ]


def working(precision: Precision, device: torch.device) -> torch.autocast:
    """Within, matrix products are made in this precision."""
    return torch.autocast(device.type, torch.bfloat16, enabled=precision == "bf16")


@dataclass(frozen=True)
class InPrecision:
    """The same energy, its matrix products in bfloat16 if so wished, its costs in single precision.

    Only the descent may be so rough: what is returned and compared is always computed in full.
    """

    energy: Energy
    precision: Precision

    def __call__(self, y: Tokens) -> Tensor:
        with working(self.precision, y.mask.device):
            return self.energy(y)

    def select(self, rows: Tensor) -> InPrecision:
        return InPrecision(self.energy.select(rows), self.precision)


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
    all of them together costs less than one an iteration. A cost that is not finite never wins.
    """
    differs = ((solution.roundings != start.ids) & start.mask).any(-1)
    when, row = (solution.fresh & differs).nonzero(as_tuple=True)
    seen = Hard(solution.roundings[when, row], start.mask[row])
    batches = [slice(i, i + len(start.ids)) for i in range(0, len(row), len(start.ids))]
    costs = [energy.select(row[b]).costs(Hard(seen.ids[b], seen.mask[b])) for b in batches]
    table = initial.new_full((len(solution.fresh) + 1, *initial.shape), torch.inf)
    table[0] = initial
    table[when + 1, row] = torch.cat([initial[:0], *costs])
    total = energy.total(table)
    best = total.masked_fill(~total.isfinite(), torch.inf).argmin(0)
    strings = torch.cat([start.ids[None], solution.roundings])
    rows = torch.arange(len(best), device=best.device)
    return Hard(strings[best, rows], start.mask), table[best, rows]


def best_first(found: Iterable[Hypothesis]) -> list[Hypothesis]:
    """In the order of their scores, each text once; a score that is not a number comes last."""
    # Of starts that meet in one string the first counts. Their scores differ by rounding at most,
    # which must not decide.
    strings: dict[tuple[int, ...], Hypothesis] = {}
    for hypothesis in found:
        strings.setdefault(hypothesis.ids, hypothesis)
    texts: dict[str, Hypothesis] = {}
    for hypothesis in sorted(strings.values(), key=lambda h: (math.isnan(h.score), -h.score)):
        texts.setdefault(hypothesis.text, hypothesis)
    return list(texts.values())
