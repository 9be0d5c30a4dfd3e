"""`simplexity explain` and `simplexity plot`, on the toy family."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from xml.etree import ElementTree

import pytest

import simplexity
from simplexity.cli import main
from simplexity.show.terminal import Palette, explained

SENTENCE = "ta lum nena sel plut."
Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def run(
    toy_family: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Run:
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    monkeypatch.setenv("COLUMNS", "90")

    def once(command: str, *arguments: object) -> tuple[int, str, str]:
        code = main([command, "-m", str(toy_family), *map(str, arguments)])
        told = capsys.readouterr()
        return code, told.out, told.err

    return once


def test_it_tells_what_translate_does(
    run: Run, toy_family: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, out, err = run("explain", SENTENCE)
    assert (code, err) == (0, "")
    assert "\x1b" not in out  # no terminal
    (tmp_path / "in").write_text(SENTENCE + "\n")
    asked = ["--objective", "joint", "-i", str(tmp_path / "in"), "--quiet", "--precision", "fp32"]
    assert main(["translate", "-m", str(toy_family), *asked]) == 0
    translation = capsys.readouterr().out.strip()
    assert [line for line in out.splitlines() if line.startswith(f"found   {translation}")]
    for name in ("l2r", "r2l", "reverse", "sum", "relaxed Q"):
        assert f"\n{name} " in out


def test_colours_when_asked(run: Run) -> None:
    assert "\x1b[1m" in run("explain", SENTENCE, "--color", "always")[1]


def test_objective_and_iterations_are_obeyed(run: Run) -> None:
    out = run("explain", SENTENCE, "--objective", "bilingual", "--iterations", 3)[1]
    assert "iteration 0 to 3" in out
    assert "\nreverse " in out
    assert "\nr2l " not in out


def test_a_picture_goes_to_a_file_or_to_stdout(run: Run, tmp_path: Path) -> None:
    assert run("plot", SENTENCE, "-o", tmp_path / "p.svg", "--title", "Was?") == (0, "", "")
    text = (tmp_path / "p.svg").read_text(encoding="utf-8")
    assert ElementTree.fromstring(text).tag.endswith("svg")
    assert "Was?" in text
    assert run("plot", SENTENCE, "--title", "Was?")[1] == text  # equal bytes


def refused(result: tuple[int, str, str], code: int) -> str:
    assert result[:2] == (code, "")
    assert result[2].count("\n") == 1
    return result[2]


@pytest.mark.parametrize("command", ["explain", "plot"])
def test_requests_that_make_no_sense(command: str, run: Run, tmp_path: Path) -> None:
    assert "SENTENCE is missing" in refused(run(command), 2)
    assert "unexpected extra argument" in refused(run(command, "two", "words"), 2)
    assert "The sentence is empty" in refused(run(command, " "), 1)
    assert "did you mean 'joint'" in refused(run(command, SENTENCE, "--objective", "jiont"), 2)
    assert "take 512 at most" in refused(run(command, "ana " * 600), 1)


def test_pictures_that_cannot_be_written(run: Run, tmp_path: Path) -> None:
    told = refused(run("plot", SENTENCE, "-o", tmp_path / "p.png"), 2)
    assert "name a file that ends in .svg" in told
    (tmp_path / "p.svg").touch()
    told = refused(run("plot", SENTENCE, "-o", tmp_path / "p.svg"), 1)
    assert "exists" in told


def test_the_same_from_python(run: Run, toy_family: Path) -> None:
    story = simplexity.load(toy_family, device="cpu").explain(SENTENCE, iterations=3)
    lines = list(explained(story, Palette(False), 90))
    assert "\n".join(lines) + "\n" == run("explain", SENTENCE, "--iterations", 3)[1]
