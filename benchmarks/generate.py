"""Our beam search beside `generate` of transformers: one Transformer, the same batches of ids."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import torch

from simplexity.bench.peers import Strings, in_batches, ours, theirs
from simplexity.bench.turns import Timing, by_turns, timed
from simplexity.models.family import Member, load_member
from simplexity.relax.tokens import pad_batch
from simplexity.search.beam import BeamSettings
from simplexity.text.vocabulary import PAD

TIE = 1e-5
"""Scores in float32 that differ by less are equal."""


def measure(
    directory: Path, lines: list[str], beam: int, batch_size: int, rounds: int
) -> dict[str, Any]:
    """Speeds of both by turns; whether they find the same strings, and if not, who is ahead."""
    from transformers import MarianMTModel  # takes seconds to import

    member = load_member(directory)
    if member.name != "l2r":
        raise SystemExit(f"{directory} is {member.name}; name a left-to-right model")
    network = MarianMTModel.from_pretrained(directory).eval().requires_grad_(False)
    batches = in_batches([ids for ids in map(member.source.encode, lines) if ids], batch_size)
    settings = BeamSettings(size=beam)
    decoders: dict[str, Callable[[Strings], Strings]] = {
        "transformers": partial(theirs, network, settings),
        "ours": partial(ours, member, settings),
    }
    found = {name: [decode(batch) for batch in batches] for name, decode in decoders.items()}
    sentences = sum(map(len, batches))

    def turn(decode: Callable[[Strings], Strings]) -> Timing:
        return timed(sentences, lambda: [decode(batch) for batch in batches])[0]

    systems = by_turns(rounds, {name: partial(turn, decode) for name, decode in decoders.items()})
    pairs = zip(batches, found["ours"], found["transformers"], strict=True)
    return {"systems": systems, "sentences": sentences, **compare(member, list(pairs))}


def compare(member: Member, batches: list[tuple[Strings, Strings, Strings]]) -> dict[str, Any]:
    """How often both strings are equal, and whose score is better where they are not."""
    gains: list[float] = []
    equal = 0
    for source, mine, other in batches:
        equal += sum(a == b for a, b in zip(mine, other, strict=True))
        gains += (scores(member, source, mine) - scores(member, source, other)).tolist()
    return {
        "equal": equal,
        "better": sum(gain > TIE for gain in gains),
        "worse": sum(gain < -TIE for gain in gains),
        "largest_gain": max(0.0, *gains),
        "largest_loss": max(0.0, *(-gain for gain in gains)),
        "mean_gain": sum(gains) / len(gains),
    }


@torch.no_grad()
def scores(member: Member, source: Strings, target: Strings) -> torch.Tensor:
    """log P / (words + 1) of every string, the model's own in one pass."""
    memory = member.model.encode(pad_batch(source, PAD))
    strings = pad_batch(target, PAD)
    return member.model.log_probs(memory, strings).total(strings) / (strings.mask.sum(1) + 1)
