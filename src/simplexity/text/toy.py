"""A small made-up language pair, for demonstrations and tests.

The source language, xa, puts its verb last; the target language, xb, puts it second, and first in
a question. Three things make the pair worth translating with an eye on what comes later:

* a target article agrees with the class of its noun, which follows it;
* the source noun "bana" and the source adjective "lum" mean two things each; the verb at the end
  of the sentence tells the one, the noun after it the other;
* only the mark at its end tells a source question from a statement.

    xa: ta lum bana un rek sel fum.    (the light bank a dog often sees)
    xb: sire vidu la feda monta no hundo.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from random import Random

from simplexity.text.files import writing

SOURCE, TARGET = "xa", "xb"


@dataclass(frozen=True)
class Noun:
    """A target noun, the vowel of its class, and whether it lives."""

    word: str
    vowel: str
    alive: bool = False


NOUNS = {
    "rek": Noun("hundo", "o", alive=True),
    "misa": Noun("kati", "a", alive=True),
    "paru": Noun("birdo", "i", alive=True),
    "tol": Noun("viro", "o", alive=True),
    "nena": Noun("feme", "a", alive=True),
    "gur": Noun("domo", "o"),
    "sif": Noun("libra", "i"),
    "kala": Noun("arba", "a"),
    "dom": Noun("stela", "i"),
    "vep": Noun("pano", "o"),
    "lusi": Noun("kasta", "a"),
}
BANA, RIVER, BANK = "bana", Noun("ripo", "o"), Noun("monta", "a")
NAMES = {"ana": "Ana", "otto": "Oto", "ivo": "Ivo", "mira": "Mira"}
ADJECTIVES = {"bol": "granda", "min": "peta", "rud": "roja", "nov": "nuva", "kal": "frida"}
LIGHT = "lum"
ARTICLES = {"ta": "l", "un": "n"}
ADVERBS = {"nu": "hodi", "sel": "sire", "tra": "morge", "dif": "ofte"}
TRANSITIVE = {
    "fum": "vidu",
    "lok": "prene",
    "dag": "ame",
    "hem": "porta",
    "vad": "pasa",
    "glut": "drinke",
}
INTRANSITIVE = {"nap": "dorme", "kur": "laufe", "sid": "sita", "tan": "danse", "plut": "naje"}
VERBS = TRANSITIVE | INTRANSITIVE
WATERY = {"vad", "glut", "plut"}
NOT_SOURCE, NOT_TARGET = "ne", "nok"
ENDS = "..?!"


def toy_corpus(sentences: int, seed: int) -> list[tuple[str, str]]:
    """So many pairs of a sentence and its translation; equal seeds give equal pairs."""
    return list(islice(_pairs(Random(seed)), sentences))


def write_toy(
    directory: Path, seed: int = 1, train: int = 4000, dev: int = 200, test: int = 200
) -> Path:
    """Write train, dev and test files of the toy pair, in place of older ones.

    Dev and test sentences are all different, and none of them is a training sentence.
    """
    pairs = _pairs(Random(seed))
    held_out: dict[str, str] = {}
    while len(held_out) < dev + test:
        held_out.update([next(pairs)])
    fresh = (pair for pair in pairs if pair[0] not in held_out)
    directory.mkdir(parents=True, exist_ok=True)
    held_pairs = list(held_out.items())
    _write_split(directory, "train", list(islice(fresh, train)))
    _write_split(directory, "dev", held_pairs[:dev])
    _write_split(directory, "test", held_pairs[dev:])
    return directory


def _write_split(directory: Path, name: str, pairs: list[tuple[str, str]]) -> None:
    for side, language in enumerate((SOURCE, TARGET)):
        with writing(directory / f"{name}.{language}", overwrite=True) as file:
            file.writelines(f"{pair[side]}\n" for pair in pairs)


def _pairs(random: Random) -> Iterator[tuple[str, str]]:
    while True:
        verb = random.choice(list(VERBS))
        subject = _phrase(random)
        thing = _phrase(random) if verb in TRANSITIVE else []
        adverb = [random.choice(list(ADVERBS))] if random.random() < 0.4 else []
        negation = [NOT_SOURCE] if random.random() < 0.2 else []
        end = random.choice(ENDS)
        source = [*subject, *thing, *adverb, *negation, verb]
        yield " ".join(source) + end, _translate(subject, thing, adverb, negation, verb, end)


def _phrase(random: Random) -> list[str]:
    """A name, or an article, perhaps an adjective, and a noun."""
    if random.random() < 0.25:
        return [random.choice(list(NAMES))]
    adjective = [random.choice([*ADJECTIVES, LIGHT])] if random.random() < 0.5 else []
    return [random.choice(list(ARTICLES)), *adjective, random.choice([*NOUNS, BANA, BANA])]


def _translate(
    subject: list[str],
    thing: list[str],
    adverb: list[str],
    negation: list[str],
    verb: str,
    end: str,
) -> str:
    who, what = (_translate_phrase(phrase, verb) for phrase in (subject, thing))
    when = [ADVERBS[word] for word in adverb]
    rest = [NOT_TARGET for _ in negation] + what
    if end == "?":
        words = [VERBS[verb], *who, *rest, *when]
    elif when:
        words = [*when, VERBS[verb], *who, *rest]
    else:
        words = [*who, VERBS[verb], *rest]
    return " ".join(words) + end


def _translate_phrase(phrase: list[str], verb: str) -> list[str]:
    match phrase:
        case []:
            return []
        case [name]:
            return [NAMES[name]]
        case [article, *adjectives, word]:
            noun = NOUNS.get(word) or (RIVER if verb in WATERY else BANK)
            light = "gaia" if noun.alive else "klara"
            described = [ADJECTIVES.get(adjective, light) for adjective in adjectives]
            return [ARTICLES[article] + noun.vowel, *described, noun.word]
        case _:
            raise AssertionError(phrase)
