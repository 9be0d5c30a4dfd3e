"""The decoders of a run, named as settings: `eg:joint`, `edits:joint:patience=1`."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from simplexity import build
from simplexity.config import TranslateConfig
from simplexity.decode import BeamDecoder, Decoder, Hypothesis, RelaxedDecoder
from simplexity.edit.decoder import EditDecoder
from simplexity.errors import UsageError
from simplexity.initialise import FromSearch
from simplexity.models.family import Family
from simplexity.rerank import RerankDecoder
from simplexity.settings import load_config
from simplexity.translate import Translator

USUAL: dict[str, dict[str, Any]] = {"rerank": {"beam_size": 100}}
"""What a decoder has here if it is not said: lists of reranking are long."""


@dataclass(frozen=True)
class System:
    """A decoder with its settings, those of `simplexity translate`."""

    name: str
    config: TranslateConfig

    def is_beam(self) -> bool:
        """Whether this is the yardstick: beam search with five strings."""
        resolved = self.config.resolved()
        return resolved.decoder == "beam" and resolved.beam_size == 5


def system(name: str, **shared: Any) -> System:
    """The system of this name: DECODER[:OBJECTIVE][:KEY=VALUE]..."""
    decoder, *rest = name.split(":")
    objective = [part for part in rest[:1] if "=" not in part]
    given = dict(part.partition("=")[::2] for part in rest[len(objective) :])
    settings = {"decoder": decoder, **USUAL.get(decoder, {}), **shared, **given}
    if objective:
        settings["objective"] = objective[0]
    try:
        config = load_config(TranslateConfig, None, settings)
    except UsageError as error:
        raise UsageError(
            f"The system {name!r} is none: {error}. Systems are DECODER[:OBJECTIVE][:KEY=VALUE], "
            "such as eg:joint:iterations=4."
        ) from error
    if config.init == "file":
        raise UsageError(f"The system {name!r} cannot start from a file; name another init.")
    return System(name, config)


def translator(chosen: System, family: Family, as_long: bool) -> Translator:
    """What runs it; `as_long`: its searches end when they have as many words as the source."""
    built = build.translator(chosen.config, family)
    return replace(built, decoder=as_long_as_source(built.decoder)) if as_long else built


def as_long_as_source(decoder: Decoder) -> Decoder:
    """The same decoder whose discrete searches stop at the length of the source."""
    match decoder:
        case BeamDecoder(settings=settings):
            return replace(decoder, settings=replace(settings, max_ratio=1.0, max_extra=0))
        case RerankDecoder(lists=lists):
            settings = replace(lists.settings, max_ratio=1.0, max_extra=0)
            return replace(decoder, lists=replace(lists, settings=settings))
        case (
            RelaxedDecoder(initialise=FromSearch() as begin)
            | EditDecoder(initialise=FromSearch() as begin)
        ):
            settings = replace(begin.settings, max_ratio=1.0, max_extra=0)
            return replace(decoder, initialise=replace(begin, settings=settings))
        case _:
            raise UsageError("Models with random weights start from greedy or beam search alone.")


def best(translate: Translator, lines: list[str]) -> list[Hypothesis]:
    """The best hypothesis of every line."""
    return [found[0] for found in translate(lines)]


def mean_iterations(found: list[Hypothesis]) -> float | None:
    """Iterations or rounds a sentence; None where nothing iterates."""
    counts = [hypothesis.iterations for hypothesis in found]
    return sum(counts) / len(counts) if any(counts) else None
