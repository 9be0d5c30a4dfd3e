"""What a run can be told: one model a command, whose fields are YAML keys and flags alike.

A field `beam_size` is the key `beam_size` in a configuration file and the flag `--beam-size`. Flags
override the file, the file overrides the defaults written here. Nothing here imports torch, so that
help and errors come at once.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import BeforeValidator, Field, model_validator

from simplexity.objectives import NAMED, parse_objective, parse_weights
from simplexity.settings import Settings, flag, setting

Member = Literal["l2r", "r2l", "reverse"]
Device = Literal["auto", "cpu", "cuda"]

Count = Annotated[int, Field(ge=1)]
Natural = Annotated[int, Field(ge=0)]
Positive = Annotated[float, Field(gt=0)]
Share = Annotated[float, Field(ge=0, lt=1)]
Decay = Annotated[float, Field(gt=0, lt=1)]


def _split(value: object) -> object:
    """`a,b` as the list of its parts; a list stays what it is."""
    return [part.strip() for part in value.split(",")] if isinstance(value, str) else value


def _or_none(value: object) -> object:
    """The word none as the absence of a value, so that a flag can say it."""
    return None if value == "none" else value


def is_stdin(path: Path | None) -> bool:
    """Whether this names standard input: by "-", or by nothing."""
    return path is None or str(path) == "-"


CommaList = BeforeValidator(_split)
OrNone = BeforeValidator(_or_none)

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


# The paper's setting, with the gradient clipping of its reference implementation; and ours, chosen
# by measurement (docs/decoding.md).
PRESETS: dict[str, dict[str, Any]] = {
    "paper": {
        "normalise": "length",
        "step": 50.0,
        "update": "momentum",
        "momentum": 0.9,
        "clip": 5.0,
        "line_search": False,
        "iterations": 100,
        "guard": False,
        "lift": "forward",
        "candidates": None,
        "precision": "fp32",
    },
    "default": {
        "normalise": "sum",
        "step": 1.0,
        "update": "momentum",
        "momentum": 0.9,
        "line_search": False,
        "iterations": 8,
        "guard": True,
        "lift": "predicted",
        "candidates": 256,
        "precision": "bf16",
    },
}


class TranslateConfig(Settings):
    """Settings of `simplexity translate`."""

    model: Path = setting(..., "directory of a model or a family", section="Files", short="-m")
    input: Path | None = setting(
        None, "sentences to translate, one a line; unset: stdin", short="-i"
    )
    output: Path | None = setting(None, "where translations go; unset: stdout", short="-o")
    overwrite: bool = setting(False, "replace output files that exist")
    output_type: Literal["text", "nbest", "json"] = setting(
        "text", "plain sentences, Moses n-best lists, or JSON lines"
    )

    objective: str = setting(
        "forward",
        "forward, bidirectional, bilingual, joint, or weights such as l2r=0.5,r2l=0.5",
        section="Search",
    )
    decoder: Literal["greedy", "beam", "rerank", "eg", "sgd", "projected"] | None = setting(
        None, "how to search; unset: beam for the objective forward, else eg"
    )
    member: Literal["l2r", "r2l"] = setting(
        "l2r", "model of the family that greedy, beam and rerank search with"
    )
    beam_size: Count = setting(5, "hypotheses kept at a time")
    n_best: Count = setting(1, "translations given for each sentence")
    length_penalty: Annotated[float, Field(ge=0)] = setting(
        1.0, "hypotheses are ranked by log-probability / length^penalty"
    )
    batch_size: Count = setting(64, "sentences translated at a time")

    filtered: bool = setting(
        False,
        "leave out what is longer than the beam's best",
        section="Reranking (decoder rerank, init rerank)",
    )
    rerank_normalise: Literal["sum", "length"] = setting(
        "length", "compare costs as they are, or each divided by its words"
    )

    init: Literal["uniform", "greedy", "beam", "rerank", "file"] = setting(
        "beam",
        "strings to start from",
        section="Relaxation (decoders eg, sgd, projected)",
    )
    init_file: Path | None = setting(None, "translations to start from, line by line (init file)")
    starts: Count = setting(
        1, "strings to start from: of the beam, different lengths first; the best of reranking"
    )
    preset: Literal["default", "paper"] = setting("default", "values of what is unset below")
    lift: Literal["predicted", "forward", "smoothed"] | None = setting(
        None, "start at the models' mean predictions, at those of l2r alone, or at the string"
    )
    normalise: Literal["sum", "length"] | None = setting(
        None, "minimise costs as they are, or each divided by its words"
    )
    step: Positive | None = setting(None, "step size")
    update: Literal["plain", "momentum", "nesterov", "optimistic", "adaptive"] | None = setting(
        None, "how steps are made of gradients"
    )
    momentum: Share | None = setting(None, "share of the last step that is kept")
    clip: Positive | None = setting(None, "largest norm of a sentence's gradient")
    anneal: Positive | None = setting(None, "step size falls as 1 / (1 + anneal * iteration)")
    line_search: bool | None = setting(None, "let each sentence find its own step size")
    entropy: Positive | None = setting(None, "weight gamma of the entropy in the objective")
    iterations: Natural | None = setting(None, "most iterations")
    unchanged: Count | None = setting(None, "stop after so many iterations without a new string")
    candidates: Count | None = setting(None, "words that a sentence may be made of")
    precision: Literal["bf16", "fp32"] | None = setting(None, "arithmetic of the descent")
    exact: bool = setting(False, "descend over the whole vocabulary in fp32")
    guard: bool | None = setting(None, "return the best string seen, never worse than the start")
    trace: Path | None = setting(None, "write every iteration to this file as JSON lines")

    device: Device = setting("auto", "where to compute", section="Machine")
    threads: Count | None = setting(None, "CPU threads; unset: OMP_NUM_THREADS, or 1")
    seed: Natural = setting(1, "seed of all that is random")
    quiet: bool = setting(False, "no progress on stderr")

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.n_best > 1 and self.output_type == "text":
            raise ValueError(f"n_best {self.n_best} needs --output-type nbest or json")
        if self._usual_decoder() in ("beam", "rerank") and self.n_best > self.beam_size:
            raise ValueError(f"n_best ({self.n_best}) is more than beam_size ({self.beam_size})")
        if self.starts > self.beam_size:
            raise ValueError(f"starts ({self.starts}) is more than beam_size ({self.beam_size})")
        if (self.init == "file") != (self.init_file is not None):
            raise ValueError("--init file and --init-file FILE go together")
        if self._is_joint() and self.decoder in ("greedy", "beam"):
            raise ValueError(
                f"{self.decoder} search writes with one model and cannot follow the objective "
                f"{self.objective}; use --decoder eg or rerank"
            )
        if self.filtered and "rerank" not in (self.decoder, self.init):
            raise ValueError("--filtered goes with --decoder rerank or --init rerank")
        return self

    def _is_joint(self) -> bool:
        return parse_objective(self.objective) != NAMED["forward"]

    def _usual_decoder(self) -> str:
        return self.decoder or ("eg" if self._is_joint() else "beam")

    def resolved(self) -> TranslateConfig:
        """The same settings with the preset's values where none was given."""
        preset = PRESETS[self.preset]
        unset = {"decoder": self._usual_decoder(), **preset}
        missing = {key: value for key, value in unset.items() if getattr(self, key) is None}
        if self.exact:
            missing |= {"candidates": None, "precision": "fp32"}
        return self.model_copy(update=missing)


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


class ScoreConfig(Settings):
    """Settings of `simplexity score`."""

    model: Path = setting(..., "directory of a model or a family", section="Files", short="-m")
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
