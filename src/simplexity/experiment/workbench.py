"""The workbench that all steps share: models, sentences, and decoding with what it cost."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from simplexity import build
from simplexity.bench.turns import timed
from simplexity.config import Recipe, TranslateConfig
from simplexity.evaluate.metrics import Metric, metric_named
from simplexity.experiment.cache import Cache, digest
from simplexity.models.family import Family
from simplexity.settings import load_config
from simplexity.text.corpora import Bitext

Options = dict[str, Any]
"""Settings of `simplexity translate`."""


@dataclass(frozen=True)
class Part:
    """Sentences of one part of the corpus with their references."""

    name: str
    sources: tuple[str, ...]
    references: tuple[str, ...]

    def first(self, number: int) -> Part:
        """The first sentences of it."""
        return Part(self.name, self.sources[:number], self.references[:number])

    @property
    def digest(self) -> str:
        """Changes with any of the sentences."""
        return digest([*self.sources, "", *self.references])


@dataclass(frozen=True)
class Workbench:
    """What an experiment works with."""

    recipe: Recipe
    corpus: Path
    family: Family
    cache: Cache
    dev: Part
    test: Part
    talk: Callable[[str], None]

    @property
    def bleu(self) -> Metric:
        """The measure of quality: case-insensitive, as in the paper."""
        return metric_named("bleu", self.recipe.tokenise)

    def config(self, options: Options) -> TranslateConfig:
        """Settings of a translation with the family."""
        return load_config(TranslateConfig, None, {"model": self.family.directory, **options})


@dataclass(frozen=True)
class Decoded:
    """What a system made of a part, sentence by sentence, in nats, and the time it took in all.

    initial, discrete, continuous: costs of the start, of the answer, and the least relaxed one;
    None where the decoder has no such thing. words: tokens of the answer.
    """

    texts: list[str]
    words: list[int]
    initial: list[float | None]
    discrete: list[float]
    continuous: list[float | None]
    iterations: list[int]
    seconds: float
    cpu_seconds: float


def read_part(corpus: Path, name: str, languages: tuple[str, str], limit: int | None) -> Part:
    """The first sentences of a part of the corpus, leaving out pairs with an empty side."""
    full = [pair for pair in Bitext.at(corpus / name, *languages) if all(map(str.strip, pair))]
    pairs = full[:limit]
    return Part(name, tuple(x for x, _ in pairs), tuple(y for _, y in pairs))


def decode(
    bench: Workbench, part: Part, options: Options, starts: Sequence[str] | None = None
) -> Decoded:
    """Translate a part, from given translations or from where the options say."""
    begun = "" if starts is None else digest(starts)
    key = {"part": part.digest, "options": options, "starts": begun}

    def compute() -> dict[str, Any]:
        bench.talk(f"{part.name}, {len(part.sources)} sentences: {shown(options)}")
        translator = build.translator(bench.config(options), bench.family)
        work = (
            (lambda: list(translator(part.sources)))
            if starts is None
            else (lambda: list(translator.improve(zip(part.sources, starts, strict=True))))
        )
        spent, answers = timed(len(part.sources), work)
        found = [hypotheses[0] for hypotheses in answers]
        return {
            "texts": [h.text for h in found],
            "words": [len(h.ids) for h in found],
            "initial": [h.initial_cost for h in found],
            "discrete": [h.discrete_cost for h in found],
            "continuous": [h.continuous_cost for h in found],
            "iterations": [h.iterations for h in found],
            "seconds": spent.seconds,
            "cpu_seconds": spent.cpu_seconds,
        }

    return Decoded(**bench.cache.get(decode, key, compute))


def shown(options: Options) -> str:
    """Options as a person would list them.

    >>> shown({"decoder": "eg", "init": "beam"})
    'decoder eg, init beam'
    """
    return ", ".join(f"{key} {value}" for key, value in options.items())
