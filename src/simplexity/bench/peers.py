"""Other people's beam search beside ours: each is taken if it is there and can read the model."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, TypeAlias

from simplexity.bench import marian
from simplexity.models.family import Member
from simplexity.models.huggingface import HuggingFaceSeq2Seq
from simplexity.relax.tokens import pad_batch, unpad
from simplexity.search.beam import BeamSettings, beam_search
from simplexity.text.batches import by_length
from simplexity.text.vocabulary import BOS, EOS, PAD, SPECIALS, UNK

Strings: TypeAlias = list[list[int]]


@dataclass(frozen=True)
class Task:
    """What every peer is given: a model, sentences cut already, and how to search."""

    member: Member
    sources: Strings
    settings: BeamSettings
    batch_size: int
    threads: int
    marian: Path | None = None
    """The folder of a Marian model that `benchmarks/peers.py` has trained."""

    def batches(self) -> list[Strings]:
        """All sentences in batches of about equal length."""
        return in_batches(self.sources, self.batch_size)


Translate: TypeAlias = Callable[[], Any]


class MissingPeer(Exception):
    """Why a peer takes no part, in one sentence."""


def peers(
    task: Task, names: Sequence[str], stack: ExitStack, say: Callable[[str], None]
) -> Iterator[tuple[str, Translate]]:
    """The named peers that can take part, ready to run; the stack holds their files."""
    for name in names:
        try:
            yield name, PEERS[name](task, stack)
        except MissingPeer as reason:
            say(f"{name} is left out: {reason}")


def in_batches(sentences: Strings, size: int) -> list[Strings]:
    """All sentences in batches of about equal length."""
    parts = by_length([len(ids) for ids in sentences], size)
    return [[sentences[place] for place in part] for part in parts]


def ours(member: Member, settings: BeamSettings, batch: Strings) -> Strings:
    """The best strings of our search."""
    source = pad_batch(batch, PAD, member.model.device)
    return unpad(beam_search(member.model, source, settings).best())


def theirs(network: Any, settings: BeamSettings, batch: Strings) -> Strings:
    """The best strings of `generate`, without beginning, end and what follows.

    Its limit of length is that of the longest sentence of the batch: it has one for all.
    """
    source = pad_batch([[*ids, EOS] for ids in batch], PAD, network.device)
    found = network.generate(
        input_ids=source.ids,
        attention_mask=source.mask.long(),
        num_beams=settings.size,
        length_penalty=settings.length_penalty,
        early_stopping=False,
        do_sample=False,
        max_new_tokens=most_words(settings, batch) + 1,
        suppress_tokens=[PAD, BOS, UNK],
    )
    rows = [[*row, EOS] for row in found[:, 1:].tolist()]
    return [row[: row.index(EOS)] for row in rows]


def most_words(settings: BeamSettings, batch: Strings) -> int:
    """What the longest source of a batch allows."""
    return math.ceil(max(map(len, batch)) * settings.max_ratio) + settings.max_extra


def generate(task: Task, stack: ExitStack) -> Translate:
    """`generate` of transformers, on the very network that we search with."""
    network = _marian_network(task)
    batches = task.batches()
    return lambda: [theirs(network, task.settings, batch) for batch in batches]


def ctranslate2(task: Task, stack: ExitStack) -> Translate:
    """CTranslate2 in single precision, on the same weights."""
    network = _marian_network(task)
    try:
        import ctranslate2 as library
        from ctranslate2.converters.transformers import BartLoader
    except ImportError as error:
        raise MissingPeer("ctranslate2 is not installed.") from error
    network.config.normalize_before = network.config.normalize_embedding = False
    spec = BartLoader().get_model_spec(network)
    vocabularies = task.member.source, task.member.target
    source, target = (_distinct(v.pieces(range(len(v)))) for v in vocabularies)
    spec.register_source_vocabulary(source)
    spec.register_target_vocabulary(target)
    for name, place in (("bos", BOS), ("eos", EOS), ("unk", UNK), ("decoder_start", BOS)):
        setattr(spec.config, f"{name}_token", SPECIALS[place])
    folder = stack.enter_context(TemporaryDirectory())
    spec.validate()
    spec.save(folder)
    device = task.member.model.device.type
    translator = library.Translator(
        folder, device, inter_threads=1, intra_threads=task.threads, compute_type="float32"
    )
    batches = [
        ([[source[n] for n in (*ids, EOS)] for ids in batch], most_words(task.settings, batch))
        for batch in task.batches()
    ]

    def translate() -> Any:
        return [
            translator.translate_batch(
                batch,
                beam_size=task.settings.size,
                length_penalty=task.settings.length_penalty,
                max_decoding_length=longest + 1,
                max_input_length=0,
            )
            for batch, longest in batches
        ]

    return translate


def pymarian(task: Task, stack: ExitStack) -> Translate:
    """Marian's beam search with a model of its own, on our tokens."""
    if task.marian is None:
        raise MissingPeer("it needs a model of its own; name the folder of one with --marian.")
    try:
        found = marian.translator(task.marian, task.threads, task.settings.size, task.batch_size)
    except ImportError as error:
        raise MissingPeer("pymarian is not installed.") from error
    lines = [marian.segment(task.member.source, ids) for ids in task.sources]
    return partial(found.translate, lines)


PEERS: dict[str, Callable[[Task, ExitStack], Translate]] = {
    "generate": generate,
    "ctranslate2": ctranslate2,
    "pymarian": pymarian,
}


def _marian_network(task: Task) -> Any:
    """The network of transformers inside a member."""
    model = task.member.model
    if not isinstance(model, HuggingFaceSeq2Seq) or model.model.config.model_type != "marian":
        raise MissingPeer("it reads models of Marian's architecture, and this is none.")
    return model.model


def _distinct(pieces: list[str]) -> list[str]:
    """Pieces as names of ids: each once."""
    if len(set(pieces)) < len(pieces):
        raise MissingPeer("two tokens of the vocabulary are written alike.")
    return pieces
