"""Charts as SVG: every point where its numbers say."""

from __future__ import annotations

import re
from xml.etree import ElementTree

import pytest

from simplexity.show.chart import HEIGHT, LEFT, RIGHT, WIDTH, chart, panels

CURVES = {"a & b": [(1.0, 0.0), (10.0, 1.0), (100.0, 2.0)], "c": [(1.0, 2.0)]}


def circles(drawing: str) -> list[tuple[float, float]]:
    found = re.findall(r'<circle cx="([\d.]+)" cy="([\d.]+)"', drawing)
    return [(float(x), float(y)) for x, y in found]


@pytest.mark.parametrize(("powers", "share"), [(True, 1 / 2), (False, 1 / 11)])
def test_points_stand_where_they_belong(powers: bool, share: float) -> None:
    first, second, third, _ = circles(chart("title", "x", "y", CURVES, powers))
    assert first[0] == LEFT
    assert third[0] == WIDTH - RIGHT
    assert second[0] == pytest.approx(LEFT + share * (WIDTH - RIGHT - LEFT), abs=0.1)
    assert second[1] == pytest.approx((first[1] + third[1]) / 2, abs=0.1)  # higher is up
    assert 0 < third[1] < first[1] < HEIGHT


def test_curves_are_joined_unless_they_are_points() -> None:
    assert "<polyline" in chart("title", "x", "y", CURVES)
    assert "<polyline" not in chart("title", "x", "y", CURVES, joined=False)


@pytest.mark.parametrize(("rising", "side"), [(True, "start"), (False, "end")])
def test_names_stand_where_no_curve_is(rising: bool, side: str) -> None:
    curve = [(float(n), float(n if rising else -n)) for n in range(20)]
    drawn = chart("title", "x", "y", {"the name": curve}, powers=False)
    found = re.search(r'y="([\d.]+)" text-anchor="(\w+)"[^>]*>the name', drawn)
    assert found is not None
    assert float(found[1]) < HEIGHT / 2
    assert found[2] == side


def test_panels_are_one_picture_with_escaped_names() -> None:
    drawn = panels([chart("title", "x", "y", CURVES), chart("other", "x", "y", CURVES)])
    root = ElementTree.fromstring(drawn)
    assert root.attrib["width"] == str(2 * WIDTH)
    assert "a & b" in "".join(root.itertext())


def test_one_point_alone_can_be_drawn() -> None:
    assert len(circles(chart("title", "x", "y", {"a": [(0.0, 1.0)]}, powers=False))) == 1
