"""What is chosen on development data: the weights of the objectives, and step sizes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from simplexity.evaluate.learn import cached_lists
from simplexity.evaluate.lists import score_weights
from simplexity.experiment.lists import n_best
from simplexity.experiment.workbench import Options, Workbench, decode
from simplexity.objectives import NAMED
from simplexity.search.nbest import NBestLine
from simplexity.search.rerank import Rerank, show_weights

STEPS_OF_TEN = 10
JOINT = ("bidirectional", "bilingual", "joint")


@dataclass(frozen=True)
class Chosen:
    """Objectives by name with their weights, and a step size for each geometry."""

    weights: dict[str, str]
    steps: dict[str, float]

    def objective(self, name: str) -> str:
        """The weights of an objective, as options have them."""
        return self.weights.get(name, name)

    def options(self, decoder: str, init: str, objective: str) -> Options:
        """The default preset with what was chosen."""
        return {
            "decoder": decoder,
            "init": init,
            "objective": self.objective(objective),
            "step": self.steps[decoder],
        }


def chosen(report: dict[str, Any]) -> Chosen:
    """The choices of a report of `tune`."""
    return Chosen(
        {name: found["chosen"] for name, found in report["weights"].items()},
        {name: found["chosen"] for name, found in report["steps"].items()},
    )


def tune(bench: Workbench) -> dict[str, Any]:
    """Choose on development data, first weights, then steps, and tell from what."""
    weights = {name: choose_weights(bench, name) for name in JOINT}
    objective = weights["bidirectional"]["chosen"]
    given = {"eg": bench.recipe.tuning.steps, "sgd": bench.recipe.tuning.sgd_steps}
    steps = {name: choose_step(bench, name, objective, sizes) for name, sizes in given.items()}
    return {"weights": weights, "steps": steps}


def choose_weights(bench: Workbench, objective: str) -> dict[str, Any]:
    """The weights in tenths that rerank development lists to the highest BLEU.

    Of equals the one nearest to even weights is taken.
    """
    names = [str(name) for name in NAMED[objective]]
    settings = bench.recipe.tuning
    part = bench.dev.first(settings.sentences)
    found = n_best(bench, part, settings.best)
    lists = [
        [NBestLine(n, text, features, 0.0) for text, features in one]
        for n, one in enumerate(found.lists)
    ]
    cached = cached_lists(
        lists, Rerank(dict.fromkeys(names, 1.0)), [list(part.references)], bench.bleu
    )
    tried = np.array(tenths(len(names)))
    scores = score_weights(cached, tried, bench.bleu)
    uneven = ((tried - 1 / len(names)) ** 2).sum(-1)
    best = min(range(len(tried)), key=lambda n: (-round(float(scores[n]), 6), uneven[n]))
    table = {_name(names, row): float(s) for row, s in zip(tried, scores, strict=True)}
    return {
        "sentences": len(part.sources),
        "chosen": _name(names, tried[best]),
        "even": float(scores[int(uneven.argmin())]),
        "bleu": table,
    }


def _name(names: list[str], row: Any) -> str:
    return show_weights(dict(zip(names, row.tolist(), strict=True)))


def tenths(terms: int) -> list[list[float]]:
    """All weights above 0 in tenths that sum to 1.

    >>> tenths(2)[:2]
    [[0.1, 0.9], [0.2, 0.8]]
    """

    def parts(left: int, terms: int) -> list[list[int]]:
        if terms == 1:
            return [[left]]
        firsts = range(1, left - terms + 2)
        return [[first, *rest] for first in firsts for rest in parts(left - first, terms - 1)]

    return [[n / STEPS_OF_TEN for n in row] for row in parts(STEPS_OF_TEN, terms)]


def choose_step(
    bench: Workbench, decoder: str, objective: str, sizes: tuple[float, ...]
) -> dict[str, Any]:
    """The step size after which the strings cost least, from the beam's best."""
    part = bench.dev.first(bench.recipe.tuning.step_sentences)
    costs = {}
    for size in sizes:
        options = {"decoder": decoder, "init": "beam", "objective": objective, "step": size}
        found = decode(bench, part, options)
        costs[size] = float(np.mean(found.discrete))
    best = min(costs, key=lambda size: costs[size])
    table = {f"{size:g}": cost for size, cost in costs.items()}
    return {"sentences": len(part.sources), "chosen": best, "costs": table}
