"""log p of given words, made a few rows at a time, against the plain formula."""

from __future__ import annotations

import pytest
import torch

from simplexity.models import picked
from simplexity.models.picked import picked_log_probs, word_scores


@pytest.fixture(params=[1, 14, 10_000], ids=["row by row", "two rows", "all at once"])
def _at_once(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(picked, "AT_ONCE", request.param)


@pytest.mark.usefixtures("_at_once")
def test_it_is_the_log_softmax_at_the_word_with_its_derivative() -> None:
    generator = torch.Generator().manual_seed(1)
    options = {"dtype": torch.float64, "generator": generator}
    hidden = torch.randn(3, 2, 4, **options).requires_grad_()
    weight, bias = torch.randn(7, 4, **options), torch.randn(7, **options)
    ids = torch.randint(7, (3, 2), generator=generator)

    found = picked_log_probs(hidden, weight, bias, ids)
    plain = (hidden @ weight.mT + bias).log_softmax(-1).gather(-1, ids[..., None]).squeeze(-1)
    torch.testing.assert_close(found, plain)
    assert torch.autograd.gradcheck(lambda h: picked_log_probs(h, weight, bias, ids), hidden)


def test_padding_scores_nothing_and_the_end_stands_behind_the_last_word() -> None:
    log_p = torch.tensor([[-1.0, -2.0, -3.0], [-4.0, -5.0, -6.0]])
    found = word_scores(log_p, torch.tensor([2, 1]))
    assert found.words.tolist() == [[-1, -2], [-4, 0]]
    assert found.end.tolist() == [-3, -5]
    assert found.total.tolist() == [-6, -9]
