"""From the settings of a training to vocabularies, networks and recipes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch

from simplexity.config import TrainConfig
from simplexity.models.attention import Attentional, AttentionalConfig
from simplexity.text.corpora import Bitext
from simplexity.text.vocabulary import (
    BOS,
    EOS,
    PAD,
    Vocabulary,
    VocabularySettings,
    learn,
)
from simplexity.train.trainer import Recipe


def bitext(config: TrainConfig, part: str) -> Bitext:
    """The training or development corpus that a configuration names."""
    prefix: Path | None = getattr(config, part)
    if prefix is not None:
        assert config.source_language is not None  # the configuration's own check
        assert config.target_language is not None
        return Bitext.at(prefix, config.source_language, config.target_language)
    return Bitext(getattr(config, f"{part}_source"), getattr(config, f"{part}_target"))


def vocabularies(config: TrainConfig, corpus: Bitext) -> tuple[Vocabulary, Vocabulary]:
    """Learn the words of both sides; the members of a family share them."""
    settings = VocabularySettings(
        kind=config.vocabulary,
        size=config.vocabulary_size,
        cutoff=config.cutoff,
        lowercase=config.lowercase,
    )
    source = learn((x for x, _ in corpus), settings)
    return source, learn((y for _, y in corpus), settings)


def new_network(config: TrainConfig, source_size: int, target_size: int) -> Any:
    """A new network of the configured architecture, with random weights drawn from the seed."""
    config = config.resolved()
    assert config.encoder_layers is not None  # both resolved just now
    assert config.decoder_layers is not None
    torch.manual_seed(config.seed)
    if config.architecture == "transformer":
        return _transformer(config, source_size, target_size)
    return Attentional(
        AttentionalConfig(
            source_vocab_size=source_size,
            vocab_size=target_size,
            embedding_size=config.embedding,
            hidden_size=config.hidden,
            alignment_size=config.alignment,
            encoder_layers=config.encoder_layers,
            decoder_layers=config.decoder_layers,
            dropout=config.dropout,
            tie_word_embeddings=config.tie_embeddings,
            max_positions=max(512, config.max_length),
        )
    )


def _transformer(config: TrainConfig, source_size: int, target_size: int) -> Any:
    from transformers import MarianConfig, MarianMTModel  # takes seconds to import

    return MarianMTModel(
        MarianConfig(
            vocab_size=source_size,
            decoder_vocab_size=target_size,
            share_encoder_decoder_embeddings=False,
            tie_word_embeddings=config.tie_embeddings,
            d_model=config.hidden,
            encoder_layers=config.encoder_layers,
            decoder_layers=config.decoder_layers,
            encoder_attention_heads=config.heads,
            decoder_attention_heads=config.heads,
            encoder_ffn_dim=config.feedforward,
            decoder_ffn_dim=config.feedforward,
            dropout=config.dropout,
            attention_dropout=0.0,
            activation_dropout=0.0,
            activation_function="relu",
            scale_embedding=True,
            max_position_embeddings=max(512, config.max_length + 2),  # beginning, words, gap behind
            pad_token_id=PAD,
            bos_token_id=BOS,
            eos_token_id=EOS,
            forced_eos_token_id=None,
            decoder_start_token_id=BOS,
        )
    )


def recipe(config: TrainConfig) -> Recipe:
    """How to train, as the trainer takes it."""
    config = config.resolved()
    assert config.learning_rate is not None
    assert config.warmup is not None
    return Recipe(
        learning_rate=config.learning_rate,
        warmup=config.warmup,
        clip=config.clip,
        label_smoothing=config.label_smoothing,
        batch_tokens=config.batch_tokens,
        max_epochs=config.max_epochs,
        validate_every=config.validate_every,
        patience=config.patience,
        decay=config.decay,
        stop_after=config.stop_after,
        average=config.average,
        precision=config.precision,
        seed=config.seed,
    )
