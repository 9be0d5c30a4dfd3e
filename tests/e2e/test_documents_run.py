"""The examples in the documents do what they say: every block is run, in order.

`python` blocks share one namespace. `sh` blocks hold commands; `console` blocks hold commands after
"$ " and what they print, where "..." stands for anything. They run in a folder that has a corpus of
the toy language in `data` (as de and en, too) and a trained family in `family`. Training itself is
tested elsewhere: here its settings are only read, and the family is there already.
"""

from __future__ import annotations

import contextlib
import io
import re
import shlex
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from simplexity import shipped
from simplexity.cli import main

ROOT = Path(__file__).parents[2]
DOCUMENTS = [ROOT / "README.md", *sorted(ROOT.glob("docs/*.md"))]
BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
RUN = ("python", "sh", "console", "yaml")
SHOWN = ("text", "bash")
"""Marks of blocks that nobody can run here: output, commands that install or need hours."""

Block = tuple[str, str]


def blocks(path: Path) -> list[Block]:
    """The marked blocks of a document, in order."""
    return [(mark, text) for mark, text in BLOCK.findall(path.read_text(encoding="utf-8"))]


RUNNABLE = [path for path in DOCUMENTS if any(mark in RUN for mark, _ in blocks(path))]


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: path.name)
def test_every_block_says_what_it_is(path: Path) -> None:
    assert {mark for mark, _ in blocks(path)} <= {*RUN, *SHOWN}


def test_there_are_documents_to_run() -> None:
    names = {path.name for path in RUNNABLE}
    assert {"README.md", "tutorial.md", "extending.md", "faq.md", "api.md"} <= names


@pytest.fixture
def place(
    toy_corpus: Path, toy_family: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Path:
    """The folder in which a document's examples run."""
    data = tmp_path / "data"
    data.mkdir()
    for part in ("train", "dev", "test"):
        lines = {side: (toy_corpus / f"{part}.{side}").read_text() for side in ("xa", "xb")}
        for name, side in (("xa", "xa"), ("xb", "xb"), ("de", "xa"), ("en", "xb")):
            few = lines[side].splitlines(keepends=True)[: 40 if part != "train" else None]
            (data / f"{part}.{name}").write_text("".join(few))
    shutil.copytree(toy_family, tmp_path / "family")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    monkeypatch.setenv("COLUMNS", "90")
    monkeypatch.setattr(shipped, "SHIPPED", tmp_path / "family")
    return tmp_path


@pytest.mark.timeout(900)  # whole documents, on machines that do other work, too
@pytest.mark.parametrize("path", RUNNABLE, ids=lambda path: path.name)
def test_its_examples_run(path: Path, place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    namespace: dict[str, Any] = {"__name__": path.stem}
    # Dataclasses look for the module that they are defined in.
    monkeypatch.setitem(sys.modules, path.stem, type(sys)(path.stem))
    for mark, text in blocks(path):
        match mark:
            case "python":
                with contextlib.redirect_stdout(io.StringIO()):
                    exec(compile(text, str(path), "exec"), namespace)
            case "sh":
                for command in commands(text):
                    code, said = run(command, monkeypatch)
                    assert code == 0, f"{command}: {said}"
            case "console":
                for command, expected in transcript(text):
                    said = run(command, monkeypatch)[1]
                    assert matches(said, expected), f"{command}:\n{said}\nis not\n{expected}"
            case "yaml":
                name, _, content = text.partition("\n")
                (place / name.removeprefix("# ").strip()).write_text(content)


def commands(text: str) -> Iterator[str]:
    """The commands of a block; a backslash joins lines, # begins a remark."""
    for line in text.replace("\\\n", " ").splitlines():
        if line.strip() and not line.lstrip().startswith("#"):
            yield line.strip()


def transcript(text: str) -> Iterator[tuple[str, str]]:
    """Each command with what stands below it."""
    for part in re.split(r"^\$ ", text.replace("\\\n", " "), flags=re.MULTILINE)[1:]:
        command, _, expected = part.partition("\n")
        yield command, expected


def matches(said: str, expected: str) -> bool:
    """Whether they are alike, line ends and what "..." stands for left aside."""
    parts = [re.escape(" ".join(part.split())) for part in expected.split("...")]
    return re.fullmatch(".*".join(parts), " ".join(said.split()), re.DOTALL) is not None


def run(command: str, monkeypatch: pytest.MonkeyPatch) -> tuple[int, str]:
    """Run a command of ours: its exit code, and all that it printed."""
    given, words = "", shlex.split(command, comments=True)
    if words[0] == "echo":
        given, words = words[1] + "\n", words[words.index("|") + 1 :]
    assert words[0] == "simplexity", f"a block of the kind bash could hold {command!r}"
    if words[1] == "train":
        words.append("--dump-config")
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(given.encode())))
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = main(words[1:])
    return code, out.getvalue() + err.getvalue()


@pytest.mark.parametrize(
    ("said", "expected", "same"),
    [("a b c\n", "a ... c\n", True), ("a b\n", "a c\n", False), ("x\ny\n", "x\n  y\n", True)],
)
def test_the_comparison_itself(said: str, expected: str, same: bool) -> None:
    assert matches(said, expected) is same
