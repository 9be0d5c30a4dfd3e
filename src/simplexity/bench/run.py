"""One interleaved run: all systems by turns on the same sentences, and what their time is for."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias

import torch

from simplexity import build
from simplexity.bench.clock import Clock, clocked, now_on
from simplexity.bench.flops import KINDS, FlopCount, products, roofline
from simplexity.bench.memory import in_young_process, peak_above
from simplexity.bench.peers import Task, peers
from simplexity.bench.random_family import Sizes, random_family, random_lines
from simplexity.bench.setting import machine
from simplexity.bench.systems import System, best, mean_iterations, system, translator
from simplexity.bench.turns import Timing, by_turns, timed
from simplexity.config import BenchConfig, TranslateConfig
from simplexity.decode import Hypothesis
from simplexity.errors import UsageError
from simplexity.models.family import Family
from simplexity.runtime import device_named, quiet_transformers
from simplexity.search.beam import BeamSettings
from simplexity.text.files import read_lines

Say: TypeAlias = Callable[[str], None]


@dataclass(frozen=True)
class Models:
    """Where the models come from: a directory, or random weights of these sizes."""

    origin: Path | Sizes | None
    device: str

    def load(self) -> Family:
        """The family itself."""
        if isinstance(self.origin, Sizes):
            return random_family(self.origin, self.device)
        quiet_transformers()
        return build.family(TranslateConfig(model=self.origin), self.device)

    def are_random(self) -> bool:
        return isinstance(self.origin, Sizes)


class Contestant:
    """A system of ours in the race: it counts what its time is for, and keeps its last answers."""

    def __init__(self, chosen: System, models: Models, family: Family) -> None:
        self.clock = Clock(now_on(models.device))
        self._translate = translator(chosen, clocked(family, self.clock), models.are_random())
        self.found: list[Hypothesis] = []

    def __call__(self, lines: list[str]) -> None:
        with self.clock.running():
            self.found = best(self._translate, lines)

    def figures(self) -> dict[str, Any]:
        """Iterations of the last turn, and the shares of all turns."""
        whole = sum(self.clock.seconds.values())
        return {
            "iterations": mean_iterations(self.found),
            "phases": {phase: part / whole for phase, part in self.clock.seconds.items()},
        }


def measure(config: BenchConfig, say: Say) -> dict[str, Any]:
    """All figures of a run."""
    chosen = [system(name, batch_size=config.batch_size) for name in config.systems]
    models, lines = models_of(config), sentences(config)
    family = models.load()
    running = {one.name: Contestant(one, models, family) for one in chosen}
    with ExitStack() as stack:
        others = dict(peers(_task(config, family, lines), config.peers, stack, say))
        found = race(config, models, lines, running, others, say)
    per_second = "per_cpu_second" if models.device == "cpu" else "per_second"
    speeds = {kind: found.pop(kind)[per_second] for kind in KINDS}
    for one in chosen:
        say(f"counting operations and memory of {one.name}")
        counted = operations(one, models, family, lines)
        given = one, models, longest(family, lines, config.batch_size)
        found[one.name] |= running[one.name].figures()
        found[one.name] |= {"flops": counted, "roofline": roofline(counted, speeds)}
        found[one.name]["memory_bytes"] = in_young_process(memory_of, given, threads())
    yardsticks = [one.name for one in chosen if one.is_beam()][:1]
    return {
        "machine": machine(),
        "settings": config.model_dump(mode="json"),
        "sentences": len(lines),
        "timed_by": per_second,
        "rates": speeds,
        "rows": compared(found, [*yardsticks, *others], per_second),
    }


def race(
    config: BenchConfig,
    models: Models,
    lines: list[str],
    running: dict[str, Contestant],
    others: dict[str, Callable[[], Any]],
    say: Say,
) -> dict[str, dict[str, Any]]:
    """All systems by turns, and between them the products that the roofline is made of."""
    for contestant in running.values():
        contestant(lines[: config.batch_size])  # warms up, as the next lines do
        contestant.clock.reset()
    for translate in others.values():
        translate()
    turns = {name: _turn(lines, partial(run, lines)) for name, run in running.items()}
    turns |= {name: _turn(lines, run) for name, run in others.items()}
    rates = {kind: partial(products, dtype, models.device) for kind, dtype in KINDS.items()}
    return by_turns(config.rounds, {**rates, **turns}, say)


def threads() -> int:
    """Threads that this process computes with."""
    return torch.get_num_threads()


def longest(family: Family, lines: list[str], number: int) -> list[str]:
    """The lines that make the largest batch."""
    return sorted(lines, key=lambda line: -len(family["l2r"].source.encode(line)))[:number]


def models_of(config: BenchConfig) -> Models:
    """What a configuration asks to be measured."""
    device = device_named(config.device)
    return Models(config.model if config.random is None else sizes_of(config), device)


def sizes_of(config: BenchConfig) -> Sizes:
    """The random models of a configuration."""
    assert config.random is not None
    return Sizes(
        config.random, config.vocabulary_size, config.hidden, config.layers, seed=config.seed
    )


def sentences(config: BenchConfig) -> list[str]:
    """What is translated: the input's first lines that hold anything, or random words."""
    if config.random is not None:
        return random_lines(sizes_of(config), config.limit, config.length)
    lines = [line for line in read_lines(config.input) if line.strip()][: config.limit]
    if not lines:
        raise UsageError("There are no sentences to translate; give some with --input.")
    return lines


def _task(config: BenchConfig, family: Family, lines: list[str]) -> Task:
    """What the peers are given; random models write as much as they read."""
    member = family["l2r"]
    settings = BeamSettings() if config.random is None else BeamSettings(max_ratio=1, max_extra=0)
    sources = [member.source.encode(line) for line in lines]
    return Task(member, sources, settings, config.batch_size, threads(), config.marian)


def _turn(lines: list[str], work: Callable[[], Any]) -> Callable[[], Timing]:
    return lambda: timed(len(lines), work)[0]


def operations(
    chosen: System, models: Models, family: Family, lines: list[str]
) -> dict[str, float]:
    """Floating-point operations a sentence, by the kind of number."""
    translate = translator(chosen, family, models.are_random())
    with FlopCount() as count:
        best(translate, lines)
    return {kind: number / len(lines) for kind, number in count.by_type.items()}


def memory_of(given: tuple[System, Models, list[str]]) -> int:
    """Bytes above the models that a batch of these lines takes."""
    chosen, models, lines = given
    translate = translator(chosen, models.load(), models.are_random())
    best(translate, [" ".join(lines[0].split()[:2])])  # what is made once is made here
    return peak_above(lambda: best(translate, lines), models.device)


def compared(
    found: dict[str, dict[str, Any]], bases: list[str], per_second: str
) -> dict[str, dict[str, Any]]:
    """The rows with seconds a sentence, ratios to the bases, and the distance to the roofline."""
    seconds = {name: 1 / row[per_second] for name, row in found.items()}
    for name, row in found.items():
        row["seconds"] = seconds[name]
        row["times"] = {base: seconds[name] / seconds[base] for base in bases}
        if "roofline" in row:
            row["distance"] = seconds[name] / row["roofline"]
    return found
