"""Timing: search and EG side by side, and where the time of EG goes."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from torch import Tensor

from simplexity import build
from simplexity.bench.turns import NONE, Timing, timed
from simplexity.decode import Descent, RelaxedDecoder
from simplexity.experiment.bench import Options, Workbench
from simplexity.experiment.tuning import Chosen
from simplexity.relax.geometry import Geometry
from simplexity.relax.tokens import Hard, Soft, Tokens
from simplexity.relax.updates import State, Update
from simplexity.terms.mix import Mix, Term, TermEnergy
from simplexity.translate import Translator

TURN = 20
"""Sentences that a system is given before it is another's turn."""
PAPER_ITERATIONS = 35
PAPER_SHARE = 4
"""The paper's setting gets one sentence in so many: it takes long."""


@dataclass
class Clock:
    """Seconds that passed inside of what is watched."""

    seconds: float = 0.0

    def __enter__(self) -> None:
        self.seconds -= time.perf_counter()

    def __exit__(self, *_: object) -> None:
        self.seconds += time.perf_counter()


@dataclass(frozen=True)
class TimedTerm:
    """A term whose evaluations of soft strings are timed."""

    term: Term
    clock: Clock

    def bind(self, source: Hard) -> TimedEnergy:
        return TimedEnergy(self.term.bind(source), self.clock)


@dataclass(frozen=True)
class TimedEnergy:
    """The forward step."""

    energy: TermEnergy
    clock: Clock

    def __call__(self, y: Tokens) -> Tensor:
        if not isinstance(y, Soft):
            return self.energy(y)
        with self.clock:
            return self.energy(y)

    def factors(self, y: Tokens) -> Tensor:
        return self.energy.factors(y)

    def select(self, rows: Tensor) -> TimedEnergy:
        return replace(self, energy=self.energy.select(rows))


@dataclass(frozen=True)
class TimedUpdate:
    """The update, and what a geometry does with it."""

    update: Update
    clock: Clock

    def init(self, like: Tensor) -> State:
        return self.update.init(like)

    def step(self, grad: Tensor, state: State, t: int) -> tuple[Tensor, State]:
        with self.clock:
            return self.update.step(grad, state, t)


@dataclass(frozen=True)
class TimedGeometry:
    """The update's other part."""

    geometry: Geometry
    clock: Clock

    def lift(self, probs: Tensor) -> Tensor:
        return self.geometry.lift(probs)

    def probs(self, point: Tensor) -> Tensor:
        with self.clock:
            return self.geometry.probs(point)

    def pull(self, point: Tensor, grad: Tensor) -> Tensor:
        with self.clock:
            return self.geometry.pull(point, grad)

    def move(self, point: Tensor, step: Tensor) -> Tensor:
        with self.clock:
            return self.geometry.move(point, step)


@dataclass(frozen=True)
class Split:
    """Where the time of a descent goes; backward is what remains of it."""

    forward: Clock
    update: Clock
    descent: Clock

    def watch(self, descent: Descent, owner: Tensor) -> Descent:
        """Times every iteration."""
        with self.descent:
            iterate = next(descent)
        while True:
            keep = yield iterate
            with self.descent:
                iterate = next(descent) if keep is None else descent.send(keep)

    def into(self, translator: Translator) -> Translator:
        """The same translator with clocks inside."""
        decoder = translator.decoder
        assert isinstance(decoder, RelaxedDecoder)
        parts = (
            replace(part, term=TimedTerm(part.term, self.forward))
            for part in decoder.objective.parts
        )
        timed_decoder = replace(
            decoder,
            objective=Mix(tuple(parts)),
            geometry=TimedGeometry(decoder.geometry, self.update),
            update=TimedUpdate(decoder.update, self.update),
            watch=self.watch,
        )
        return replace(translator, decoder=timed_decoder)

    def per_sentence(self, sentences: int) -> dict[str, float]:
        """Milliseconds a sentence."""
        seconds = {
            "forward": self.forward.seconds,
            "backward": self.descent.seconds - self.forward.seconds - self.update.seconds,
            "update": self.update.seconds,
        }
        return {name: 1000 * spent / sentences for name, spent in seconds.items()}


def timing(bench: Workbench, choice: Chosen) -> dict[str, Any]:
    """Greedy, beam 5, beam 10 and EG by turns; milliseconds a sentence."""
    usual = {
        name: choice.options("eg", "beam", name) for name in ("forward", "bidirectional", "joint")
    }
    systems: dict[str, Options] = {
        "greedy": {"decoder": "greedy"},
        "beam 5": {"decoder": "beam"},
        "beam 10": {"decoder": "beam", "beam_size": 10},
        **{f"EG {name}, 8 iterations": options for name, options in usual.items()},
        f"EG forward, paper's setting, {PAPER_ITERATIONS} iterations": {
            "decoder": "eg",
            "preset": "paper",
            "iterations": PAPER_ITERATIONS,
        },
    }
    part = bench.test.first(bench.recipe.timed)
    key = {"part": part.digest, "systems": systems}
    found: dict[str, Any] = bench.cache.get(timing, key, lambda: _by_turns(bench, systems))
    return found


def _by_turns(bench: Workbench, systems: dict[str, Options]) -> dict[str, Any]:
    bench.talk("timing, by turns")
    lines = bench.test.first(bench.recipe.timed).sources
    clocks = {name: Split(Clock(), Clock(), Clock()) for name in systems}
    spent: dict[str, Timing] = dict.fromkeys(systems, NONE)
    translators = {}
    for name, options in systems.items():
        plain = build.translator(bench.config(options), bench.family)
        relaxed = isinstance(plain.decoder, RelaxedDecoder)
        translators[name] = clocks[name].into(plain) if relaxed else plain
    list(translators["greedy"](lines[:TURN]))  # warm up
    for first in range(0, len(lines), TURN):
        for name, translator in translators.items():
            some = lines[first : first + TURN]
            if "paper" in name:
                some = some[: -(-len(some) // PAPER_SHARE)]
            spent[name] += timed(len(some), partial(list, translator(some)))[0]
    return {
        name: {
            "sentences": taken.amount,
            "ms": 1000 * taken.seconds / taken.amount,
            "cpu_ms": 1000 * taken.cpu_seconds / taken.amount,
            **(clocks[name].per_sentence(taken.amount) if clocks[name].descent.seconds else {}),
        }
        for name, taken in spent.items()
    }
