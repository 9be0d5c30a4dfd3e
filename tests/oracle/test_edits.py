"""Search with edits against full enumeration: five words, lengths one to four, all 780 strings."""

from __future__ import annotations

import itertools
from collections.abc import Callable

import pytest
import torch

from simplexity.edit.decoder import Budget, EditDecoder
from simplexity.edit.open_slots import ProposeOpen
from simplexity.edit.propose import Gradient, Propose, Quota
from simplexity.initialise import FromSearch
from simplexity.models.adapters import AttentionalSeq2Seq
from simplexity.models.attention import Attentional, AttentionalConfig
from simplexity.models.seq2seq import RightToLeft, Seq2Seq
from simplexity.relax.tokens import Hard, pad_batch
from simplexity.relax.updates import Chain, Momentum, Scale
from simplexity.search.beam import BeamSettings
from simplexity.terms.likelihood import Likelihood, Reverse
from simplexity.terms.mix import Mix, Part, PerWord, Term

WORDS = range(4, 9)
# The empty string comes first; a beam may start from it, but no edit leads there.
STRINGS = pad_batch([list(s) for n in range(5) for s in itertools.product(WORDS, repeat=n)], 0)
SOURCES = pad_batch([[4, 5, 8], [6], [7, 7, 4, 5], [8, 4], [5, 6, 7]], 0)
PROBLEMS = 200
Wrap = Callable[[Term], Term]
WRAPS: dict[str, Wrap] = {"length": PerWord, "sum": lambda term: term}
OBJECTIVES = {
    "forward": {"l2r": 1.0},
    "bidirectional": {"l2r": 0.5, "r2l": 0.5},
    "bilingual": {"l2r": 0.5, "reverse": 0.5},
    "joint": {"l2r": 0.34, "r2l": 0.33, "reverse": 0.33},
}


def model(seed: int) -> AttentionalSeq2Seq:
    """A random network whose strings end at all lengths."""
    torch.manual_seed(seed)
    config = AttentionalConfig(
        source_vocab_size=9, vocab_size=9, embedding_size=5, hidden_size=6, alignment_size=4
    )
    network = Attentional(config).double().eval().requires_grad_(False)
    for parameter in network.parameters():
        torch.nn.init.normal_(parameter, std=0.6)
    network.output.bias[config.eos_token_id] += 1.0
    return AttentionalSeq2Seq(network)


def family(seed: int) -> dict[str, Seq2Seq]:
    l2r, r2l, reverse = (model(3 * seed + n) for n in range(3))
    return {"l2r": l2r, "r2l": RightToLeft(r2l), "reverse": reverse}


def mix(models: dict[str, Seq2Seq], objective: str, wrap: Wrap) -> Mix:
    return Mix(
        tuple(
            Part(name, weight, wrap((Reverse if name == "reverse" else Likelihood)(models[name])))
            for name, weight in OBJECTIVES[objective].items()
        )
    )


def decoder(
    models: dict[str, Seq2Seq],
    objective: Mix,
    per_word: bool,
    kind: type[Propose] | type[ProposeOpen],
) -> EditDecoder:
    """The default of `simplexity translate --decoder edits`, without its approximations."""
    beam = BeamSettings(size=5, max_ratio=0.0, max_extra=4)
    return EditDecoder(
        objective=objective,
        initialise=FromSearch(models["l2r"], beam, starts=5),
        propose=kind(Gradient(Chain((Scale(1.0), Momentum(0.9))), per_word=per_word), Quota()),
        budget=Budget(patience=3),
        words=torch.tensor(list(WORDS)),
        longest=4,
        detokenise=str,
    )


def all_costs(objective: Mix, source: Hard) -> torch.Tensor:
    """The cost of every string for every source [sources, strings]."""
    energy, number = objective.bind(source), len(STRINGS.ids)
    rows = [energy.select(torch.full((number,), row))(STRINGS) for row in range(len(source.ids))]
    return torch.stack(rows)


def share_found(objective: str, wrap: str, kind: type[Propose] | type[ProposeOpen]) -> float:
    """In which share of the problems the search finds a string as good as the best of all."""
    found = 0
    for seed in range(PROBLEMS // len(SOURCES.ids)):
        models = family(seed)
        energy = mix(models, objective, WRAPS[wrap])
        answers = decoder(models, energy, wrap == "length", kind)(SOURCES)
        costs = torch.tensor([hypotheses[0].discrete_cost for hypotheses in answers])
        every = all_costs(energy, SOURCES)
        assert (costs >= every.amin(1) - 1e-5).all()
        found += int((costs <= every[:, 1:].amin(1) + 1e-5).sum())
    return found / PROBLEMS


@pytest.mark.parametrize("objective", OBJECTIVES)
@pytest.mark.parametrize("wrap", WRAPS)
def test_the_best_of_all_strings_is_found_nearly_always(objective: str, wrap: str) -> None:
    assert share_found(objective, wrap, Propose) >= 0.95


@pytest.mark.parametrize("wrap", WRAPS)
def test_so_it_is_by_a_gradient_over_open_slots(wrap: str) -> None:
    assert share_found("joint", wrap, ProposeOpen) >= 0.95
