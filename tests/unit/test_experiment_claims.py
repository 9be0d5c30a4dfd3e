"""The rules that judge the paper's claims, on made-up figures."""

from __future__ import annotations

from typing import Any

import pytest

from simplexity.experiment.claims import Verdict, grade, judged, reaches


def curve(cost: float, bleu: float, falls: float = 0.5) -> dict[str, Any]:
    """Costs that fall to `cost` by this share in each of 20 iterations."""
    costs = [cost + (5 - cost) * falls**t for t in range(21)]
    return {"continuous": costs, "discrete": costs, "bleu": [0.0] * 20 + [bleu]}


def figure1(**changed: dict[str, Any]) -> dict[str, Any]:
    usual = {
        "EG uniform": curve(3, 5),
        "EG greedy": curve(2, 20),
        "EG beam": curve(1, 25, falls=0.8),
        "EG-400 uniform": curve(3, 15),
        "EG-MOM beam": curve(1, 25, falls=0.2),
    }
    return {"figure1": usual | {key.replace("_", " "): row for key, row in changed.items()}}


def row(bleu: float, p: float = 1.0, p_rerank: float = 1.0, cpu_ms: float = 10) -> dict[str, Any]:
    better = p < 0.05
    return {"bleu": bleu, "p": p, "better": better, "p_rerank": p_rerank, "cpu_ms": cpu_ms}


def table2(**changed: dict[str, Any]) -> dict[str, Any]:
    usual = {"l2r": row(30), "r2l": row(29), "EG": row(30.5), "+bidirectional": row(31, p=0.01)}
    rows = {**usual, "+bilingual": row(30.6, p=0.2), **changed}
    halves = {}
    for start in ("greedy", "beam"):
        names = {"l2r": f"{start} l2r", "r2l": f"{start} r2l", "EG": f"EG from {start}"}
        named = {names.get(name, name): found for name, found in rows.items()}
        halves[start] = {"baseline": f"{start} l2r", "rows": named}
    return {"table2": halves}


def table3(**changed: dict[str, Any]) -> dict[str, Any]:
    usual = {
        "beam l2r": row(30),
        "filtered rerank": row(31),
        "EG from beam": row(31.5),
        "full rerank": row(32),
        "EG from rerank": row(32.5),
    }
    rows = usual | {key.replace("_", " "): found for key, found in changed.items()}
    return {"table3": {"bidirectional": rows, "joint": rows, "size": 100, "cpu_ms": 15.0}}


def timing(forward: float, backward: float) -> dict[str, Any]:
    spent = {"forward": forward, "backward": backward, "update": 1.0}
    return {"timing": {"EG bidirectional, 8 iterations": spent}}


def points(near: int) -> dict[str, Any]:
    return {"figure2": {"points": [(1.0, 1.01)] * near + [(1.0, 2.0)] * (100 - near)}}


def figure3(eg: dict[str, Any], sgd: dict[str, Any]) -> dict[str, Any]:
    return {"figure3": {"paper": {"EG": eg, "SGD": sgd}}}


@pytest.mark.parametrize(
    ("found", "name", "verdict"),
    [
        (figure1(), "starts", "reproduced"),
        (figure1(EG_beam=curve(1, 15)), "starts", "partly"),
        (figure1(EG_beam=curve(4, 1)), "starts", "not reproduced"),
        (figure1(), "step size", "reproduced"),
        (figure1(**{"EG-400 uniform": curve(3, 7)}), "step size", "partly"),
        (figure1(**{"EG-400 uniform": curve(3, 4)}), "step size", "not reproduced"),
        (figure1(), "momentum", "reproduced"),
        (figure1(**{"EG-MOM beam": curve(1, 25, falls=0.75)}), "momentum", "partly"),
        (figure1(**{"EG-MOM beam": curve(1, 25, falls=0.9)}), "momentum", "not reproduced"),
        (figure1(**{"EG-MOM beam": curve(2, 25)}), "momentum", "not reproduced"),
        (points(95), "relaxation", "reproduced"),
        (points(60), "relaxation", "partly"),
        (points(59), "relaxation", "not reproduced"),
        (figure3(curve(1, 25, 0.3), curve(2, 20)), "EG and SGD", "reproduced"),
        (figure3(curve(1, 19, 0.3), curve(2, 20)), "EG and SGD", "partly"),
        (figure3(curve(3, 19), curve(2, 20)), "EG and SGD", "not reproduced"),
        (table2(), "directions", "reproduced"),
        (table2(r2l=row(31)), "directions", "not reproduced"),
        (table2(), "one model", "reproduced"),
        (table2(EG=row(30)), "one model", "not reproduced"),
        (table2(), "bidirectional", "reproduced"),
        (table2(), "bilingual", "not reproduced"),
        (table3(), "lengths kept", "reproduced"),
        (table3(EG_from_beam=row(30.5)), "lengths kept", "partly"),
        (table3(EG_from_beam=row(30.5, p_rerank=0.01)), "lengths kept", "not reproduced"),
        (table3(), "from reranking", "reproduced"),
        (table3(EG_from_beam=row(33)), "from reranking", "partly"),
        (table3(EG_from_rerank=row(31.9)), "from reranking", "not reproduced"),
        (table3(), "time of reranking", "reproduced"),
        (table3(EG_from_beam=row(31.5, cpu_ms=25)), "time of reranking", "partly"),
        (table3(EG_from_beam=row(31.5, cpu_ms=40)), "time of reranking", "not reproduced"),
        (timing(1, 3), "backward pass", "reproduced"),
        (timing(2, 2.5), "backward pass", "partly"),
        (timing(3, 2), "backward pass", "not reproduced"),
    ],
)
def test_a_claim_is_judged_by_its_rule(found: dict[str, Any], name: str, verdict: Verdict) -> None:
    assert {claim.name: claim.verdict for claim in judged(found)}[name] == verdict


def test_a_claim_without_figures_is_not_judged() -> None:
    assert judged({}) == []
    assert {claim.name for claim in judged(points(1))} == {"relaxation"}


def test_iterations_are_counted_to_99_percent_of_the_way() -> None:
    assert reaches([2.0, 1.5, 1.011, 1.009, 1.0], 1.0) == 3
    assert reaches([2.0, 1.5], 1.0) is None
    assert grade(True, True) == "reproduced"
    assert grade(False, False) == "not reproduced"
