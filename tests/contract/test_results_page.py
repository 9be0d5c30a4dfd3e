"""docs/results.md is made from the committed results, and these hold together."""

from __future__ import annotations

import json
import os
from dataclasses import asdict
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from simplexity.config import Recipe
from simplexity.experiment.claims import judged
from simplexity.experiment.page import page
from simplexity.experiment.pictures import pictures
from simplexity.experiment.report import markdown
from simplexity.settings import load_config

ROOT = Path(__file__).parents[2]
RECIPES = sorted((ROOT / "experiments").glob("*.yaml"))
RESULTS = sorted((ROOT / "experiments" / "results").glob("*/results.json"))


def read(file: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
    return found


@pytest.mark.parametrize("file", RECIPES, ids=lambda file: file.stem)
def test_a_recipe_is_understood_with_its_training(file: Path) -> None:
    recipe = load_config(Recipe, file, {})
    config = recipe.train_config(Path("corpus"), Path("family"), 1, "cpu")
    assert set(config.directions) == {"l2r", "r2l", "reverse"}


def test_the_page_is_as_made() -> None:
    """`make results` writes it anew."""
    notes = (ROOT / "experiments" / "notes.md").read_text(encoding="utf-8")
    made = page({file.parent.name: read(file) for file in RESULTS}, notes)
    path = ROOT / "docs" / "results.md"
    if os.environ.get("REFRESH_GOLDEN"):
        path.write_text(made, encoding="utf-8")
    assert made == path.read_text(encoding="utf-8")


@pytest.mark.parametrize("file", RESULTS, ids=lambda file: file.parent.name)
def test_committed_results_are_what_their_figures_say(file: Path) -> None:
    """Verdicts, tables and pictures beside a results.json are those that follow from it.

    `make results` writes them anew.
    """
    found = read(file)
    found["claims"] = [asdict(claim) for claim in judged(found)]
    drawn = pictures(found)
    made = {
        "results.json": json.dumps(found, indent=1) + "\n",
        "results.md": markdown(found, list(drawn)),
        **drawn,
    }
    for name, text in made.items():
        if os.environ.get("REFRESH_GOLDEN"):
            (file.parent / name).write_text(text, encoding="utf-8")
        assert (file.parent / name).read_text(encoding="utf-8") == text
        if name.endswith(".svg"):
            ElementTree.fromstring(text)


@pytest.mark.parametrize("file", RESULTS, ids=lambda file: file.parent.name)
def test_committed_results_hold_no_sentences(file: Path) -> None:
    """Figures, names and sentence numbers only: corpora are not ours to hand on."""
    found = read(file)
    assert (ROOT / "experiments" / f"{file.parent.name}.yaml").exists()
    own = {"title", "recipe", "machine", "claims", "models", "paper", "code"}
    strings = list(texts({key: value for key, value in found.items() if key not in own}))
    longest = max(strings, key=lambda text: len(text.split()))
    assert longest == found.get("figure4", {}).get("rule", longest)
    assert all(len(text.split()) <= 3 for text in strings if text != longest)


def texts(data: Any) -> list[str]:
    """All strings that stand as values somewhere."""
    if isinstance(data, str):
        return [data]
    parts = data.values() if isinstance(data, dict) else data if isinstance(data, list) else ()
    return [text for part in parts for text in texts(part)]
