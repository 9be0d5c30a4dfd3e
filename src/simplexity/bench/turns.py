"""Systems measured by turns, so that a busy machine slows all of them alike."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from statistics import median
from typing import Any, TypeVar

Found = TypeVar("Found")


@dataclass(frozen=True)
class Timing:
    """So much done, in so many seconds of the clock and of the processor."""

    amount: int
    seconds: float
    cpu_seconds: float

    def __str__(self) -> str:
        return f"{self.amount} in {self.seconds:.2f} s, {self.cpu_seconds:.2f} of the processor"

    def __add__(self, other: Timing) -> Timing:
        return Timing(
            self.amount + other.amount,
            self.seconds + other.seconds,
            self.cpu_seconds + other.cpu_seconds,
        )


NONE = Timing(0, 0.0, 0.0)


def timed(amount: int, work: Callable[[], Found]) -> tuple[Timing, Found]:
    """Do this much work; the time that it took, and what came of it."""
    begun, cpu = time.perf_counter(), time.process_time()
    found = work()
    return Timing(amount, time.perf_counter() - begun, time.process_time() - cpu), found


def by_turns(
    rounds: int, systems: Mapping[str, Callable[[], Timing]], say: Callable[[str], None] = print
) -> dict[str, dict[str, Any]]:
    """Run all systems in every round, each round beginning with another; medians of the rounds."""
    turns: dict[str, list[dict[str, Any]]] = {name: [] for name in systems}
    names = list(systems)
    for number in range(rounds):
        shift = number % len(names)
        for name in names[shift:] + names[:shift]:
            timing = systems[name]()
            turns[name].append({**asdict(timing), "load": os.getloadavg()[0]})
            say(f"round {number + 1}, {name}: {timing}")
    return {name: {**speeds(found), "turns": found} for name, found in turns.items()}


def speeds(turns: list[dict[str, Any]]) -> dict[str, float]:
    """Medians of the turns of one system."""
    return {
        "per_second": median(turn["amount"] / turn["seconds"] for turn in turns),
        "per_cpu_second": median(turn["amount"] / turn["cpu_seconds"] for turn in turns),
        "load": median(turn["load"] for turn in turns),
    }
