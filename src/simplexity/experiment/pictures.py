"""Figures 1 to 3 as SVG."""

from __future__ import annotations

from typing import Any

from simplexity.show.chart import chart, panels

Results = dict[str, Any]


def pictures(found: Results) -> dict[str, str]:
    """SVG by file name, for the figures that are there."""
    drawn = {}
    if "figure1" in found:
        drawn["figure1.svg"] = panels(curve_charts("", found["figure1"]))
    if "figure2" in found:
        points = [(a, b) for a, b in found["figure2"]["points"]]
        top = max(max(point) for point in points)
        both = {"sentences": points, "equal": [(0.0, 0.0), (top, top)]}
        drawn["figure2.svg"] = panels(
            [chart("cost a word", "continuous", "discrete", both, powers=False, joined=False)]
        )
    if "figure3" in found:
        rows = [
            curve_charts(f"{name} setting: ", curves) for name, curves in found["figure3"].items()
        ]
        drawn["figure3.svg"] = panels([one for row in rows for one in row])
    return drawn


def curve_charts(title: str, curves: dict[str, Any]) -> list[str]:
    """Continuous cost, discrete cost, BLEU against iterations."""
    labels = {"continuous": "continuous cost", "discrete": "discrete cost", "bleu": "BLEU"}
    return [
        chart(
            title + label,
            "iterations",
            label,
            {name: list(enumerate(curve[measure])) for name, curve in curves.items()},
            powers=False,
        )
        for measure, label in labels.items()
    ]
