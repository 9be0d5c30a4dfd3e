"""Models of transformers by name or directory, with their own tokenizers.

A forward model is enough; a reverse model and a language model may join it, each with whatever
vocabulary it has.
"""

from __future__ import annotations

import socket
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit
from urllib.request import getproxies

import torch
from huggingface_hub.constants import ENDPOINT
from transformers import (
    AutoModelForCausalLM,
    AutoModelForSeq2SeqLM,
    AutoTokenizer,
)

from simplexity.errors import SimplexityError, UsageError
from simplexity.models.arpa import ngrams
from simplexity.models.causal import adapt_causal
from simplexity.models.family import CARD, Family, Member, MemberName, load_member, weights_hash
from simplexity.models.huggingface import adapt, decoder_start, special
from simplexity.models.language_model import Fluency
from simplexity.models.tokenizer import Remembering, TokenizerVocabulary
from simplexity.text.arpa import arpa_vocabulary, read_arpa
from simplexity.text.vocabulary import Side, Vocabulary

Languages = tuple[str | None, str | None]
"""Source and target, by the codes of the tokenizer; None where it knows only one."""

ARPA = (".arpa", ".arpa.gz", ".arpa.xz", ".lm", ".lm.gz", ".lm.xz")
TEXT = "a b"
"""Any text: what a tokenizer puts around it are its boundaries."""


@dataclass(frozen=True)
class Boundaries:
    """Ids that stand around the words of a source, and before those of a target."""

    source_prefix: tuple[int, ...]
    source_suffix: tuple[int, ...]
    target_prefix: tuple[int, ...]


def is_family(name: str | Path) -> bool:
    """Whether this is a directory that `simplexity train` has written."""
    path = Path(name)
    return (path / CARD).exists() or any(path.glob(f"*/{CARD}"))


def load_pair(
    forward: str | Path,
    reverse: str | Path | None = None,
    lm: str | Path | None = None,
    languages: Languages = (None, None),
    device: torch.device | str = "cpu",
) -> Family:
    """A family of models that need not share anything but the two languages."""
    first = load_translator(forward, "l2r", languages, device)
    first = replace(first, source=Remembering(first.source))
    return family_of(first, forward, reverse, lm, languages, device)


def family_of(
    first: Member,
    name: str | Path,
    reverse: str | Path | None,
    lm: str | Path | None,
    languages: Languages,
    device: torch.device | str,
) -> Family:
    """A loaded forward model of this name with the models that are to stand beside it."""
    members: dict[MemberName, Member] = {"l2r": first}
    if reverse is not None:
        source, target = languages
        members["reverse"] = load_translator(reverse, "reverse", (target, source), device)
    return with_lm(Family(Path(name), members, through_text=True), lm, device)


def with_lm(family: Family, lm: str | Path | None, device: torch.device | str) -> Family:
    """The same family with a language model beside it, if one is named."""
    if lm is None:
        return family
    return replace(family, lm=load_fluency(lm, family["l2r"].target, device))


def load_translator(
    name: str | Path,
    member: MemberName,
    languages: Languages = (None, None),
    device: torch.device | str = "cpu",
) -> Member:
    """A translation model: one of ours by its directory, any of transformers' by its name."""
    if (Path(name) / CARD).exists():
        return replace(load_member(Path(name), device), name=member)
    model, tokenizer = fetched(AutoModelForSeq2SeqLM, name)
    return joined(model.to(device), tokenizer, member, languages, str(name))


def joined(
    model: Any, tokenizer: Any, member: MemberName, languages: Languages, name: str
) -> Member:
    """A loaded model and its tokenizer as a member of a family."""
    adapter = adapt(
        model,
        **vars(boundaries(model, tokenizer, languages, name)),
        banned=unwritable(model, tokenizer),
    )
    source, target = (
        TokenizerVocabulary(tokenizer, "source"),
        TokenizerVocabulary(tokenizer, "target"),
    )
    return Member(member, adapter, source, target, fingerprint(model, name))


def fingerprint(model: Any, name: str) -> str:
    """What tells these weights from others: their hash, or the revision that was fetched."""
    if Path(name).is_dir():
        return weights_hash(Path(name))
    return str(getattr(model.config, "_commit_hash", None) or name)[:8]


def load_fluency(
    name: str | Path, target: Vocabulary, device: torch.device | str = "cpu"
) -> Fluency:
    """A language model: an ARPA file of n-grams, or a causal model of transformers."""
    if str(name).endswith(ARPA):
        arpa = read_arpa(Path(name))
        return Fluency(ngrams(arpa, device), arpa_vocabulary(arpa, target))
    model, tokenizer = fetched(AutoModelForCausalLM, name)
    return Fluency(adapt_causal(model.to(device)), TokenizerVocabulary(tokenizer, "target"))


def fetched(kind: Any, name: str | Path) -> tuple[Any, Any]:
    """A model of this kind and its tokenizer, by name or directory."""
    with explained(name):
        local = not (Path(name).is_dir() or hub_is_there())
        tokenizer = AutoTokenizer.from_pretrained(name, local_files_only=local)
        model = kind.from_pretrained(name, dtype=torch.float32, local_files_only=local)
    return model, tokenizer


def hub_is_there() -> bool:
    """Whether the name of the hub can be looked up; its library would try for half a minute."""
    if getproxies():  # which look it up themselves
        return True
    try:
        socket.getaddrinfo(urlsplit(ENDPOINT).hostname, 443)
    except OSError:
        return False
    return True


@contextmanager
def explained(name: str | Path) -> Iterator[None]:
    """What goes wrong while a model is fetched or read, in one sentence."""
    try:
        with warnings.catch_warnings():
            # Marian's tokenizer wishes for a library that only touches odd quotation marks.
            warnings.filterwarnings("ignore", message="Recommended: pip install sacremoses")
            yield
    except ImportError as problem:
        reason = str(problem).strip().partition("\n")[0]
        raise SimplexityError(f"{name} needs a library that is not here: {reason}") from problem
    except Exception as problem:  # transformers, its hub and safetensors have many of their own
        if Path(name).is_dir():
            reason = str(problem).strip().partition("\n")[0] or type(problem).__name__
            raise SimplexityError(f"The model in {name} cannot be read: {reason}") from problem
        raise SimplexityError(
            f"{name} is no directory here, and no such model could be fetched from the hub or "
            "found in its cache; check the name and the connection, or name a directory."
        ) from problem


def boundaries(model: Any, tokenizer: Any, languages: Languages, name: str) -> Boundaries:
    """Read off a tokenizer what it puts around a sentence, the codes of languages included."""
    if type(tokenizer).__name__ == "FSMTTokenizer":
        raise SimplexityError(
            f"{name} has a tokenizer that cannot read translations; use another model."
        )
    task = set_languages(model, tokenizer, languages, name)
    before, after = around(tokenizer, "source")
    opening, closing = around(tokenizer, "target")
    start = decoder_start(model)
    end = special(model, "eos_token_id")
    # mBART's first targets end with their language, and its decoder starts with it.
    codes = tuple(number for number in closing if number != end)
    begin = codes or (() if start is None else (start,))
    if not begin:
        raise SimplexityError(f"The configuration of {name} has no decoder_start_token_id; set it.")
    forced = special(model, "forced_bos_token_id")
    first = opening or (() if forced is None else (forced,))
    return Boundaries((*before, *task), after, (*begin, *first))


def around(tokenizer: Any, side: Side) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The ids that a tokenizer puts before and behind a sentence."""
    given = {"text" if side == "source" else "text_target": TEXT}
    bare = tokenizer(**given, add_special_tokens=False)["input_ids"]
    full = tokenizer(**given)["input_ids"]
    places = range(len(full) - len(bare) + 1)
    place = next((n for n in places if full[n : n + len(bare)] == bare), 0)
    return tuple(full[:place]), tuple(full[place + len(bare) :])


def set_languages(model: Any, tokenizer: Any, languages: Languages, name: str) -> tuple[int, ...]:
    """Tell a tokenizer of many languages which two are meant; ids that name them in the source."""
    source, target = languages
    if type(tokenizer).__name__ in CODED:
        for side, code in (("src_lang", source), ("tgt_lang", target)):
            setattr(tokenizer, side, _known(tokenizer, code, side, name))
        return ()
    marks = list(getattr(tokenizer, "supported_language_codes", ()))
    if marks:
        if f">>{target}<<" not in marks:
            raise _language_missing("target", target, [mark[2:-2] for mark in marks], name)
        return (int(tokenizer.convert_tokens_to_ids(f">>{target}<<")),)
    tasks = getattr(model.config, "task_specific_params", None) or {}
    named = {key.removeprefix("translation_"): value for key, value in tasks.items()}
    named = {key: value["prefix"] for key, value in named.items() if "_to_" in key}
    if not named:
        return ()
    if f"{source}_to_{target}" not in named:
        pairs = [key.replace("_to_", "-") for key in named]
        raise _language_missing("pair", f"{source}-{target}", pairs, name)
    ids: list[int] = tokenizer(named[f"{source}_to_{target}"], add_special_tokens=False).input_ids
    return tuple(ids)


CODED = (
    "NllbTokenizer",
    "NllbTokenizerFast",
    "M2M100Tokenizer",
    "MBartTokenizer",
    "MBartTokenizerFast",
    "MBart50Tokenizer",
    "MBart50TokenizerFast",
)
"""Tokenizers that mark sentences by the codes of languages, `src_lang` and `tgt_lang`."""


def _known(tokenizer: Any, code: str | None, side: str, name: str) -> str:
    """The code, if the tokenizer has a word for it."""
    marks: Callable[[str], str] = getattr(tokenizer, "get_lang_token", str)
    unknown = tokenizer.unk_token_id
    try:
        number = None if code is None else tokenizer.convert_tokens_to_ids(marks(code))
    except KeyError:
        number = None
    if code is None or number in (None, unknown):
        codes = [token.strip("_") for token in tokenizer.all_special_tokens]
        raise _language_missing(
            {"src_lang": "source", "tgt_lang": "target"}[side],
            code,
            [token for token in codes if not token.startswith("<")],
            name,
        )
    return code


def _language_missing(what: str, code: str | None, known: list[str], name: str) -> UsageError:
    flags = {"source": "--source-language", "target": "--target-language"}
    flag = flags.get(what, "--source-language and --target-language")
    said = (
        "needs to be told its" if code is None or "None" in code else f"does not know {code!r} as"
    )
    shown = ", ".join(known[:6]) + (", ..." if len(known) > 6 else "")
    return UsageError(f"{name} {said} {what} language; give {flag}, such as {shown}.")


def unwritable(model: Any, tokenizer: Any) -> tuple[int, ...]:
    """Ids that no text is written with: special words, and rows without a word."""
    rows = range(len(model.get_output_embeddings().weight))
    named = set(TokenizerVocabulary(tokenizer, "target").numbers())
    return tuple(sorted((set(rows) - named) | set(tokenizer.all_special_ids)))
