"""Curves as a small SVG picture, drawn by hand: no library is needed to look at figures."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from xml.sax.saxutils import escape

COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00")
WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM = 420, 320, 62, 12, 34, 46

Points = Sequence[tuple[float, float]]


def panels(charts: Sequence[str]) -> str:
    """Charts side by side as one picture."""
    body = "".join(
        f'<g transform="translate({place * WIDTH},0)">{chart}</g>'
        for place, chart in enumerate(charts)
    )
    size = f'viewBox="0 0 {WIDTH * len(charts)} {HEIGHT}" width="{WIDTH * len(charts)}"'
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" {size} height="{HEIGHT}" '
        'font-family="sans-serif" font-size="11"><rect width="100%" height="100%" fill="white"/>'
        f"{body}</svg>\n"
    )


def chart(title: str, x: str, y: str, curves: Mapping[str, Points]) -> str:
    """One chart; the horizontal axis is logarithmic."""
    every = [point for points in curves.values() for point in points]
    across = [math.log10(a) for a, _ in every]
    low, high = min(across), max(across)
    bottom, top = min(b for _, b in every), max(b for _, b in every)
    margin = 0.06 * (top - bottom or 1.0)
    bottom, top = bottom - margin, top + margin

    def at(point: tuple[float, float]) -> tuple[float, float]:
        share = (math.log10(point[0]) - low) / (high - low or 1.0)
        rise = (point[1] - bottom) / (top - bottom)
        return LEFT + share * (WIDTH - LEFT - RIGHT), HEIGHT - BOTTOM - rise * (
            HEIGHT - TOP - BOTTOM
        )

    drawn = [text(WIDTH / 2, 16, title, "middle", "bold"), *_frame(x, y)]
    for value in _round_numbers(10**low, 10**high):
        place, _ = at((value, bottom))
        drawn.append(_line(place, HEIGHT - BOTTOM, place, HEIGHT - BOTTOM + 4, "#444"))
        drawn.append(text(place, HEIGHT - BOTTOM + 16, f"{value:g}", "middle"))
    for step in range(5):
        value = bottom + (top - bottom) * step / 4
        _, height = at((10**low, value))
        drawn.append(_line(LEFT, height, WIDTH - RIGHT, height, "#ddd"))
        drawn.append(text(LEFT - 5, height + 4, f"{value:.4g}", "end"))
    for number, (name, points) in enumerate(curves.items()):
        drawn.append(_curve([at(point) for point in sorted(points)], COLOURS[number]))
        drawn.append(text(LEFT + 8, TOP + 14 * (number + 1), name, colour=COLOURS[number]))
    return "".join(drawn)


def text(
    x: float, y: float, words: str, anchor: str = "start", weight: str = "", colour: str = "#222"
) -> str:
    """A piece of writing."""
    bold = f' font-weight="{weight}"' if weight else ""
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" fill="{colour}"{bold}>'
        f"{escape(words)}</text>"
    )


def _frame(x: str, y: str) -> list[str]:
    middle = (TOP + HEIGHT - BOTTOM) / 2
    return [
        _line(LEFT, TOP, LEFT, HEIGHT - BOTTOM, "#444"),
        _line(LEFT, HEIGHT - BOTTOM, WIDTH - RIGHT, HEIGHT - BOTTOM, "#444"),
        text((LEFT + WIDTH - RIGHT) / 2, HEIGHT - 10, x, "middle"),
        f'<g transform="rotate(-90 14 {middle})">{text(14, middle, y, "middle")}</g>',
    ]


def _line(x1: float, y1: float, x2: float, y2: float, colour: str) -> str:
    return (
        f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" stroke="{colour}" '
        'stroke-width="1"/>'
    )


def _curve(points: Points, colour: str) -> str:
    path = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
    dots = "".join(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" fill="{colour}"/>' for x, y in points)
    return f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="1.8"/>{dots}'


def _round_numbers(low: float, high: float) -> list[float]:
    """1, 2 and 5 times powers of ten between these."""
    powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    values = [factor * 10.0**power for power in powers for factor in (1, 2, 5)]
    return [value for value in values if low <= value <= high]
