"""A trained Transformer as a plain Marian directory, which transformers and CTranslate2 read.

Marian knows one table of ids for both sides, whose last row, that of the padding, also starts the
decoder, and reads as zero. So pieces of both sides are numbered together, those of the source are
forbidden on the target side, and the beginning that was trained is subtracted from all embeddings
of the decoder. With the scale s of the embeddings E, positions p, and b the row of the beginning:

    s E_w + p = s (E_w - E_b) + p + s E_b

The constant s E_b goes into the biases of the first layer, which alone reads the sum; and a head
that is tied to the table adds -h E_b to the logit of every word alike, which no softmax sees. So
the exported model is the same function, up to rounding.
"""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from simplexity.errors import SimplexityError
from simplexity.models.directories import appearing, check_parent
from simplexity.models.family import CARD, Card, MemberName, load_network, read_card
from simplexity.text.plain_pieces import with_rules
from simplexity.text.vocabulary import (
    BOS,
    EOS,
    PAD,
    SPECIALS,
    UNK,
    SubwordVocabulary,
    load_vocabulary,
)

END, UNKNOWN, UNUSED = 0, 1, 2
"""The first ids of an exported model. The unused one keeps our row of padding, so that all
probabilities stay what they are."""

FORBIDDEN = -1e4
"""The bias of a piece that the target side does not know; half precision can hold it."""

LONGEST = 512
"""The most words that `generate` makes unless told otherwise."""


@dataclass(frozen=True)
class Numbering:
    """Where the rows of both sides go in the one table; `size` counts the padding, its last."""

    pieces: tuple[str, ...]
    source: tuple[int, ...]
    target: tuple[int, ...]

    @property
    def size(self) -> int:
        return len(self.pieces)


def export_marian(directory: Path, output: Path, member: MemberName = "l2r") -> int:
    """Write a model, or this member of a family, as a plain directory; how many pieces it has."""
    directory = directory if (directory / CARD).exists() else directory / member
    card = read_card(directory)
    network, source, target = _exportable(directory, card)
    if output.exists():
        raise SimplexityError(f"{output} exists; choose another name")
    check_parent(output)
    order = numbering(source, target)
    with appearing(output) as part:
        plain_marian(network, order).save_pretrained(part)
        _save_tokenizer(part, order, source, target, card)
        # safetensors lets nobody else read them.
        for weights in part.glob("*.safetensors"):
            weights.chmod((part / "vocab.json").stat().st_mode)
    return order.size


def _exportable(directory: Path, card: Card) -> tuple[Any, SubwordVocabulary, SubwordVocabulary]:
    """The network and its vocabularies, if Marian's format has room for them."""
    network = load_network(directory)
    if network.config.model_type != "marian":
        raise SimplexityError(
            f"{directory} holds a {network.config.model_type} network, which no other program "
            "reads; export a model that was trained with --architecture transformer."
        )
    if card.member == "r2l":
        raise SimplexityError(
            f"{directory} writes from right to left, which no other program would know; export "
            "the l2r or the reverse model."
        )
    source, target = load_vocabulary(directory, "source"), load_vocabulary(directory, "target")
    if not (isinstance(source, SubwordVocabulary) and isinstance(target, SubwordVocabulary)):
        raise SimplexityError(
            f"{directory} has a vocabulary of words, which Marian's tokenizer cannot cut; export a "
            "model that was trained with --vocabulary bpe or unigram."
        )
    return network, source, target


def numbering(source: SubwordVocabulary, target: SubwordVocabulary) -> Numbering:
    """One number for every piece of either side: the target's first, as it is read more often."""
    sides = [vocabulary.pieces(range(len(vocabulary))) for vocabulary in (source, target)]
    words = [piece for side in reversed(sides) for piece in side[len(SPECIALS) :]]
    first = [SPECIALS[EOS], SPECIALS[UNK], SPECIALS[BOS]]
    pieces = (*dict.fromkeys([*first, *words]), SPECIALS[PAD])
    place = {piece: number for number, piece in enumerate(pieces)}
    special = {PAD: UNUSED, BOS: len(pieces) - 1, EOS: END, UNK: UNKNOWN}
    rows = [tuple(special.get(n, place[piece]) for n, piece in enumerate(side)) for side in sides]
    return Numbering(pieces, *rows)


@torch.no_grad()
def plain_marian(network: Any, order: Numbering) -> Any:
    """The same function with its words numbered in this order, and a beginning that is zero."""
    from transformers import GenerationConfig, MarianConfig, MarianMTModel  # takes seconds

    pad = order.size - 1
    special = {"pad_token_id": pad, "eos_token_id": END, "decoder_start_token_id": pad}
    sizes = {"vocab_size": order.size, "decoder_vocab_size": order.size, "bos_token_id": None}
    plain = MarianMTModel(MarianConfig(**{**network.config.to_dict(), **sizes, **special}))
    weights = network.state_dict()
    begin = weights["model.decoder.embed_tokens.weight"][BOS].clone()
    for name, tensor in plain.state_dict().items():
        tensor.copy_(_renumbered(name, weights[name], order, begin))
    scale = math.sqrt(network.config.d_model) if network.config.scale_embedding else 1.0
    _add_to_inputs(plain.model.decoder.layers[0].self_attn, scale * begin)
    plain.generation_config = GenerationConfig(
        **special,
        bad_words_ids=[[UNKNOWN], [UNUSED], [pad]],
        max_length=min(LONGEST, network.config.max_position_embeddings),
        num_beams=5,
    )
    return plain


def _renumbered(name: str, weights: Tensor, order: Numbering, begin: Tensor) -> Tensor:
    """A tensor of the network with its rows of words where the new order has them."""
    tied = name == "lm_head.weight"
    if name == "final_logits_bias":
        bias = weights.new_full((1, order.size), FORBIDDEN)
        bias[:, list(order.target)] = weights
        return bias
    if name == "model.encoder.embed_tokens.weight":
        rows, place = weights, order.source
    elif name == "model.decoder.embed_tokens.weight" or tied:
        rows, place = weights - begin, order.target
    else:
        return weights
    # A tokenizer of one table knows what a side does not; there it reads as unknown.
    table = rows[UNK].expand(order.size, -1).clone()
    table[list(place)] = rows
    return table


def _add_to_inputs(attention: Any, constant: Tensor) -> None:
    """Let a layer compute what it would if its inputs were larger by this constant."""
    for part in (attention.q_proj, attention.k_proj, attention.v_proj):
        part.bias += part.weight @ constant
    attention.out_proj.bias += constant  # the inputs also go past the attention, and are added


def _save_tokenizer(
    output: Path,
    order: Numbering,
    source: SubwordVocabulary,
    target: SubwordVocabulary,
    card: Card,
) -> None:
    """The files that MarianTokenizer reads."""
    (output / "source.spm").write_bytes(with_rules(source))
    (output / "target.spm").write_bytes(with_rules(target))
    _write(output / "vocab.json", {piece: number for number, piece in enumerate(order.pieces)})
    settings = {
        "tokenizer_class": "MarianTokenizer",
        "separate_vocabs": False,
        "source_lang": card.source_language,
        "target_lang": card.target_language,
        "model_max_length": LONGEST,
    }
    _write(output / "tokenizer_config.json", settings)


def _write(file: Path, content: dict[str, Any]) -> None:
    file.write_text(json.dumps(content, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")
