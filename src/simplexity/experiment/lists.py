"""N-best lists with the scores of all models, and what reranking makes of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from simplexity import build
from simplexity.bench.turns import timed
from simplexity.experiment.workbench import Part, Workbench
from simplexity.objectives import parse_objective
from simplexity.rerank import features_of
from simplexity.search.rerank import Rerank


@dataclass(frozen=True)
class Listed:
    """The strings of a beam for every sentence, in its order, with features by name."""

    lists: list[list[tuple[str, dict[str, float]]]]
    seconds: float
    cpu_seconds: float

    def features(self, sentence: int) -> list[dict[str, float]]:
        """What the strings of one sentence are ranked by."""
        return [features for _, features in self.lists[sentence]]

    def reranked(self, objective: str, filtered: bool = False) -> list[str]:
        """The best string of each sentence under an objective, costs divided by words."""
        weights = {str(name): weight for name, weight in parse_objective(objective).items()}
        rule = Rerank(weights, filtered=filtered)
        best = [rule.order(self.features(n))[0] for n in range(len(self.lists))]
        return [found[place][0] for found, place in zip(self.lists, best, strict=True)]


def n_best(bench: Workbench, part: Part, size: int) -> Listed:
    """The lists of a beam of this size, scored by all three models."""
    key = {"part": part.digest, "size": size}
    options = {"decoder": "rerank", "objective": "joint", "beam_size": size}

    def compute() -> dict[str, Any]:
        bench.talk(f"{part.name}, {len(part.sources)} sentences: lists of {size}")
        translator = build.n_best_translator(bench.config(options), bench.family)
        spent, answers = timed(len(part.sources), lambda: list(translator(part.sources)))
        vocabulary = bench.family["l2r"].source
        counts = [len(vocabulary.encode(line)) for line in part.sources]
        lists = [
            [(h.text, features_of(h, words)) for h in found]
            for found, words in zip(answers, counts, strict=True)
        ]
        return {"lists": lists, "seconds": spent.seconds, "cpu_seconds": spent.cpu_seconds}

    return Listed(**bench.cache.get(n_best, key, compute))
