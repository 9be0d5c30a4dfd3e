"""How time and memory grow with one thing, all else being equal."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import torch

from simplexity import build
from simplexity.bench.memory import in_young_process, peak_above
from simplexity.bench.random_family import Sizes, random_family
from simplexity.bench.run import Say, sizes_of
from simplexity.bench.setting import machine
from simplexity.bench.systems import as_long_as_source, system
from simplexity.bench.turns import timed
from simplexity.config import BenchConfig
from simplexity.config.bench import Axis
from simplexity.decode import Decoder, RelaxedDecoder
from simplexity.edit.decoder import EditDecoder
from simplexity.initialise import Starts
from simplexity.relax.tokens import Hard
from simplexity.runtime import device_named
from simplexity.text.vocabulary import SPECIALS

VALUES: dict[Axis, tuple[int, ...]] = {
    "length": (10, 20, 40, 80),
    "batch": (4, 16, 64),
    "vocabulary": (4000, 16000, 64000),
    "terms": (1, 2, 3),
    "iterations": (2, 4, 8, 16),
}
OBJECTIVES = {1: "forward", 2: "bidirectional", 3: "joint"}
TURNS = 3


@dataclass(frozen=True)
class Point:
    """One measurement: a system on random models of these sizes, and random strings.

    terms and iterations: None leaves what the system's name says.
    """

    system: str
    sizes: Sizes
    length: int
    batch: int
    device: str
    terms: int | None = None
    iterations: int | None = None

    def at(self, axis: Axis, value: int) -> Point:
        """The same with one thing changed."""
        match axis:
            case "vocabulary":
                return replace(self, sizes=replace(self.sizes, vocabulary=value))
            case "length":
                return replace(self, length=value)
            case "batch":
                return replace(self, batch=value)
            case "terms":
                return replace(self, terms=value)
            case "iterations":
                return replace(self, iterations=value)


def measure_curves(config: BenchConfig, say: Say) -> dict[str, Any]:
    """Every system along every axis; each point in a process of its own."""
    curves: dict[str, dict[str, Any]] = {}
    for axis in config.curves:
        for name in config.systems:
            start = Point(
                name,
                sizes_of(config),
                config.length,
                config.batch_size,
                device_named(config.device),
            )
            if fixed(start, axis):
                say(f"{name} has no {axis} to change")
                continue
            points = []
            for value in VALUES[axis]:
                point = start.at(axis, value)
                found = in_young_process(measure_point, point, torch.get_num_threads())
                points.append({axis: value, **found})
                say(f"{name}, {axis} {value}: {found}")
            curves.setdefault(axis, {})[name] = {
                "points": points,
                "growth": growth([(p[axis], p["seconds"] * p["batch"]) for p in points]),
                "growth_of_memory": growth([(p[axis], p["memory_bytes"]) for p in points]),
            }
    return {"machine": machine(), "settings": config.model_dump(mode="json"), "curves": curves}


def fixed(point: Point, axis: Axis) -> bool:
    """Whether a system is the same for all values of this axis."""
    decoder = point.system.partition(":")[0]
    discrete = decoder in ("beam", "greedy")
    return axis in ("terms", "iterations") and (
        discrete or (axis, decoder) == ("iterations", "rerank")
    )


def measure_point(point: Point) -> dict[str, Any]:
    """Seconds a sentence, the least of some turns, and bytes above the models."""
    family = random_family(point.sizes, point.device)
    changed: dict[str, Any] = {"batch_size": point.batch}
    if point.terms is not None:
        changed["objective"] = OBJECTIVES[point.terms]
    if point.iterations is not None:
        changed["iterations"] = point.iterations
    chosen = system(point.system, **changed)
    # The axis decides, whatever the name said.
    config = chosen.config.model_copy(update=changed)
    decoder = as_long_as_source(build.translator(config, family).decoder)
    source, starts = random_strings(point), random_strings(replace(point, sizes=other(point.sizes)))

    def work() -> Any:
        return decode(decoder, source, starts)

    small = (Hard(strings.ids[:1, :2], strings.mask[:1, :2]) for strings in (source, starts))
    decode(decoder, *small)  # what is made once is made here
    memory = peak_above(work, point.device)
    turns = [timed(point.batch, work)[0] for _ in range(TURNS)]
    of_cpu = point.device == "cpu"
    seconds = [t.cpu_seconds if of_cpu else t.seconds for t in turns]
    return {"seconds": min(seconds) / point.batch, "batch": point.batch, "memory_bytes": memory}


def other(sizes: Sizes) -> Sizes:
    return replace(sizes, seed=sizes.seed + 1)


def random_strings(point: Point) -> Hard:
    """Strings of random words, all of one length."""
    draw = torch.Generator().manual_seed(point.sizes.seed)
    shape = (point.batch, point.length)
    ids = torch.randint(len(SPECIALS), point.sizes.vocabulary, shape, generator=draw)
    return Hard(ids.to(point.device), torch.ones(shape, dtype=torch.bool, device=point.device))


def decode(decoder: Decoder, source: Hard, strings: Hard) -> Any:
    """Run a decoder; one that descends starts from given strings, so that no search is counted."""
    if isinstance(decoder, RelaxedDecoder | EditDecoder):
        owner = torch.arange(len(source.ids), device=source.ids.device)
        return decoder(source, Starts(strings, owner))
    return decoder(source)


def growth(points: list[tuple[float, float]]) -> float | None:
    """p of cost ~ value^p, by least squares of the logarithms; None where it has no meaning.

    >>> round(growth([(1, 3), (2, 12), (4, 48)]), 6)
    2.0
    """
    if len(points) < 2 or any(cost <= 0 for _, cost in points):
        return None  # memory below what is measured
    x, y = ([math.log(number) for number in side] for side in zip(*points, strict=True))
    middle, height = sum(x) / len(x), sum(y) / len(y)
    above = sum((a - middle) * (b - height) for a, b in zip(x, y, strict=True))
    return above / sum((a - middle) ** 2 for a in x)
