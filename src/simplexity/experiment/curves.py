"""Figures 1 to 3: descents followed iteration by iteration."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import torch
from torch import Tensor

from simplexity import build
from simplexity.decode import Descent, Watch
from simplexity.evaluate.metrics import from_sufficient, sufficient
from simplexity.experiment.tuning import Chosen
from simplexity.experiment.workbench import Options, Part, Workbench, shown
from simplexity.objectives import parse_objective
from simplexity.relax.optimise import Iterate
from simplexity.relax.tokens import harden
from simplexity.rerank import score_nbest

PAPER: Options = {"preset": "paper", "objective": "forward"}
PLAIN: Options = {**PAPER, "decoder": "eg", "update": "plain", "step": 40.0}

# The paper's caption gives step 40 to EG and 400 to EG-400, its text 50 to EG with momentum.
FIGURE1: dict[str, Options] = {
    "EG uniform": {**PLAIN, "init": "uniform"},
    "EG greedy": {**PLAIN, "init": "greedy"},
    "EG beam": {**PLAIN, "init": "beam"},
    "EG-400 uniform": {**PLAIN, "init": "uniform", "step": 400.0},
    "annealed uniform": {**PLAIN, "init": "uniform", "step": 400.0, "anneal": 0.1},
    "EG-MOM beam": {**PAPER, "decoder": "eg", "init": "beam", "step": 50.0},
}
SGD: Options = {**PAPER, "decoder": "sgd", "init": "beam", "step": 50.0}


@dataclass
class Followed:
    """What passed: for each sentence the best cost and its string at every iteration.

    After n updates the answer of Algorithms 1 and 2 is the rounding of argmin_{t <= n} Q(y_t).
    """

    costs: list[list[float]] = field(default_factory=list)
    strings: list[list[tuple[int, ...]]] = field(default_factory=list)

    def of(self, sentences: Sequence[int]) -> Watch:
        """Sees a batch of these sentences, each of which has one start."""

        def look(descent: Descent, owner: Tensor) -> Descent:
            places = [sentences[row] for row in owner.tolist()]
            best = None
            iterate = next(descent)
            while True:
                best = _better(best, iterate)
                self._note(best, [places[row] for row in iterate.rows.tolist()])
                keep = yield iterate
                if keep is not None:
                    best = Best(*(column[keep] for column in vars(best).values()))
                iterate = next(descent) if keep is None else descent.send(keep)

        return look

    def _note(self, best: Best, places: list[int]) -> None:
        words = [row[:n] for row, n in zip(best.ids.tolist(), best.words.tolist(), strict=True)]
        for place, cost, string in zip(places, best.cost.tolist(), words, strict=True):
            self.costs[place].append(cost)
            self.strings[place].append(tuple(string))


@dataclass(frozen=True)
class Best:
    """The best point so far of each row: its cost, its rounding, how many words that has."""

    cost: Tensor
    ids: Tensor
    words: Tensor


def _better(best: Best | None, iterate: Iterate) -> Best:
    now = harden(iterate.y)
    if best is None:
        return Best(iterate.cost, now.ids, now.mask.sum(-1))
    less = iterate.cost < best.cost
    return replace(
        best,
        cost=torch.where(less, iterate.cost, best.cost),
        ids=torch.where(less[:, None], now.ids, best.ids),
    )


def figure1(bench: Workbench) -> dict[str, Any]:
    """Where descent starts, how large its steps are, annealing and momentum."""
    return {name: follow(bench, options) for name, options in FIGURE1.items()}


def figure2(bench: Workbench) -> dict[str, Any]:
    """Discrete against continuous cost of every sentence, EG with momentum from the beam."""
    return follow(bench, FIGURE1["EG-MOM beam"])


def figure3(bench: Workbench, choice: Chosen) -> dict[str, Any]:
    """EG against SGD, in the paper's setting and in the default one."""
    usual = {name: choice.options(name, "beam", "bidirectional") for name in ("eg", "sgd")}
    return {
        "paper": {"EG": follow(bench, FIGURE1["EG-MOM beam"]), "SGD": follow(bench, SGD)},
        "default": {name.upper(): follow(bench, options) for name, options in usual.items()},
    }


def follow(bench: Workbench, options: Options) -> dict[str, Any]:
    """Costs a word and BLEU of the answers after each number of iterations, on dev sentences.

    points: the continuous and the discrete cost a word of each sentence at the end.
    """
    settings = bench.recipe.curves
    part = bench.dev.first(settings.sentences)
    options = {**options, "iterations": settings.iterations}
    key = {"part": part.digest, "options": options}

    def compute() -> dict[str, Any]:
        bench.talk(f"{part.name}, {len(part.sources)} sentences followed: {shown(options)}")
        number = len(part.sources)
        passed = Followed([[] for _ in range(number)], [[] for _ in range(number)])
        begun = list(build.translator(bench.config(options), bench.family, passed)(part.sources))
        assert len(begun) == number
        return _summary(bench, part, options, passed)

    found: dict[str, Any] = bench.cache.get(follow, key, compute)
    return {"options": options, **found}


def _summary(bench: Workbench, part: Part, options: Options, passed: Followed) -> dict[str, Any]:
    """Means over the sentences for each number of iterations."""
    config = bench.config(options).resolved()
    last = config.iterations or 0
    scored = _discrete(bench, part, config.objective, passed.strings)
    decode = bench.family["l2r"].target.decode
    rows: dict[str, list[float]] = {"continuous": [], "discrete": [], "bleu": []}
    points: list[tuple[float, float]] = []
    for t in range(last + 1):
        # A sentence that left early keeps its last answer.
        strings = [found[min(t, len(found) - 1)] for found in passed.strings]
        relaxed = [found[min(t, len(found) - 1)] for found in passed.costs]
        if config.normalise == "sum":
            relaxed = [q / (len(y) + 1) for q, y in zip(relaxed, strings, strict=True)]
        rounded = [costs[y] for costs, y in zip(scored, strings, strict=True)]
        points = list(zip(relaxed, rounded, strict=True))
        texts = [decode(y) for y in strings]
        counts = sufficient(bench.bleu, texts, [list(part.references)]).sum(0)
        rows["continuous"].append(sum(relaxed) / len(relaxed))
        rows["discrete"].append(sum(rounded) / len(rounded))
        rows["bleu"].append(float(from_sufficient(bench.bleu, counts)))
    return {"sentences": len(part.sources), **rows, "points": points}


def _discrete(
    bench: Workbench, part: Part, objective: str, strings: list[list[tuple[int, ...]]]
) -> list[dict[tuple[int, ...], float]]:
    """The exact cost a word of every string that a sentence went through; each scored once."""
    weights = parse_objective(objective)
    scorer = build.scorer(weights, bench.family, 64)
    encode = bench.family["l2r"].source.encode
    distinct = [list(dict.fromkeys(found)) for found in strings]
    asked = [(encode(line), found) for line, found in zip(part.sources, distinct, strict=True)]
    tables = score_nbest(asked, scorer)
    return [
        {
            y: sum(w * c for w, c in zip(weights.values(), row, strict=True)) / (len(y) + 1)
            for y, row in zip(found, table.tolist(), strict=True)
        }
        for found, table in zip(distinct, tables, strict=True)
    ]
