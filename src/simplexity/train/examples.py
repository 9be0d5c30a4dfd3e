"""Training pairs as word ids, in the order that a member of a family reads them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from simplexity.errors import SimplexityError
from simplexity.text.batches import bucketed
from simplexity.text.corpora import Bitext
from simplexity.text.vocabulary import BOS, EOS, PAD, Vocabulary

MemberName = Literal["l2r", "r2l", "reverse"]


@dataclass(frozen=True)
class Examples:
    """Pairs of source and target ids without boundaries, and how many were left out as too long."""

    source: list[list[int]]
    target: list[list[int]]
    left_out: int = 0

    def __len__(self) -> int:
        return len(self.source)

    @property
    def words(self) -> int:
        """Target words, the ends counted."""
        return sum(len(ids) + 1 for ids in self.target)


@dataclass(frozen=True)
class Batch:
    """Padded ids as the networks take them: the source with its end, the target shifted by one."""

    source: Tensor
    source_mask: Tensor
    previous: Tensor
    labels: Tensor
    label_mask: Tensor

    def to(self, device: torch.device) -> Batch:
        """The same batch in another place."""
        return Batch(
            self.source.to(device),
            self.source_mask.to(device),
            self.previous.to(device),
            self.labels.to(device),
            self.label_mask.to(device),
        )


def read_examples(corpus: Bitext, source: Vocabulary, target: Vocabulary, longest: int) -> Examples:
    """Encode a bitext; pairs longer than the limit and pairs with an empty side are left out."""
    check_usable(corpus, source, target, longest)
    pairs = list(_encoded(corpus, source, target, longest))
    kept = [pair for pair in pairs if pair is not None]
    return Examples([x for x, _ in kept], [y for _, y in kept], len(pairs) - len(kept))


def check_usable(corpus: Bitext, source: Vocabulary, target: Vocabulary, longest: int) -> None:
    """Refuse a bitext of which every pair would be left out; reads it up to the first good one."""
    if all(pair is None for pair in _encoded(corpus, source, target, longest)):
        raise SimplexityError(
            f"No line of {corpus.source} and {corpus.target} can be used: all are empty or longer "
            f"than {longest} words; raise --max-length or check the files."
        )


def _encoded(
    corpus: Bitext, source: Vocabulary, target: Vocabulary, longest: int
) -> Iterator[tuple[list[int], list[int]] | None]:
    """The ids of every pair, None for one that is left out."""
    for x, y in corpus:
        pair = (source.encode(x), target.encode(y))
        yield pair if all(0 < len(ids) <= longest for ids in pair) else None


def for_member(examples: Examples, member: MemberName) -> Examples:
    """What this member learns from: reversed targets for r2l, swapped sides for reverse."""
    match member:
        case "l2r":
            return examples
        case "r2l":
            backwards = [ids[::-1] for ids in examples.target]
            return Examples(examples.source, backwards, examples.left_out)
        case "reverse":
            return Examples(examples.target, examples.source, examples.left_out)


def plan(examples: Examples, budget: int, seed: int, epoch: int) -> list[list[int]]:
    """The batches of one epoch; the same for the same seed and epoch, so a run can resume."""
    lengths = [(len(x), len(y)) for x, y in zip(examples.source, examples.target, strict=True)]
    return bucketed(lengths, budget, seed, epoch)


def collate(examples: Examples, indices: list[int]) -> Batch:
    """Pad the chosen pairs into one batch."""
    sources = _padded([[*examples.source[i], EOS] for i in indices])
    labels = _padded([[*examples.target[i], EOS] for i in indices])
    previous = _padded([[BOS, *examples.target[i]] for i in indices])
    return Batch(sources, sources != PAD, previous, labels, labels != PAD)


def in_order(examples: Examples, budget: int) -> Iterator[Batch]:
    """All pairs once, for validation."""
    for indices in plan(examples, budget, seed=0, epoch=0):
        yield collate(examples, indices)


def _padded(rows: list[list[int]]) -> Tensor:
    return pad_sequence([torch.tensor(row) for row in rows], batch_first=True, padding_value=PAD)
