"""Data-parallel training under torchrun: each process takes a share of every batch.

Gradients are summed, not averaged, and every cost is divided by the words of the whole batch, so
any number of processes computes the single process's step.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TypeVar

import torch
import torch.distributed as dist
from torch import Tensor, nn

T = TypeVar("T")


@dataclass(frozen=True)
class Workers:
    """The processes of this run, and which of them this one is."""

    rank: int = 0
    size: int = 1

    def share(self, items: list[T]) -> list[T]:
        """This process's part of a list."""
        return items[self.rank :: self.size]

    def sum_gradients(self, network: nn.Module, loss: Tensor) -> Tensor:
        """Make every process hold the sum of all gradients; returns the summed loss."""
        if self.size == 1:
            return loss
        grads = [p.grad for p in network.parameters() if p.grad is not None]
        flat = torch.cat([g.flatten() for g in grads] + [loss.reshape(1)])
        dist.all_reduce(flat)
        pieces = torch.split(flat, [g.numel() for g in grads] + [1])
        for grad, piece in zip(grads, pieces, strict=False):
            grad.copy_(piece.view_as(grad))
        return pieces[-1].squeeze(0)

    def sum_number(self, value: float) -> float:
        """The sum of one number over all processes."""
        if self.size == 1:
            return value
        total = torch.tensor([value], dtype=torch.float64)
        dist.all_reduce(total)
        return float(total)

    def wait(self) -> None:
        """Go on when all processes have come here."""
        if self.size > 1:
            dist.barrier()


def join_workers() -> Workers:
    """The group that torchrun made, or this process alone."""
    if int(os.environ.get("WORLD_SIZE", "1")) == 1:
        return Workers()
    if not dist.is_initialized():
        if torch.cuda.is_available():
            torch.cuda.set_device(int(os.environ["LOCAL_RANK"]) % torch.cuda.device_count())
        # gloo also carries the validation's float64 sums, which live on the CPU.
        backend = "cpu:gloo,cuda:nccl" if torch.cuda.is_available() else "gloo"
        dist.init_process_group(backend)
    return Workers(dist.get_rank(), dist.get_world_size())
