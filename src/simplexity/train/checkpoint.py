"""A training run on disk: killed at any moment, it goes on as if nothing had happened."""

from __future__ import annotations

import json
import os
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch

from simplexity.errors import SimplexityError
from simplexity.text.files import writing


@dataclass(frozen=True)
class Progress:
    """How far a run has come; together with the weights, all that is needed to go on."""

    epoch: int = 0
    batch: int = 0
    step: int = 0
    best: float = float("inf")
    """Lowest dev cost per word so far."""
    waiting: int = 0
    """Validations since the best, or since the last decay of the learning rate."""
    decays: int = 0
    finished: bool = False


def save_checkpoint(path: Path, progress: Progress, parts: dict[str, Any], recipe: str) -> None:
    """Write the run so that a reader sees the old file or the new one, never half of one."""
    save_whole(path, {"progress": asdict(progress), "recipe": recipe, **parts})


def save_whole(path: Path, content: dict[str, Any]) -> None:
    """Write tensors under this name in one stroke, or say why not and leave nothing."""
    partial = path.with_suffix(".partial")
    try:
        with partial.open("wb") as file:
            torch.save(content, file)
            file.flush()
            os.fsync(file.fileno())
        partial.replace(path)
    except (OSError, RuntimeError) as error:
        partial.unlink(missing_ok=True)
        # torch hides a failure to write behind one of its own, of closing the archive.
        cause = error if isinstance(error, OSError) else error.__context__
        if not isinstance(cause, OSError):
            raise
        raise SimplexityError(
            f"{path} could not be written: {cause.strerror}; make room there and give the same "
            "command again to go on."
        ) from error


def load_checkpoint(path: Path, recipe: str) -> tuple[Progress, dict[str, Any]] | None:
    """The run that was broken off here, or None; refuses one that was started otherwise."""
    if not path.exists():
        return None
    found = torch.load(path, map_location="cpu", weights_only=True)
    if found["recipe"] != recipe:
        then, now = json.loads(found["recipe"]), json.loads(recipe)
        key = next(k for k in {**then, **now} if then.get(k) != now.get(k))
        raise SimplexityError(
            f"{path.parent} holds a run with {key}={then.get(key)!r}, not {now.get(key)!r}; "
            "use the old setting to go on with it, or --overwrite to start anew."
        )
    return Progress(**found.pop("progress")), found


def append_log(path: Path, record: dict[str, Any]) -> None:
    """Add one JSON line to the log of validations.

    What a killed run had validated after its last checkpoint is validated anew, and must not stand
    there twice.
    """
    earlier = [old for old in read_log(path) if old["step"] < record["step"]]
    text = "".join(json.dumps(line) + "\n" for line in [*earlier, record])
    with writing(path, overwrite=True) as file:
        file.write(text)


def read_log(path: Path) -> list[dict[str, Any]]:
    """The validations of a run, in order."""
    if not path.exists():
        return []
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
