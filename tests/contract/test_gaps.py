"""Strings whose length is relaxed: what every term promises of positions that may be empty."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest
import torch
from torch import Tensor
from torch.autograd import gradcheck

from simplexity.models.family import Family
from simplexity.relax.tokens import Soft, pad_batch, presence, words
from simplexity.terms.likelihood import Likelihood, Reverse
from simplexity.terms.mix import Mix, Part, PerWord, Term, WordReward

SOURCE = pad_batch([[4, 5, 8], [6], [7, 7, 4, 5]], 0)
NAMES = ["l2r", "r2l", "reverse", "l2r per word", "r2l per word", "reward", "joint"]
NOTHING = -1


@pytest.fixture(scope="module")
def terms(tiny_family: Callable[..., Family]) -> dict[str, Term]:
    model = {member.name: member.model for member in tiny_family()}
    l2r, r2l = Likelihood(model["l2r"]), Likelihood(model["r2l"])
    reverse = Reverse(model["reverse"])
    joint = Mix((Part("l2r", 0.3, l2r), Part("r2l", 0.3, r2l), Part("reverse", 0.4, reverse)))
    found = (l2r, r2l, reverse, PerWord(l2r), PerWord(r2l), WordReward(), joint)
    return dict(zip(NAMES, found, strict=True))


def with_gaps(strings: list[list[int]]) -> Soft:
    """Vertices: each string as slots, of which those that hold NOTHING are empty."""
    longest = max(map(len, strings))
    mask = torch.tensor([[n < len(s) for n in range(longest)] for s in strings])
    probs = torch.zeros(len(strings), longest, 8, dtype=torch.float64)
    for row, string in enumerate(strings):
        for place, word in enumerate(string):
            if word != NOTHING:
                probs[row, place, word] = 1.0
    return Soft(probs, mask, gaps=True)


SLOTS = [[NOTHING, 5, NOTHING, 4, 6, NOTHING], [7, NOTHING, NOTHING], [NOTHING, 6, 6, NOTHING]]
LEFT = [[5, 4, 6], [7], [6, 6]]


@pytest.mark.parametrize("name", NAMES)
def test_empty_positions_are_not_there(name: str, terms: dict[str, Term]) -> None:
    energy = terms[name].bind(SOURCE)
    found, strings = energy(with_gaps(SLOTS)), energy(pad_batch(LEFT, 0))
    torch.testing.assert_close(found, strings.to(found.dtype), atol=1e-6, rtol=0)


def inside(seed: int = 0, padding: int = 0) -> Soft:
    """Points at which every position may hold any word, or none."""
    generator = torch.Generator().manual_seed(seed)
    mask = with_gaps(SLOTS).mask
    scores = torch.randn(*mask.shape, 5, generator=generator, dtype=torch.float64)
    probs = torch.nn.functional.pad(scores.softmax(-1)[..., :-1], (4, 0, 0, padding), value=0.0)
    return Soft(probs, torch.nn.functional.pad(mask, (0, padding)), gaps=True)


@pytest.mark.parametrize("name", NAMES)
def test_the_gradient_is_that_of_the_cost(name: str, terms: dict[str, Term]) -> None:
    energy, point = terms[name].bind(SOURCE), inside()

    def cost(probs: Tensor) -> Tensor:
        return energy(point.with_probs(probs))

    assert gradcheck(cost, (point.probs.requires_grad_(),), atol=1e-6)


@pytest.mark.parametrize("name", NAMES)
def test_padding_and_neighbours_change_nothing(name: str, terms: dict[str, Term]) -> None:
    energy = terms[name].bind(SOURCE)
    together = energy(inside())
    torch.testing.assert_close(energy(inside(padding=2)), together)
    for row in range(3):
        one = torch.tensor([row])
        point = inside().select(one)
        length = int(point.mask.sum())
        alone = replace(point, probs=point.probs[:, :length], mask=point.mask[:, :length])
        torch.testing.assert_close(energy.select(one)(alone), together[one])


def test_lengths_are_expected() -> None:
    point = inside()
    found = presence(point)
    assert found is not None
    torch.testing.assert_close(found, point.probs.sum(-1) * point.mask)
    torch.testing.assert_close(words(point), found.sum(-1))
    assert words(with_gaps(SLOTS)).tolist() == [3, 1, 2]
    assert presence(pad_batch(LEFT, 0)) is None
    assert words(pad_batch(LEFT, 0)).tolist() == [3, 1, 2]
