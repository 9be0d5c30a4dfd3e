"""Sentences as tensors: supports, rounding, reversal, padding."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from simplexity.relax.tokens import (
    Hard,
    Soft,
    embed,
    flip,
    harden,
    lengths,
    one_hot,
    pad_batch,
    restrict,
    reverse,
    select_support,
    unpad,
)

MASK = torch.tensor([[True, True, True], [True, True, False]])
IDS = torch.tensor([[4, 1, 6], [2, 5, 0]])
TABLE = torch.arange(21, dtype=torch.float64).view(7, 3) ** 2
SUPPORTS = {
    "whole": None,
    "shared": torch.tensor([5, 0, 4, 2]),
    "own": torch.tensor([[5, 0, 4, 2], [6, 3, 2, 1]]),
}
EACH_SUPPORT = pytest.mark.parametrize("support", SUPPORTS.values(), ids=SUPPORTS.keys())
SENTENCES = st.lists(st.lists(st.integers(1, 50), max_size=6), max_size=5)


def soft(support: Tensor | None) -> Soft:
    generator = torch.Generator().manual_seed(0)
    k = 7 if support is None else support.shape[-1]
    probs = torch.randn(2, 3, k, generator=generator, dtype=torch.float64).softmax(-1)
    return Soft(probs, MASK, support)


def spread(y: Soft) -> Tensor:
    """The same distributions over all seven words, written out word by word."""
    full = torch.zeros(2, 3, 7, dtype=torch.float64)
    for b in range(2):
        for t in range(3):
            for k in range(y.probs.shape[-1]):
                match y.support:
                    case None:
                        word = k
                    case support if support.dim() == 1:
                        word = int(support[k])
                    case support:
                        word = int(support[b, k])
                full[b, t, word] += y.probs[b, t, k]
    return full


@EACH_SUPPORT
def test_an_expected_embedding_is_a_mixture_of_rows(support: Tensor | None) -> None:
    y = soft(support)
    torch.testing.assert_close(embed(y, TABLE), spread(y) @ TABLE)


def test_a_vertex_embeds_as_its_word() -> None:
    hard = Hard(IDS, MASK)
    torch.testing.assert_close(embed(hard, TABLE), TABLE[IDS])
    torch.testing.assert_close(embed(one_hot(hard, 7, torch.float64), TABLE), TABLE[IDS])


@EACH_SUPPORT
def test_rounding_takes_the_likeliest_word(support: Tensor | None) -> None:
    y = soft(support)
    expected = spread(y).argmax(-1)
    expected[~MASK] = 0
    assert (harden(y).ids == expected).all()


def test_rounding_undoes_one_hot() -> None:
    hard = Hard(IDS, MASK)
    assert (harden(one_hot(hard, 7)).ids == IDS).all()


@EACH_SUPPORT
def test_restricting_keeps_the_scores_of_the_support(support: Tensor | None) -> None:
    y = soft(support)
    scores = torch.arange(42, dtype=torch.float64).view(2, 3, 7)
    got = (y.probs * restrict(scores, support)).sum(-1)
    torch.testing.assert_close(got, (spread(y) * scores).sum(-1))


@EACH_SUPPORT
@pytest.mark.parametrize("rows", [[1], [1, 0], [0, 0, 1]])
def test_selecting_sentences(support: Tensor | None, rows: list[int]) -> None:
    y = soft(support)
    chosen = y.select(torch.tensor(rows))
    torch.testing.assert_close(embed(chosen, TABLE), embed(y, TABLE)[rows])
    assert (chosen.mask == MASK[rows]).all()
    assert (harden(chosen).ids == harden(y).ids[rows]).all()
    hard = Hard(IDS, MASK).select(torch.tensor(rows))
    assert (hard.ids == IDS[rows]).all()
    assert (hard.mask == MASK[rows]).all()


def test_a_shared_support_belongs_to_every_sentence() -> None:
    rows = torch.tensor([1])
    assert select_support(None, rows) is None
    assert select_support(SUPPORTS["shared"], rows) is SUPPORTS["shared"]
    own = select_support(SUPPORTS["own"], rows)
    assert own is not None
    assert own.tolist() == [[6, 3, 2, 1]]


@EACH_SUPPORT
def test_other_probabilities_keep_mask_and_support(support: Tensor | None) -> None:
    y = soft(support)
    probs = y.probs.flip(-1)
    other = y.with_probs(probs)
    assert other.probs is probs
    assert other.mask is y.mask
    assert other.support is y.support


def test_lengths_count_real_positions() -> None:
    assert lengths(Hard(IDS, MASK)).tolist() == [3, 2]
    assert lengths(soft(None)).tolist() == [3, 2]


def test_reversal_leaves_padding_at_the_end() -> None:
    assert reverse(Hard(IDS, MASK)).ids.tolist() == [[6, 1, 4], [5, 2, 0]]


@EACH_SUPPORT
def test_reversal_commutes_with_rounding_and_undoes_itself(support: Tensor | None) -> None:
    y = soft(support)
    back = reverse(y)
    assert isinstance(back, Soft)
    assert (harden(back).ids == reverse(harden(y)).ids).all()
    again = reverse(back)
    torch.testing.assert_close(embed(again, TABLE), embed(y, TABLE), rtol=0, atol=0)


@given(SENTENCES)
def test_reversal_is_pythons(sentences: list[list[int]]) -> None:
    batch = pad_batch(sentences, pad=0)
    back = reverse(batch)
    assert isinstance(back, Hard)
    assert unpad(back) == [sentence[::-1] for sentence in sentences]


def test_flipping_takes_any_further_dimensions() -> None:
    values = torch.arange(12).view(2, 3, 2)
    assert flip(values, MASK).tolist() == [
        [[4, 5], [2, 3], [0, 1]],
        [[8, 9], [6, 7], [10, 11]],
    ]


@given(SENTENCES, st.integers(0, 60))
def test_padding_and_unpadding(sentences: list[list[int]], pad: int) -> None:
    batch = pad_batch(sentences, pad)
    assert unpad(batch) == sentences
    assert batch.ids.shape == batch.mask.shape
    assert batch.ids.shape[1] == max(map(len, sentences), default=0)
    assert (batch.ids[~batch.mask] == pad).all()
    assert lengths(batch).tolist() == [len(sentence) for sentence in sentences]
