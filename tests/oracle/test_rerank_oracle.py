"""Reranking against full enumeration: a beam that holds all strings finds the joint optimum."""

from __future__ import annotations

import itertools
from collections.abc import Callable

import pytest
import torch

from simplexity.models.family import Family
from simplexity.objectives import NAMED
from simplexity.relax.tokens import pad_batch
from simplexity.rerank import RerankDecoder, ScoredBeam, Scorer
from simplexity.search.beam import BeamSettings
from simplexity.search.rerank import Rerank
from simplexity.terms.likelihood import Likelihood, Reverse
from simplexity.terms.mix import Mix, Part

STRINGS = [list(s) for n in range(3) for s in itertools.product(range(4, 8), repeat=n)]
SOURCES = [[4, 5, 8], [6], [8, 4, 4]]


@pytest.mark.parametrize("name", NAMED)
@pytest.mark.parametrize("normalise", ["sum", "length"])
def test_the_joint_optimum_of_all_strings(
    tiny_family: Callable[..., Family], name: str, normalise: str
) -> None:
    family = tiny_family(5, spread=1.0)
    weights = {str(term): weight for term, weight in NAMED[name].items()}
    models = {member.name: member.model for member in family}
    terms = {n: Reverse(m) if n == "reverse" else Likelihood(m) for n, m in models.items()}
    objective = Mix(tuple(Part(n, w, terms[n]) for n, w in NAMED[name].items()))
    # Two words at most: 21 strings in all, fewer than the beam holds.
    settings = BeamSettings(size=32, n_best=32, max_ratio=0.0, max_extra=2)
    beam = ScoredBeam(models["l2r"], settings, Scorer(objective, 8, 50), str)
    decoder = RerankDecoder(beam, Rerank(weights, normalise))  # type: ignore[arg-type]
    for source, answer in zip(SOURCES, decoder(pad_batch(SOURCES, 0)), strict=True):
        energy = objective.bind(pad_batch([source], 0)).select(torch.zeros(21, dtype=torch.long))
        strings = pad_batch(STRINGS, 0)
        costs = energy.costs(strings)
        total = energy.total(costs) if normalise == "sum" else energy.per_word(costs, strings)
        order = [tuple(STRINGS[n]) for n in total.argsort().tolist()]
        assert [h.ids for h in answer] == order
        scores = torch.tensor([h.score for h in answer], dtype=torch.float64)
        torch.testing.assert_close(-scores, total.sort().values)
