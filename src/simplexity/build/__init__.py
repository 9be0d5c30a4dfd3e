"""From configuration to objects: the only place that knows both."""

from __future__ import annotations

from simplexity.build.decoding import (
    GEOMETRIES,
    beam_settings,
    family,
    longest,
    mix,
    n_best_translator,
    narrator,
    objective,
    relaxed_decoder,
    rerank,
    rescorer,
    scored_beam,
    scorer,
    translator,
)
from simplexity.build.training import bitext, new_network, recipe, vocabularies

__all__ = [
    "GEOMETRIES",
    "beam_settings",
    "bitext",
    "family",
    "longest",
    "mix",
    "n_best_translator",
    "narrator",
    "new_network",
    "objective",
    "recipe",
    "relaxed_decoder",
    "rerank",
    "rescorer",
    "scored_beam",
    "scorer",
    "translator",
    "vocabularies",
]
