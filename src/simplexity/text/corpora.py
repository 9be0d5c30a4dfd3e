"""Parallel text: two files whose lines translate each other."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path

from simplexity.errors import SimplexityError
from simplexity.text.files import named, open_text

PACKED = (".gz", ".xz")


def locate(prefix: Path, language: str) -> Path:
    """The file of this language: `prefix.language`, or the same packed as .gz or .xz."""
    plain = Path(f"{prefix}.{language}")
    for suffix in ("", *PACKED):
        found = Path(f"{plain}{suffix}")
        if os.path.isfile(found):
            return found
    if os.path.isdir(prefix):
        hint = f"{prefix} is a directory: add the corpus name, as in {prefix / 'train'}"
    elif known := languages(prefix):
        hint = f"the languages of {prefix} are {', '.join(known)}"
    else:
        hint = f"no file begins with {prefix}: check the name"
    raise SimplexityError(f"there is no {plain}, nor with .gz or .xz; {hint}")


def languages(prefix: Path) -> list[str]:
    """The languages in which a corpus exists, in alphabetical order."""
    if not os.path.isdir(prefix.parent):
        return []
    start = f"{prefix.name}."
    names = [path.name for path in prefix.parent.iterdir() if path.name.startswith(start)]
    ends = {_unpacked(name.removeprefix(start)) for name in names}
    return sorted(end for end in ends if end and "." not in end)


def _unpacked(name: str) -> str:
    for suffix in PACKED:
        name = name.removesuffix(suffix)
    return name


@dataclass(frozen=True)
class Bitext:
    """Pairs of lines from two files, read anew each time they are asked for."""

    source: Path
    target: Path

    @classmethod
    def at(cls, prefix: Path, source_language: str, target_language: str) -> Bitext:
        """The bitext whose files share this prefix."""
        return cls(locate(prefix, source_language), locate(prefix, target_language))

    def __iter__(self) -> Iterator[tuple[str, str]]:
        """Stream the pairs; files that do not belong together are found out at the end."""
        read = [0, 0]
        with open_text(self.source) as sources, open_text(self.target) as targets:
            for pair in zip_longest(sources, targets):
                match pair:
                    case (str(source), str(target)):
                        yield source, target
                        read[0] += 1
                        read[1] += 1
                    case _:
                        # The longer file is read to its end, so that both counts can be told.
                        read[pair[0] is None] += 1
        self._check(*read)

    def _check(self, sources: int, targets: int) -> None:
        source, target = (named(path) for path in (self.source, self.target))
        if sources != targets:
            raise SimplexityError(
                f"{source} has {sources} lines and {target} has {targets}; "
                "line n of one must translate line n of the other"
            )
        if sources == 0:
            raise SimplexityError(f"{source} and {target} are empty; name files with text in them")
