"""Reranking against relaxed decoding on one test set (paper, Table 3, with significance).

    simplexity translate -m FAMILY -i SOURCE -o LIST --decoder rerank --objective joint \\
      --beam-size 100 --n-best 100 --output-type nbest
    python benchmarks/rerank_table.py FAMILY SOURCE REFERENCE --nbest LIST --output NAME

LIST holds the scores of all three models, so every reranking is done without a model; EG starts
from beam-5, and from the string that full reranking by the same objective chose. `p` is by paired
approximate randomisation of BLEU. Costs are per word, each term by its own words.
"""

from __future__ import annotations

import argparse
import json
import os
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from setting import add_test_set, read

from simplexity import build
from simplexity.api import Loaded
from simplexity.config import TranslateConfig
from simplexity.decode import Hypothesis
from simplexity.evaluate.metrics import average_length, from_sufficient, metric_named, sufficient
from simplexity.evaluate.significance import approximate_randomisation
from simplexity.objectives import NAMED
from simplexity.search.nbest import NBestLine
from simplexity.search.nbest_file import Lines, read_lists, with_features
from simplexity.search.rerank import SOURCE_TOKENS, TOKENS, Rerank
from simplexity.settings import load_config

OBJECTIVES = ("bidirectional", "bilingual", "joint")
BLEU = metric_named("bleu", "13a")


def in_beam_order(loaded: Loaded, lines: list[str], path: Path) -> list[list[NBestLine]]:
    """The lists with their words counted, in the order in which l2r alone ranks them."""
    forward = loaded.family["l2r"]
    found = []
    for source, hypotheses in zip(lines, read_lists(Lines(path, str(path))), strict=True):
        words = len(forward.source.encode(source))
        counted = [
            with_features(h, {TOKENS: len(forward.target.encode(h.text)), SOURCE_TOKENS: words})
            for h in hypotheses
        ]
        found.append([counted[i] for i in Rerank({"l2r": 1.0}).order(features(counted))])
    return found


def features(hypotheses: Sequence[NBestLine]) -> list[dict[str, float]]:
    """What each hypothesis is ranked by."""
    return [hypothesis.features for hypothesis in hypotheses]


def improve(
    loaded: Loaded, lines: list[str], starts: list[str], objective: str
) -> tuple[list[Hypothesis], float]:
    """EG from given strings, and the seconds it took."""
    settings = {"model": loaded.family.directory, "decoder": "eg", "objective": objective}
    config = load_config(TranslateConfig, None, settings)
    translator = build.translator(config, loaded.family)
    begun = time.perf_counter()
    found = [one[0] for one in translator.improve(zip(lines, starts, strict=True))]
    return found, time.perf_counter() - begun


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    add_test_set(parser)
    parser.add_argument("--nbest", type=Path, required=True)
    given = parser.parse_args()
    loaded, lines, references = read(given)
    lists = in_beam_order(loaded, lines, given.nbest)
    begun = time.perf_counter()
    beam = loaded.translate(lines, decoder="beam")
    beam_seconds = time.perf_counter() - begun
    table = Table(references, [h.text for h in beam])
    table.add("beam-5", [h.text for h in beam], seconds=beam_seconds)
    for objective in OBJECTIVES:
        weights = {str(name): weight for name, weight in NAMED[objective].items()}
        full = [found[Rerank(weights).order(features(found))[0]].text for found in lists]
        filtered_rule = Rerank(weights, filtered=True)
        filtered = [found[filtered_rule.order(features(found))[0]].text for found in lists]
        table.add(f"filtered 100-best reranking, {objective}", filtered)
        table.add(f"full 100-best reranking, {objective}", full)
        for name, starts in (("beam-5", [h.text for h in beam]), ("reranking", full)):
            found, seconds = improve(loaded, lines, starts, objective)
            table.add(f"EG from {name}, {objective}", found, against=full, seconds=seconds)
    table.save(given.output)


class Table:
    """Rows of systems, each compared with beam search and perhaps with reranking."""

    def __init__(self, references: list[str], beam: list[str]) -> None:
        self.references = references
        self.beam = self._statistics(beam)
        self.rows: dict[str, dict[str, Any]] = {}

    def add(
        self,
        name: str,
        system: Sequence[str | Hypothesis],
        against: list[str] | None = None,
        seconds: float | None = None,
    ) -> None:
        """Judge one system."""
        texts = [h if isinstance(h, str) else h.text for h in system]
        statistics = self._statistics(texts)
        row: dict[str, Any] = {"bleu": float(from_sufficient(BLEU, statistics.sum(0)))}
        row["length"] = average_length(texts)
        row["p beam"] = self._p(statistics, self.beam)
        if against is not None:
            row["p reranking"] = self._p(statistics, self._statistics(against))
        if seconds is not None:
            row["ms"] = 1000 * seconds / len(texts)
        decoded = [h for h in system if isinstance(h, Hypothesis) and h.initial_cost is not None]
        if decoded:
            row["start"] = sum(h.initial_cost or 0.0 for h in decoded) / len(decoded)
            row["cost"] = sum(h.discrete_cost for h in decoded) / len(decoded)
            row["improved"] = sum(h.discrete_cost < (h.initial_cost or 0) - 1e-4 for h in decoded)
            row["worsened"] = sum(h.discrete_cost > (h.initial_cost or 0) + 1e-4 for h in decoded)
        self.rows[name] = row
        print(markdown(name, row), flush=True)

    def save(self, output: Path) -> None:
        """Write NAME.json and NAME.md."""
        content = {"load": os.getloadavg(), "rows": self.rows}
        output.with_suffix(".json").write_text(json.dumps(content, indent=1) + "\n")
        lines = [HEADER, *(markdown(name, row) for name, row in self.rows.items())]
        output.with_suffix(".md").write_text("\n".join(lines) + "\n")

    def _statistics(self, texts: list[str]) -> Any:
        return sufficient(BLEU, texts, [self.references])

    def _p(self, one: Any, other: Any) -> float:
        return float(approximate_randomisation(one, other, BLEU, samples=2000).p_value)


COLUMNS = ("bleu", "p beam", "p reranking", "length", "start", "cost", "improved", "worsened", "ms")
HEADER = "\n".join(
    [
        "| system | BLEU | p (beam-5) | p (reranking) | words | cost before | after | improved "
        "| worsened | ms/sentence |",
        "|---" * 10 + "|",
    ]
)
DIGITS = {"bleu": 2, "p beam": 3, "p reranking": 3, "length": 2, "start": 3, "cost": 3, "ms": 1}


def markdown(name: str, row: dict[str, Any]) -> str:
    """One line of the table."""
    cells = [f"{row[c]:.{DIGITS.get(c, 0)}f}" if c in row else "" for c in COLUMNS]
    return "| " + " | ".join([name, *cells]) + " |"


if __name__ == "__main__":
    main()
