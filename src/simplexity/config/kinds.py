"""Kinds of values that settings have."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Annotated, Literal

from pydantic import BeforeValidator, Field

Member = Literal["l2r", "r2l", "reverse"]
Device = Literal["auto", "cpu", "cuda"]

Count = Annotated[int, Field(ge=1)]
Natural = Annotated[int, Field(ge=0)]
Positive = Annotated[float, Field(gt=0)]
Share = Annotated[float, Field(ge=0, lt=1)]
Decay = Annotated[float, Field(gt=0, lt=1)]


def _split(value: object) -> object:
    """`a,b` as the list of its parts; a list stays what it is."""
    return [part.strip() for part in value.split(",")] if isinstance(value, str) else value


def _or_none(value: object) -> object:
    """The word none as the absence of a value, so that a flag can say it."""
    return None if value == "none" else value


def is_stdin(path: Path | None) -> bool:
    """Whether this names standard input: by "-", or by nothing."""
    return path is None or str(path) == "-"


def _budget(value: object) -> str:
    """`100` evaluations, or `50ms`."""
    text = str(value).strip()
    number = text.removesuffix("ms")
    try:
        fine = math.isfinite(float(number)) and float(number) > 0
    except ValueError:
        fine = False
    if not fine or (number == text and not text.isdigit()):
        raise ValueError(f"{text!r} is no budget; write 100 for exact scores, or 50ms for time")
    return text


CommaList = BeforeValidator(_split)
Budget = Annotated[str, BeforeValidator(_budget)]
OrNone = BeforeValidator(_or_none)
