"""From the settings of a translation to decoders and scorers."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace

import torch
from torch import Tensor

from simplexity.build.terms import most_read, term
from simplexity.config import TranslateConfig
from simplexity.decode import BeamDecoder, Decoder, RelaxedDecoder
from simplexity.edit.decoder import Budget, EditDecoder
from simplexity.edit.open_slots import ProposeOpen
from simplexity.edit.propose import Gradient, Propose, Quota
from simplexity.errors import UsageError
from simplexity.initialise import FromSearch, Initialise, Lift, Predicted, Smoothed, Uniform
from simplexity.models.family import MEMBERS, Family, Member, load_family
from simplexity.models.pretrained import load_pair, with_lm
from simplexity.objectives import TermName, parse_objective
from simplexity.relax.geometry import (
    ExponentiatedGradient,
    Geometry,
    ProjectedGradient,
    SoftmaxGradient,
)
from simplexity.relax.optimise import Backtracking
from simplexity.relax.stopping import FirstOf, MaxIterations, RoundingUnchanged, Stop
from simplexity.relax.updates import (
    Adaptive,
    Chain,
    ClipNorm,
    InverseDecay,
    Momentum,
    Nesterov,
    Optimistic,
    Scale,
    Update,
)
from simplexity.rerank import FromRerank, RerankDecoder, ScoredBeam, Scorer
from simplexity.reread import Reread
from simplexity.rescore import Rescorer
from simplexity.search.beam import BeamSettings
from simplexity.search.rerank import Rerank
from simplexity.shipped import family_or_shipped
from simplexity.show.story import Narrator
from simplexity.terms.mix import Confidence, Mix, Part, PerWord, WordReward
from simplexity.trace import Watcher
from simplexity.translate import Translator


def family(config: TranslateConfig, device: torch.device | str) -> Family:
    """Load the models that a configuration names."""
    if config.forward is not None:
        languages = (config.source_language, config.target_language)
        return load_pair(config.forward, config.reverse, config.lm, languages, device)
    directory = family_or_shipped(config.model)
    return with_lm(load_family(directory, device=device), config.lm, device)


def translator(config: TranslateConfig, family: Family, trace: Watcher | None = None) -> Translator:
    """What `simplexity translate` runs, from loaded models."""
    config = config.resolved()
    member = _searching(config, family)
    decoder: Decoder
    if config.decoder in GEOMETRIES:
        decoder = relaxed_decoder(config, family)
    elif config.decoder == "edits":
        decoder = edit_decoder(config, family)
    elif config.decoder == "rerank":
        decoder = RerankDecoder(scored_beam(config, family), rerank(config))
    else:
        decoder = BeamDecoder(
            member.model, beam_settings(config), member.name, member.target.decode
        )
    if family.through_text and isinstance(decoder, BeamDecoder):
        objective = mix({"l2r": 1.0}, family)
        penalty = decoder.settings.length_penalty
        decoder = Reread(decoder, objective, member.target.encode, penalty)
    return _around(decoder, config, family, trace)


def narrator(config: TranslateConfig, family: Family) -> Narrator:
    """What translates one sentence by descent and tells how."""
    forward = family["l2r"]
    return Narrator(
        relaxed_decoder(config.resolved(), family),
        forward.source,
        forward.target,
        longest(family),
        forward.model.device,
    )


def n_best_translator(config: TranslateConfig, family: Family) -> Translator:
    """What gives all strings of the beam in the beam's order, with their costs by every term."""
    config = config.resolved()
    return _around(scored_beam(config, family), config, family, None)


def _around(
    decoder: Decoder, config: TranslateConfig, family: Family, trace: Watcher | None
) -> Translator:
    member = _searching(config, family)
    return Translator(
        decoder,
        member.source,
        member.target,
        config.batch_size,
        longest=longest(family),
        device=member.model.device,
        trace=trace,
    )


def _searching(config: TranslateConfig, family: Family) -> Member:
    """The member that finds the strings: the answer, or what descent starts from."""
    return family["l2r" if config.decoder in (*GEOMETRIES, "edits") else config.member]


def longest(family: Family) -> int:
    """Words that all models of a family can read and write."""
    if family.through_text:  # the others count words of their own, and say themselves what fits
        model = family["l2r"].model
        return min(model.max_length, most_read(model))
    return min(member.model.max_length for member in family)


def scored_beam(config: TranslateConfig, family: Family) -> ScoredBeam:
    """All strings of the beam with their costs by every term of the objective."""
    member = _searching(config, family)
    weights = parse_objective(config.objective)
    settings = beam_settings(config)
    settings = replace(settings, n_best=settings.size)
    judge = scorer(weights, family, config.batch_size)
    seed = config.seed if config.lists == "sample" else None
    return ScoredBeam(member.model, settings, judge, member.target.decode, seed)


def scorer(weights: Mapping[TermName, float], family: Family, batch_size: int) -> Scorer:
    """What scores given strings by members of a family, `batch_size` of them at a time."""
    objective = mix(weights, family)
    device = next(iter(family)).model.device
    return Scorer(objective, batch_size, longest(family), device)


def rescorer(names: Collection[str], family: Family, batch_size: int) -> Rescorer:
    """What completes n-best lists of text with the scores of these members, if any."""
    member = family["l2r"] if "l2r" in family.members else next(iter(family))
    sides = (member.source, member.target)
    source, target = reversed(sides) if member.name == "reverse" else sides
    weights: dict[TermName, float] = {name: 1.0 for name in MEMBERS if name in names}
    return Rescorer(source, target, scorer(weights, family, batch_size) if weights else None)


def rerank(config: TranslateConfig) -> Rerank:
    """How the strings of a beam are put into a new order."""
    weights = {str(name): weight for name, weight in parse_objective(config.objective).items()}
    return Rerank(weights, config.rerank_normalise, config.filtered)


GEOMETRIES: dict[str, Geometry] = {
    "eg": ExponentiatedGradient(),
    "sgd": SoftmaxGradient(),
    "projected": ProjectedGradient(),
}


def relaxed_decoder(config: TranslateConfig, family: Family) -> RelaxedDecoder:
    """A decoder by continuous optimisation, from resolved settings."""
    assert config.decoder in GEOMETRIES
    forward = family["l2r"]
    return RelaxedDecoder(
        objective=objective(config, family),
        initialise=_initialise(config, family),
        lift=_lift(config, family),
        geometry=GEOMETRIES[config.decoder],
        update=_update(config),
        stop=_stop(config),
        support=_choosable(family),
        detokenise=forward.target.decode,
        search=Backtracking() if config.line_search else None,
        guard=bool(config.guard),
        precision=config.precision or "fp32",
    )


def edit_decoder(config: TranslateConfig, family: Family) -> EditDecoder:
    """A search with edits, from resolved settings."""
    precision = config.precision or "fp32"
    per_word = config.normalise == "length"
    propose = _proposals(config, family)(
        Gradient(_update(config), config.iterations or 0, per_word, precision),
        Quota(config.substitutions, config.insertions, config.deletions),
    )
    return EditDecoder(
        objective(config, family),
        _initialise(config, family),
        propose,
        _budget(config),
        _choosable(family),
        longest(family),
        family["l2r"].target.decode,
        config.candidates,
        config.checked,
        precision,
    )


def _proposals(config: TranslateConfig, family: Family) -> type[Propose] | type[ProposeOpen]:
    """Relaxed lengths where all models of the objective read them."""
    asked = parse_objective(config.objective)
    # What is reached through text has no empty positions.
    able = not family.through_text and all(
        name != "lm" and family[name].model.reads_gaps for name in asked
    )
    if config.lengths == "relaxed" and not able:
        raise UsageError(
            "These models cannot read strings of relaxed length; leave --lengths away, or say "
            "--lengths predicted."
        )
    return ProposeOpen if able and config.lengths != "predicted" else Propose


def _budget(config: TranslateConfig) -> Budget:
    given = config.budget or ""
    milliseconds = float(given.removesuffix("ms")) if given.endswith("ms") else None
    evaluations = int(given) if given.isdigit() else None
    return Budget(config.patience, config.rounds, evaluations, milliseconds)


def _choosable(family: Family) -> Tensor:
    """The target words that a translation may be made of."""
    model = family["l2r"].model
    words = torch.arange(model.vocabulary_size, device=model.device)
    return words[~torch.isin(words, torch.tensor(model.banned, device=model.device))]


def mix(weights: Mapping[TermName, float], family: Family, shortlisted: bool = False) -> Mix:
    """The models of a family as terms with these weights."""
    parts = [
        Part(name, weight, term(name, family, shortlisted)) for name, weight in weights.items()
    ]
    return Mix(tuple(parts))


def objective(config: TranslateConfig, family: Family) -> Mix:
    """The weighted terms that a configuration names, made of a family's models."""
    shortlisted = config.candidates is not None
    parts = mix(parse_objective(config.objective), family, shortlisted).parts
    if config.normalise == "length":
        parts = tuple(replace(part, term=PerWord(part.term)) for part in parts)
    if config.entropy is not None:
        parts = (*parts, Part("confidence", config.entropy, Confidence()))
    if config.length_reward is not None:
        parts = (*parts, Part("words", config.length_reward, WordReward()))
    return Mix(parts)


def _initialise(config: TranslateConfig, family: Family) -> Initialise:
    if config.init == "rerank":
        return FromRerank(scored_beam(config, family), rerank(config), config.starts or 1)
    return FromSearch(family["l2r"].model, beam_settings(config), config.starts or 1)


def beam_settings(config: TranslateConfig) -> BeamSettings:
    """The discrete search of a configuration: the answer itself, or the start of descent."""
    relaxed = config.decoder in (*GEOMETRIES, "edits")
    assert config.beam_size is not None
    greedy = config.decoder == "greedy" or (relaxed and config.init in ("greedy", "uniform"))
    return BeamSettings(
        size=1 if greedy else config.beam_size,
        n_best=config.n_best if config.decoder == "beam" else 1,
        length_penalty=config.length_penalty,
    )


def _lift(config: TranslateConfig, family: Family) -> Lift:
    if config.init == "uniform":
        return Uniform()
    if config.lift == "smoothed":
        return Smoothed()
    asked = parse_objective(config.objective) if config.lift == "predicted" else {}
    readers = tuple(family[name].model for name in asked if name in ("l2r", "r2l"))
    return Predicted(readers or (family["l2r"].model,), config.candidates)


def _update(config: TranslateConfig) -> Update:
    """Clip, then scale, then remember: the order of the reference implementation."""
    step, momentum = config.step, config.momentum
    assert step is not None  # every preset has one
    assert momentum is not None
    clip = [] if config.clip is None else [ClipNorm(config.clip)]
    size = step if config.anneal is None else InverseDecay(step, config.anneal)
    rules: dict[str, list[Update]] = {
        "plain": [Scale(size)],
        "momentum": [Scale(size), Momentum(momentum)],
        "nesterov": [Scale(size), Nesterov(momentum)],
        "optimistic": [Scale(size), Optimistic()],
        "adaptive": [Adaptive(), Scale(size)],
    }
    assert config.update is not None
    return Chain((*clip, *rules[config.update]))


def _stop(config: TranslateConfig) -> Stop:
    assert config.iterations is not None
    limit = MaxIterations(config.iterations)
    if config.unchanged is None:
        return limit
    return FirstOf((RoundingUnchanged(config.unchanged), limit))
