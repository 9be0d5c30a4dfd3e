"""The family that comes with the package, so that a first translation needs no training.

Its weights lie beside this file; `examples/shipped.sh` makes them from a corpus. A package that was
built without them works, but must be told which models to use.
"""

from __future__ import annotations

from pathlib import Path

from simplexity.errors import UsageError

SHIPPED = Path(__file__).parent / "de-en"
"""German to English: left-to-right, right-to-left and reverse, in 8 bits."""


def is_shipped() -> bool:
    """Whether this installation has its own family."""
    return (SHIPPED / "l2r" / "simplexity.json").is_file()


def family_or_shipped(directory: Path | None) -> Path:
    """The directory that was named, or else the one that comes with the package."""
    if directory is not None:
        return directory
    if not is_shipped():
        raise UsageError(
            "This installation comes without models: name a directory that `simplexity train` has "
            "written with -m."
        )
    return SHIPPED
