"""An experiment from its settings to its results: item by item, all that is done kept."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from simplexity.bench.setting import machine
from simplexity.config import Item, Recipe
from simplexity.experiment.cache import Cache, code
from simplexity.experiment.claims import judged
from simplexity.experiment.corpora import corpus_sizes
from simplexity.experiment.curves import figure1, figure2, figure3
from simplexity.experiment.examples import figure4, write_texts
from simplexity.experiment.pictures import pictures
from simplexity.experiment.report import markdown
from simplexity.experiment.speed import timing
from simplexity.experiment.systems import beyond, table2, table3
from simplexity.experiment.tuning import Chosen, chosen, tune
from simplexity.experiment.workbench import Workbench, read_part
from simplexity.models.family import Family
from simplexity.text.files import writing

TEXTS = "examples.txt"
Results = dict[str, Any]

ALONE: dict[Item, Callable[[Workbench], Any]] = {
    "table1": corpus_sizes,
    "figure1": figure1,
    "figure2": figure2,
}
TUNED: dict[Item, Callable[[Workbench, Chosen], Any]] = {
    "table2": table2,
    "table3": table3,
    "figure3": figure3,
    "figure4": figure4,
    "timing": timing,
    "beyond": beyond,
}


def workbench(
    recipe: Recipe, corpus: Path, family: Family, working: Path, talk: Callable[[str], None]
) -> Workbench:
    """What the items of a recipe work with."""
    languages = (recipe.source_language, recipe.target_language)
    most = max(recipe.tuning.sentences, recipe.tuning.step_sentences, recipe.curves.sentences)
    dev = read_part(corpus, "dev", languages, most)
    test = read_part(corpus, "test", languages, recipe.limit)
    models = tuple(f"{member.name} {member.fingerprint}" for member in family)
    return Workbench(recipe, corpus, family, Cache(working / "steps", models), dev, test, talk)


def experiment(bench: Workbench, items: Sequence[Item], results: Path, working: Path) -> Results:
    """Make the items in order and write the results after each; what is finished is not redone.

    Items that stand in the results already stay there, if they were found with the same things.
    """
    found = earlier(results, about(bench))
    for item in items:
        bench.talk(f"{item}:")
        if item in ALONE:
            found[item] = ALONE[item](bench)
        else:
            found["tuning"] = tune(bench)
            choice = chosen(found["tuning"])
            if item in TUNED:
                found[item] = TUNED[item](bench, choice)
            if item == "figure4":
                write_texts(bench, found[item], choice, working / TEXTS)
        found["claims"] = [asdict(claim) for claim in judged(found)]
        write(found, results)
    return found


def about(bench: Workbench) -> Results:
    """With what the figures were found."""
    recipe = bench.recipe
    found: Results = {
        "title": recipe.title,
        "paper": recipe.paper,
        "recipe": recipe.model_dump(mode="json"),
        "models": list(bench.cache.models),
        "code": code(),
        "machine": machine(),
        "test_sentences": len(bench.test.sources),
    }
    read: Results = json.loads(json.dumps(found))  # as it will be read again
    return read


def earlier(results: Path, now: Results) -> Results:
    """What stands in the results of the same recipe, models and code, and is not made now."""
    file = results / "results.json"
    before = json.loads(file.read_text(encoding="utf-8")) if file.exists() else {}
    same = all(before.get(key) == now[key] for key in now if key != "machine")
    return {**before, **now} if same else now


def write(found: Results, results: Path) -> None:
    """results.json, results.md, and a picture for each figure that is there."""
    results.mkdir(parents=True, exist_ok=True)
    drawn = pictures(found)
    files = {
        "results.json": json.dumps(found, indent=1) + "\n",
        "results.md": markdown(found, list(drawn)),
        **drawn,
    }
    for name, text in files.items():
        with writing(results / name, overwrite=True) as out:
            out.write(text)
