"""Timing: search and EG side by side, and where the time of EG goes."""

from __future__ import annotations

from functools import partial
from typing import Any

from simplexity import build
from simplexity.bench.clock import Clock, Phase, clocked, now_on
from simplexity.bench.turns import NONE, Timing, timed
from simplexity.decode import RelaxedDecoder
from simplexity.experiment.tuning import Chosen
from simplexity.experiment.workbench import Options, Workbench

TURN = 20
"""Sentences that a system is given before it is another's turn."""
PAPER_ITERATIONS = 35
PAPER_SHARE = 4
"""The paper's setting gets one sentence in so many: it takes long."""


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
    clocks = {name: Clock(now_on(bench.family["l2r"].model.device)) for name in systems}
    spent: dict[str, Timing] = dict.fromkeys(systems, NONE)
    translators = {
        name: build.translator(bench.config(options), clocked(bench.family, clocks[name]))
        for name, options in systems.items()
    }
    list(translators["greedy"](lines[:TURN]))  # warm up
    for first in range(0, len(lines), TURN):
        for name, translator in translators.items():
            some = lines[first : first + TURN]
            if "paper" in name:
                some = some[: -(-len(some) // PAPER_SHARE)]
            with clocks[name].running():
                spent[name] += timed(len(some), partial(list, translator(some)))[0]
    return {
        name: {
            "sentences": taken.amount,
            "ms": 1000 * taken.seconds / taken.amount,
            "cpu_ms": 1000 * taken.cpu_seconds / taken.amount,
            **(
                split(clocks[name], taken.amount)
                if isinstance(translators[name].decoder, RelaxedDecoder)
                else {}
            ),
        }
        for name, taken in spent.items()
    }


def split(clock: Clock, sentences: int) -> dict[Phase, float]:
    """Milliseconds a sentence of what the paper names; the update is all that is no pass."""
    return {
        phase: 1000 * clock.seconds[phase] / sentences
        for phase in ("forward", "backward", "update")
    }
