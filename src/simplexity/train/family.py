"""Train the members of a family in one directory, so that they share their vocabularies."""

from __future__ import annotations

import json
import math
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import yaml
from transformers import PreTrainedModel

from simplexity import build
from simplexity.config import TrainConfig
from simplexity.errors import SimplexityError
from simplexity.models.family import Card, MemberName
from simplexity.runtime import device_named, quiet_transformers
from simplexity.text.vocabulary import Vocabulary, load_vocabulary
from simplexity.train.checkpoint import append_log
from simplexity.train.distributed import Workers
from simplexity.train.examples import Examples, for_member, read_examples
from simplexity.train.trainer import Event, Run, Validation

SETTINGS, LEARNT = "training.yaml", "vocabularies.done"
MACHINE = {"jobs", "threads", "device", "quiet", "overwrite", "directions", "max_epochs", "output"}
"""Settings that may differ when a broken-off run goes on: they do not change its outcome."""


@dataclass(frozen=True)
class Material:
    """What all members of a family learn from."""

    source: Vocabulary
    target: Vocabulary
    train: Examples
    dev: Examples


def open_directory(config: TrainConfig) -> None:
    """Make the family's directory, or recognise it as this very run broken off."""
    directory, settings = config.output, config.output / SETTINGS
    if config.overwrite and settings.exists():
        for name in ("l2r", "r2l", "reverse"):
            shutil.rmtree(directory / name, ignore_errors=True)
        for file in (
            settings,
            directory / LEARNT,
            *directory.glob("*.vocabulary.json"),
            *directory.glob("*.spm"),
        ):
            file.unlink(missing_ok=True)
    mine = config.model_dump(mode="json", exclude=MACHINE)
    if settings.exists():
        theirs = yaml.safe_load(settings.read_text(encoding="utf-8"))
        for key in mine:
            if mine[key] != theirs.get(key):
                raise SimplexityError(
                    f"{directory} was begun with {key}: {theirs.get(key)}, not {mine[key]}; use "
                    "the old setting to go on with it, --overwrite to start anew, or another -o."
                )
        return
    if directory.exists() and any(directory.iterdir()):
        raise SimplexityError(
            f"{directory} exists and was not written by `simplexity train`; choose another "
            "directory with -o."
        )
    directory.mkdir(parents=True, exist_ok=True)
    partial = settings.with_suffix(".partial")
    partial.write_text(yaml.safe_dump(mine, sort_keys=False), encoding="utf-8")
    partial.replace(settings)


def learn_vocabularies(config: TrainConfig) -> None:
    """Learn the words of both sides, unless the run that goes on has them already."""
    done = config.output / LEARNT
    if not done.exists():
        source, target = build.vocabularies(config, build.bitext(config, "train"))
        source.save(config.output, "source")
        target.save(config.output, "target")
        done.touch()


def prepare(config: TrainConfig) -> Material:
    """Read the vocabularies and encode the corpora."""
    source = load_vocabulary(config.output, "source")
    target = load_vocabulary(config.output, "target")
    longest = config.max_length
    return Material(
        source,
        target,
        read_examples(build.bitext(config, "train"), source, target, longest),
        read_examples(build.bitext(config, "dev"), source, target, longest),
    )


def train_member(
    config: TrainConfig, name: MemberName, material: Material, workers: Workers
) -> Iterator[Event]:
    """Train one model, yielding what happens; its directory is complete when this ends."""
    folder = config.output / name / "training"
    folder.mkdir(parents=True, exist_ok=True)
    sides = [material.source, material.target]
    if name == "reverse":
        sides.reverse()
    network = build.new_network(config, len(sides[0]), len(sides[1]))
    network.to(device_named(config.device))
    train, dev = for_member(material.train, name), for_member(material.dev, name)
    run = Run(network, train, dev, build.recipe(config), folder, workers)
    for event in run.events():
        if isinstance(event, Validation) and workers.rank == 0:
            append_log(folder / "log.jsonl", validation_record(event))
        yield event
    workers.wait()
    if workers.rank == 0:
        network.load_state_dict(run.best_weights())
        _save_member(config, name, network, sides)


def is_trained(directory: Path, name: MemberName) -> bool:
    """Whether this member's training has come to its end."""
    return (directory / name / "model.safetensors").exists()


def validation_record(event: Validation) -> dict[str, float | int | bool]:
    """One line of a training log."""
    return {
        "step": event.progress.step,
        "epoch": event.progress.epoch,
        "perplexity": round(event.perplexity, 6),
        "best": round(math.exp(event.progress.best), 6),
        "learning_rate": event.learning_rate,
        "improved": event.improved,
    }


def read_log(directory: Path, name: MemberName) -> list[dict[str, float]]:
    """The validations of a member's training."""
    file = directory / name / "training" / "log.jsonl"
    return [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]


def _save_member(
    config: TrainConfig, name: MemberName, network: PreTrainedModel, sides: list[Vocabulary]
) -> None:
    """Write the model beside its place, then move it there, the weights last."""
    quiet_transformers()
    source, target = config.source_language or "source", config.target_language or "target"
    if name == "reverse":
        source, target = target, source
    place = config.output / name
    beside = place / "training" / "model"
    shutil.rmtree(beside, ignore_errors=True)
    network.save_pretrained(beside)
    Card(name, source, target).save(beside)
    for vocabulary, side in zip(sides, ("source", "target"), strict=True):
        vocabulary.save(beside, side)
    for file in sorted(beside.iterdir(), key=lambda file: file.suffix == ".safetensors"):
        file.replace(place / file.name)
    beside.rmdir()
    for leftover in ("checkpoint.pt", "best.pt"):
        (place / "training" / leftover).unlink()
