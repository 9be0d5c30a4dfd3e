"""Tiny models with random weights, of which every probability can be worked out by hand."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest
import tiny_pretrained
import torch

from simplexity.models.adapters import AttentionalSeq2Seq
from simplexity.models.attention import Attentional, AttentionalConfig
from simplexity.models.family import MEMBERS, Family, Member, MemberName
from simplexity.models.seq2seq import RightToLeft, Seq2Seq
from simplexity.text.toy import write_toy
from simplexity.text.vocabulary import SPECIALS, WordVocabulary

SOURCE = WordVocabulary(("der", "hund", "ein", "rot", "tag"), lowercase=False)
TARGET = WordVocabulary(("a", "day", "dog", "red"), lowercase=False)


@cache
def tiny_model(seed: int, source: int, target: int, spread: float = 0.6) -> AttentionalSeq2Seq:
    """The paper's network in double precision; `source` and `target` count the special ids."""
    state = torch.random.get_rng_state()
    torch.manual_seed(seed)
    config = AttentionalConfig(
        source_vocab_size=source,
        vocab_size=target,
        embedding_size=5,
        hidden_size=6,
        alignment_size=4,
    )
    network = Attentional(config).double().eval().requires_grad_(False)
    for parameter in network.parameters():
        torch.nn.init.normal_(parameter, std=spread)
    network.output.bias[config.eos_token_id] += 1.0  # or sentences would seldom end
    torch.random.set_rng_state(state)
    return AttentionalSeq2Seq(network)


@cache
def tiny_member(name: MemberName, seed: int, spread: float) -> Member:
    """A member that translates between the two small vocabularies."""
    sides = (TARGET, SOURCE) if name == "reverse" else (SOURCE, TARGET)
    number = 3 * seed + MEMBERS.index(name)
    model: Seq2Seq = tiny_model(number, len(sides[0]), len(sides[1]), spread)
    if name == "r2l":
        model = RightToLeft(model)
    return Member(name, model, *sides, fingerprint="")


@pytest.fixture(scope="session")
def tiny_family() -> Callable[..., Family]:
    """Families of random models: `tiny_family(seed)`, or `tiny_family(seed, ("l2r", "r2l"))`.

    Five source words and four target words follow the special ids; weights have this `spread`.
    """

    def make(seed: int = 0, names: tuple[MemberName, ...] = MEMBERS, spread: float = 0.6) -> Family:
        return Family(Path("tiny"), {name: tiny_member(name, seed, spread) for name in names})

    return make


@pytest.fixture(scope="session")
def pretrained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Tiny models of transformers in directories of their own, all of the toy language.

    fwd and rev translate xa to xb and back, with different vocabularies; gpt2 and xb.arpa judge xb;
    nllb knows many languages.
    """
    place = tmp_path_factory.mktemp("pretrained")
    corpus = write_toy(place / "toy", train=600, dev=20, test=20)
    xa, xb = (
        (corpus / f"train.{side}").read_text(encoding="utf-8").splitlines() for side in ("xa", "xb")
    )
    tiny_pretrained.marian(place / "fwd", xa, xb, size=130, joint=False, seed=0)
    tiny_pretrained.marian(place / "rev", xb, xa, size=50, joint=True, seed=1)
    tiny_pretrained.gpt2(place / "gpt2", xb, size=330, seed=2)
    tiny_pretrained.many_languages(place / "nllb", xa + xb, size=120, seed=3)
    tiny_pretrained.bigrams(place / "xb.arpa", xb)
    return place


assert len(SPECIALS) == 4  # the tests count on it: words begin at id 4
