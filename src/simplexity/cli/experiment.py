"""`simplexity experiment`: the paper's tables and figures."""

from __future__ import annotations

from typing import TYPE_CHECKING

from simplexity.config import ExperimentConfig, Recipe
from simplexity.errors import UsageError
from simplexity.runtime import device_named, keep_memory, use_threads
from simplexity.settings import load_config

if TYPE_CHECKING:
    from pathlib import Path


def run(config: ExperimentConfig) -> None:
    """Redo the paper's tables and figures on a corpus.

    A recipe says what is trained and measured. Every finished step is kept in the working folder
    under a digest of its settings, the sentences, the weights and the code, so that a broken-off
    run goes on and a repeated one only writes its results anew: results.json, results.md and
    pictures. Sentences of the corpus, and translations, stay in the working folder.
    """
    recipe = _recipe(config)
    family = config.family or config.working / "family"
    _train(config, recipe, family)
    keep_memory()
    use_threads(config.threads)
    from simplexity.cli.progress import Progress
    from simplexity.experiment.run import experiment, workbench
    from simplexity.models.family import load_family

    results = config.results or config.working / "results"
    with Progress(recipe.title, quiet=config.quiet) as progress:
        models = load_family(family, device=device_named(config.device))
        bench = workbench(recipe, config.corpus, models, config.working, progress.say)
        experiment(bench, config.only, results, config.working)
        progress.say(f"results: {results}")


def _recipe(config: ExperimentConfig) -> Recipe:
    file = config.recipe_file
    if not file.exists():
        known = sorted(path.stem for path in file.parent.glob("*.yaml"))
        there = f"{file.parent} has {', '.join(known)}" if known else f"{file.parent} has none"
        raise UsageError(
            f"there is no recipe {file}; {there}: name one of these, or a YAML file, or run this "
            "in the folder of the project"
        )
    limit = {} if config.limit is None else {"limit": config.limit}
    return load_config(Recipe, file, limit)


def _train(config: ExperimentConfig, recipe: Recipe, family: Path) -> None:
    """Train what is not there; a family that was trained otherwise is used as it is."""
    from simplexity.cli.train import run as train
    from simplexity.train.family import is_trained

    settings = recipe.train_config(config.corpus, family, config.jobs, config.device)
    if all(is_trained(family, name) for name in settings.directions):
        return
    family.parent.mkdir(parents=True, exist_ok=True)
    train(settings.model_copy(update={"quiet": config.quiet, "threads": config.threads}))
