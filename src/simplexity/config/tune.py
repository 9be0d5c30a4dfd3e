"""Settings of `simplexity rerank` and `simplexity tune`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from simplexity.config.kinds import CommaList, Count, Device, Natural, Positive, is_stdin
from simplexity.objectives import parse_weights
from simplexity.settings import Settings, flag, setting


class RerankConfig(Settings):
    """Settings of `simplexity rerank`."""

    nbest: Path | None = setting(
        None, "n-best list, Moses format, best first; unset: stdin", section="Files", short="-n"
    )
    source: Path | None = setting(
        None, "source sentences, one a line; needed where models score", short="-s"
    )
    model: Path | None = setting(
        None, "directory of a family that computes what the list lacks", short="-m"
    )
    output: Path | None = setting(None, "where the best go; unset: stdout", short="-o")
    scores_cache: Path | None = setting(
        None, "write the list there as it came, with all features, for runs without a model"
    )
    overwrite: bool = setting(False, "replace output files that exist")
    output_type: Literal["text", "nbest", "json"] = setting(
        "text", "the best as plain sentences, or all in their new order"
    )

    objective: str = setting(
        "joint",
        "forward, bidirectional, bilingual, joint, or weights of models and features, "
        "such as F0=0.5,r2l=0.5",
        section="Reranking",
    )
    normalise: Literal["sum", "length"] = setting(
        "length", "compare log-probabilities as they are, or each divided by its words"
    )
    filtered: bool = setting(False, "leave out what has more words than the first of its list")
    n_best: Count | None = setting(None, "translations given for each sentence; unset: all")
    rescore: bool = setting(False, "compute what the list holds already, too")
    batch_size: Count = setting(64, "hypotheses scored at a time")

    device: Device = setting("auto", "where to compute", section="Machine")
    threads: Count | None = setting(None, "CPU threads; unset: OMP_NUM_THREADS, or 1")
    quiet: bool = setting(False, "no progress on stderr")

    @model_validator(mode="after")
    def _check(self) -> Self:
        parse_weights(self.objective)
        if self.model is not None and self.source is None:
            raise ValueError("the models of --model need the source of the list: give --source")
        if self.rescore and self.model is None:
            raise ValueError("--rescore needs --model")
        if is_stdin(self.nbest) and self.source is not None and is_stdin(self.source):
            raise ValueError("the list and the source cannot both be standard input")
        return self


class TuneConfig(Settings):
    """Settings of `simplexity tune`."""

    what: Literal["weights", "step"] = setting(
        "weights",
        "weights (of an objective; the usual), or step (size of relaxed decoding)",
        section="What",
        positional=True,
    )

    references: Annotated[tuple[Path, ...], CommaList, Field(min_length=1)] = setting(
        ..., "reference translations, comma-separated files", section="Files", short="-r"
    )
    nbest: Path | None = setting(
        None, "n-best list to learn weights on; unset: it is made from the source", short="-n"
    )
    source: Path | None = setting(None, "source sentences, one a line", short="-s")
    model: Path | None = setting(
        None, "directory of a family that translates, or computes what the list lacks", short="-m"
    )
    settings: Path | None = setting(
        None, "YAML file of simplexity translate: how to decode, where not said here"
    )
    output: Path | None = setting(None, "where the report goes; unset: stdout", short="-o")
    scores_cache: Path | None = setting(
        None, "write the list there with all features, for runs without a model"
    )
    overwrite: bool = setting(False, "replace output files that exist")
    format: Literal["text", "json"] = setting("text", "form of the report")

    metric: Literal["bleu", "bleu-cased", "chrf", "ter"] = setting(
        "bleu", "what to tune for", section="Measure"
    )
    tokenize: Literal["13a", "zh", "ja-mecab", "char", "intl"] = setting(
        "13a", "how sacrebleu cuts words for BLEU"
    )
    resamples: Count = setting(1000, "resampled corpora for the intervals of gains")
    folds: Annotated[int, Field(ge=2)] = setting(
        5, "parts of the data, of which each is held out once"
    )

    objective: str | None = setting(
        None,
        "weights to start from; unset: joint, or without a model all features of the list alike",
        section="Weights",
    )
    decoder: Literal["rerank", "eg", "sgd", "projected"] | None = setting(
        None, "what the weights or the step are for; unset: rerank for weights, eg for step"
    )
    method: Literal["mert", "random"] | None = setting(
        None, "exact line searches, or random weights; unset: mert for rerank, else random"
    )
    restarts: Natural = setting(10, "random weights that mert starts from as well")
    non_negative: bool = setting(False, "keep the weights of mert at 0 or above")
    samples: Count | None = setting(
        None, "weights that random tries; unset: 1000 for rerank, else 8, each of them decoded"
    )
    normalise: Literal["sum", "length"] | None = setting(
        None, "log-probabilities as they are, or by words; unset: length, or as decoding has it"
    )
    filtered: bool = setting(False, "leave out what has more words than the first of its list")

    steps: Annotated[tuple[Positive, ...] | None, CommaList] = setting(
        None,
        "step sizes to try; unset: 0.1 to 3, or 10 to 400 where costs are divided by words",
        section="Step",
    )
    by: Literal["metric", "cost"] = setting("metric", "what makes a step the best")

    beam_size: Count | None = setting(
        None, "unset: 100 for n-best lists, else as in simplexity translate", section="Decoding"
    )
    preset: Literal["default", "paper"] | None = setting(None, "what decoding has unset")
    batch_size: Count = setting(64, "sentences translated, or hypotheses scored, at a time")

    device: Device = setting("auto", "where to compute", section="Machine")
    threads: Count | None = setting(None, "CPU threads; unset: OMP_NUM_THREADS, or 1")
    seed: Natural = setting(12345, "seed of searches and tests")
    quiet: bool = setting(False, "no progress on stderr")

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.objective is not None:
            parse_weights(self.objective)
        if self.model is None and (self.nbest is None or self.what == "step"):
            raise ValueError("give --model FAMILY and --source FILE, or an n-best list by --nbest")
        if self.model is not None and self.source is None:
            raise ValueError("--model needs --source")
        self._check_what()
        return self

    def _check_what(self) -> None:
        if self.what == "step" and self.decoder == "rerank":
            raise ValueError("reranking has no step size; use --decoder eg, sgd or projected")
        if self.reranks():
            return
        for name in ("nbest", "scores_cache", "filtered"):
            if getattr(self, name):
                raise ValueError(f"{flag(name)} is for the weights of reranking")
        if self.what == "weights" and self.by == "cost":
            raise ValueError("costs of different weights cannot be compared; use --by metric")
        if self.what == "weights" and self.method == "mert":
            raise ValueError("mert needs n-best lists; use --method random, or --decoder rerank")

    def reranks(self) -> bool:
        """Whether weights are learnt for reranking; otherwise candidates are decoded."""
        return self.what == "weights" and self.decoder in (None, "rerank")
