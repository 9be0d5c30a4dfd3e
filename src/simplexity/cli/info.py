"""`simplexity info`: what is installed, what the machine offers, what model directories hold."""

from __future__ import annotations

import json
import math
import os
import platform
import re
import sys
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path

import simplexity
from simplexity.config import InfoConfig
from simplexity.shipped import SHIPPED, is_shipped

LIBRARIES = ("torch", "transformers", "sentencepiece", "sacrebleu", "numpy", "pydantic", "click")


def run(config: InfoConfig) -> None:
    """Show versions, devices, and what model directories hold.

    A report of a fault should include this.
    """
    lines = [*_program(), *_torch(), _shipped()]
    for directory in config.models:
        lines += _directory(directory)
    print("\n".join(lines))


def _program() -> Iterator[str]:
    yield f"simplexity {simplexity.__version__}"
    yield f"python {platform.python_version()} on {platform.platform()}: {sys.executable}"
    yield from (f"{library} {_version(library)}" for library in LIBRARIES)
    for extra, packages in _extras().items():
        missing = [package for package in packages if _version(package) == "missing"]
        yield f"extra {extra}: " + (f"lacks {', '.join(missing)}" if missing else "installed")


def _torch() -> Iterator[str]:
    import torch

    gpus = [torch.cuda.get_device_name(i) for i in range(torch.cuda.device_count())]
    yield f"devices: {', '.join(['cpu', *gpus])}"
    yield f"threads: {torch.get_num_threads()} of {os.cpu_count()} cores"


def _shipped() -> str:
    return f"shipped models: {SHIPPED if is_shipped() else 'none; commands need -m'}"


def _version(package: str) -> str:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return "missing"


def _extras() -> dict[str, list[str]]:
    """The packages of each optional extra, as the installation declares them."""
    try:
        declared = metadata.requires("simplexity") or []
    except metadata.PackageNotFoundError:  # run from its sources, not installed
        return {}
    found: dict[str, list[str]] = {}
    for line in declared:
        match = re.match(r"([\w.-]+).*;.*extra == ['\"](\w+)['\"]", line)
        if match:
            found.setdefault(match[2], []).append(match[1])
    return found


def _directory(directory: Path) -> Iterator[str]:
    """What a directory holds: itself one model, or the members of a family."""
    from simplexity.errors import SimplexityError
    from simplexity.models.family import CARD, MEMBERS

    places = [directory, *(directory / name for name in MEMBERS)]
    found = [place for place in places if (place / CARD).is_file()]
    if not found:
        raise SimplexityError(
            f"{directory} holds no model; name a directory that 'simplexity train' has written"
        )
    yield f"{directory}:"
    yield from (f"  {_model(place)}" for place in found)


def _model(directory: Path) -> str:
    from transformers import AutoConfig

    from simplexity.models import attention
    from simplexity.models.family import read_card, weights_hash

    attention.register()
    card = read_card(directory)
    kind = AutoConfig.from_pretrained(directory).model_type
    return (
        f"{card.member}: {card.source_language} to {card.target_language}, {kind}, "
        f"{_weights(directory):,} weights ({weights_hash(directory)}), format {card.format}"
    )


def _weights(directory: Path) -> int:
    """Number of weights, from the headers of the files alone: a length, then JSON."""
    from simplexity.models.packed import SCALE

    total = 0
    for file in directory.glob("*.safetensors"):
        with file.open("rb") as content:
            header = json.loads(content.read(int.from_bytes(content.read(8), "little")))
        header.pop("__metadata__", None)
        shapes = (x["shape"] for name, x in header.items() if not name.endswith(SCALE))
        total += sum(math.prod(shape) for shape in shapes)
    return total
