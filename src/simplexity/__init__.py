"""Simplexity decodes sequence models by continuous optimisation on the probability simplex."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from simplexity.api import Loaded, load
    from simplexity.decode import Hypothesis
    from simplexity.errors import SimplexityError, UsageError
    from simplexity.plugin import relaxed

__version__ = "0.1.0"
__all__ = [
    "Hypothesis",
    "Loaded",
    "SimplexityError",
    "UsageError",
    "__version__",
    "load",
    "relaxed",
]

_HOMES = {
    "Hypothesis": "decode",
    "Loaded": "api",
    "SimplexityError": "errors",
    "UsageError": "errors",
    "load": "api",
    "relaxed": "plugin",
}


def __getattr__(name: str) -> object:
    """Import the library, and torch with it, when it is first used."""
    if name in _HOMES:
        return getattr(import_module(f"simplexity.{_HOMES[name]}"), name)
    raise AttributeError(f"module 'simplexity' has no attribute {name!r}")
