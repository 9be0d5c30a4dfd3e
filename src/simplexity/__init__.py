"""Simplexity decodes sequence models by continuous optimisation on the probability simplex."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from simplexity.api import Loaded, load
    from simplexity.plugin import relaxed

__version__ = "0.1.0"
__all__ = ["Loaded", "__version__", "load", "relaxed"]


def __getattr__(name: str) -> object:
    """Import the library, and torch with it, when it is first used."""
    if name in ("Loaded", "load"):
        from simplexity import api

        return getattr(api, name)
    if name == "relaxed":
        from simplexity import plugin

        return plugin.relaxed
    raise AttributeError(f"module 'simplexity' has no attribute {name!r}")
