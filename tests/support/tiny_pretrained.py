"""Tiny models of transformers with tokenizers of their own, written into directories.

They hold random weights, and cut the toy language of `simplexity.text.toy`. Nothing is fetched.
"""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Iterable
from itertools import pairwise
from pathlib import Path
from typing import Any

import torch
from sentencepiece import SentencePieceProcessor, SentencePieceTrainer
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import (
    GPT2Config,
    GPT2LMHeadModel,
    M2M100Config,
    M2M100ForConditionalGeneration,
    MarianConfig,
    MarianMTModel,
    PreTrainedTokenizerFast,
)

SIZES = {
    "d_model": 16,
    "encoder_layers": 1,
    "decoder_layers": 1,
    "encoder_attention_heads": 2,
    "decoder_attention_heads": 2,
    "encoder_ffn_dim": 24,
    "decoder_ffn_dim": 24,
    "max_position_embeddings": 1024,
    "init_std": 0.5,
    "forced_eos_token_id": None,
}


def pieces(lines: Iterable[str], file: Path, size: int) -> list[str]:
    """Train sentencepiece on these lines; its pieces."""
    SentencePieceTrainer.train(
        sentence_iterator=iter(lines),
        model_prefix=str(file.with_suffix("")),
        vocab_size=size,
        hard_vocab_limit=False,
        character_coverage=1.0,
        num_threads=1,
        minloglevel=2,
    )
    file.with_suffix(".model").rename(file)
    file.with_suffix(".vocab").unlink()
    processor = SentencePieceProcessor(model_file=str(file))
    return [processor.id_to_piece(n) for n in range(3, processor.get_piece_size())]


def marian(
    directory: Path, source: list[str], target: list[str], size: int, joint: bool, seed: int
) -> Path:
    """A Marian model as Helsinki's are stored: with one table of ids for both sides, or two."""
    directory.mkdir(parents=True)
    sides = [
        pieces(lines, directory / f"{side}.spm", size)
        for side, lines in (("source", source), ("target", target))
    ]
    tables = [sorted({*sides[0], *sides[1]})] if joint else sides
    tables = [["</s>", "<unk>", "<pad>", *table] for table in tables]
    for name, table in zip(("vocab", "target_vocab"), tables, strict=False):
        ids = {piece: number for number, piece in enumerate(table)}
        (directory / f"{name}.json").write_text(json.dumps(ids), encoding="utf-8")
    save_json(
        directory / "tokenizer_config.json",
        tokenizer_class="MarianTokenizer",
        separate_vocabs=not joint,
        source_lang="xa",
        target_lang="xb",
    )
    pad = 2
    options: dict[str, Any] = {"eos_token_id": 0, "pad_token_id": pad, **SIZES}
    if not joint:
        options |= {"share_encoder_decoder_embeddings": False, "tie_word_embeddings": False}
    config = MarianConfig(
        vocab_size=len(tables[0]),
        decoder_vocab_size=len(tables[-1]),
        decoder_start_token_id=pad,
        **options,
    )
    model = seeded(lambda: MarianMTModel(config), seed)
    model.final_logits_bias[0, 0] += 2.0  # or sentences would hardly end
    model.final_logits_bias[0, pad] = -math.inf
    model.generation_config.bad_words_ids = [[pad]]
    model.save_pretrained(directory)
    return directory


def gpt2(directory: Path, lines: list[str], size: int, seed: int) -> Path:
    """A GPT-2 with its byte-level vocabulary."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=size,
        special_tokens=["<|endoftext|>"],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator(lines, trainer)
    end = "<|endoftext|>"
    PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, bos_token=end, eos_token=end
    ).save_pretrained(directory)
    config = GPT2Config(
        vocab_size=tokenizer.get_vocab_size(),
        n_positions=1024,
        n_embd=16,
        n_layer=1,
        n_head=2,
        initializer_range=0.5,
        bos_token_id=0,
        eos_token_id=0,
    )
    seeded(lambda: GPT2LMHeadModel(config), seed).save_pretrained(directory)
    return directory


def many_languages(directory: Path, lines: list[str], size: int, seed: int) -> Path:
    """An NLLB model, whose sentences begin with the code of their language."""
    directory.mkdir(parents=True)
    from transformers import NllbTokenizer

    tokenizer = Tokenizer(models.BPE(unk_token="<unk>"))
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
    special = ["<s>", "<pad>", "</s>", "<unk>"]
    trainer = trainers.BpeTrainer(vocab_size=size, special_tokens=special, show_progress=False)
    tokenizer.train_from_iterator(lines, trainer)
    state = json.loads(tokenizer.to_str())["model"]
    merges = [tuple(pair) for pair in state["merges"]]
    nllb = NllbTokenizer(
        vocab=state["vocab"],
        merges=merges,
        src_lang="deu_Latn",
        tgt_lang="eng_Latn",
        extra_special_tokens=["deu_Latn", "eng_Latn"],
    )
    nllb.save_pretrained(directory)
    config = M2M100Config(
        vocab_size=len(nllb),
        scale_embedding=True,
        decoder_start_token_id=2,
        **SIZES,
    )
    seeded(lambda: M2M100ForConditionalGeneration(config), seed).save_pretrained(directory)
    return directory


def bigrams(file: Path, lines: Iterable[str]) -> Path:
    """An ARPA file of one and two words, discounted by a half."""
    singles, doubles, before = Counter[str](), Counter[tuple[str, str]](), Counter[str]()
    for line in lines:
        words = ["<s>", *line.split(), "</s>"]
        singles.update(words[1:])
        doubles.update(pairwise(words))
        before.update(words[:-1])
    total = sum(singles.values())
    out = ["\\data\\", f"ngram 1={len(singles) + 2}", f"ngram 2={len(doubles)}", ""]
    out += ["\\1-grams:", "-99\t<s>\t-0.3", "-3.0\t<unk>"]
    out += [f"{math.log10(n / total):.6f}\t{word}\t-0.3" for word, n in singles.items()]
    out += ["", "\\2-grams:"]
    out += [
        f"{math.log10((n - 0.5) / before[pair[0]]):.6f}\t{' '.join(pair)}"
        for pair, n in doubles.items()
    ]
    file.write_text("\n".join([*out, "", "\\end\\", ""]), encoding="utf-8")
    return file


def seeded(make: Any, seed: int) -> Any:
    """A model of this seed; the random state is left as it was."""
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        return make()


def save_json(file: Path, **content: Any) -> None:
    file.write_text(json.dumps(content), encoding="utf-8")
