"""The files of a vocabulary inside a model directory."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from simplexity.errors import SimplexityError
from simplexity.text.files import writing

FORMAT = 1


def header_path(directory: Path, side: str) -> Path:
    """Where the vocabulary of a side is described."""
    return directory / f"{side}.vocabulary.json"


def write_header(directory: Path, side: str, header: dict[str, Any]) -> None:
    """Describe the vocabulary of a side, in place of an older description."""
    directory.mkdir(parents=True, exist_ok=True)
    with writing(header_path(directory, side), overwrite=True) as file:
        json.dump({"format": FORMAT, **header}, file, ensure_ascii=False, indent=1)
        file.write("\n")


def read_header(directory: Path, side: str) -> dict[str, Any]:
    """The description of a side's vocabulary, if it is of a format we know."""
    path = header_path(directory, side)
    try:
        header = json.loads(read_bytes(path))
    except ValueError:
        raise damaged(path) from None
    match header:
        case {"format": int(version)} if version == FORMAT:
            return dict(header)
        case {"format": int(version)} if version > FORMAT:
            raise SimplexityError(
                f"{path} has format {version}, made by a newer version; update simplexity"
            )
    raise damaged(path)


def read_bytes(path: Path) -> bytes:
    """All bytes of a file that a model directory must have."""
    try:
        return path.read_bytes()
    except (FileNotFoundError, NotADirectoryError) as error:
        raise SimplexityError(
            f"{path.parent} holds no model: {path.name} is missing; "
            "name a directory that simplexity train made"
        ) from error
    except OSError as error:
        raise SimplexityError(f"{path} cannot be read: {error.strerror}") from error


def damaged(path: Path) -> SimplexityError:
    """The error for a file that is there but makes no sense."""
    return SimplexityError(f"{path} is damaged and holds no vocabulary; restore or retrain it")
