"""Discrete and relaxed decoders side by side on one test set: quality, costs, time.

    python benchmarks/relaxed_table.py FAMILY SOURCE REFERENCE --output NAME

writes NAME.json (everything, also the continuous and the discrete cost of every sentence) and
NAME.md (the table). Joint costs are those of each row's own objective; the reference for `p` is
beam search (paired approximate randomisation of BLEU).
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Iterable
from typing import Any

from setting import add_test_set, read

from simplexity.api import Loaded
from simplexity.bench.setting import machine
from simplexity.decode import Hypothesis
from simplexity.evaluate.metrics import from_sufficient, metric_named, sufficient
from simplexity.evaluate.significance import approximate_randomisation

OBJECTIVES = ("forward", "bidirectional", "bilingual", "joint")


def systems(decoders: list[str], starts: list[str]) -> dict[str, dict[str, Any]]:
    """The settings of every row of the table."""
    rows: dict[str, dict[str, Any]] = {
        "greedy": {"decoder": "greedy"},
        "beam-5": {"decoder": "beam"},
        "beam-5 r2l": {"decoder": "beam", "member": "r2l"},
    }
    for start in starts:
        for decoder in decoders:
            for objective in OBJECTIVES:
                settings = {"decoder": decoder, "init": start, "objective": objective}
                rows[f"{decoder} from {start}, {objective}"] = settings
    return rows


def measure(loaded: Loaded, lines: list[str], settings: dict[str, Any]) -> dict[str, Any]:
    """Decode once; the hypotheses' figures and the time they took."""
    begun, cpu = time.perf_counter(), time.process_time()
    found = loaded.translate(lines, **settings)
    seconds, cpu_seconds = time.perf_counter() - begun, time.process_time() - cpu
    return {"found": found, "seconds": seconds, "cpu_seconds": cpu_seconds}


def costs(found: list[Hypothesis]) -> dict[str, Any]:
    """Costs before and after, in nats a sentence."""
    pairs = [(h.initial_cost, h.discrete_cost) for h in found if h.initial_cost is not None]
    if not pairs:
        return {}
    continuous = [h.continuous_cost for h in found if h.continuous_cost is not None]
    return {
        "start": mean(a for a, _ in pairs),
        "cost": mean(b for _, b in pairs),
        "improved": sum(b < a - 1e-4 for a, b in pairs),
        "worsened": sum(b > a + 1e-4 for a, b in pairs),
        "iterations": mean(h.iterations for h in found),
        "apart": mean(
            abs(c - b) > 0.05 * max(len(h.ids) + 1, 1)
            for h, (_, b), c in zip(found, pairs, continuous, strict=True)
        ),
        "pairs": [[round(c, 5), round(b, 5)] for c, (_, b) in zip(continuous, pairs, strict=True)],
    }


def mean(values: Iterable[float]) -> float:
    listed = list(values)
    return sum(listed) / max(len(listed), 1)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    add_test_set(parser)
    parser.add_argument("--limit", type=int, help="so many sentences only")
    parser.add_argument("--decoders", default="eg,sgd")
    parser.add_argument("--starts", default="greedy,beam")
    parser.add_argument("--batch-size", type=int, default=64)
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE")
    given = parser.parse_args()
    loaded, lines, references = read(given, given.limit)
    bleu = metric_named("bleu", "13a")
    extra = dict(pair.split("=", 1) for pair in given.set)
    measure(loaded, lines[:64], {"decoder": "beam"})  # warm up
    rows: dict[str, dict[str, Any]] = {}
    for name, settings in systems(given.decoders.split(","), given.starts.split(",")).items():
        relaxed = extra if settings["decoder"] not in ("greedy", "beam") else {}
        run = measure(loaded, lines, {**settings, **relaxed, "batch_size": given.batch_size})
        statistics = sufficient(bleu, [h.text for h in run["found"]], [references])
        rows[name] = {
            "bleu": float(from_sufficient(bleu, statistics.sum(0))),
            "seconds": run["seconds"] / len(lines),
            "cpu_seconds": run["cpu_seconds"] / len(lines),
            **costs(run["found"]),
        }
        if name == "beam-5":
            baseline = statistics
        elif name != "greedy":
            test = approximate_randomisation(statistics, baseline, bleu, samples=2000)
            rows[name]["p"] = test.p_value
        print(row(name, rows[name], rows.get("beam-5")), flush=True)
    content = {"machine": {**machine(), "settings": extra}, "sentences": len(lines), "rows": rows}
    given.output.with_suffix(".json").write_text(json.dumps(content, indent=1) + "\n")
    table = [HEADER, *(row(name, found, rows["beam-5"]) for name, found in rows.items())]
    given.output.with_suffix(".md").write_text("\n".join(table) + "\n")


HEADER = (
    "| decoder | BLEU | p | cost before | after | improved | worsened | iterations | ms/sentence "
    "| / beam-5 |\n|---|---|---|---|---|---|---|---|---|---|"
)


def row(name: str, found: dict[str, Any], beam: dict[str, Any] | None) -> str:
    """One line of the Markdown table."""
    cells = [name, f"{found['bleu']:.2f}", f"{found['p']:.3f}" if "p" in found else ""]
    if "start" in found:
        cells += [f"{found['start']:.3f}", f"{found['cost']:.3f}"]
        cells += [str(found["improved"]), str(found["worsened"]), f"{found['iterations']:.1f}"]
    else:
        cells += [""] * 5
    cells.append(f"{1000 * found['seconds']:.1f}")
    cells.append(f"{found['seconds'] / beam['seconds']:.2f}" if beam else "")
    return "| " + " | ".join(cells) + " |"


if __name__ == "__main__":
    main()
