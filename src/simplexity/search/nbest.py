"""N-best lists as Marian and Moses write them.

One hypothesis a line, those of a sentence together and sentences in order:

    0 ||| ein Hund ||| l2r= -12.3 r2l= -9.1 ||| -1.02

Moses may append alignments; they are left out. A text that holds the separator is written with
`&#124;&#124;&#124;` in its place, as Moses does, and read back.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from simplexity.errors import SimplexityError

SEPARATOR = "|||"
ESCAPED = "&#124;&#124;&#124;"


@dataclass(frozen=True)
class NBestLine:
    """One hypothesis: its sentence's place in the source from 0, its features, its total score."""

    sentence: int
    text: str
    features: dict[str, float]
    score: float


def format_line(line: NBestLine) -> str:
    """The line without its end; numbers keep every digit."""
    if "\n" in line.text or "\r" in line.text:
        raise SimplexityError(
            f"A hypothesis of sentence {line.sentence} contains a line break, which an n-best list "
            "cannot hold; put it on one line."
        )
    for name in line.features:
        if name != "".join(name.split()) or not name or "=" in name or SEPARATOR in name:
            raise SimplexityError(
                f"{name!r} cannot name a feature of an n-best list; use a name without spaces, '=' "
                f"and '{SEPARATOR}'."
            )
    features = " ".join(f"{name}= {float(value)!r}" for name, value in line.features.items())
    text = line.text.replace(SEPARATOR, ESCAPED)
    return f" {SEPARATOR} ".join([str(line.sentence), text, features, repr(float(line.score))])


def parse_line(line: str, where: str = "n-best line") -> NBestLine:
    """Read one line; `where` names it in errors.

    A feature with several values, `lm= -1 -2`, becomes `lm.0` and `lm.1`.
    """
    fields = line.rstrip("\r\n").split(SEPARATOR)
    if not 4 <= len(fields) <= 6:
        raise SimplexityError(
            f"{where}: expected 'sentence ||| text ||| features ||| score', but found "
            f"{len(fields)} field{'s' * (len(fields) != 1)} separated by '{SEPARATOR}'."
        )
    sentence, text, features, score = fields[:4]
    return NBestLine(
        parse_sentence(sentence.strip(), where),
        text.removeprefix(" ").removesuffix(" ").replace(ESCAPED, SEPARATOR),
        parse_features(features, where),
        parse_number(score.strip(), "score", where),
    )


def parse_sentence(text: str, where: str) -> int:
    """The number of the sentence, 0 or more."""
    if not (text.isascii() and text.isdigit()):
        raise SimplexityError(f"{where}: {text!r} is no sentence number; expected 0, 1, 2, ...")
    return int(text)


def parse_features(text: str, where: str) -> dict[str, float]:
    """Named numbers, in the order of the line."""
    values: dict[str, list[float]] = {}
    name = None
    for word in text.replace("=", "= ").split():
        if word.endswith("="):
            name = word[:-1]
            if not name or name in values:
                problem = f"occurs twice: {name!r}" if name else "has no name"
                raise SimplexityError(f"{where}: a feature {problem}; name each one once.")
            values[name] = []
        elif name is None:
            raise SimplexityError(f"{where}: {word!r} stands before any feature's 'name='.")
        else:
            values[name].append(parse_number(word, f"value of {name}", where))
    for name, numbers in values.items():
        if not numbers:
            raise SimplexityError(f"{where}: the feature {name!r} has no value.")
    return {
        name if len(numbers) == 1 else f"{name}.{place}": number
        for name, numbers in values.items()
        for place, number in enumerate(numbers)
    }


def parse_number(text: str, what: str, where: str) -> float:
    """A number, infinite perhaps."""
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if math.isnan(number):
        raise SimplexityError(f"{where}: the {what} is no number: {text!r}.")
    return number


def read_nbest(lines: Iterable[str], name: str) -> Iterator[list[NBestLine]]:
    """The hypotheses of each sentence, from sentence 0 on, read as they are asked for.

    A sentence that is passed over gives an empty list. `name` is the file's, for errors.
    """
    group: list[NBestLine] = []
    current = 0
    for number, text in enumerate(lines, 1):
        where = f"{name}, line {number}"
        line = parse_line(text, where)
        if line.sentence < current:
            raise SimplexityError(
                f"{where}: sentence {line.sentence} comes after sentence {current}; sort the list "
                "by sentence."
            )
        while line.sentence > current:
            yield group
            group, current = [], current + 1
        group.append(line)
    if group:
        yield group
