"""Train the members of a family in one directory, so that they share their vocabularies."""

from __future__ import annotations

import math
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml
from transformers import PreTrainedModel

from simplexity import build
from simplexity.config import TrainConfig
from simplexity.errors import SimplexityError
from simplexity.models.family import CARD, MEMBERS, Card, MemberName
from simplexity.runtime import device_named, quiet_transformers
from simplexity.text.files import is_part, writing
from simplexity.text.vocabulary import Vocabulary, load_vocabulary
from simplexity.train.checkpoint import append_log
from simplexity.train.distributed import Workers
from simplexity.train.examples import Examples, check_usable, for_member, read_examples
from simplexity.train.trainer import Event, Run, Validation

SETTINGS, LEARNT = "training.yaml", "vocabularies.done"
WEIGHTS = "model.safetensors"
MACHINE = {"jobs", "threads", "device", "quiet", "overwrite", "directions", "max_epochs", "output"}
"""Settings that may differ when a broken-off run goes on."""


@dataclass(frozen=True)
class Material:
    """What all members of a family learn from."""

    source: Vocabulary
    target: Vocabulary
    train: Examples
    dev: Examples


def open_directory(config: TrainConfig) -> None:
    """Begin a family in its directory, or recognise there this very run broken off.

    The corpora are read first: when they cannot be used, nothing is written and nothing removed.
    """
    begun = _is_begun(config)
    if begun and (config.output / LEARNT).exists():
        for name in config.directions:
            if is_trained(config.output, name):  # and perhaps killed just then
                _tidy(config.output / name)
        return
    source, target = build.vocabularies(config, build.bitext(config, "train"))
    _check_corpora(config, source, target)
    if not begun:
        _begin(config)
    source.save(config.output, "source")
    target.save(config.output, "target")
    (config.output / LEARNT).touch()


def _is_begun(config: TrainConfig) -> bool:
    """Whether the directory holds this run; False if it is free, an error if it is not."""
    directory, settings = config.output, config.output / SETTINGS
    if settings.exists():
        mine = _fixed(config)
        theirs = yaml.safe_load(settings.read_text(encoding="utf-8"))
        key = next((key for key in mine if mine[key] != theirs.get(key)), None)
        if key is not None and not config.overwrite:
            raise SimplexityError(
                f"{directory} was begun with {key}: {theirs.get(key)}, not {mine[key]}; use "
                "the old setting to go on with it, --overwrite to start anew, or another -o."
            )
        return not config.overwrite
    # A kill may have left a part of our own settings.
    if directory.exists() and not all(is_part(file) for file in directory.iterdir()):
        raise SimplexityError(
            f"{directory} exists and was not written by `simplexity train`; choose another "
            "directory with -o."
        )
    return False


def _check_corpora(config: TrainConfig, source: Vocabulary, target: Vocabulary) -> None:
    """Find out now what would end the training later; learning has read the training corpus."""
    check_usable(build.bitext(config, "train"), source, target, config.max_length)
    read_examples(build.bitext(config, "dev"), source, target, config.max_length)


def _begin(config: TrainConfig) -> None:
    """Write down the settings in an empty directory; of an older family nothing stays."""
    directory = config.output
    directory.mkdir(parents=True, exist_ok=True)
    (directory / LEARNT).unlink(missing_ok=True)
    for name in MEMBERS:
        shutil.rmtree(directory / name, ignore_errors=True)
    for file in (*directory.glob("*.vocabulary.json"), *directory.glob("*.spm")):
        file.unlink()
    with writing(directory / SETTINGS, overwrite=True) as settings:
        settings.write(yaml.safe_dump(_fixed(config), sort_keys=False))


def _fixed(config: TrainConfig) -> dict[str, Any]:
    """The settings that decide the outcome."""
    return config.model_dump(mode="json", exclude=MACHINE)


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
    return (directory / name / WEIGHTS).exists()


def validation_record(event: Validation) -> dict[str, float | int | bool]:
    """One line of a training log."""
    return {
        "step": event.progress.step,
        "epoch": event.progress.epoch,
        "perplexity": round(event.perplexity, 6),
        "best": round(math.exp(min(event.progress.best, 50.0)), 6),
        "learning_rate": event.learning_rate,
        "improved": event.improved,
    }


def _save_member(
    config: TrainConfig, name: MemberName, network: PreTrainedModel, sides: list[Vocabulary]
) -> None:
    """Write the model beside its place, then move it there, the weights last."""
    place = config.output / name
    beside = place / "training" / "model"
    source, target = config.source_language or "source", config.target_language or "target"
    card = Card(name, target, source) if name == "reverse" else Card(name, source, target)
    shutil.rmtree(beside, ignore_errors=True)
    try:
        _write_model(beside, network, card, sides)
    except Exception as error:
        shutil.rmtree(beside, ignore_errors=True)
        if "os error" in str(error):  # of safetensors, whose errors are no OSError
            raise SimplexityError(f"{place} could not be written: {error}") from error
        raise
    for file in sorted(beside.iterdir(), key=lambda file: file.suffix == ".safetensors"):
        file.replace(place / file.name)
    _tidy(place)


def _tidy(place: Path) -> None:
    """Remove what a trained member needs no more."""
    training = place / "training"
    shutil.rmtree(training / "model", ignore_errors=True)
    for leftover in ("checkpoint.pt", "best.pt"):
        (training / leftover).unlink(missing_ok=True)


def _write_model(
    directory: Path, network: PreTrainedModel, card: Card, sides: list[Vocabulary]
) -> None:
    quiet_transformers()
    network.save_pretrained(directory)
    card.save(directory)
    for vocabulary, side in zip(sides, ("source", "target"), strict=True):
        vocabulary.save(directory, side)
    # safetensors lets nobody else read them.
    (directory / WEIGHTS).chmod((directory / CARD).stat().st_mode)
