"""Families with random weights: as fast as trained ones of their sizes, and made in a moment."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Literal

import torch

from simplexity import build
from simplexity.config import TrainConfig
from simplexity.models.adapters import AttentionalSeq2Seq
from simplexity.models.family import MEMBERS, Family, Member, MemberName
from simplexity.models.huggingface import adapt
from simplexity.models.seq2seq import RightToLeft, Seq2Seq
from simplexity.runtime import quiet_transformers
from simplexity.text.vocabulary import BOS, PAD, SPECIALS, UNK, WordVocabulary

NOWHERE = Path("random")


@dataclass(frozen=True)
class Sizes:
    """What a random family is made of; `vocabulary` counts the words of each side."""

    architecture: Literal["attentional", "transformer"] = "attentional"
    vocabulary: int = 16000
    hidden: int = 512
    layers: int | None = None
    """Of the encoder and of the decoder each; None: as `simplexity train` has them."""
    members: tuple[MemberName, ...] = MEMBERS
    seed: int = 1


def random_family(sizes: Sizes, device: torch.device | str = "cpu") -> Family:
    """New models, ready to translate nothing into nothing."""
    quiet_transformers()
    words = tuple(f"w{n}" for n in range(len(SPECIALS), sizes.vocabulary))
    vocabulary = WordVocabulary(words, lowercase=False)
    config = TrainConfig(
        train_source=NOWHERE,
        train_target=NOWHERE,
        dev_source=NOWHERE,
        dev_target=NOWHERE,
        output=NOWHERE,
        architecture=sizes.architecture,
        embedding=sizes.hidden,
        hidden=sizes.hidden,
        alignment=max(sizes.hidden // 2, 1),
        heads=max(sizes.hidden // 64, 1),
        feedforward=4 * sizes.hidden,
        encoder_layers=sizes.layers,
        decoder_layers=sizes.layers,
    )
    members = {}
    for number, name in enumerate(sizes.members):
        seeded = config.model_copy(update={"seed": sizes.seed + number})
        network = build.new_network(seeded, len(vocabulary), len(vocabulary))
        network.to(device).eval().requires_grad_(False)
        model: Seq2Seq
        if sizes.architecture == "attentional":
            model = AttentionalSeq2Seq(network)
        else:
            model = adapt(network, banned=(PAD, BOS, UNK))
        if name == "r2l":
            model = RightToLeft(model)
        members[name] = Member(name, model, vocabulary, vocabulary, fingerprint="random")
    return Family(NOWHERE, members)


def random_lines(sizes: Sizes, number: int, length: int) -> list[str]:
    """Sentences of so many words, drawn evenly.

    All have one length: what a random model writes does not end by itself, so that searches are
    stopped at the length of the source, and none may then wait for a longer neighbour.
    """
    random = Random(sizes.seed)
    words = range(len(SPECIALS), sizes.vocabulary)
    return [" ".join(f"w{n}" for n in random.choices(words, k=length)) for _ in range(number)]
