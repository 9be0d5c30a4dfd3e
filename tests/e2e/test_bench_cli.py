"""`simplexity bench` as a user meets it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from simplexity.cli import main

SMALL = ("--hidden", "64", "--layers", "1", "--vocabulary-size", "80", "--length", "6")


@pytest.fixture(autouse=True)
def one_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    """What the command reads from the environment."""
    monkeypatch.setenv("OMP_NUM_THREADS", "1")


def bench(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[str, str]:
    """What a run writes, and what it says meanwhile."""
    assert main(["bench", *arguments]) == 0
    captured = capsys.readouterr()
    return captured.out, captured.err


def test_decoders_of_a_family_are_compared(
    toy_corpus: Path, toy_family: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    given = ("-m", str(toy_family), "-i", str(toy_corpus / "test.xa"), "--device", "cpu")
    asked = ("--systems", "beam,eg:joint", "--limit", "12", "--rounds", "2")
    out, said = bench(capsys, *given, *asked, "--output-type", "json")
    report: dict[str, Any] = json.loads(out)
    beam, joint = report["rows"]["beam"], report["rows"]["eg:joint"]
    assert report["sentences"] == 12
    assert [len(row["turns"]) for row in (beam, joint)] == [2, 2]
    assert beam["times"] == {"beam": 1.0}
    assert joint["times"]["beam"] > 2  # a search of its own, and more models
    assert joint["iterations"] == 8
    for row in (beam, joint):
        assert sum(row["phases"].values()) == pytest.approx(1)
        assert row["distance"] > 1  # nothing is faster than the machine
    assert beam["phases"]["backward"] == 0 < joint["phases"]["backward"]
    assert set(beam["flops"]) == {"fp32"}
    assert joint["flops"]["bf16"] > beam["flops"]["fp32"]
    assert joint["memory_bytes"] > 0
    assert report["machine"]["threads"] == 1
    assert said.count("is left out") == 3


def test_a_random_transformer_has_peers(capsys: pytest.CaptureFixture[str]) -> None:
    asked = ("--random", "transformer", *SMALL, "--limit", "4", "--rounds", "1", "--quiet")
    out, said = bench(capsys, *asked, "--systems", "beam", "--peers", "generate")
    assert said == ""
    head, _, ours, theirs, *_ = out.splitlines()
    assert head.split("|")[-3:-1] == [" / beam ", " / generate "]
    assert [line.split("|")[1].strip() for line in (ours, theirs)] == ["beam", "generate"]


def test_curves_show_how_time_grows(capsys: pytest.CaptureFixture[str]) -> None:
    asked = ("--random", "attentional", *SMALL, "--batch-size", "2", "--curves", "terms")
    out, said = bench(capsys, *asked, "--systems", "beam,eg")
    assert "beam has no terms to change" in said
    head, _, time, memory, *_ = out.splitlines()
    assert [cell.strip() for cell in head.split("|")[1:-1]] == ["terms", "1", "2", "3", "growth"]
    ms = [float(cell) for cell in time.split("|")[2:5]]
    assert ms[0] < ms[2]
    assert "MiB" in memory


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--systems", "beam,eg:juint"), "juint"),
        (("--random", "transformer", "-m", "x"), "not both"),
        (("--curves", "length"), "--curves needs --random"),
        (("--systems", "beam,beam"), "twice"),
        (("--random", "transformer", "--hidden", "100"), "divisible by 64"),
        (("--peers", "fairseq"), "fairseq"),
        (("-i", "/dev/null", "-m", "x"), "no sentences"),
    ],
)
def test_a_wrong_request_is_one_line(
    arguments: tuple[str, ...], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["bench", *arguments]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert said in captured.err.splitlines()[-1]
