"""From lines of text to hypotheses: what surrounds a decoder."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

import torch

from simplexity.decode import Decoder, Hypothesis, RelaxedDecoder
from simplexity.edit.decoder import EditDecoder
from simplexity.errors import SimplexityError
from simplexity.initialise import Starts
from simplexity.pipeline import in_batches
from simplexity.relax.tokens import pad_batch
from simplexity.text.vocabulary import PAD, Vocabulary
from simplexity.trace import Watcher

NOTHING = Hypothesis(text="", ids=(), score=0.0, terms={}, discrete_cost=0.0, stop="empty")


@dataclass(frozen=True)
class Sentence:
    """A source line as ids, its place in the input from 0, and perhaps where to start from."""

    place: int
    source: list[int]
    start: list[int] | None = None


@dataclass(frozen=True)
class Translator:
    """A decoder with the vocabularies of its models, and how many sentences it takes at a time."""

    decoder: Decoder
    source: Vocabulary
    target: Vocabulary
    batch_size: int
    longest: int
    """Words that the models can read and write; what is longer is refused."""
    device: torch.device | str = "cpu"
    trace: Watcher | None = None

    def __call__(self, lines: Iterable[str]) -> Iterator[list[Hypothesis]]:
        """The hypotheses of every line, best first, in order; an empty line gives an empty one."""
        return self._translate(
            Sentence(n, self._read(self.source, line, "the source", n))
            for n, line in enumerate(lines)
        )

    def improve(self, pairs: Iterable[tuple[str, str]]) -> Iterator[list[Hypothesis]]:
        """The same, but the search starts from the given translations."""
        if not isinstance(self.decoder, RelaxedDecoder | EditDecoder):
            raise SimplexityError(
                "Only the decoders eg, sgd, projected and edits start from given strings."
            )
        return self._translate(
            Sentence(
                n,
                self._read(self.source, x, "the source", n),
                self._read(self.target, y, "the given translations", n),
            )
            for n, (x, y) in enumerate(pairs)
        )

    def _translate(self, sentences: Iterable[Sentence]) -> Iterator[list[Hypothesis]]:
        return in_batches(
            sentences,
            lambda sentence: max(len(sentence.source), len(sentence.start or ())),
            self.batch_size,
            self._work,
        )

    def _read(self, vocabulary: Vocabulary, line: str, file: str, place: int) -> list[int]:
        ids = vocabulary.encode(line)
        if len(ids) > self.longest:
            raise SimplexityError(
                f"Line {place + 1} of {file} has {len(ids)} tokens, but the models take "
                f"{self.longest} at most; split it into sentences."
            )
        return ids

    def _work(self, sentences: list[Sentence]) -> list[list[Hypothesis]]:
        full = [sentence for sentence in sentences if sentence.source]
        found = iter(self._decode(full) if full else ())
        return [next(found) if sentence.source else [NOTHING] for sentence in sentences]

    def _decode(self, sentences: list[Sentence]) -> list[list[Hypothesis]]:
        sources = pad_batch([sentence.source for sentence in sentences], PAD, self.device)
        decoder = self.decoder
        if not isinstance(decoder, RelaxedDecoder | EditDecoder):
            return decoder(sources)
        if self.trace is not None and isinstance(decoder, RelaxedDecoder):
            watch = self.trace.of([sentence.place for sentence in sentences])
            decoder = replace(decoder, watch=watch)
        given = [sentence.start for sentence in sentences if sentence.start is not None]
        if not given:
            return decoder(sources)
        owner = torch.arange(len(sentences), device=sources.ids.device)
        return decoder(sources, Starts(pad_batch(given, PAD, self.device), owner))
