"""Settings of the commands that judge: `score`, `evaluate`, `info`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field

from simplexity.config.kinds import CommaList, Count, Device, Member, Natural
from simplexity.settings import Settings, setting


class ScoreConfig(Settings):
    """Settings of `simplexity score`."""

    model: Path | None = setting(
        None,
        "directory of a model or a family; unset: German to English, as shipped",
        section="Files",
        short="-m",
    )
    source: Path = setting(..., "source sentences, one a line", short="-s")
    target: Path = setting(..., "their translations, line by line", short="-t")
    output: Path | None = setting(None, "where scores go; unset: stdout", short="-o")
    overwrite: bool = setting(False, "replace an output file that exists")

    member: Member = setting("l2r", "model of the family that scores", section="Scoring")
    per_token: bool = setting(False, "the log-probability of every token, the end's included")
    batch_size: Count = setting(64, "sentences scored at a time")

    device: Device = setting("auto", "where to compute", section="Machine")
    threads: Count | None = setting(None, "CPU threads; unset: OMP_NUM_THREADS, or 1")
    quiet: bool = setting(False, "no progress on stderr")


class EvaluateConfig(Settings):
    """Settings of `simplexity evaluate`."""

    hypotheses: tuple[Path, ...] = setting(
        ..., "translations, one file a system", section="Files", positional=True
    )
    references: Annotated[tuple[Path, ...], CommaList, Field(min_length=1)] = setting(
        ..., "reference translations, comma-separated files", short="-r"
    )
    output: Path | None = setting(None, "where the table goes; unset: stdout", short="-o")
    overwrite: bool = setting(False, "replace an output file that exists")
    format: Literal["text", "json", "markdown", "latex"] = setting("text", "form of the table")

    metrics: Annotated[
        tuple[Literal["bleu", "bleu-cased", "chrf", "ter"], ...], CommaList, Field(min_length=1)
    ] = setting(
        ("bleu", "chrf"), "comma-separated: bleu, bleu-cased, chrf, ter", section="Measures"
    )
    tokenize: Literal["13a", "zh", "ja-mecab", "char", "intl"] = setting(
        "13a", "how sacrebleu cuts words for BLEU and lengths"
    )
    baseline: Path | None = setting(
        None, "translations that the others are tested against", short="-b"
    )
    test: Literal["bootstrap", "randomisation"] = setting(
        "bootstrap", "paired bootstrap, or approximate randomisation"
    )
    samples: Count | None = setting(
        None, "resampled corpora of the test; unset: 1000 for bootstrap, 10000 for randomisation"
    )
    seed: Natural = setting(12345, "seed of the test")


class InfoConfig(Settings):
    """Settings of `simplexity info`."""

    models: tuple[Path, ...] = setting(
        (), "directories of models or families to describe", section="Files", positional=True
    )
