"""Search by the joint cost: relaxed search with edits, reranked lists of a beam or of samples.

    python benchmarks/search_table.py FAMILY SOURCE REFERENCE --objective joint --output NAME

One interleaved run: the test set is cut into parts, and every part is given to all systems in turn,
so that a busy machine slows all of them alike. NAME.json has all figures, NAME.md the tables and
NAME.svg the trade-off between time and joint cost or BLEU. Columns:

cost    the weighted sum of the terms, each divided by its own words: what every system minimises
found   share of sentences whose string is as good as the best that any system of the run found
CPU ms  of the processor for a sentence, the search for starts and lists included
p       paired approximate randomisation of BLEU against beam search, and against reranking
worse   share of the strings cheaper than beam search's that have a lower chrF

Below the table stands the mean cost of the cheapest string that any system found: no search can
end below the least cost there is, so this bounds what a better one could still gain.

`--groups` chooses what is run: lists (reranked lists of growing size), samples (the same of drawn
strings), budgets (search with edits within growing budgets), edits (its default), ablation (the
default with one ingredient changed).
"""

from __future__ import annotations

import argparse
import json
import re
from collections.abc import Iterator
from typing import Any

import numpy as np
import torch
from setting import add_test_set, read

from simplexity import build
from simplexity.api import Loaded
from simplexity.bench.setting import machine
from simplexity.bench.turns import NONE, Timing, timed
from simplexity.config import TranslateConfig
from simplexity.decode import Hypothesis
from simplexity.edit.decoder import EditDecoder
from simplexity.evaluate.metrics import average_length, from_sufficient, metric_named, sufficient
from simplexity.evaluate.significance import approximate_randomisation
from simplexity.initialise import Starts
from simplexity.relax.tokens import pad_batch
from simplexity.settings import load_config
from simplexity.show.chart import chart, panels
from simplexity.text.vocabulary import PAD

BLEU, CHRF = metric_named("bleu", "13a"), metric_named("chrf", "13a")
YARDSTICK = "rerank 100"
SIZES = (5, 10, 20, 50, 100, 200)
BUDGETS = (20, 40, 80, 160, 320)
EDITS: dict[str, Any] = {"decoder": "edits"}
ABLATIONS: dict[str, dict[str, Any]] = {
    "with a descent": {"iterations": 2},
    "descent alone": {"substitutions": 0, "insertions": 0, "deletions": 0, "iterations": 8},
    "no substitutions": {"substitutions": 0},
    "no insertions": {"insertions": 0},
    "no deletions": {"deletions": 0},
    "lengths kept": {"insertions": 0, "deletions": 0},
    "predicted lengths": {"lengths": "predicted"},
    "starts alone": {"rounds": 0},
    "beam 5": {"beam_size": 5},
    "beam 100": {"beam_size": 100},
    "one start": {"beam_size": 5, "starts": 1},
    "patience 1": {"patience": 1},
    "patience 2": {"patience": 2},
    "all words, fp32": {"exact": True},
}


def systems(groups: set[str]) -> dict[str, dict[str, Any]]:
    """The settings of every system."""
    chosen: dict[str, dict[str, Any]] = {"beam-5": {"decoder": "beam", "objective": "forward"}}
    for size in SIZES if "lists" in groups else (100,):
        chosen[f"rerank {size}"] = {"decoder": "rerank", "beam_size": size}
    if "samples" in groups:
        for size in SIZES[1:]:
            settings = {"decoder": "rerank", "lists": "sample", "beam_size": size}
            chosen[f"sample {size}"] = settings
    if "budgets" in groups:
        for budget in BUDGETS:
            chosen[f"edits, budget {budget}"] = {**EDITS, "budget": str(budget)}
    if groups & {"edits", "ablation"}:
        chosen["edits"] = EDITS
    if "ablation" in groups:
        chosen |= {f"edits, {name}": {**EDITS, **given} for name, given in ABLATIONS.items()}
    return chosen


class System:
    """A decoder, the strings that it found so far, and the time that it took."""

    def __init__(self, loaded: Loaded, settings: dict[str, Any]) -> None:
        config = load_config(TranslateConfig, None, {"model": loaded.family.directory, **settings})
        self.translate = build.translator(config, loaded.family)
        self.found: list[Hypothesis] = []
        self.strings = 0
        self.time: Timing = NONE

    def take(self, lines: list[str]) -> None:
        """Translate a part of the test set."""
        spent, answers = timed(len(lines), lambda: list(self.translate(lines)))
        self.time += spent
        self.found += [hypotheses[0] for hypotheses in answers]
        self.strings += sum(map(len, answers))


def figures(
    every: dict[str, System], costs: dict[str, np.ndarray], references: list[str]
) -> dict[str, dict[str, Any]]:
    """The rows of the table."""
    counts = {
        name: sufficient(BLEU, [h.text for h in system.found], [references])
        for name, system in every.items()
    }
    likeness = {
        name: np.array([float(from_sufficient(CHRF, row)) for row in found])
        for name, found in (
            (name, sufficient(CHRF, [h.text for h in system.found], [references]))
            for name, system in every.items()
        )
    }
    best = np.min(list(costs.values()), axis=0)
    rows = {}
    for name, system in every.items():
        row: dict[str, Any] = {
            "bleu": float(from_sufficient(BLEU, counts[name].sum(0))),
            "length": average_length([h.text for h in system.found]),
            "cpu_ms": 1000 * system.time.cpu_seconds / len(references),
            "ms": 1000 * system.time.seconds / len(references),
            "strings": system.strings / len(references),
            "cost": float(costs[name].mean()),
            "found": float((costs[name] <= best + 1e-4).mean()),
        }
        cheaper = costs[name] < costs["beam-5"] - 1e-4
        if cheaper.any():
            row["worse"] = float((likeness[name] < likeness["beam-5"])[cheaper].mean())
        for column, other in (("p_beam", "beam-5"), ("p_rerank", YARDSTICK)):
            if name != other:
                test = approximate_randomisation(counts[name], counts[other], BLEU, samples=2000)
                row[column] = float(test.p_value)
        rows[name] = row
    return rows


def joint_costs(
    loaded: Loaded, every: dict[str, System], lines: list[str], objective: str
) -> dict[str, np.ndarray]:
    """The exact joint cost of every system's strings, by the one scorer."""
    settings = {"model": loaded.family.directory, "objective": objective, "decoder": "edits"}
    config = load_config(TranslateConfig, None, {**settings, "rounds": 0, "starts": 1})
    score = build.translator(config, loaded.family).decoder
    assert isinstance(score, EditDecoder)
    sources = [loaded.family["l2r"].source.encode(line) for line in lines]
    costs = {}
    for name, system in every.items():
        found: list[float] = []
        for first in range(0, len(lines), 100):
            some = slice(first, first + 100)
            strings = pad_batch([list(h.ids) for h in system.found[some]], PAD)
            starts = Starts(strings, torch.arange(len(strings.ids)))
            answers = score(pad_batch(sources[some], PAD), starts)
            found += [hypotheses[0].discrete_cost for hypotheses in answers]
        costs[name] = np.array(found)
    return costs


def parts(lines: list[str], size: int) -> Iterator[list[str]]:
    for first in range(0, len(lines), size):
        yield lines[first : first + size]


def picture(rows: dict[str, dict[str, Any]], title: str) -> str:
    """Joint cost and BLEU against time."""
    kinds = {"beam, reranked": "rerank ", "samples, reranked": "sample ", "edits": "edits, budget "}
    charts = []
    for column, label in (("cost", "joint cost per word"), ("bleu", "BLEU")):
        curves = {
            kind: [(row["cpu_ms"], row[column]) for name, row in rows.items() if name.startswith(p)]
            for kind, p in kinds.items()
        }
        known = {kind: points for kind, points in curves.items() if points}
        charts.append(chart(title, "CPU ms a sentence", label, known))
    return panels(charts)


COLUMNS = ("cost", "found", "bleu", "p_beam", "p_rerank", "worse", "length", "strings", "cpu_ms")
DIGITS = {"cost": 4, "bleu": 2, "p_beam": 3, "p_rerank": 3, "length": 2, "strings": 1, "cpu_ms": 1}
HEADER = (
    "| system | cost | found | BLEU | p (beam-5) | p (rerank 100) | worse | words | strings "
    "| CPU ms | / rerank 100 |\n" + "|---" * 11 + "|"
)


def markdown(rows: dict[str, dict[str, Any]]) -> str:
    """The table."""
    lines = [HEADER]
    for name, row in rows.items():
        cells = [
            ""
            if column not in row
            else f"{row[column]:.0%}"
            if column in ("found", "worse")
            else f"{row[column]:.{DIGITS[column]}f}"
            for column in COLUMNS
        ]
        share = row["cpu_ms"] / rows[YARDSTICK]["cpu_ms"]
        lines.append("| " + " | ".join([name, *cells, f"{share:.2f}"]) + " |")
    return "\n".join(lines) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add_test_set(parser)
    parser.add_argument("--limit", type=int, help="so many sentences only")
    parser.add_argument("--objective", default="joint")
    parser.add_argument("--groups", default="lists,samples,budgets,edits")
    parser.add_argument("--only", help="of these the systems whose names hold this pattern")
    parser.add_argument("--part", type=int, default=250, help="sentences given in a turn")
    given = parser.parse_args()
    loaded, lines, references = read(given, given.limit)
    chosen = systems(set(given.groups.split(",")))
    if given.only:
        always = ("beam-5", YARDSTICK)
        chosen = {n: s for n, s in chosen.items() if n in always or re.search(given.only, n)}
    every = {
        name: System(loaded, {"objective": given.objective, **settings})
        for name, settings in chosen.items()
    }
    list(every["beam-5"].translate(lines[:64]))  # warm up
    for number, part in enumerate(parts(lines, given.part)):
        for name, system in every.items():
            system.take(part)
            print(f"part {number + 1}, {name}: {system.time.cpu_seconds:.1f} s", flush=True)
    costs = joint_costs(loaded, every, lines, given.objective)
    rows = figures(every, costs, references)
    least = float(np.min(list(costs.values()), axis=0).mean())
    table = f"{markdown(rows)}\nThe cheapest strings found by any: {least:.4f}.\n"
    print(table)
    content = {
        "machine": machine(),
        "objective": given.objective,
        "sentences": len(lines),
        "settings": chosen,
        "rows": rows,
        "least": least,
    }
    given.output.with_suffix(".json").write_text(json.dumps(content, indent=1) + "\n")
    given.output.with_suffix(".md").write_text(table)
    given.output.with_suffix(".svg").write_text(picture(rows, f"objective {given.objective}"))


if __name__ == "__main__":
    main()
