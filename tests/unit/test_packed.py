"""Weights in 8 bits: how far they move, what comes back, what is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from transformers import MarianConfig, MarianMTModel

from simplexity.models import attention
from simplexity.models.attention import Attentional, AttentionalConfig
from simplexity.models.packed import PACKED, pack, read_network, read_packed, unpack, write_packed


@given(st.integers(0, 10_000), st.floats(1e-6, 1e6), st.sampled_from([(3, 5), (4, 2, 3), (1, 1)]))
def test_no_weight_moves_by_more_than_half_a_step(
    seed: int, size: float, shape: tuple[int, ...]
) -> None:
    weights = size * torch.randn(shape, generator=torch.Generator().manual_seed(seed))
    steps, scale = pack(weights)
    assert steps.dtype == torch.int8
    moved = (unpack(steps, scale) - weights).abs().flatten(1).amax(1)
    largest = weights.abs().flatten(1).amax(1)
    assert (moved <= 0.5001 * largest / 127).all()


def test_each_row_has_its_own_scale() -> None:
    """A row of large weights costs its neighbours nothing; zeros stay zeros."""
    weights = torch.tensor([[127.0, -63.0], [0.127, 0.001], [0.0, 0.0]])
    steps, scale = pack(weights)
    torch.testing.assert_close(unpack(steps, scale), weights)
    assert steps.tolist() == [[127, -63], [127, 1], [0, 0]]


def small(tied: bool) -> Attentional:
    attention.register()
    torch.manual_seed(1)
    return Attentional(
        AttentionalConfig(
            source_vocab_size=11,
            vocab_size=13,
            embedding_size=6,
            hidden_size=6,
            alignment_size=4,
            tie_word_embeddings=tied,
        )
    )


def transformer() -> Any:
    torch.manual_seed(1)
    sizes = {"d_model": 8, "encoder_ffn_dim": 8, "decoder_ffn_dim": 8}
    layers = {"encoder_layers": 1, "decoder_layers": 1}
    heads = {"encoder_attention_heads": 2, "decoder_attention_heads": 2}
    words = {"vocab_size": 11, "decoder_vocab_size": 13, "share_encoder_decoder_embeddings": False}
    special = {"pad_token_id": 0, "eos_token_id": 2, "decoder_start_token_id": 1}
    return MarianMTModel(MarianConfig(**sizes, **layers, **heads, **words, **special))


@pytest.mark.parametrize("network", [small(True), small(False), transformer()])
def test_a_network_comes_back(network: Any, tmp_path: Path) -> None:
    write_packed(network, tmp_path)
    back = read_network(tmp_path, network.config)
    found = back.state_dict()
    for name, weights in network.state_dict().items():
        room = weights.abs().max() / 127 if weights.dim() > 1 else 1e-9
        assert (found[name] - weights).abs().max() <= room
    assert len(dict(back.named_parameters())) == len(dict(network.named_parameters()))


def test_it_takes_a_quarter_of_the_room_and_tied_weights_are_kept_once(tmp_path: Path) -> None:
    network = small(True)
    network.save_pretrained(tmp_path)
    write_packed(network, tmp_path)
    assert "output.weight" not in read_packed(tmp_path / PACKED)
    matrices = {n: p.numel() for n, p in network.named_parameters() if p.dim() > 1}
    stored = sum(w.numel() for n, w in read_packed(tmp_path / PACKED).items() if n in matrices)
    assert stored == sum(matrices.values())


def test_weights_of_another_model_are_refused(tmp_path: Path) -> None:
    write_packed(small(True), tmp_path)
    with pytest.raises(ValueError, match=r"not of one model; see output\.weight"):
        read_network(tmp_path, small(False).config)
    other = small(True).config
    other.vocab_size = 14
    with pytest.raises(ValueError, match=r"see output\.bias"):
        read_network(tmp_path, other)
