"""Vocabularies: text to word ids and back.

Two kinds behind one protocol: whole words above a frequency cut-off, as in the paper's
experiments, and subwords learnt by sentencepiece. Text is put into Unicode's composed form (NFC)
and its white space collapsed before anything else.
"""

from __future__ import annotations

import hashlib
import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from io import BytesIO
from itertools import zip_longest
from pathlib import Path
from typing import Any, Literal, Protocol

from sentencepiece import SentencePieceProcessor, SentencePieceTrainer

from simplexity.errors import SimplexityError, UsageError
from simplexity.text.files import writing_bytes
from simplexity.text.storage import damaged, header_path, read_bytes, read_header, write_header
from simplexity.text.tokenise import join_words, split_words

PAD, BOS, EOS, UNK = 0, 1, 2, 3
SPECIALS = ("<pad>", "<s>", "</s>", "<unk>")
SILENT = frozenset((PAD, BOS, EOS))

SUBWORDS = 8000

Kind = Literal["words", "bpe", "unigram"]
Side = Literal["source", "target"]


class Vocabulary(Protocol):
    """The words of one side of a family of models; ids 0 to 3 are `SPECIALS`."""

    @property
    def fingerprint(self) -> str:
        """Twelve hexadecimal digits that are the same only for the same vocabulary."""
        ...

    def encode(self, line: str) -> list[int]:
        """The ids of a line, without sentence boundaries."""
        ...

    def decode(self, ids: Sequence[int]) -> str:
        """The line of these ids: padding and boundaries dropped, unknown words as "<unk>"."""
        ...

    def pieces(self, ids: Sequence[int]) -> list[str]:
        """What stands behind each id, special ones too."""
        ...

    def __len__(self) -> int: ...

    def save(self, directory: Path, side: str) -> None:
        """Write the files that `load_vocabulary` reads, in place of older ones."""
        ...


@dataclass(frozen=True)
class VocabularySettings:
    """How to learn a vocabulary.

    `size` counts the four special ids. Words: at most so many, and only those seen `cutoff` times
    or more (the paper: 5). Subwords: so many, 8000 if not said, or fewer when the text is small.
    """

    kind: Kind = "words"
    size: int | None = None
    cutoff: int = 5
    lowercase: bool = False


@dataclass(frozen=True)
class WordVocabulary:
    """Whole words in order of id, the first at id 4."""

    words: tuple[str, ...] = field(repr=False)
    lowercase: bool

    @cached_property
    def _table(self) -> tuple[str, ...]:
        return SPECIALS + self.words

    @cached_property
    def _ids(self) -> dict[str, int]:
        return {word: i for i, word in enumerate(self.words, start=len(SPECIALS))}

    @cached_property
    def fingerprint(self) -> str:
        return _hash("words", self.lowercase, "\n".join(self.words).encode())

    def encode(self, line: str) -> list[int]:
        words = split_words(normalise(line, self.lowercase))
        return [self._ids.get(word, UNK) for word in words]

    def decode(self, ids: Sequence[int]) -> str:
        return join_words(self._table[i] for i in ids if i not in SILENT)

    def pieces(self, ids: Sequence[int]) -> list[str]:
        return [self._table[i] for i in ids]

    def __len__(self) -> int:
        return len(self._table)

    def save(self, directory: Path, side: str) -> None:
        header = {"kind": "words", "lowercase": self.lowercase, "words": self.words}
        write_header(directory, side, header)


@dataclass(frozen=True)
class SubwordVocabulary:
    """Pieces of words by a sentencepiece model, which is kept as its bytes.

    The character ▁ (U+2581) is sentencepiece's own space and comes back as one.
    """

    model: bytes = field(repr=False)
    lowercase: bool

    @cached_property
    def _processor(self) -> Any:
        processor = SentencePieceProcessor()
        # The constructor would take an empty model for none and complain only when it is used.
        processor.LoadFromSerializedProto(self.model)
        return processor

    @cached_property
    def fingerprint(self) -> str:
        return _hash("subwords", self.lowercase, self.model)

    def encode(self, line: str) -> list[int]:
        ids: list[int] = self._processor.encode(normalise(line, self.lowercase))
        return ids

    def decode(self, ids: Sequence[int]) -> str:
        text: str = self._processor.decode([i for i in ids if i not in SILENT])
        return text

    def pieces(self, ids: Sequence[int]) -> list[str]:
        found: list[str] = self._processor.id_to_piece(list(ids))
        return found

    def __len__(self) -> int:
        size: int = self._processor.get_piece_size()
        return size

    def save(self, directory: Path, side: str) -> None:
        directory.mkdir(parents=True, exist_ok=True)
        with writing_bytes(directory / f"{side}.spm", overwrite=True) as file:
            file.write(self.model)
        write_header(directory, side, {"kind": "subwords", "lowercase": self.lowercase})


def normalise(line: str, lowercase: bool) -> str:
    """Composed Unicode, single spaces, and small letters if asked: what vocabularies see."""
    text = " ".join(unicodedata.normalize("NFC", line).split())
    # Lower-casing may leave a letter and its mark apart.
    return unicodedata.normalize("NFC", text.lower()) if lowercase else text


def learn(lines: Iterable[str], settings: VocabularySettings) -> Vocabulary:
    """Learn a vocabulary in one pass over the lines; equal lines give an equal vocabulary."""
    if settings.cutoff < 1:
        raise UsageError(f"a word cut-off of {settings.cutoff} means nothing; use 1 or more")
    if settings.size is not None and settings.size <= len(SPECIALS):
        raise UsageError(
            f"a vocabulary of {settings.size} has no room beside its {len(SPECIALS)} special ids; "
            "use a larger size"
        )
    text = (normalise(line, settings.lowercase) for line in lines)
    match settings.kind:
        case "words":
            return _learn_words(text, settings)
        case "bpe" | "unigram":
            return _learn_subwords(text, settings)
        case unknown:
            raise UsageError(f"there is no vocabulary kind {unknown!r}; use words, bpe or unigram")


def _learn_words(lines: Iterable[str], settings: VocabularySettings) -> WordVocabulary:
    counts: Counter[str] = Counter()
    for line in lines:
        counts.update(split_words(line))
    if not counts:
        raise _no_text()
    kept = [word for word, count in counts.items() if count >= settings.cutoff]
    if not kept:
        raise SimplexityError(
            f"no word occurs {settings.cutoff} times; lower the cut-off or give more text"
        )
    kept.sort(key=lambda word: (-counts[word], word))
    room = len(kept) if settings.size is None else settings.size - len(SPECIALS)
    return WordVocabulary(tuple(kept[:room]), settings.lowercase)


def _learn_subwords(lines: Iterable[str], settings: VocabularySettings) -> SubwordVocabulary:
    size = SUBWORDS if settings.size is None else settings.size
    feed, model = _Feed(lines), BytesIO()
    try:
        SentencePieceTrainer.train(
            sentence_iterator=iter(feed),
            model_writer=model,
            model_type=settings.kind,
            vocab_size=size,
            hard_vocab_limit=False,
            character_coverage=0.9995,
            normalization_rule_name="identity",
            pad_id=PAD,
            bos_id=BOS,
            eos_id=EOS,
            unk_id=UNK,
            unk_surface=SPECIALS[UNK],
            num_threads=1,
            shuffle_input_sentence=False,
            minloglevel=2,
        )
    except RuntimeError as error:
        if feed.failure is not None:
            raise feed.failure from None
        if not feed.seen:
            raise _no_text() from None
        raise _too_small(size, error) from error
    return SubwordVocabulary(model.getvalue(), settings.lowercase)


@dataclass
class _Feed:
    """Lines on their way to sentencepiece, which hides what goes wrong while it reads them."""

    lines: Iterable[str]
    seen: bool = False
    failure: BaseException | None = None

    def __iter__(self) -> Iterator[str]:
        try:
            for line in self.lines:
                self.seen = self.seen or bool(line)
                yield line
        except BaseException as error:
            self.failure = error
            raise


def _no_text() -> SimplexityError:
    return SimplexityError("there is no text to learn a vocabulary from; give a corpus with words")


def _too_small(size: int, error: RuntimeError) -> SimplexityError:
    if "required_chars" in str(error):
        return SimplexityError(
            f"the text has more different characters than a vocabulary of {size} holds; "
            "ask for a larger one"
        )
    return SimplexityError(f"sentencepiece could not learn from this text: {error}")


def load_vocabulary(directory: Path, side: Side) -> Vocabulary:
    """Read the vocabulary of one side from a model directory."""
    match read_header(directory, side):
        case {"kind": "words", "lowercase": bool(lowercase), "words": [*words]}:
            if all(isinstance(word, str) for word in words) and len(set(words)) == len(words):
                return WordVocabulary(tuple(words), lowercase)
        case {"kind": "subwords", "lowercase": bool(lowercase)}:
            return _load_subwords(directory / f"{side}.spm", lowercase)
    raise damaged(header_path(directory, side))


def _load_subwords(path: Path, lowercase: bool) -> SubwordVocabulary:
    found = SubwordVocabulary(read_bytes(path), lowercase)
    try:
        specials = found.pieces(range(len(SPECIALS)))
    except RuntimeError:
        raise damaged(path) from None
    if tuple(specials) != SPECIALS:
        raise SimplexityError(
            f"{path} has {', '.join(specials)} for its first ids in place of "
            f"{', '.join(SPECIALS)}; use a model that simplexity learnt"
        )
    return found


def _hash(kind: str, lowercase: bool, content: bytes) -> str:
    return hashlib.sha256(f"{kind} {lowercase}\n".encode() + content).hexdigest()[:12]


def first_difference(a: Vocabulary, b: Vocabulary) -> int | None:
    """The first id that does not mean the same word in both, None if all do."""
    pairs = zip_longest(a.pieces(range(len(a))), b.pieces(range(len(b))))
    return next((i for i, (mine, yours) in enumerate(pairs) if mine != yours), None)
