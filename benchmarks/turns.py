"""Systems measured by turns, so that a busy machine slows all of them alike."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import asdict
from statistics import median
from typing import Any

from simplexity.experiment.clock import NONE, Timing, timed

__all__ = ["NONE", "Timing", "by_turns", "timed"]


def by_turns(rounds: int, systems: Mapping[str, Callable[[], Timing]]) -> dict[str, dict[str, Any]]:
    """Run all systems in every round, each round beginning with another; medians of the rounds."""
    turns: dict[str, list[dict[str, Any]]] = {name: [] for name in systems}
    names = list(systems)
    for number in range(rounds):
        shift = number % len(names)
        for name in names[shift:] + names[:shift]:
            timing = systems[name]()
            turns[name].append({**asdict(timing), "load": os.getloadavg()[0]})
            print(f"round {number + 1}, {name}: {timing}", flush=True)
    return {name: {**speeds(found), "turns": found} for name, found in turns.items()}


def speeds(turns: list[dict[str, Any]]) -> dict[str, float]:
    """Medians of the turns of one system."""
    return {
        "per_second": median(turn["amount"] / turn["seconds"] for turn in turns),
        "per_cpu_second": median(turn["amount"] / turn["cpu_seconds"] for turn in turns),
        "load": median(turn["load"] for turn in turns),
    }
