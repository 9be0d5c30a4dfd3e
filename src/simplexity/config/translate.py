"""Settings of `simplexity translate`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import Field, model_validator

from simplexity.config.kinds import Budget, Count, Device, Natural, Positive, Share
from simplexity.objectives import NAMED, parse_objective, usual_objective
from simplexity.settings import Settings, setting

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


RELAXED = ("eg", "sgd", "projected")

# What the search with edits sets otherwise: it compares strings of different lengths, and its
# descents only propose.
EDITS: dict[str, Any] = {"normalise": "length", "iterations": 0, "beam_size": 30}
BEAM = 5


class TranslateConfig(Settings):
    """Settings of `simplexity translate`."""

    model: Path | None = setting(
        None,
        "directory of a model or a family; unset: German to English, as shipped",
        section="Models and files",
        short="-m",
    )
    forward: str | None = setting(
        None, "translation model of transformers, name or directory, instead of --model"
    )
    reverse: str | None = setting(None, "the same for the other direction (with --forward)")
    lm: str | None = setting(
        None, "language model: name or directory of transformers, or .arpa file of n-grams"
    )
    source_language: str | None = setting(
        None, "code of the source, for models of many languages (with --forward)"
    )
    target_language: str | None = setting(None, "code of the target, likewise")
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
        "forward, bidirectional, bilingual, joint, or weights such as l2r=0.5,r2l=0.5; with "
        "--reverse or --lm these take part unless said",
        section="Search",
    )
    decoder: Literal["greedy", "beam", "rerank", "eg", "sgd", "projected", "edits"] | None = (
        setting(None, "how to search; unset: beam for the objective forward, else eg")
    )
    member: Literal["l2r", "r2l"] = setting(
        "l2r", "model of the family that greedy, beam and rerank search with"
    )
    beam_size: Count | None = setting(None, "hypotheses kept at a time [default: 5, edits: 30]")
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
    lists: Literal["beam", "sample"] = setting(
        "beam", "rank the strings of the beam, or beam_size strings drawn from the model"
    )
    rerank_normalise: Literal["sum", "length"] = setting(
        "length", "compare costs as they are, or each divided by its words"
    )

    init: Literal["uniform", "greedy", "beam", "rerank", "file"] = setting(
        "beam",
        "strings to start from",
        section="Relaxation (decoders eg, sgd, projected, edits)",
    )
    init_file: Path | None = setting(None, "translations to start from, line by line (init file)")
    starts: Count | None = setting(
        None,
        "strings to start from: of the beam, different lengths first; the best of reranking "
        "[default: 1, edits: all]",
    )
    preset: Literal["default", "paper"] = setting("default", "values of what is unset below")
    lift: Literal["predicted", "forward", "smoothed"] | None = setting(
        None,
        "start at the models' mean predictions, at those of l2r alone, or at the string "
        "[default: predicted, paper: forward]",
    )
    normalise: Literal["sum", "length"] | None = setting(
        None,
        "costs as they are, or each divided by its words [default: sum, paper and edits: length]",
    )
    step: Positive | None = setting(None, "step size [default: 1, paper: 50]")
    update: Literal["plain", "momentum", "nesterov", "optimistic", "adaptive"] | None = setting(
        None, "how steps are made of gradients [default: momentum]"
    )
    momentum: Share | None = setting(None, "share of the last step that is kept [default: 0.9]")
    clip: Positive | None = setting(
        None, "largest norm of a sentence's gradient [default: none, paper: 5]"
    )
    anneal: Positive | None = setting(None, "step size falls as 1 / (1 + anneal * iteration)")
    line_search: bool | None = setting(None, "let each sentence find its own step size")
    entropy: Positive | None = setting(None, "weight gamma of the entropy in the objective")
    iterations: Annotated[int, Field(ge=0, le=1000)] | None = setting(
        None, "most iterations of a descent [default: 8, paper: 100, edits: 0]"
    )
    unchanged: Count | None = setting(None, "stop after so many iterations without a new string")
    candidates: Count | None = setting(
        None, "words that a sentence may be made of [default: 256, paper: all]"
    )
    precision: Literal["bf16", "fp32"] | None = setting(
        None, "arithmetic of the descent [default: bf16, paper: fp32]"
    )
    exact: bool = setting(False, "descend over the whole vocabulary in fp32")
    guard: bool | None = setting(
        None, "return the best string seen, never worse than the start [default: yes, paper: no]"
    )
    length_reward: float | None = setting(None, "what each word takes off the cost (normalise sum)")
    trace: Path | None = setting(None, "write every iteration to this file as JSON lines")

    substitutions: Natural = setting(
        6, "words exchanged in a round, one at a time", section="Edits (decoder edits)"
    )
    insertions: Natural = setting(3, "words inserted in a round, one at a time")
    deletions: Natural = setting(2, "words left out in a round, one at a time")
    checked: Count = setting(
        2, "strings of a round that are scored exactly, of those that roughly are best"
    )
    lengths: Literal["relaxed", "predicted"] | None = setting(
        None,
        "find edits by the gradient over slots that may be empty, or those that change the length "
        "by predictions [default: relaxed, for models of transformers: predicted]",
    )
    patience: Count = setting(3, "stop after so many rounds without a better string")
    rounds: Natural = setting(20, "most rounds")
    budget: Budget | None = setting(
        None, "most exact scores (100) or milliseconds (50ms) spent on a sentence"
    )

    device: Device = setting("auto", "where to compute", section="Machine")
    threads: Count | None = setting(None, "CPU threads; unset: OMP_NUM_THREADS, or 1")
    seed: Natural = setting(1, "seed of all that is random")
    quiet: bool = setting(False, "no progress on stderr")

    @model_validator(mode="before")
    @classmethod
    def _use_what_is_named(cls, given: Any) -> Any:
        """Models that are named without an objective are there to be used."""
        if not isinstance(given, dict) or given.get("objective") is not None:
            return given
        reverse, lm = (given.get(name) is not None for name in ("reverse", "lm"))
        return {**given, "objective": usual_objective(reverse, lm)}

    @model_validator(mode="after")
    def _check(self) -> Self:
        self._check_models()
        if self.n_best > 1 and self.output_type == "text":
            raise ValueError(f"n_best {self.n_best} needs --output-type nbest or json")
        if self._usual_decoder() in ("beam", "rerank") and self.n_best > self._beam():
            raise ValueError(f"n_best ({self.n_best}) is more than beam_size ({self._beam()})")
        relaxed = self._usual_decoder() in RELAXED
        self._check_starts(relaxed)
        if self.trace is not None and not relaxed:
            raise ValueError("--trace goes with the decoders eg, sgd and projected")
        if (self.init == "file") != (self.init_file is not None):
            raise ValueError("--init file and --init-file FILE go together")
        if self._is_joint() and self.decoder in ("greedy", "beam"):
            raise ValueError(
                f"{self.decoder} search writes with one model and cannot follow the objective "
                f"{self.objective}; use --decoder eg or rerank"
            )
        for name, given in (("--filtered", self.filtered), ("--lists", self.lists != "beam")):
            if given and "rerank" not in (self.decoder, self.init):
                raise ValueError(f"{name} goes with --decoder rerank or --init rerank")
        return self

    def _check_models(self) -> None:
        if self.model is not None and self.forward is not None:
            raise ValueError("give --model or --forward, not both")
        for name in ("reverse", "source_language", "target_language"):
            if self.forward is None and getattr(self, name) is not None:
                raise ValueError(f"--{name.replace('_', '-')} goes with --forward")

    def _check_starts(self, relaxed: bool) -> None:
        starts = self.starts or 1
        if starts > self._beam():
            raise ValueError(f"starts ({starts}) is more than beam_size ({self._beam()})")
        begins = relaxed or self.decoder == "edits"
        if starts > 1 and not (begins and self.init in ("beam", "rerank")):
            raise ValueError(
                "--starts goes with the decoders eg, sgd, projected, edits from beam or rerank"
            )
        if relaxed and self.n_best > starts:
            raise ValueError(f"n_best ({self.n_best}) is more than starts ({starts})")

    def _is_joint(self) -> bool:
        return parse_objective(self.objective) != NAMED["forward"]

    def _beam(self) -> int:
        usual: int = EDITS["beam_size"] if self.decoder == "edits" else BEAM
        return self.beam_size or usual

    def _usual_decoder(self) -> str:
        return self.decoder or ("eg" if self._is_joint() else "beam")

    def resolved(self) -> TranslateConfig:
        """The same settings with the preset's values where none was given."""
        preset = PRESETS[self.preset]
        beam = {"beam_size": self._beam()}
        unset = {"decoder": self._usual_decoder(), "starts": 1, **beam, **preset}
        if self.decoder == "edits":
            unset |= EDITS | {"starts": self._beam()}
        missing = {key: value for key, value in unset.items() if getattr(self, key) is None}
        if self.exact:
            missing |= {"candidates": None, "precision": "fp32"}
        return self.model_copy(update=missing)
