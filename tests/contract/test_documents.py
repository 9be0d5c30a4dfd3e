"""What the documents tell a user to type is understood, and what they point to is there."""

from __future__ import annotations

import re
import shlex
from importlib import import_module
from pathlib import Path

import pytest

from simplexity import config
from simplexity.cli.options import command_from
from simplexity.settings import Settings

ROOT = Path(__file__).parents[2]
DOCUMENTS = [*ROOT.glob("*.md"), *ROOT.glob("docs/*.md"), *ROOT.glob("examples/*.sh")]
COMMAND = re.compile(r"^\s+simplexity ([a-z]+) (.*)$|^simplexity ([a-z]+) (.*)$", re.MULTILINE)


def examples() -> list[tuple[str, str, str]]:
    """Every example command: where it stands, its name, its arguments."""
    found = []
    for path in DOCUMENTS:
        text = path.read_text(encoding="utf-8").replace("\\\n", " ")
        for indented, rest, plain, arguments in COMMAND.findall(text):
            found.append((path.name, indented or plain, rest or arguments))
    return found


def test_there_are_examples() -> None:
    assert {"README.md", "toy.sh", "shipped.sh"} <= {name for name, _, _ in examples()}


@pytest.mark.parametrize(("document", "name", "arguments"), examples())
def test_an_example_command_is_understood(document: str, name: str, arguments: str) -> None:
    settings: type[Settings] = getattr(config, f"{name.title()}Config")
    read: list[Settings] = []
    command = command_from(settings, read.append, name, document)
    given = [word for word in shlex.split(arguments, comments=True) if word != "$@"]
    job = command.main(given, standalone_mode=False)
    job()
    assert isinstance(read[0], settings)


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: path.name)
def test_links_and_targets_exist(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    for link in re.findall(r"\]\(([^):]+)\)", text):
        assert (path.parent / link).exists(), link
    targets = re.findall(
        r"^([\w-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE
    )
    for target in re.findall(r"(?:^    |`)make ([\w-]+)", text, re.MULTILINE):
        assert target in targets, target


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: path.name)
def test_named_files_exist(path: Path) -> None:
    named = re.findall(
        r"`((?:tests|docs|examples|experiments)/[\w./-]+)`", path.read_text(encoding="utf-8")
    )
    assert [name for name in named if not (ROOT / name).exists()] == []


def test_the_names_of_the_api_are_there() -> None:
    table = (ROOT / "docs" / "api.md").read_text(encoding="utf-8")
    names = re.findall(r"^\| `(simplexity[\w.]*)` \|", table, re.MULTILINE)
    assert len(names) > 20
    for name in names:
        module, _, attribute = name.rpartition(".")
        assert getattr(import_module(module), attribute) is not None
