"""The strings of a sentence that were scored so far: the memory of a best-first search."""

from __future__ import annotations

from dataclasses import dataclass, fields

import torch
from torch import Tensor
from torch.nn import functional as F

from simplexity.relax.tokens import Hard


@dataclass(frozen=True)
class Pool:
    """Strings of each sentence [batch, size, length] with their exact costs, the least first.

    costs [batch, size, terms], total [batch, size]: by term, and what is minimised; infinite in
    free places. closed [batch, size]: strings whose neighbours were looked at already.
    """

    ids: Tensor
    mask: Tensor
    costs: Tensor
    total: Tensor
    closed: Tensor

    @staticmethod
    def of(
        shape: tuple[int, ...],
        row: Tensor,
        place: Tensor,
        strings: Hard,
        costs: Tensor,
        total: Tensor,
    ) -> Pool:
        """A pool [batch, size] with these strings at these places, free elsewhere."""
        width = strings.ids.shape[-1]
        at = (row, place)
        return Pool(
            strings.ids.new_zeros((*shape, width)).index_put(at, strings.ids * strings.mask),
            strings.mask.new_zeros((*shape, width)).index_put(at, strings.mask),
            costs.new_full((*shape, costs.shape[-1]), torch.inf).index_put(at, costs),
            # What no model can score is no better than a free place.
            total.new_full(shape, torch.inf).index_put(at, total.nan_to_num(torch.inf, torch.inf)),
            strings.mask.new_zeros(shape),
        )

    def select(self, rows: Tensor) -> Pool:
        """The strings of these sentences, in this order."""
        return Pool(*(getattr(self, field.name)[rows] for field in fields(self)))

    def next_open(self) -> tuple[Tensor, Tensor]:
        """The place of each sentence's best string that is not closed, and whether it has one."""
        open_total = self.total.masked_fill(self.closed, torch.inf)
        best = open_total.argmin(1)
        return best, open_total.gather(1, best[:, None]).squeeze(1).isfinite()

    def at(self, place: Tensor) -> Hard:
        """One string of each sentence [batch, length]."""
        rows = torch.arange(len(place), device=place.device)
        return Hard(self.ids[rows, place], self.mask[rows, place])

    def close(self, place: Tensor) -> Pool:
        """The same with one string of each sentence closed."""
        closed = self.closed.scatter(1, place[:, None], True)
        return Pool(self.ids, self.mask, self.costs, self.total, closed)

    def holds(self, strings: Hard) -> Tensor:
        """Which of these strings [batch, number, length] are here already [batch, number]."""
        return same_strings(strings, Hard(self.ids, self.mask)).any(-1)

    def merge(self, other: Pool) -> Pool:
        """The strings of both, best first; of equal costs, those that were here before."""
        width = max(self.ids.shape[-1], other.ids.shape[-1])
        both = [
            torch.cat([widened(getattr(pool, name), width, dim) for pool in (self, other)], 1)
            for name, dim in (("ids", 3), ("mask", 3), ("costs", 0), ("total", 0), ("closed", 0))
        ]
        return Pool(*both).sorted()

    def sorted(self) -> Pool:
        """Best first; columns that are free everywhere are dropped, one stays in any case."""
        order = self.total.argsort(dim=1, stable=True)
        order = order[:, : max(1, int(self.total.isfinite().sum(1).max()))]
        return Pool(*(in_order(getattr(self, field.name), order) for field in fields(self)))


def in_order(values: Tensor, order: Tensor) -> Tensor:
    """The columns of [batch, size, ...] that the order names [batch, kept]."""
    index = order.view(*order.shape, *[1] * (values.dim() - 2))
    return values.gather(1, index.expand(-1, -1, *values.shape[2:]))


def widened(values: Tensor, width: int, dim: int) -> Tensor:
    """Values [.., length] padded to a common width if they have a length."""
    return F.pad(values, (0, width - values.shape[-1])) if values.dim() == dim else values


def side_by_side(some: Hard, others: Hard) -> Hard:
    """Strings [batch, n, length] and [batch, m, length] as [batch, n + m, length]."""
    width = max(some.ids.shape[-1], others.ids.shape[-1])
    pairs = ((some.ids, others.ids), (some.mask, others.mask))
    return Hard(*(torch.cat([widened(a, width, 3), widened(b, width, 3)], 1) for a, b in pairs))


def same_strings(some: Hard, others: Hard) -> Tensor:
    """Which of some [batch, n, length] equal which of the others [batch, m, length]: [batch, n, m].

    Padding has id 0 in both, and the lengths must agree.
    """
    width = max(some.ids.shape[-1], others.ids.shape[-1])
    a, b = widened(some.ids, width, 3), widened(others.ids, width, 3)
    lengths = some.mask.sum(-1)[:, :, None] == others.mask.sum(-1)[:, None]
    return lengths & (a[:, :, None] == b[:, None]).all(-1)


def first_of_equals(strings: Hard, real: Tensor) -> Tensor:
    """Which of [batch, number] are real and stand for the first time in their row."""
    number = strings.ids.shape[1]
    place = torch.arange(number, device=strings.ids.device)
    earlier = (place[:, None] > place) & real[:, None]
    return real & ~(same_strings(strings, strings) & earlier).any(-1)
