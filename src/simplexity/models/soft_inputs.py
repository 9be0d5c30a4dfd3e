"""Soft strings as inputs of transformers' models, which read word ids.

A model runs on ids while its embedding layer answers with the expected embedding of each soft
position. `inputs_embeds` would look simpler, but families disagree on who scales it.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, cast

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from simplexity.errors import SimplexityError
from simplexity.relax.tokens import Hard, Tokens, harden, lengths, presence


def frame(
    tokens: Tokens, prefix: tuple[int, ...], suffix: tuple[int, ...], pad: int
) -> tuple[Tensor, Tensor]:
    """Ids and mask of the sentences between prefix and suffix; padding stays on the right.

    Soft positions show their likeliest word; only their embedding counts.
    """
    if presence(tokens) is not None:
        raise SimplexityError(
            "Models of transformers cannot read strings of relaxed length; use --lengths predicted."
        )
    hard = tokens if isinstance(tokens, Hard) else harden(tokens)
    batch, device = len(hard.ids), hard.ids.device
    before = torch.tensor(prefix, dtype=torch.long, device=device).expand(batch, -1)
    after = torch.tensor(suffix, dtype=torch.long, device=device).expand(batch, -1)
    words = F.pad(hard.ids.masked_fill(~hard.mask, pad), (0, len(suffix)), value=pad)
    place = torch.arange(len(suffix), device=device) + lengths(hard)[:, None]
    ids = torch.cat([before, words.scatter(1, place, after)], 1)
    real = len(prefix) + lengths(hard) + len(suffix)
    return ids, torch.arange(ids.shape[1], device=device) < real[:, None]


def embedding(side: Any) -> nn.Module:
    """The layer of an encoder or decoder that embeds words."""
    # FSMT's halves are plain modules, not models of transformers.
    found = getattr(side, "embed_tokens", None) or side.get_input_embeddings()
    return cast(nn.Module, found)


@contextmanager
def expected_embeddings(layer: nn.Module, tokens: Tokens, offset: int) -> Iterator[None]:
    """While open, `layer` answers soft positions with their expected embedding (section 3).

    The layer itself embeds the support, so whatever it does to a word it does to the mixture. Hard
    tokens and the boundaries around the words, `offset` of them before, keep their own embedding.
    """
    if isinstance(tokens, Hard):
        yield
        return
    support = tokens.support
    if support is None:
        support = torch.arange(tokens.probs.shape[-1], device=tokens.probs.device)
    table = layer(support)
    mixed = tokens.probs.to(table.dtype) @ table

    def answer(_layer: nn.Module, _inputs: Any, output: Tensor) -> Tensor:
        after = output.shape[1] - offset - mixed.shape[1]
        free = F.pad(tokens.mask, (offset, after))[..., None]
        return torch.where(free, F.pad(mixed, (0, 0, offset, after)), output)

    hook = layer.register_forward_hook(answer)
    try:
        yield
    finally:
        hook.remove()
