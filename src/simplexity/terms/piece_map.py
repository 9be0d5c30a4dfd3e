"""A soft string in the pieces of another vocabulary: what gradients go through.

Let h be the string that y rounds to, t its text, and u the pieces that the other vocabulary cuts t
into. Every piece u_j covers characters of one or more positions i of h; A_ij is the share of its
characters that come from i. A word w in place of h_i is written with pieces p_1 ... p_k of its own,
spread evenly over the pieces that i now has. So position j of the other string holds

    r_j = (1 - sum_i A_ij (1 - y_i(h_i))) u_j  +  sum_i A_ij sum_{w != h_i} y_i(w) share_ij(p(w))

Every r_j lies on the simplex, r is linear in y, and at y = h it is u itself: the relaxation is
exact at the string it rounds to. So is a change of one word, where both are whole words for the
other vocabulary and have as many pieces. Where numbers of pieces differ, pieces are mixed at one
position, or stand at several: a direction, not a score. Scores are always taken through text.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from simplexity.relax.tokens import Hard, Soft
from simplexity.text.surfaces import segment, surfaces
from simplexity.text.vocabulary import Vocabulary

MOST = 4
"""Pieces of a word that are kept: what is longer only shows its beginning to the gradient."""


@dataclass(frozen=True)
class PieceMap:
    """How the words of one vocabulary are written in another.

    pieces [words, MOST]: ids there; count [words]: how many, 0 for a word that cannot be written.
    size, other_size: characters of every piece here and there.
    """

    pieces: Tensor
    count: Tensor
    size: Tensor
    other_size: Tensor

    def __call__(self, y: Soft, rounding: Hard, other: Hard) -> Soft:
        """y in the pieces of `other`, the other vocabulary's reading of what y rounds to."""
        batch, _, number = y.probs.shape
        support = y.support
        if support is None:
            support = torch.arange(number, device=y.probs.device)
        support = support.expand(batch, -1)
        share, first, last = self._alignment(rounding, other)
        same = support[:, None] == rounding.ids[..., None]
        count = self.count[support]
        columns = y.probs.new_zeros(batch, other.ids.shape[1], number, MOST)
        for pieces in range(1, MOST + 1):
            # Words of so many pieces; the word that stands there keeps the pieces that it has.
            moved = y.probs.masked_fill(same | (count != pieces)[:, None], 0.0)
            spread = share[..., None] * _evenly(first, last, pieces)
            part = torch.einsum("bik,bijp->bjkp", moved, spread.to(moved.dtype))
            columns = columns + torch.nn.functional.pad(part, (0, MOST - pieces))
        columns = columns.flatten(2)
        stay = torch.diag_embed(1 - columns.sum(-1))
        words = torch.cat([self.pieces[support].flatten(1), other.ids], 1)
        return Soft(torch.cat([columns, stay], -1), other.mask, words)

    def _alignment(self, rounding: Hard, other: Hard) -> tuple[Tensor, Tensor, Tensor]:
        """Share of each piece that comes from each position, and which part of the position it is.

        All [batch, positions, pieces]. Characters are counted from the end: beginnings differ by a
        space from one tokenizer to another.
        """
        start, end = _spans(self.size, rounding)
        from_, to = _spans(self.other_size, other)
        common = torch.minimum(start[..., None], from_[:, None])
        common = (common - torch.maximum(end[..., None], to[:, None])).clamp_min(0)
        share = common / (from_ - to).clamp_min(1)[:, None]
        covered = (share > 0).float()
        place, parts = covered.cumsum(-1) - 1, covered.sum(-1, keepdim=True).clamp_min(1)
        return share, place / parts, (place + 1) / parts


def _spans(size: Tensor, tokens: Hard) -> tuple[Tensor, Tensor]:
    """Distance of both ends of each piece from the end of the text [batch, length]."""
    sizes = size[tokens.ids].masked_fill(~tokens.mask, 0.0)
    behind = sizes.sum(-1, keepdim=True) - sizes.cumsum(-1)
    return behind + sizes, behind


def _evenly(first: Tensor, last: Tensor, pieces: int) -> Tensor:
    """How much of each of so many equal parts lies between `first` and `last` [..., pieces]."""
    begin = torch.arange(pieces, device=first.device) / pieces
    common = torch.minimum(last[..., None], begin + 1 / pieces)
    common = common - torch.maximum(first[..., None], begin)
    return common.clamp_min(0) / (last - first)[..., None]


def piece_map(here: Vocabulary, there: Vocabulary, device: torch.device | str) -> PieceMap:
    """Write every word of one vocabulary in the pieces of another, by the text they stand for."""
    mine, theirs = surfaces(here), surfaces(there)
    exact = {text: n for n, text in reversed(list(enumerate(theirs))) if text}
    bare = {text.strip(): n for text, n in reversed(exact.items()) if text.strip()}
    longest = max(map(len, exact), default=0)
    pieces, count = [], []
    for text in mine:
        found = segment(text, exact, longest) or segment(text.strip(), bare, longest)
        kept = list(found[:MOST])
        count.append(len(kept))
        pieces.append(kept + [0] * (MOST - len(kept)))
    return PieceMap(
        torch.tensor(pieces, device=device).view(-1, MOST),
        torch.tensor(count, device=device),
        torch.tensor([float(len(text)) for text in mine], device=device),
        torch.tensor([float(len(text)) for text in theirs], device=device),
    )
