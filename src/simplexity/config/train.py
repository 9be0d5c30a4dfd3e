"""Settings of `simplexity train`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from simplexity.config.kinds import (
    CommaList,
    Count,
    Decay,
    Device,
    Member,
    Natural,
    OrNone,
    Positive,
    Share,
)
from simplexity.settings import Settings, setting

# What an unset size means depends on the architecture: the paper's for its own model, a small
# Transformer for the other.
UNSET_BY_ARCHITECTURE: dict[str, dict[str, float]] = {
    "attentional": {"encoder_layers": 1, "decoder_layers": 2, "learning_rate": 1e-3, "warmup": 200},
    "transformer": {
        "encoder_layers": 3,
        "decoder_layers": 3,
        "learning_rate": 5e-4,
        "warmup": 1000,
    },
}


class TrainConfig(Settings):
    """Settings of `simplexity train`."""

    train: Path | None = setting(
        None, "prefix of the training corpus: PREFIX.de and PREFIX.en", section="Corpora"
    )
    dev: Path | None = setting(None, "prefix of the development corpus")
    source_language: str | None = setting(
        None, "code of the source language, such as de", short="-s"
    )
    target_language: str | None = setting(
        None, "code of the target language, such as en", short="-t"
    )
    train_source: Path | None = setting(None, "source file of the training corpus, if no prefix")
    train_target: Path | None = setting(None, "target file of the training corpus")
    dev_source: Path | None = setting(None, "source file of the development corpus")
    dev_target: Path | None = setting(None, "target file of the development corpus")
    max_length: Count = setting(
        100, "leave out training pairs with a longer side, and say how many"
    )

    output: Path = setting(..., "directory of the models", section="Output", short="-o")
    overwrite: bool = setting(False, "start afresh in an output directory that is not empty")
    quiet: bool = setting(False, "no progress on stderr")

    directions: Annotated[tuple[Member, ...], CommaList, Field(min_length=1)] = setting(
        ("l2r",), "models to train, comma-separated: l2r, r2l, reverse", section="Model"
    )
    architecture: Literal["attentional", "transformer"] = setting(
        "attentional", "the paper's attentional LSTM, or a Transformer"
    )
    vocabulary: Literal["words", "bpe", "unigram"] = setting("words", "what a token is")
    vocabulary_size: Count | None = setting(
        None, "at most this many tokens a language; unset: all for words, 8000 for bpe and unigram"
    )
    cutoff: Count = setting(5, "words seen less often are unknown (words only)")
    lowercase: bool = setting(False, "train on lower-cased text")
    embedding: Count = setting(512, "size of the word embeddings (attentional only)")
    hidden: Count = setting(512, "size of the hidden states")
    alignment: Count = setting(256, "size of the alignment layer (attentional only)")
    heads: Count = setting(8, "attention heads (transformer only)")
    feedforward: Count = setting(2048, "size of the feed-forward layers (transformer only)")
    encoder_layers: Count | None = setting(None, "unset: 1 for attentional, 3 for transformer")
    decoder_layers: Count | None = setting(None, "unset: 2 for attentional, 3 for transformer")
    tie_embeddings: bool = setting(False, "share target embeddings with the output layer")

    dropout: Share = setting(0.2, "probability of dropping a unit", section="Training")
    label_smoothing: Share = setting(0.1, "probability given to all other words")
    learning_rate: Positive | None = setting(
        None, "unset: 0.001 for attentional, 0.0005 for transformer"
    )
    warmup: Natural | None = setting(
        None, "updates of linear warm-up; unset: 200 for attentional, 1000 for transformer"
    )
    clip: Positive = setting(1.0, "largest norm of a gradient")
    batch_tokens: Count = setting(4096, "tokens in a batch")
    max_epochs: Count = setting(20, "most passes over the corpus")
    validate_every: Count | None = setting(None, "updates between validations; unset: each epoch")
    patience: Count = setting(1, "validations without improvement before the learning rate decays")
    decay: Decay = setting(0.5, "factor of that decay")
    stop_after: Count = setting(3, "decays before training stops")
    average: Annotated[Decay | None, OrNone] = setting(
        0.998, "decay of the moving average of weights that is kept as the model, or none"
    )

    precision: Literal["bf16", "fp32"] = setting("bf16", "arithmetic", section="Machine")
    seed: Natural = setting(1, "seed of all that is random")
    jobs: Count = setting(1, "models trained at the same time")
    threads: Count | None = setting(None, "CPU threads a model; unset: OMP_NUM_THREADS, or 1")
    device: Device = setting("auto", "where to compute")

    @model_validator(mode="after")
    def _check(self) -> Self:
        for name in ("train", "dev"):
            self._check_corpus(name)
        if len(set(self.directions)) < len(self.directions):
            raise ValueError(f"directions names a model twice: {','.join(self.directions)}")
        self._check_sizes()
        return self

    def _check_sizes(self) -> None:
        if self.architecture == "transformer":
            if self.hidden % self.heads:
                raise ValueError(f"hidden ({self.hidden}) is not divisible by heads ({self.heads})")
        elif self.tie_embeddings and self.embedding != self.hidden:
            raise ValueError(
                f"tie_embeddings needs an embedding ({self.embedding}) of the size of hidden "
                f"({self.hidden})"
            )

    def _check_corpus(self, name: str) -> None:
        prefix = getattr(self, name)
        files = (getattr(self, f"{name}_source"), getattr(self, f"{name}_target"))
        if prefix is None and None in files:
            raise ValueError(
                f"no {name} corpus: give --{name} PREFIX with --source-language and "
                f"--target-language, or --{name}-source FILE and --{name}-target FILE"
            )
        if prefix is not None and files != (None, None):
            raise ValueError(f"give --{name} or --{name}-source and --{name}-target, not both")
        if prefix is not None and None in (self.source_language, self.target_language):
            raise ValueError(f"--{name} needs --source-language and --target-language")

    def resolved(self) -> TrainConfig:
        """The same settings with every size that depends on the architecture filled in."""
        unset = UNSET_BY_ARCHITECTURE[self.architecture]
        missing = {key: value for key, value in unset.items() if getattr(self, key) is None}
        return self.model_copy(update=missing)
