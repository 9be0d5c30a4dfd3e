"""What the tables of one family and one test set have in common."""

from __future__ import annotations

import argparse
from pathlib import Path

import simplexity
from simplexity.api import Loaded
from simplexity.runtime import keep_memory, use_threads
from simplexity.text.files import read_lines


def add_test_set(parser: argparse.ArgumentParser) -> None:
    """The arguments that name the models, the test set and the results."""
    parser.add_argument("family")
    parser.add_argument("source", type=Path)
    parser.add_argument("reference", type=Path)
    parser.add_argument("--output", type=Path, required=True, help="results, without suffix")


def read(
    given: argparse.Namespace, limit: int | None = None
) -> tuple[Loaded, list[str], list[str]]:
    """The models, the sources and their references; so many of them only."""
    keep_memory()
    use_threads(None)
    loaded = simplexity.load(given.family)
    lines, references = (list(read_lines(path))[:limit] for path in (given.source, given.reference))
    return loaded, lines, references
