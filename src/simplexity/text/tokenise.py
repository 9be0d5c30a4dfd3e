"""Words and back: a tokeniser whose output says where the spaces were.

A joiner on one side of a token means "no space on this side", so a line can be put together again:

    Hello, world!   ->  Hello ￭, world ￭!
    (it isn't 3.5)  ->  (￭ it isn ￭'t 3.5 ￭)

Chinese and Japanese characters are tokens of their own and join each other without a mark.
`join_words(split_words(line))` is `line` with its runs of white space made one space, but for two
things: a space between two Chinese or Japanese characters is lost, and a joiner that stands in the
text becomes a black square, ■.
"""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from functools import cache
from itertools import pairwise

JOINER = "￭"
JOINER_IN_TEXT = "■"

# Han, Hiragana, Katakana, Bopomofo, their extensions, and the punctuation written with them.
# Full-width letters and digits are left out: they are written as words.
CJK_RANGES = (
    (0x2E80, 0x2FDF),
    (0x3001, 0x312F),
    (0x3190, 0x4DBF),
    (0x4E00, 0x9FFF),
    (0xF900, 0xFAFF),
    (0xFE30, 0xFE4F),
    (0xFF01, 0xFF0F),
    (0xFF1A, 0xFF20),
    (0xFF3B, 0xFF40),
    (0xFF5B, 0xFF9F),
    (0x1B000, 0x1B16F),
    (0x20000, 0x3FFFF),
)
CJK_STARTS = [start for start, _ in CJK_RANGES]

KINDS = {"'": "a", "’": "a", ".": "n", ",": "k"}
CATEGORIES = {"L": "w", "Pc": "w", "N": "d", "M": "m", "Cf": "m", "Pd": "h", "Ps": "o", "Pi": "o"}
WORD = "wdmc"

# A line is first written as its kinds, one letter a character; this pattern cuts it. Numbers keep
# their inner dots and commas, dots and dashes stay in runs, marks stay with what they mark, and
# words with an apostrophe inside are cut in a second step, which has to see the letters.
PIECE = re.compile(
    r"""
      [wdm] (?: [wdm] | (?<=d) [nk] (?=d) | a (?=[wd]) )*
    | n+ m* | h+ m*
    | [^s] m*
    """,
    re.VERBOSE,
)

CLITIC = r"(?:s|t|re|ve|ll|d|m)(?=['’]|$)"
AROUND_APOSTROPHE = re.compile(
    rf"['’]{CLITIC}|[^'’]*['’](?!{CLITIC})|[^'’]+",
    re.IGNORECASE,
)


def split_words(line: str) -> list[str]:
    """Cut a line into words and punctuation, marked so that `join_words` restores the line."""
    text = line.replace(JOINER, JOINER_IN_TEXT)
    kinds = "".join(map(kind, text))
    spans = list(_spans(text, kinds))
    words = [text[start:end] for start, end in spans]
    for i, ((start, end), (begin, _)) in enumerate(pairwise(spans)):
        if end < begin or kinds[end - 1] == kinds[begin] == "c":
            continue
        opens = kinds[start] == "o" and not words[i].startswith(JOINER)
        if opens or _holds_next(kinds[start], kinds[end - 1], kinds[begin]):
            words[i] += JOINER
        else:
            words[i + 1] = JOINER + words[i + 1]
    return words


def _spans(text: str, kinds: str) -> Iterator[tuple[int, int]]:
    for piece in PIECE.finditer(kinds):
        start, end = piece.span()
        if kinds[start] in WORD and "a" in piece[0]:
            yield from (part.span() for part in AROUND_APOSTROPHE.finditer(text, start, end))
        else:
            yield start, end


def _holds_next(first: str, last: str, following: str) -> bool:
    """Whether the mark between two pieces goes to the left one, given kinds at its ends.

    Punctuation takes the mark rather than words, and words rather than Chinese characters, so that
    what carries meaning keeps one form.
    """
    return following in WORD and (first not in WORD or last == "a" or following == "c")


def join_words(words: Iterable[str]) -> str:
    """The line that these words make, with spaces where no joiner and no character forbids them."""
    parts: list[str] = []
    glued, last = True, ""
    for word in words:
        inner = word.removeprefix(JOINER).removesuffix(JOINER)
        touches = glued or word.startswith(JOINER) or (is_cjk(last) and is_cjk(inner[:1]))
        parts.append(inner if touches else f" {inner}")
        glued, last = word.endswith(JOINER), inner[-1:]
    return "".join(parts)


def is_cjk(char: str) -> bool:
    """Whether this character is written without spaces around it, as Chinese and Japanese are."""
    return kind(char) == "c"


@cache
def kind(char: str) -> str:
    """One letter for what a character is to the tokeniser.

    s space, c Chinese or Japanese, w letter, d digit, m mark that belongs to the character before,
    a apostrophe, n dot, k comma, h dash, o opening bracket or quote, p anything else.
    """
    if not char or char.isspace():
        return "s"
    place = bisect_right(CJK_STARTS, ord(char)) - 1
    if place >= 0 and ord(char) <= CJK_RANGES[place][1]:
        return "c"
    category = unicodedata.category(char)
    return KINDS.get(char) or CATEGORIES.get(category[0]) or CATEGORIES.get(category, "p")
