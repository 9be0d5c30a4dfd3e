"""Curves as a small SVG picture, drawn by hand: no library is needed to look at figures."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from xml.sax.saxutils import escape

# Colours that people with any kind of colour vision tell apart (Okabe and Ito).
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#444444")
WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM = 420, 320, 62, 12, 34, 46
LINE, NAME = 14, 110
"""Height of a line of names, and about how wide a name is."""

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


@dataclass(frozen=True)
class Axes:
    """What lies along the sides: from where to where, and whether by powers of ten."""

    left: float
    right: float
    bottom: float
    top: float
    powers: bool

    def at(self, point: tuple[float, float]) -> tuple[float, float]:
        """Where a point stands in the picture."""
        share = (self._across(point[0]) - self._across(self.left)) / (
            self._across(self.right) - self._across(self.left) or 1.0
        )
        rise = (point[1] - self.bottom) / (self.top - self.bottom)
        high = HEIGHT - TOP - BOTTOM
        return LEFT + share * (WIDTH - LEFT - RIGHT), HEIGHT - BOTTOM - rise * high

    def _across(self, value: float) -> float:
        return math.log10(value) if self.powers else value

    def ticks(self) -> list[float]:
        """Values to be written below."""
        if self.powers:
            return _round_numbers(self.left, self.right)
        return [self.left + (self.right - self.left) * step / 4 for step in range(5)]


def chart(
    title: str,
    x: str,
    y: str,
    curves: Mapping[str, Points],
    powers: bool = True,
    joined: bool = True,
) -> str:
    """One chart: curves, or points that are not joined; `powers` makes its x logarithmic."""
    axes = _axes([point for points in curves.values() for point in points], powers)
    placed = {name: [axes.at(point) for point in sorted(points)] for name, points in curves.items()}
    drawn = [text(WIDTH / 2, 16, title, "middle", "bold"), *_frame(x, y), *_scales(axes)]
    corner, high, anchor = _free_corner(placed)
    for number, (name, places) in enumerate(placed.items()):
        colour = COLOURS[number % len(COLOURS)]
        drawn.append(_curve(places, colour, joined, 3.0 if len(places) < 20 else 1.5))
        drawn.append(text(corner, high + LINE * number, name, anchor, colour=colour))
    return "".join(drawn)


def _free_corner(placed: Mapping[str, Points]) -> tuple[float, float, str]:
    """Where the names stand: the corner that the fewest points lie in; first line and anchor."""
    points = [point for places in placed.values() for point in places]
    room = LINE * len(placed)
    low = HEIGHT - BOTTOM - room + LINE / 2
    corners = [
        (x, y, anchor)
        for y in (TOP + LINE, low)
        for x, anchor in ((WIDTH - RIGHT - 6.0, "end"), (LEFT + 8.0, "start"))
    ]

    def inside(corner: tuple[float, float, str]) -> int:
        x, y, _ = corner
        return sum(abs(a - x) < NAME and y - LINE <= b <= y + room - LINE / 2 for a, b in points)

    return min(corners, key=inside)


def _axes(points: Points, powers: bool) -> Axes:
    across, up = [a for a, _ in points], [b for _, b in points]
    bottom, top = min(up), max(up)
    margin = 0.06 * (top - bottom or 1.0)
    return Axes(min(across), max(across), bottom - margin, top + margin, powers)


def _scales(axes: Axes) -> Iterator[str]:
    for value in axes.ticks():
        place, _ = axes.at((value, axes.bottom))
        yield _line(place, HEIGHT - BOTTOM, place, HEIGHT - BOTTOM + 4, "#444")
        yield text(place, HEIGHT - BOTTOM + 16, f"{value:.3g}", "middle")
    for step in range(5):
        value = axes.bottom + (axes.top - axes.bottom) * step / 4
        _, height = axes.at((axes.left, value))
        yield _line(LEFT, height, WIDTH - RIGHT, height, "#ddd")
        yield text(LEFT - 5, height + 4, f"{value:.4g}", "end")


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


def _curve(points: Points, colour: str, joined: bool, size: float) -> str:
    path = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
    line = f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="1.8"/>'
    dots = "".join(
        f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{size}" fill="{colour}"/>' for x, y in points
    )
    return (line if joined else "") + dots


def _round_numbers(low: float, high: float) -> list[float]:
    """1, 2 and 5 times powers of ten between these."""
    powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    values = [factor * 10.0**power for power in powers for factor in (1, 2, 5)]
    return [value for value in values if low <= value <= high]
