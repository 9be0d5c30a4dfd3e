"""Settings of `simplexity experiment`, and the recipes that it follows."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field

from simplexity.config.kinds import CommaList, Count, Device, Positive
from simplexity.config.train import TrainConfig
from simplexity.settings import Settings, load_config, setting

Item = Literal[
    "table1",
    "tuning",
    "table2",
    "table3",
    "figure4",
    "figure1",
    "figure2",
    "figure3",
    "timing",
    "beyond",
]
ITEMS: tuple[Item, ...] = Item.__args__  # type: ignore[attr-defined]


class Tuning(Settings):
    """How much is tried on development data before anything is tested."""

    sentences: Count = setting(200, "development sentences that weights are chosen on")
    best: Count = setting(20, "strings a sentence in the lists for that")
    steps: Annotated[tuple[Positive, ...], Field(min_length=1)] = setting(
        (0.5, 1.0, 2.0), "step sizes of EG to try"
    )
    sgd_steps: Annotated[tuple[Positive, ...], Field(min_length=1)] = setting(
        (1.0, 2.0, 4.0), "step sizes of SGD to try"
    )
    step_sentences: Count = setting(60, "development sentences that step sizes are chosen on")


class Curves(Settings):
    """How far descents are followed for the figures."""

    sentences: Count = setting(50, "development sentences, the first ones")
    iterations: Count = setting(60, "iterations")


class Recipe(Settings):
    """What an experiment is made of: languages, training, and how much is measured."""

    title: str = setting(..., "heading of the results")
    paper: Literal["btec", "ted", "wmt"] | None = setting(
        None, "corpus of the paper that this one stands for"
    )
    source_language: str = setting(..., "code of the source language")
    target_language: str = setting(..., "code of the target language")
    tokenise: str = setting("13a", "tokenisation of BLEU")
    training: dict[str, Any] = setting(..., "settings of `simplexity train`")
    limit: Count = setting(500, "test sentences, the first ones")
    best: Count = setting(100, "strings a sentence in the lists that are reranked")
    timed: Count = setting(40, "test sentences of the timing")
    examples: Count = setting(5, "examples of either kind")
    tuning: Tuning = setting(Tuning(), "what is chosen on development data")
    curves: Curves = setting(Curves(), "the descents of the figures")

    def train_config(self, corpus: Path, family: Path, jobs: int, device: str) -> TrainConfig:
        """How its family is trained."""
        where = {"train": corpus / "train", "dev": corpus / "dev", "output": family}
        languages = {key: getattr(self, key) for key in ("source_language", "target_language")}
        machine = {"jobs": jobs, "device": device}
        every = {"directions": ("l2r", "r2l", "reverse")}
        return load_config(TrainConfig, None, every | self.training | where | languages | machine)


class ExperimentConfig(Settings):
    """Settings of `simplexity experiment`."""

    name: str = setting(
        ...,
        "recipe: experiments/NAME.yaml below this folder, or a YAML file",
        section="What",
        positional=True,
    )
    only: Annotated[tuple[Item, ...], CommaList, Field(min_length=1)] = setting(
        ITEMS, "items to make, comma-separated"
    )
    limit: Count | None = setting(None, "so many test sentences; unset: as the recipe says")

    corpus: Path = setting(
        ..., "folder with train, dev and test in both languages", section="Files"
    )
    family: Path | None = setting(
        None,
        "directory of the family, trained if it is not there; unset: OUTPUT/family",
        short="-m",
    )
    output: Path | None = setting(
        None, "working folder of finished steps and texts; unset: runs/experiments/NAME", short="-o"
    )
    results: Path | None = setting(
        None, "where figures go, replacing older ones; unset: OUTPUT/results"
    )
    quiet: bool = setting(False, "no progress on stderr")

    jobs: Count = setting(1, "models trained at the same time", section="Machine")
    threads: Count | None = setting(None, "CPU threads; unset: OMP_NUM_THREADS, or 1")
    device: Device = setting("auto", "where to compute")

    @property
    def recipe_file(self) -> Path:
        """Where the recipe stands."""
        given = Path(self.name)
        return given if given.suffix in (".yaml", ".yml") else Path("experiments") / f"{given}.yaml"

    @property
    def working(self) -> Path:
        """The working folder."""
        return self.output or Path("runs") / "experiments" / self.recipe_file.stem
