"""Families of models on disk: left-to-right, right-to-left and reverse, with shared vocabularies.

A member is a Hugging Face model directory (`config.json`, `model.safetensors`) that also holds its
vocabularies and, in `simplexity.json`, its direction and the format's version. A family is a
directory of members.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, get_args

import torch
from transformers import AutoConfig

from simplexity.errors import SimplexityError
from simplexity.models import attention
from simplexity.models.adapters import AttentionalSeq2Seq
from simplexity.models.huggingface import adapt
from simplexity.models.language_model import Fluency
from simplexity.models.packed import read_network
from simplexity.models.seq2seq import RightToLeft, Seq2Seq
from simplexity.text.vocabulary import BOS, PAD, UNK, Vocabulary, first_difference, load_vocabulary

MemberName = Literal["l2r", "r2l", "reverse"]
MEMBERS: tuple[MemberName, ...] = get_args(MemberName)
PLAIN, IN_8_BITS = 1, 2
FORMAT = IN_8_BITS
"""The newest format that this version reads."""
CARD = "simplexity.json"


@dataclass(frozen=True)
class Card:
    """What `simplexity.json` says of a model: its part in the family, languages, format."""

    member: MemberName
    source_language: str
    target_language: str
    format: int = PLAIN

    def save(self, directory: Path) -> None:
        """Write the card into a model directory."""
        (directory / CARD).write_text(json.dumps(vars(self), indent=2) + "\n", encoding="utf-8")


@dataclass(frozen=True)
class Member:
    """One model with its vocabularies; `source` and `target` are this model's own sides."""

    name: MemberName
    model: Seq2Seq
    source: Vocabulary
    target: Vocabulary
    fingerprint: str
    """Short hash of the weights, for signatures."""


@dataclass(frozen=True)
class Family:
    """The models of one language pair that are found in a directory.

    lm: a language model of the target language. With `through_text` members may have vocabularies
    of their own, and what is scored is the text of strings.
    """

    directory: Path
    members: dict[MemberName, Member]
    lm: Fluency | None = None
    through_text: bool = False

    def __iter__(self) -> Iterator[Member]:
        return iter(self.members.values())

    def fluency(self) -> Fluency:
        """The language model."""
        if self.lm is None:
            raise SimplexityError(
                "The objective has a part for lm, but there is no language model; give one with "
                "--lm."
            )
        return self.lm

    def __getitem__(self, name: MemberName) -> Member:
        if name not in self.members and self.through_text:
            raise SimplexityError(
                f"There is no {name} model beside {self.directory}; give one with --{name}, or "
                "choose an objective without it."
            )
        if name not in self.members:
            there = ", ".join(self.members)
            raise SimplexityError(
                f"{self.directory} has no {name} model (it has {there}); train one with "
                f"`simplexity train --directions {name}`, or choose an objective without it."
            )
        return self.members[name]


def load_family(
    directory: Path,
    names: tuple[MemberName, ...] = MEMBERS,
    device: torch.device | str = "cpu",
) -> Family:
    """Load those of the named members that the directory holds, and check that they agree."""
    if (directory / CARD).exists():  # one model, named directly
        member = load_member(directory, device)
        return Family(directory, {member.name: member})
    there = [name for name in names if (directory / name / CARD).exists()]
    if not there:
        raise SimplexityError(
            f"{directory} holds no model: expected {', '.join(f'{n}/{CARD}' for n in names)}; "
            "name a directory that `simplexity train` has written."
        )
    family = Family(directory, {name: load_member(directory / name, device) for name in there})
    check_vocabularies(family)
    return family


def load_member(directory: Path, device: torch.device | str = "cpu") -> Member:
    """Load one model directory, ready to score: parameters frozen, dropout off."""
    card, network = read_card(directory), load_network(directory)
    network.to(device).eval().requires_grad_(False)
    model: Seq2Seq
    if isinstance(network, attention.Attentional):
        model = AttentionalSeq2Seq(network)
    else:
        model = adapt(network, banned=(PAD, BOS, UNK))
    if card.member == "r2l":
        model = RightToLeft(model)
    source, target = load_vocabulary(directory, "source"), load_vocabulary(directory, "target")
    return Member(card.member, model, source, target, weights_hash(directory))


def load_network(directory: Path) -> Any:
    """The network of a model directory as transformers builds it."""
    attention.register()
    try:
        config = AutoConfig.from_pretrained(directory)
        return read_network(directory, config)
    except Exception as problem:  # transformers and safetensors have many of their own
        reason = str(problem).strip().partition("\n")[0] or type(problem).__name__
        raise SimplexityError(f"The model in {directory} cannot be read: {reason}") from problem


def read_card(directory: Path) -> Card:
    """The card of a model directory; a newer format is refused."""
    try:
        found = json.loads((directory / CARD).read_text(encoding="utf-8"))
        if found["format"] > FORMAT:  # first, as a newer card may hold more
            raise SimplexityError(
                f"{directory} was written by a newer simplexity (format {found['format']}, this "
                f"version reads up to {FORMAT}); upgrade simplexity."
            )
        return Card(**found)
    except (OSError, ValueError, TypeError, KeyError) as problem:
        raise SimplexityError(
            f"{directory} holds no model that simplexity can read ({CARD} is missing or broken)."
        ) from problem


def weights_hash(directory: Path) -> str:
    """Eight hexadecimal digits that change with the weights."""
    digest = hashlib.sha256()
    for file in sorted(directory.glob("*.safetensors")):
        with file.open("rb") as content:
            while block := content.read(1 << 20):
                digest.update(block)
    return digest.hexdigest()[:8]


def check_vocabularies(family: Family) -> None:
    """All members must count the words of each side alike, or ids would mean different words."""
    sides = {
        name: (m.target, m.source) if name == "reverse" else (m.source, m.target)
        for name, m in family.members.items()
    }
    first, *others = sides
    for other in others:
        for side in (0, 1):
            place = first_difference(sides[first][side], sides[other][side])
            if place is not None:
                raise SimplexityError(
                    f"{first} and {other} in {family.directory} share no "
                    f"{('source', 'target')[side]} vocabulary (first difference at id {place}); "
                    "train them as one family with --directions."
                )
