"""Settings of `simplexity explain` and `simplexity plot`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from simplexity.config.kinds import Count, Device, Natural, Positive
from simplexity.config.translate import TranslateConfig
from simplexity.objectives import parse_objective
from simplexity.settings import Settings, setting


class WatchedConfig(Settings):
    """How one sentence is translated while it is watched."""

    sentence: str = setting(..., "the sentence, in quotes", section="What", positional=True)
    model: Path | None = setting(
        None,
        "directory of a family; unset: German to English, as shipped",
        section="Files",
        short="-m",
    )

    objective: str = setting(
        "joint",
        "forward, bidirectional, bilingual, joint, or weights such as l2r=0.5,r2l=0.5",
        section="Search",
    )
    decoder: Literal["eg", "sgd", "projected"] = setting("eg", "how to descend")
    init: Literal["uniform", "greedy", "beam"] = setting("beam", "string to start from")
    beam_size: Count = setting(5, "hypotheses kept at a time")
    preset: Literal["default", "paper"] = setting("default", "values of what is unset below")
    step: Positive | None = setting(None, "step size [default: 1, paper: 50]")
    iterations: Annotated[int, Field(ge=0, le=1000)] | None = setting(
        None, "iterations of the descent [default: 8, paper: 100]"
    )
    guard: bool | None = setting(
        None, "return the best string seen, never worse than the start [default: yes, paper: no]"
    )

    device: Device = setting("auto", "where to compute", section="Machine")
    threads: Count | None = setting(None, "CPU threads; unset: OMP_NUM_THREADS, or 1")
    seed: Natural = setting(1, "seed of all that is random")

    @model_validator(mode="after")
    def _check(self) -> Self:
        parse_objective(self.objective)
        return self

    def translation(self) -> TranslateConfig:
        """The same as `simplexity translate` would do it, in single precision throughout."""
        shared = set(TranslateConfig.model_fields) & set(type(self).model_fields)
        given = {key: getattr(self, key) for key in shared - {"output", "overwrite"}}
        return TranslateConfig(**given, precision="fp32")


class ExplainConfig(WatchedConfig):
    """Settings of `simplexity explain`."""

    color: Literal["auto", "always", "never"] = setting(
        "auto", "colours; auto: on a terminal, unless NO_COLOR is set", section="Output"
    )


class PlotConfig(WatchedConfig):
    """Settings of `simplexity plot`."""

    output: Path | None = setting(
        None, "SVG file of the picture; unset: stdout", section="Output", short="-o"
    )
    overwrite: bool = setting(False, "replace a file that exists")
    title: str | None = setting(None, "heading of the picture; unset: the sentence")

    @model_validator(mode="after")
    def _check_output(self) -> Self:
        if self.output is not None and self.output.suffix.lower() in (".png", ".pdf", ".jpg"):
            raise ValueError(
                f"--output {self.output}: the picture is SVG, which browsers show and converters "
                "read; name a file that ends in .svg"
            )
        return self
