"""What each piece of a vocabulary adds to a line, spaces included, whatever kind it is.

Vocabularies write pieces in their own ways: ▁dog, Ġdog, ##s, s￭. What they have in common is the
text that they stand for. It is read off here by decoding each piece behind another.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from simplexity.text.vocabulary import Vocabulary


def surfaces(vocabulary: Vocabulary) -> list[str]:
    """The text that each piece adds behind a word, "" for those that add none.

    >>> from simplexity.text.vocabulary import WordVocabulary
    >>> surfaces(WordVocabulary(("dog", "￭,"), lowercase=False))[4:]
    [' dog', ',']
    """
    anchor = _anchor(vocabulary)
    if anchor is None:
        return ["" for _ in range(len(vocabulary))]
    before = vocabulary.decode([anchor])
    lines = (vocabulary.decode([anchor, piece]) for piece in range(len(vocabulary)))
    return [line.removeprefix(before) if line.startswith(before) else "" for line in lines]


def _anchor(vocabulary: Vocabulary) -> int | None:
    """A piece of letters, behind which others show their spaces."""
    return next((n for n in range(len(vocabulary)) if vocabulary.decode([n]).isalpha()), None)


def segment(text: str, pieces: Mapping[str, int], longest: int) -> Sequence[int]:
    """Cut a text into pieces, the longest first; () if it cannot be written with them.

    >>> segment(" dogs", {" dog": 5, "s": 6, " do": 7}, longest=4)
    (5, 6)
    """
    found, place = [], 0
    while place < len(text):
        sizes = range(min(longest, len(text) - place), 0, -1)
        size = next((n for n in sizes if text[place : place + n] in pieces), None)
        if size is None:
            return ()
        found.append(pieces[text[place : place + size]])
        place += size
    return tuple(found)
