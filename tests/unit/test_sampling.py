"""Strings drawn from a model: their distribution, their scores, and what they depend on."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import replace

import pytest
import torch

from simplexity.models.family import Family
from simplexity.relax.tokens import Hard, pad_batch
from simplexity.search.beam import BeamSettings
from simplexity.search.sampling import sample_strings

SOURCES = pad_batch([[4, 5, 8], [6], [7, 7, 4, 5]], 0)
SETTINGS = BeamSettings(size=6, n_best=6, max_ratio=1.0, max_extra=2)


@pytest.mark.parametrize("name", ["l2r", "r2l"])
def test_every_string_has_the_models_own_score(
    name: str, tiny_family: Callable[..., Family]
) -> None:
    model = tiny_family()[name].model
    found = sample_strings(model, SOURCES, SETTINGS, seed=1)
    memory = model.encode(SOURCES)
    for place in range(6):
        own = model.score(memory, Hard(found.ids[:, place], found.mask[:, place]))
        torch.testing.assert_close(found.log_prob[:, place], own.total.float(), atol=1e-5, rtol=0)
    assert (found.score.diff(dim=1) <= 0).all()
    assert (found.count == 6).all()


def test_strings_come_as_often_as_they_are_likely(tiny_family: Callable[..., Family]) -> None:
    """Of 4000 draws, each first word's share is within four standard errors of its probability."""
    model = tiny_family()["l2r"].model
    source, draws = pad_batch([[4, 6]], 0), 4000
    settings = BeamSettings(size=draws, n_best=draws, max_ratio=0.0, max_extra=1)
    found = sample_strings(model, source, settings, seed=3)
    memory = model.encode(source)
    log_p = model.step(memory, model.start(memory), None)[1][0].exp()
    allowed = [word for word in range(len(log_p)) if word not in model.banned or word == model.eos]
    share = {word: float(log_p[word] / log_p[allowed].sum()) for word in allowed}
    drawn = Counter(
        int(ids[0]) if mask.any() else model.eos
        for ids, mask in zip(found.ids[0], found.mask[0], strict=True)
    )
    for word, p in share.items():
        assert drawn[word] / draws == pytest.approx(p, abs=4 * (p * (1 - p) / draws) ** 0.5)


def test_a_sentence_depends_on_nothing_but_itself_and_the_seed(
    tiny_family: Callable[..., Family],
) -> None:
    model = tiny_family()["l2r"].model
    together = sample_strings(model, SOURCES, SETTINGS, seed=1)
    alone = sample_strings(model, pad_batch([[6]], 0), SETTINGS, seed=1)
    width = alone.ids.shape[-1]
    assert torch.equal(together.ids[1, :, :width], alone.ids[0])
    assert not together.mask[1, :, width:].any()
    other = sample_strings(model, pad_batch([[6]], 0), SETTINGS, seed=2)
    assert not torch.equal(other.log_prob, alone.log_prob)


def test_strings_end_at_their_limits(tiny_family: Callable[..., Family]) -> None:
    model = tiny_family()["l2r"].model
    found = sample_strings(model, SOURCES, replace(SETTINGS, max_extra=0), seed=1)
    assert (found.mask.sum(-1) <= SOURCES.mask.sum(-1)[:, None]).all()
    nothing = sample_strings(model, pad_batch([[]], 0), SETTINGS, seed=1)
    assert not nothing.mask.any()
