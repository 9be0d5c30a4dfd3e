"""A training run on disk: killed at any moment, it goes on as if nothing had happened."""

from __future__ import annotations

import json
import os
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch

from simplexity.errors import SimplexityError


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
    partial = path.with_suffix(".partial")
    with partial.open("wb") as file:
        torch.save({"progress": asdict(progress), "recipe": recipe, **parts}, file)
        file.flush()
        os.fsync(file.fileno())
    partial.replace(path)


def load_checkpoint(path: Path, recipe: str) -> tuple[Progress, dict[str, Any]] | None:
    """The run that was broken off here, or None; refuses one that was started otherwise."""
    if not path.exists():
        return None
    found = torch.load(path, map_location="cpu", weights_only=True)
    if found["recipe"] != recipe:
        then, now = json.loads(found["recipe"]), json.loads(recipe)
        key = next(k for k in now if then.get(k) != now[k])
        raise SimplexityError(
            f"{path.parent} holds a run with {key}={then.get(key)!r}, not {now[key]!r}; "
            "use the old setting to go on with it, or --overwrite to start anew."
        )
    return Progress(**found.pop("progress")), found


def append_log(path: Path, record: dict[str, Any]) -> None:
    """Add one JSON line to the log of validations."""
    with path.open("a", encoding="utf-8") as file:
        file.write(json.dumps(record) + "\n")
