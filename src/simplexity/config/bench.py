"""Settings of `simplexity bench`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from simplexity.config.kinds import CommaList, Count, Device, Natural
from simplexity.settings import Settings, setting

Axis = Literal["length", "batch", "vocabulary", "terms", "iterations"]
Peer = Literal["generate", "ctranslate2", "pymarian"]


class BenchConfig(Settings):
    """Settings of `simplexity bench`."""

    model: Path | None = setting(
        None,
        "directory of a model or a family; unset: German to English, as shipped",
        section="Models and files",
        short="-m",
    )
    input: Path | None = setting(
        None, "sentences to translate, one a line; unset: stdin", short="-i"
    )
    output: Path | None = setting(None, "where figures go; unset: stdout", short="-o")
    overwrite: bool = setting(False, "replace an output file that exists")
    output_type: Literal["text", "json"] = setting("text", "a table, or all figures as JSON")

    systems: Annotated[tuple[str, ...], CommaList, Field(min_length=1)] = setting(
        ("beam", "eg:bidirectional", "eg:joint"),
        "decoders, comma-separated: DECODER[:OBJECTIVE][:KEY=VALUE], settings as of 'simplexity "
        "translate'; rerank has 100 strings unless it says otherwise",
        section="What is measured",
    )
    peers: Annotated[tuple[Peer, ...], CommaList] = setting(
        ("generate", "ctranslate2", "pymarian"),
        "beam searches of others, taken if they are installed and can read the model",
    )
    marian: Path | None = setting(None, "folder of a Marian model, for pymarian")
    limit: Count = setting(200, "so many sentences at most")
    rounds: Count = setting(3, "turns of each system; medians are shown")
    batch_size: Count = setting(64, "sentences translated at a time")

    random: Literal["attentional", "transformer"] | None = setting(
        None,
        "models of this kind with random weights instead of --model, and random sentences",
        section="Random weights",
    )
    vocabulary_size: Annotated[int, Field(ge=10)] = setting(16000, "words of each side")
    hidden: Count = setting(512, "size of the hidden states, and of the embeddings")
    layers: Count | None = setting(None, "of encoder and decoder each; unset: as train has them")
    length: Count = setting(20, "words of every sentence, and of every translation")
    curves: Annotated[tuple[Axis, ...], CommaList] = setting(
        (),
        "instead of the table, time and memory of every system as one thing grows: length, batch, "
        "vocabulary, terms, iterations",
    )

    device: Device = setting("auto", "where to compute", section="Machine")
    threads: Count | None = setting(None, "CPU threads; unset: OMP_NUM_THREADS, or 1")
    seed: Natural = setting(1, "seed of all that is random")
    quiet: bool = setting(False, "no progress on stderr")

    @model_validator(mode="after")
    def _check(self) -> Self:
        for name in ("systems", "peers", "curves"):
            given = getattr(self, name)
            if len(set(given)) < len(given):
                raise ValueError(f"{name} names one thing twice: {','.join(given)}")
        if self.random is not None and self.model is not None:
            raise ValueError("give --model or --random, not both")
        if self.curves and self.random is None:
            raise ValueError("--curves needs --random attentional or --random transformer")
        if self.random is not None and self.hidden >= 64 and self.hidden % 64:
            raise ValueError(f"hidden ({self.hidden}) is not divisible by 64, the size of a head")
        return self
