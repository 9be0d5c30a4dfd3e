"""The figures of a run as a table, in Markdown that reads well as it is."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

MIB = 1 << 20
START = ("search", "encode", "lift")
SPLIT = ("forward", "backward", "rounding", "update")


def render(report: dict[str, Any], kind: str) -> str:
    """A report as text or as JSON."""
    if kind == "json":
        return json.dumps(report, indent=1, allow_nan=False) + "\n"
    lines = _curves(report) if "curves" in report else _rows(report)
    return "\n".join([*lines, "", *footnotes(report)]) + "\n"


def aligned(rows: Sequence[Sequence[str]]) -> list[str]:
    """A Markdown table whose columns stand below one another; names left, numbers right."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    rule = ["-" * widths[0], *("-" * (width - 1) + ":" for width in widths[1:])]
    head, *body = rows
    return [
        "| " + " | ".join([row[0].ljust(widths[0]), *map(str.rjust, row[1:], widths[1:])]) + " |"
        for row in (head, rule, *body)
    ]


def _rows(report: dict[str, Any]) -> list[str]:
    rows = report["rows"]
    bases = list(next(iter(rows.values()))["times"])
    unit = "CPU ms" if report["timed_by"] == "per_cpu_second" else "ms"
    head = ["system", "sentences/s", unit, *(f"/ {base}" for base in bases)]
    speed = [[name, *_speed(row, bases)] for name, row in rows.items()]
    shares = ["system", "iterations", "start", *SPLIT, "MiB", "MFLOP fp32", "bf16"]
    shares += [f"roofline {unit}", "x roofline"]
    within = [[name, *_inside(row)] for name, row in rows.items() if "phases" in row]
    return [*aligned([head, *speed]), "", *aligned([shares, *within])]


def _speed(row: dict[str, Any], bases: list[str]) -> list[str]:
    times = [f"{row['times'][base]:.2f}" for base in bases]
    return [f"{row['per_second']:.1f}", f"{1000 * row['seconds']:.2f}", *times]


def _inside(row: dict[str, Any]) -> list[str]:
    phases, flops = row["phases"], row["flops"]
    shares = [sum(phases[phase] for phase in START), *(phases[phase] for phase in SPLIT)]
    return [
        "" if row["iterations"] is None else f"{row['iterations']:.1f}",
        *(f"{share:.1%}" for share in shares),
        f"{row['memory_bytes'] / MIB:.0f}",
        *(f"{flops.get(kind, 0) / 1e6:.0f}" for kind in ("fp32", "bf16")),
        f"{1000 * row['roofline']:.2f}",
        f"{row['distance']:.2f}",
    ]


def _curves(report: dict[str, Any]) -> list[str]:
    lines: list[str] = []
    for axis, curves in report["curves"].items():
        values = [str(p[axis]) for p in next(iter(curves.values()))["points"]]
        rows = [[axis, *values, "growth"]]
        for name, curve in curves.items():
            points = curve["points"]
            ms = [f"{1000 * p['seconds']:.2f}" for p in points]
            mib = [f"{p['memory_bytes'] / MIB:.0f}" for p in points]
            rows.append([f"{name}, ms a sentence", *ms, _power(curve["growth"])])
            rows.append([f"{name}, MiB", *mib, _power(curve["growth_of_memory"])])
        lines += [*aligned(rows), ""]
    return lines[:-1]


def _power(exponent: float | None) -> str:
    return "" if exponent is None else f"{exponent:.2f}"


def footnotes(report: dict[str, Any]) -> list[str]:
    """With what the figures were found."""
    machine, settings = report["machine"], report["settings"]
    versions = ", ".join(f"{name} {number}" for name, number in machine["versions"].items())
    lines = [
        f"{machine['processor']}, {machine['cores']} cores, threads: {machine['threads']}, load "
        f"{machine['load'][0]:.1f}; {versions}."
    ]
    if "rates" in report:
        rates = ", ".join(f"{kind} {rate / 1e9:.0f}" for kind, rate in report["rates"].items())
        lines.append(
            f"{report['sentences']} sentences, batches of {settings['batch_size']}, medians of "
            f"{settings['rounds']} rounds; matrix products, GFLOP/s: {rates}."
        )
    else:
        lines.append(
            f"Random {settings['random']} models, hidden {settings['hidden']}; where nothing else "
            f"is said, {settings['batch_size']} strings of {settings['length']} words out of "
            f"{settings['vocabulary_size']}. Growth: the exponent, of the time of the whole batch."
        )
    return lines
