"""N-best lists in files: read more than once, and checked before anything is written.

The list with all its features is its own cache: what stands there need not be computed again.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TypeAlias

from simplexity.errors import SimplexityError
from simplexity.search.nbest import NBestLine, read_nbest
from simplexity.search.rerank import COUNTS, REVERSE, SOURCE_TOKENS, TOKENS
from simplexity.text.files import read_lines

COMPUTABLE = ("l2r", "r2l", REVERSE, *COUNTS)
"""What the models of a family and their vocabularies can add to a list."""

Complete: TypeAlias = Callable[[Iterable[tuple[str, list[NBestLine]]]], Iterator[list[NBestLine]]]
"""Adds features to the hypotheses of source lines."""

MakeComplete: TypeAlias = Callable[[list[str]], Complete]


@dataclass(frozen=True)
class Lines:
    """A text that can be read more than once; `name` is what errors call it."""

    path: Path
    name: str

    def __iter__(self) -> Iterator[str]:
        return read_lines(self.path)


@contextmanager
def rereadable(path: Path | None) -> Iterator[Lines]:
    """The lines of a file; what comes through a pipe is kept in a temporary one."""
    if path is not None and str(path) != "-" and (os.path.isfile(path) or not path.exists()):
        yield Lines(path, str(path))
        return
    with TemporaryDirectory(prefix="simplexity-") as folder:
        kept = Path(folder) / "lines"
        with kept.open("w", encoding="utf-8", newline="\n") as file:
            file.writelines(f"{line}\n" for line in read_lines(path))
        yield Lines(kept, "standard input" if path is None or str(path) == "-" else str(path))


def read_lists(lines: Lines, sentences: int | None = None) -> Iterator[list[NBestLine]]:
    """The hypotheses of every sentence; those at the end that the list passes over have none."""
    count = 0
    for hypotheses in read_nbest(lines, lines.name):
        yield hypotheses
        count += 1
    for _ in range(count, sentences or 0):
        yield []


@dataclass(frozen=True)
class Survey:
    """What an n-best list holds; `first_without` has the first line that lacks a feature, or 0.

    The list of an empty source line, see `is_empty`, lacks nothing.
    """

    name: str
    sentences: int
    hypotheses: int
    first: int
    """The first line of a list that is not that of an empty source line; 0 if there is none."""
    first_without: dict[str, int]

    def terms(self) -> list[str]:
        """The features of every hypothesis, without the counts of words."""
        shared = [n for n, line in self.first_without.items() if not line and n not in COUNTS]
        if not shared:
            raise SimplexityError(f"{self.name} has no feature that all its lines share")
        return shared

    def missing(self, names: Iterable[str]) -> list[str]:
        """Those of these features that some hypothesis lacks."""
        return [name for name in names if self.first_without.get(name, self.first)]

    def require(self, names: Iterable[str]) -> None:
        """Refuse a list that lacks one of these features."""
        for name in self.missing(names):
            line = self.first_without.get(name, self.first)
            remedy = "name one that every line has"
            if name in COMPUTABLE:
                remedy = "give --model and --source to compute it"
            raise SimplexityError(f"{self.name}, line {line} has no feature {name!r}; {remedy}")


def survey(lists: Iterable[list[NBestLine]], name: str, sentences: int | None = None) -> Survey:
    """Look through all lists; a sentence beyond the number of lines of the corpus is an error."""
    groups = hypotheses = first = 0
    without: dict[str, int] = {}
    for found in lists:
        groups += 1
        if sentences is not None and groups > sentences:
            raise SimplexityError(
                f"{name}, line {hypotheses + 1}: its sentence lies beyond the {sentences} lines of "
                "the corpus, which are counted from 0; give the source and references of this list"
            )
        for number, line in enumerate(found, hypotheses + 1):
            if not is_empty(found):
                first = first or number
                _note(without, line.features, number, first)
        hypotheses += len(found)
    return Survey(name, groups, hypotheses, first, without)


def _note(without: dict[str, int], features: Iterable[str], number: int, first: int) -> None:
    """Keep the first line without each feature up to date."""
    for name in features:
        without.setdefault(name, first if number > first else 0)
    for name, line in without.items():
        if not line and name not in features:
            without[name] = number


def is_empty(hypotheses: Sequence[NBestLine]) -> bool:
    """Whether the list stands for an empty source line: one empty string, of no features."""
    return len(hypotheses) == 1 and not hypotheses[0].text and not hypotheses[0].features


def completed(
    nbest: Lines,
    source: Lines | None,
    found: Survey,
    needs: Sequence[str],
    make: MakeComplete | None,
    again: bool = False,
) -> Iterator[list[NBestLine]]:
    """The lists with all features that are needed; what cannot be had is an error at once.

    `make` is given the names of the models that are to score: those that some line lacks or, to do
    it `again`, all. Where nothing is lacking it is not called.
    """
    computable = COMPUTABLE if make and source else ()
    found.require(name for name in needs if name not in computable)
    wanted = [name for name in needs if name in computable] if again else found.missing(needs)
    lists = read_lists(nbest, found.sentences)
    if make and source and wanted:
        complete = make([name for name in wanted if name not in COUNTS])
        lists = complete(zip(source, lists, strict=True))
    return (filled(hypotheses, needs) for hypotheses in lists)


def filled(hypotheses: list[NBestLine], names: Iterable[str]) -> list[NBestLine]:
    """The same list; that of an empty source line gets these features, all 0."""
    if not is_empty(hypotheses):
        return hypotheses
    return [replace(hypotheses[0], features=dict.fromkeys(names, 0.0))]


def with_features(line: NBestLine, features: dict[str, float]) -> NBestLine:
    """The line with more features, models before counts."""
    every = {**line.features, **features}
    counts = {name: every.pop(name) for name in (TOKENS, SOURCE_TOKENS) if name in every}
    return replace(line, features={**every, **counts})
