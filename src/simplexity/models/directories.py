"""Directories of models that appear whole, or not at all."""

from __future__ import annotations

import os
import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from simplexity.errors import SimplexityError
from simplexity.text.files import PART


def check_parent(output: Path) -> None:
    """Refuse a directory whose parent is not there."""
    if not output.parent.is_dir():
        raise SimplexityError(f"{output} cannot be written: make the folder {output.parent} first")


@contextmanager
def appearing(output: Path) -> Iterator[Path]:
    """A folder that takes the place of `output` when the block ends without an error."""
    part = output.with_name(f"{PART[0]}{secrets.token_hex(6)}{PART[1]}")
    try:
        part.mkdir()
    except OSError as error:
        raise SimplexityError(
            f"{output} cannot be written: {error.strerror}; choose another folder"
        ) from error
    try:
        yield part
        if output.exists():
            shutil.rmtree(output)
        os.replace(part, output)
    except BaseException:
        shutil.rmtree(part, ignore_errors=True)
        raise
