"""A small GPT-2 of one side of a corpus, as a plain directory of transformers.

    python benchmarks/language_model.py multi30k/train.en multi30k/dev.en --output lm --lowercase

It learns its own byte-level pieces, so that its vocabulary is nobody else's, and trains for so many
epochs in bfloat16. `simplexity translate --lm lm` takes the directory as it is.
"""

from __future__ import annotations

import argparse
import math
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch
from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers
from torch import Tensor
from transformers import GPT2Config, GPT2LMHeadModel, PreTrainedTokenizerFast

from simplexity.runtime import keep_memory, use_threads
from simplexity.text.batches import by_length
from simplexity.text.files import read_lines

END = "<|endoftext|>"
IGNORED = -100
"""The label of padding, which no loss counts."""


def learn_pieces(lines: list[str], size: int, lowercase: bool) -> Any:
    """A byte-level vocabulary of these lines whose id 0 begins and ends sentences."""
    tokenizer = Tokenizer(models.BPE())
    if lowercase:
        tokenizer.normalizer = normalizers.Lowercase()
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=size,
        special_tokens=[END],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator(lines, trainer)
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, bos_token=END, eos_token=END)


def network(words: int, given: argparse.Namespace) -> Any:
    """A GPT-2 of this size with random weights."""
    config = GPT2Config(
        vocab_size=words,
        n_positions=512,
        n_embd=given.size,
        n_layer=given.layers,
        n_head=given.size // 64,
        resid_pdrop=given.dropout,
        embd_pdrop=given.dropout,
        attn_pdrop=given.dropout,
        bos_token_id=0,
        eos_token_id=0,
    )
    return GPT2LMHeadModel(config)


def batches(sentences: list[list[int]], size: int, order: torch.Generator) -> Iterator[Tensor]:
    """Sentences of about equal length between two ends, padded by IGNORED, in random order."""
    parts = by_length([len(ids) for ids in sentences], size)
    for place in torch.randperm(len(parts), generator=order).tolist():
        framed = [torch.tensor([0, *sentences[row], 0]) for row in parts[place]]
        yield torch.nn.utils.rnn.pad_sequence(framed, batch_first=True, padding_value=IGNORED)


def loss(model: Any, rows: Tensor) -> Tensor:
    """-log P of all words and ends of a batch, summed."""
    with torch.autocast("cpu", torch.bfloat16):
        logits = model(input_ids=rows.clamp_min(0), use_cache=False).logits[:, :-1]
    return torch.nn.functional.cross_entropy(
        logits.flatten(0, 1).float(), rows[:, 1:].flatten(), ignore_index=IGNORED, reduction="sum"
    )


@torch.no_grad()
def perplexity(model: Any, sentences: list[list[int]]) -> float:
    """Of pieces and ends."""
    model.eval()
    order = torch.Generator().manual_seed(0)
    total = sum(float(loss(model, rows)) for rows in batches(sentences, 64, order))
    model.train()
    return math.exp(total / sum(len(ids) + 1 for ids in sentences))


def train(
    model: Any, sentences: list[list[int]], dev: list[list[int]], given: argparse.Namespace
) -> None:
    """So many epochs of AdamW, its rate warmed up and then lowered along a cosine."""
    order = torch.Generator().manual_seed(given.seed)
    updates = given.epochs * math.ceil(len(sentences) / given.batch_size)
    warmup = updates // 20 + 1
    optimiser = torch.optim.AdamW(model.parameters(), given.learning_rate, weight_decay=0.01)
    schedule = torch.optim.lr_scheduler.LambdaLR(
        optimiser,
        lambda n: min((n + 1) / warmup, 0.5 + 0.5 * math.cos(math.pi * min(n / updates, 1.0))),
    )
    for epoch in range(given.epochs):
        for rows in batches(sentences, given.batch_size, order):
            optimiser.zero_grad()
            (loss(model, rows) / (rows[:, 1:] != IGNORED).sum()).backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimiser.step()
            schedule.step()
        found = perplexity(model, dev)
        print(
            f"epoch {epoch + 1}: perplexity {found:.2f}, {time.process_time():.0f} CPU s",
            flush=True,
        )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("train", type=Path)
    parser.add_argument("dev", type=Path)
    parser.add_argument("--output", type=Path, required=True, help="new directory")
    parser.add_argument("--lowercase", action="store_true")
    parser.add_argument("--vocabulary-size", type=int, default=3000)
    parser.add_argument("--layers", type=int, default=4)
    parser.add_argument("--size", type=int, default=256)
    parser.add_argument("--dropout", type=float, default=0.2)
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--batch-size", type=int, default=64)
    parser.add_argument("--learning-rate", type=float, default=2e-3)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    keep_memory()
    use_threads(None)
    torch.manual_seed(given.seed)
    lines, held_out = list(read_lines(given.train)), list(read_lines(given.dev))
    tokenizer = learn_pieces(lines, given.vocabulary_size, given.lowercase)
    model = network(len(tokenizer), given)
    sentences, dev = (tokenizer(text)["input_ids"] for text in (lines, held_out))
    print(f"{len(tokenizer)} pieces, {sum(map(len, sentences))} of them in {len(lines)} lines")
    train(model.train(), sentences, dev, given)
    tokenizer.save_pretrained(given.output)
    model.save_pretrained(given.output)


if __name__ == "__main__":
    main()
