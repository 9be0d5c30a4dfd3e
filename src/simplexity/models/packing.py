"""A trained family made small: the same directory with its weights in 8 bits."""

from __future__ import annotations

import os
import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from safetensors import SafetensorError

from simplexity.errors import SimplexityError
from simplexity.models.family import CARD, IN_8_BITS, MEMBERS, load_network, read_card
from simplexity.models.packed import PACKED, write_packed
from simplexity.text.files import PART

KEPT = ("README.md",)
"""What stands beside the members and belongs to the family: its model card."""


@dataclass(frozen=True)
class Packed:
    """What packing one model saved, in bytes."""

    name: str
    before: int
    after: int


def pack_family(directory: Path, output: Path, overwrite: bool = False) -> list[Packed]:
    """Write the models of a directory into another one, in 8 bits; whole, or not at all."""
    folders = model_folders(directory)
    _check_free(output, overwrite)
    with _appearing(output) as part:
        for name in KEPT:
            if (directory / name).is_file():
                shutil.copyfile(directory / name, part / name)
        return [_pack_model(directory / name, part / name) for name in folders]


def model_folders(directory: Path) -> list[str]:
    """The folders of a directory that hold a model: "." if it is one itself."""
    found = [name for name in (".", *MEMBERS) if (directory / name / CARD).is_file()]
    if not found:
        raise SimplexityError(
            f"{directory} holds no model; name a directory that `simplexity train` has written."
        )
    return found


def _pack_model(directory: Path, output: Path) -> Packed:
    card, network = read_card(directory), load_network(directory)
    output.mkdir(exist_ok=True)
    for file in directory.iterdir():
        if file.is_file() and file.suffix != ".safetensors":
            shutil.copyfile(file, output / file.name)
    try:
        write_packed(network, output)
    except SafetensorError as error:  # no OSError, even of a full disk
        raise SimplexityError(f"{output.parent} could not be written: {error}") from error
    # safetensors lets nobody else read them.
    (output / PACKED).chmod((directory / CARD).stat().st_mode)
    replace(card, format=IN_8_BITS).save(output)
    return Packed(card.member, _weight(directory), _weight(output))


def _weight(directory: Path) -> int:
    return sum(file.stat().st_size for file in directory.glob("*.safetensors"))


def _check_free(output: Path, overwrite: bool) -> None:
    if not output.exists():
        if not output.parent.is_dir():
            raise SimplexityError(
                f"{output} cannot be written: make the folder {output.parent} first"
            )
        return
    if not overwrite:
        raise SimplexityError(f"{output} exists; choose another name or pass --overwrite")
    if not output.is_dir() or not any((output / name / CARD).exists() for name in (".", *MEMBERS)):
        raise SimplexityError(f"{output} is no model directory, so it stays; choose another name")


@contextmanager
def _appearing(output: Path) -> Iterator[Path]:
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
