"""A trained family made small: the same directory with its weights in 8 bits."""

from __future__ import annotations

import shutil
from dataclasses import dataclass, replace
from pathlib import Path

from safetensors import SafetensorError

from simplexity.errors import SimplexityError
from simplexity.models.directories import appearing, check_parent
from simplexity.models.family import CARD, IN_8_BITS, MEMBERS, load_network, read_card
from simplexity.models.packed import PACKED, write_packed

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
    with appearing(output) as part:
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
        check_parent(output)
        return
    if not overwrite:
        raise SimplexityError(f"{output} exists; choose another name or pass --overwrite")
    if not output.is_dir() or not any((output / name / CARD).exists() for name in (".", *MEMBERS)):
        raise SimplexityError(f"{output} is no model directory, so it stays; choose another name")
