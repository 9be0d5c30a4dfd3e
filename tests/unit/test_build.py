"""From settings to objects: what each preset and flag becomes."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from simplexity import build
from simplexity.config import PRESETS, TranslateConfig
from simplexity.decode import BeamDecoder, RelaxedDecoder
from simplexity.errors import SimplexityError
from simplexity.initialise import FromSearch, Predicted, Smoothed, Uniform
from simplexity.models.family import Family
from simplexity.objectives import NAMED
from simplexity.relax.geometry import ExponentiatedGradient, ProjectedGradient, SoftmaxGradient
from simplexity.relax.stopping import FirstOf, MaxIterations, RoundingUnchanged
from simplexity.relax.updates import (
    Adaptive,
    Chain,
    ClipNorm,
    InverseDecay,
    Momentum,
    Nesterov,
    Optimistic,
    Scale,
)
from simplexity.terms.likelihood import Likelihood, Reverse
from simplexity.terms.mix import Confidence, PerWord


@pytest.fixture
def family(tiny_family: Callable[..., Family]) -> Family:
    return tiny_family()


def relaxed(family: Family, **settings: Any) -> RelaxedDecoder:
    config = TranslateConfig(model=Path("tiny"), **{"decoder": "eg", **settings})
    decoder = build.translator(config, family).decoder
    assert isinstance(decoder, RelaxedDecoder)
    return decoder


def weights(decoder: RelaxedDecoder) -> dict[str, float]:
    return {part.name: part.weight for part in decoder.objective.parts}


def test_the_papers_preset_clips_before_it_scales_before_it_remembers(family: Family) -> None:
    decoder = relaxed(family, preset="paper", objective="bidirectional")
    assert decoder.update == Chain((ClipNorm(5.0), Scale(50.0), Momentum(0.9)))
    assert not decoder.guard
    assert decoder.search is None
    assert decoder.stop == MaxIterations(100)
    assert decoder.lift == Predicted((family["l2r"].model,))
    assert decoder.precision == "fp32"
    for part in decoder.objective.parts:
        assert part.term == PerWord(Likelihood(family[part.name].model))  # type: ignore[index]
    assert weights(decoder) == {"l2r": 0.5, "r2l": 0.5}


def test_the_papers_steps_can_be_given_with_its_preset(family: Family) -> None:
    decoder = relaxed(family, preset="paper", decoder="sgd", step=400.0, iterations=400)
    assert decoder.update == Chain((ClipNorm(5.0), Scale(400.0), Momentum(0.9)))
    assert decoder.stop == MaxIterations(400)
    assert decoder.geometry == SoftmaxGradient()
    assert relaxed(family, preset="paper", guard=True).guard


def test_our_own_preset_minimises_the_sum_and_guards(family: Family) -> None:
    decoder = relaxed(family, objective="bilingual")
    assert decoder.guard
    terms = {part.name: part.term for part in decoder.objective.parts}
    assert terms["l2r"] == Likelihood(family["l2r"].model, shortlisted=True)
    assert terms["reverse"] == Reverse(family["reverse"].model)
    assert decoder.precision == "bf16"


def test_exact_descends_over_the_whole_vocabulary_in_single_precision(family: Family) -> None:
    decoder = relaxed(family, objective="forward", exact=True, candidates=7, precision="bf16")
    assert decoder.objective.parts[0].term == Likelihood(family["l2r"].model)
    assert decoder.lift == Predicted((family["l2r"].model,))
    assert decoder.precision == "fp32"
    assert decoder.guard


@pytest.mark.parametrize("preset", PRESETS)
@pytest.mark.parametrize("decoder", build.GEOMETRIES)
def test_every_preset_gives_every_decoder_all_it_needs(
    preset: str, decoder: str, family: Family
) -> None:
    config = TranslateConfig(
        model=Path("tiny"), decoder=decoder, preset=preset, objective="joint", iterations=2
    )
    (found,) = build.translator(config, family)(["ein hund"])
    assert found[0].iterations == 2
    assert set(found[0].terms) == {"l2r", "r2l", "reverse"}


@pytest.mark.parametrize(
    ("name", "geometry"),
    [
        ("eg", ExponentiatedGradient()),
        ("sgd", SoftmaxGradient()),
        ("projected", ProjectedGradient()),
    ],
)
def test_the_geometry_is_the_decoders(name: str, geometry: object, family: Family) -> None:
    assert relaxed(family, decoder=name).geometry == geometry


@pytest.mark.parametrize("objective", NAMED)
def test_the_weights_are_those_of_the_objective(objective: str, family: Family) -> None:
    assert weights(relaxed(family, objective=objective)) == NAMED[objective]  # type: ignore[index]


def test_explicit_weights_and_confidence(family: Family) -> None:
    decoder = relaxed(family, objective="r2l=0.8,reverse=0.2", entropy=0.3)
    assert weights(decoder) == {"r2l": 0.8, "reverse": 0.2, "confidence": 0.3}
    assert decoder.objective.parts[-1].term == Confidence()


@pytest.mark.parametrize(
    ("update", "expected"),
    [
        ("plain", (Scale(2.0),)),
        ("momentum", (Scale(2.0), Momentum(0.5))),
        ("nesterov", (Scale(2.0), Nesterov(0.5))),
        ("optimistic", (Scale(2.0), Optimistic())),
        ("adaptive", (Adaptive(), Scale(2.0))),
    ],
)
def test_updates(update: str, expected: tuple[object, ...], family: Family) -> None:
    settings = {"update": update, "step": 2.0, "momentum": 0.5}
    assert relaxed(family, **settings).update == Chain(expected)  # type: ignore[arg-type]
    clipped = relaxed(family, clip=3.0, **settings).update
    assert clipped == Chain((ClipNorm(3.0), *expected))  # type: ignore[arg-type]


def test_a_step_that_falls(family: Family) -> None:
    decoder = relaxed(family, update="plain", step=2.0, anneal=0.1)
    assert decoder.update == Chain((Scale(InverseDecay(2.0, 0.1)),))


def test_stopping_before_the_last_iteration(family: Family) -> None:
    decoder = relaxed(family, iterations=30, unchanged=4)
    assert decoder.stop == FirstOf((RoundingUnchanged(4), MaxIterations(30)))


def test_a_line_search(family: Family) -> None:
    assert relaxed(family, line_search=True).search is not None
    assert relaxed(family, line_search=False).search is None


def test_the_support_is_all_words_that_a_sentence_may_hold(family: Family) -> None:
    assert relaxed(family).support.tolist() == [4, 5, 6, 7]


def test_starts(family: Family) -> None:
    model = family["l2r"].model

    def search(**settings: Any) -> tuple[int, int]:
        start = relaxed(family, **settings).initialise
        assert isinstance(start, FromSearch)
        assert start.model is model
        return start.settings.size, start.starts

    assert search() == (5, 1)
    assert search(beam_size=7, starts=3) == (7, 3)
    assert search(init="greedy") == (1, 1)
    assert search(init="uniform") == (1, 1)


def test_lifts(family: Family) -> None:
    l2r, r2l = family["l2r"].model, family["r2l"].model
    assert relaxed(family, candidates=9).lift == Predicted((l2r,), 9)
    assert relaxed(family, candidates=9, lift="forward", objective="joint").lift == Predicted(
        (l2r,), 9
    )
    assert relaxed(family, candidates=9, objective="joint").lift == Predicted((l2r, r2l), 9)
    assert relaxed(family, candidates=9, objective="reverse=1").lift == Predicted((l2r,), 9)
    assert relaxed(family, lift="smoothed").lift == Smoothed()
    assert relaxed(family, init="uniform").lift == Uniform()


def test_discrete_searches(family: Family) -> None:
    def decoder(**settings: Any) -> BeamDecoder:
        config = TranslateConfig(model=Path("tiny"), **settings)
        found = build.translator(config, family).decoder
        assert isinstance(found, BeamDecoder)
        return found

    assert decoder(decoder="greedy").settings.size == 1
    beam = decoder(decoder="beam", beam_size=4, n_best=2, output_type="json", length_penalty=0.5)
    assert beam.settings.size == 4
    assert beam.settings.n_best == 2
    assert beam.settings.length_penalty == 0.5
    assert beam.model is family["l2r"].model
    backwards = decoder(decoder="beam", member="r2l")
    assert backwards.model is family["r2l"].model
    assert backwards.name == "r2l"


def test_a_missing_member_is_named_with_the_remedy(tiny_family: Callable[..., Family]) -> None:
    small = tiny_family(0, ("l2r", "reverse"))
    with pytest.raises(SimplexityError) as refused:
        relaxed(small, objective="bidirectional")
    message = str(refused.value)
    assert "tiny has no r2l model (it has l2r, reverse)" in message
    assert "--directions r2l" in message
    assert relaxed(small, objective="bilingual")
    with pytest.raises(SimplexityError, match="no l2r model"):
        relaxed(tiny_family(0, ("r2l",)), objective="r2l=1")


def test_lines_are_as_long_as_all_models_take(family: Family) -> None:
    decode = build.translator(TranslateConfig(model=Path("tiny"), batch_size=7), family)
    assert decode.longest == min(member.model.max_length for member in family)
    assert decode.batch_size == 7
    assert decode.source is family["l2r"].source
    assert decode.target is family["l2r"].target
    assert torch.device(decode.device) == torch.device("cpu")
