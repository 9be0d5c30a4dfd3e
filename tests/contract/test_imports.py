"""Imports point one way: what each room of the package may know of the others."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "src" / "simplexity"

LOWER = {"errors", "relax", "text", "models"}
CORE = LOWER | {"terms", "search"}
DECODING = {
    *("objectives", "initialise", "decode", "pipeline", "trace", "translate", "score", "output"),
    *("edit", "rerank", "rescore", "reread", "show"),
}
SETTINGS = {"runtime", "settings", "config", "shipped"}
BELOW_BUILD = CORE | DECODING | SETTINGS | {"train", "evaluate"}

# Room or module -> the rooms and modules it may import besides itself. The longest name that fits
# a module decides.
MAY_IMPORT: dict[str, set[str]] = {
    "": {"api", "decode", "errors", "plugin"},
    "plugin": BELOW_BUILD | {"build"},
    "api": BELOW_BUILD | {"build"},
    "__main__": {"cli"},
    "errors": set(),
    "runtime": {"errors"},
    "shipped": {"errors"},
    "settings": {"errors"},
    "config": {"errors", "settings", "objectives"},
    "relax": set(),
    "text": {"errors"},
    "text.batches": {"text", "errors", "relax"},
    "models": {"errors", "relax", "text.vocabulary"},
    # Directories of models are written as whole as files are.
    "models.directories": {"errors", "text.files"},
    # Other programs cut text by sentencepiece alone.
    "models.export": {"models", "errors", "text.vocabulary", "text.plain_pieces"},
    # An ARPA file is text; models only make tensors of it.
    "models.arpa": {"models", "errors", "relax", "text.arpa"},
    "models.pretrained": {"models", "errors", "text.vocabulary", "text.arpa"},
    "terms": {"errors", "relax", "models"},
    # Models with vocabularies of their own are reached through text.
    "terms.through_text": {"terms", "errors", "relax", "text.vocabulary"},
    "terms.piece_map": {"relax", "text.vocabulary", "text.surfaces"},
    "search": {"errors", "relax", "models", "text.files"},
    "objectives": {"errors"},
    "initialise": CORE,
    "decode": CORE | {"objectives", "initialise"},
    "edit": CORE | {"objectives", "initialise", "decode"},
    "show": CORE | {"initialise", "decode"},
    "pipeline": LOWER,
    "trace": CORE | {"decode"},
    "translate": CORE | {"objectives", "initialise", "decode", "edit", "pipeline", "trace"},
    "score": LOWER | {"pipeline"},
    "rerank": CORE | {"initialise", "decode", "pipeline"},
    "reread": CORE | {"decode"},
    "rescore": CORE | {"decode", "rerank"},
    "output": CORE | {"decode"},
    "train": LOWER,
    # A family is trained from its configuration, so that a stopped run can check it has the same.
    "train.family": LOWER | SETTINGS | {"train", "build"},
    "train.side_by_side": LOWER | SETTINGS | {"train"},
    "evaluate": {"errors", "text", "search"},
    "build": BELOW_BUILD,
    # It measures whole decoders, built from settings as a user would write them.
    "bench": BELOW_BUILD | {"", "build"},
    "experiment": BELOW_BUILD | {"", "build", "bench"},
    "cli": BELOW_BUILD | {"", "api", "build", "bench", "experiment"},
}

# Libraries that a room does without, however indirectly it would use them.
MUST_NOT_IMPORT = {
    "errors": {"torch", "transformers"},
    "settings": {"torch", "transformers"},
    "shipped": {"torch", "transformers"},
    "config": {"torch", "transformers"},
    "objectives": {"torch", "transformers"},
    "text": {"torch", "transformers"},
    "text.batches": {"transformers"},
    "evaluate": {"torch", "transformers"},
    "terms": {"transformers"},
    "search": {"transformers"},
}
ONLY_LIBRARIES = {"relax": {"torch"}}

DISTRIBUTIONS = {"yaml": "PyYAML", "huggingface_hub": "huggingface-hub"}


def modules() -> dict[str, Path]:
    """Names within the package, `relax.tokens`, and their files."""
    found = {}
    for path in sorted(PACKAGE.rglob("*.py")):
        parts = path.relative_to(PACKAGE).with_suffix("").parts
        found[".".join(part for part in parts if part != "__init__")] = path
    return found


def imports(source: str, package: str = "simplexity") -> Iterator[str]:
    """Everything a source imports, anywhere in it, by full name."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                above = package.split(".")[: len(package.split(".")) - node.level + 1]
                base = ".".join([*above, *([base] if base else [])])
            yield from (f"{base}.{alias.name}" for alias in node.names)


def longest(name: str, table: dict[str, set[str]]) -> str | None:
    """The entry of the table that holds this module."""
    fitting = [entry for entry in table if within(name, entry)]
    return max(fitting, key=len, default=None)


def within(name: str, room: str) -> bool:
    return name == room or (room != "" and name.startswith(f"{room}."))


def violations(name: str, source: str, known: set[str]) -> list[str]:
    """What this module imports against the table."""
    room = longest(name, MAY_IMPORT)
    if room is None:
        return [f"{name} belongs to no room: add it to the table"]
    wrong = []
    package = ".".join(["simplexity", *name.split(".")[: -1 if "." in name else None]])
    for target in imports(source, package):
        top, _, inner = target.partition(".")
        if top == "simplexity":
            while inner and inner not in known:  # a name within a module
                inner = inner.rpartition(".")[0]
            allowed = {room, *MAY_IMPORT[room]}
            if not any(within(inner, other) for other in allowed):
                wrong.append(f"{name} imports simplexity.{inner}")
        elif top != "__future__" and top not in sys.stdlib_module_names:
            banned = MUST_NOT_IMPORT.get(longest(name, MUST_NOT_IMPORT) or "", set())
            only = ONLY_LIBRARIES.get(longest(name, ONLY_LIBRARIES) or "")
            if top in banned or (only is not None and top not in only):
                wrong.append(f"{name} imports {top}")
    return wrong


MODULES = modules()


@pytest.mark.parametrize("name", MODULES)
def test_imports_point_upwards(name: str) -> None:
    source = MODULES[name].read_text(encoding="utf-8")
    assert violations(name, source, set(MODULES)) == []


@pytest.mark.parametrize(
    ("name", "source", "found"),
    [
        ("relax.new", "import numpy", "relax.new imports numpy"),
        ("relax.new", "from simplexity.models import seq2seq", "imports simplexity.models.seq2seq"),
        ("relax.new", "from simplexity import models", "relax.new imports simplexity.models"),
        ("relax.new", "def f():\n    import transformers", "relax.new imports transformers"),
        ("relax.new", "from ..models.seq2seq import Seq2Seq", "imports simplexity.models.seq2seq"),
        ("text.new", "from torch import Tensor", "text.new imports torch"),
        ("search.new", "from simplexity.text.vocabulary import EOS", "simplexity.text.vocabulary"),
        ("config", "import torch.nn", "config imports torch"),
        ("build", "from simplexity.cli import main", "build imports simplexity.cli"),
        ("cellar", "", "belongs to no room"),
    ],
)
def test_a_wrong_import_is_found(name: str, source: str, found: str) -> None:
    assert any(found in line for line in violations(name, source, set(MODULES)))


def test_a_right_import_is_none() -> None:
    source = "import torch\nfrom simplexity.relax.tokens import Hard\nfrom . import tokens"
    assert violations("relax.new", source, set(MODULES)) == []


def test_every_library_is_declared() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = project.get("optional-dependencies", {})
    lines = [*project["dependencies"], *(line for part in extras.values() for line in part)]
    declared = {re.split(r"[<>=\[; ]", line)[0].lower() for line in lines}
    used = {
        target.partition(".")[0]
        for path in MODULES.values()
        for target in imports(path.read_text(encoding="utf-8"))
    }
    foreign = used - set(sys.stdlib_module_names) - {"simplexity"}
    assert {DISTRIBUTIONS.get(name, name).lower() for name in foreign} <= declared


@pytest.mark.parametrize("module", ["simplexity", "simplexity.cli", "simplexity.config"])
def test_importing_is_light(module: str) -> None:
    code = f"import sys, {module}; print(*sys.modules)"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    heavy = {"torch", "transformers", "sacrebleu", "sentencepiece", "numpy"}
    assert heavy.isdisjoint(run.stdout.split())
