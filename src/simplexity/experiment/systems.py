"""Tables 2 and 3 and what lies beyond: systems on the test set, with significance."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

import numpy as np

from simplexity.evaluate.comparison import compare
from simplexity.evaluate.metrics import sufficient
from simplexity.evaluate.significance import paired_bootstrap
from simplexity.experiment.lists import n_best
from simplexity.experiment.tuning import Chosen
from simplexity.experiment.workbench import Decoded, Options, Workbench, decode

Row = dict[str, Any]
SAME = 1e-4
"""Costs that differ by less are equal."""


def table2(bench: Workbench, choice: Chosen) -> dict[str, Any]:
    """The main results: a half of systems from greedy search, one of systems from beam search."""
    return {start: half(bench, choice, start) for start in ("greedy", "beam")}


def half(bench: Workbench, choice: Chosen, start: str) -> dict[str, Any]:
    """Search in both directions, and EG from the left-to-right one, by objective."""
    names = {
        f"{start} l2r": {"decoder": start},
        f"{start} r2l": {"decoder": start, "member": "r2l"},
        f"EG from {start}": choice.options("eg", start, "forward"),
        "+bidirectional": choice.options("eg", start, "bidirectional"),
        "+bilingual": choice.options("eg", start, "bilingual"),
        "+joint": choice.options("eg", start, "joint"),
    }
    found = {name: decode(bench, bench.test, options) for name, options in names.items()}
    baseline = best_of(bench, {name: found[name].texts for name in list(names)[:2]})
    return {"baseline": baseline, "rows": rows(bench, found, baseline)}


def best_of(bench: Workbench, texts: Mapping[str, list[str]]) -> str:
    """The system of highest BLEU."""
    table = compare(texts, [list(bench.test.references)], [bench.bleu])
    return max(table.rows, key=lambda row: row.cells[0].value).system


def rows(
    bench: Workbench, found: Mapping[str, Decoded | list[str]], baseline: str
) -> dict[str, Row]:
    """Every system judged, and tested against the baseline by paired bootstrap."""
    texts = {name: texts_of(system) for name, system in found.items()}
    table = compare(texts, [list(bench.test.references)], [bench.bleu], baseline)
    judged = {}
    for row, system in zip(table.rows, found.values(), strict=True):
        cell = row.cells[0]
        judged[row.system] = {
            "bleu": cell.value,
            "interval": asdict(cell.interval),
            "p": None if cell.against is None else cell.against.p_value,
            "better": cell.better,
            "best": cell.best,
            "length": row.lengths.average,
            **(spent(system) if isinstance(system, Decoded) else {}),
        }
    return judged


def texts_of(system: Decoded | list[str]) -> list[str]:
    """What a system wrote."""
    return system.texts if isinstance(system, Decoded) else system


def spent(found: Decoded) -> Row:
    """Costs before and after, and time, a sentence."""
    number = len(found.texts)
    row: Row = {
        "ms": 1000 * found.seconds / number,
        "cpu_ms": 1000 * found.cpu_seconds / number,
    }
    begun = [cost for cost in found.initial if cost is not None]
    if len(begun) == number:
        change = np.array(found.discrete) - np.array(begun)
        row |= {
            "start": float(np.mean(begun)),
            "cost": float(np.mean(found.discrete)),
            "improved": int((change < -SAME).sum()),
            "worsened": int((change > SAME).sum()),
        }
    return row


def table3(bench: Workbench, choice: Chosen) -> dict[str, Any]:
    """EG against reranking by the same objective, as the paper has it and jointly."""
    lists = n_best(bench, bench.test, bench.recipe.best)
    beam = decode(bench, bench.test, {"decoder": "beam"})
    tables: dict[str, Any] = {
        "size": bench.recipe.best,
        "ms": 1000 * lists.seconds / len(bench.test.sources),
        "cpu_ms": 1000 * lists.cpu_seconds / len(bench.test.sources),
    }
    for objective in ("bidirectional", "joint"):
        weights = choice.objective(objective)
        full = lists.reranked(weights)
        from_beam = choice.options("eg", "beam", objective)
        given: Options = {k: v for k, v in from_beam.items() if k != "init"}
        found: dict[str, Decoded | list[str]] = {
            "beam l2r": beam,
            "filtered rerank": lists.reranked(weights, filtered=True),
            "EG from beam": decode(bench, bench.test, from_beam),
            "full rerank": full,
            "EG from rerank": decode(bench, bench.test, given, full),
        }
        judged = rows(bench, found, "beam l2r")
        for name, other in (("EG from beam", "filtered rerank"), ("EG from rerank", "full rerank")):
            judged[name]["p_rerank"] = p_value(bench, texts_of(found[name]), texts_of(found[other]))
        tables[objective] = judged
    return tables


def beyond(bench: Workbench, choice: Chosen) -> dict[str, Any]:
    """The search with edits and free lengths, against beam search and reranking."""
    lists = n_best(bench, bench.test, bench.recipe.best)
    found: dict[str, Decoded | list[str]] = {
        "beam l2r": decode(bench, bench.test, {"decoder": "beam"})
    }
    others = {}
    for objective in ("bidirectional", "bilingual", "joint"):
        weights = choice.objective(objective)
        reranked = f"full rerank, {objective}"
        found[reranked] = lists.reranked(weights)
        edited = f"edits, {objective}"
        found[edited] = decode(bench, bench.test, {"decoder": "edits", "objective": weights})
        others[edited] = reranked
    judged = rows(bench, found, "beam l2r")
    for name, other in others.items():
        judged[name]["p_rerank"] = p_value(bench, texts_of(found[name]), texts_of(found[other]))
    return judged


def p_value(bench: Workbench, one: list[str], other: list[str]) -> float:
    """Paired bootstrap of BLEU."""
    references = [list(bench.test.references)]
    first, second = (sufficient(bench.bleu, texts, references) for texts in (one, other))
    return float(paired_bootstrap(first, second, bench.bleu).p_value)
