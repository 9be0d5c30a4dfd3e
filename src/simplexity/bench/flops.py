"""Floating-point operations that a run needs, and how many the machine does in a second."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Mapping
from math import prod
from typing import Any

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.flop_counter import flop_registry

from simplexity.bench.turns import Timing

ATEN = torch.ops.aten
SQUARE = 1024
"""Rows, columns and depth of the product that the rate is measured by."""


def recurrent(given: tuple[Any, ...]) -> int:
    """An LSTM layer of oneDNN: each row of the input meets two matrices, twice 4 h (i + h)."""
    words, weights = given[0], given[1:3]
    return int(2 * words.shape[0] * words.shape[1] * sum(w.numel() for w in weights))


def attention(given: tuple[Any, ...]) -> int:
    """q k^T and the weighted sum of v: 2 b h t s d each."""
    query, key, value = given[:3]
    pairs = prod(query.shape[:-1]) * key.shape[-2]
    return int(2 * pairs * (query.shape[-1] + value.shape[-1]))


# What torch's own table lacks: operations of processors. Passes back do everything twice; that of
# attention also computes q k^T anew.
MORE: dict[Any, Callable[[tuple[Any, ...]], int]] = {
    ATEN.mkldnn_rnn_layer: recurrent,
    ATEN.mkldnn_rnn_layer_backward: lambda given: 2 * recurrent(given),
    ATEN._scaled_dot_product_flash_attention_for_cpu: attention,
    ATEN._scaled_dot_product_flash_attention_for_cpu_backward: lambda given: (
        5 * attention(given[1:4]) // 2
    ),
}


class FlopCount(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Counts the operations of matrix products within its block, by the kind of number.

    >>> with FlopCount() as count:
    ...     _ = torch.ones(2, 3) @ torch.ones(3, 5)
    >>> count.by_type
    Counter({'fp32': 60})
    """

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.by_type: Counter[str] = Counter()

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        answer = func(*args, **(kwargs or {}))
        operation = func._overloadpacket
        if operation in MORE:
            self._add(args, MORE[operation](args))
        elif operation in flop_registry:
            formula: Any = flop_registry[operation]
            self._add(args, formula(*args, **(kwargs or {}), out_val=answer))
        return answer

    def _add(self, given: tuple[Any, ...], count: int) -> None:
        first = next(x for x in given if isinstance(x, Tensor))
        self.by_type[kind_of(first.dtype)] += count


def kind_of(dtype: torch.dtype) -> str:
    """The name of a kind of numbers.

    >>> kind_of(torch.bfloat16)
    'bf16'
    """
    names = {torch.float32: "fp32", torch.bfloat16: "bf16", torch.float64: "fp64"}
    return names.get(dtype, str(dtype).removeprefix("torch."))


KINDS = {"fp32": torch.float32, "bf16": torch.bfloat16}


def products(dtype: torch.dtype, device: torch.device | str, seconds: float = 0.3) -> Timing:
    """Multiply square matrices for so long: operations done, and the time that they took."""
    left, right = (torch.randn(SQUARE, SQUARE, device=device).to(dtype) for _ in range(2))
    out = left @ right  # warms up
    begun, cpu, number = time.perf_counter(), time.process_time(), 0
    while time.perf_counter() - begun < seconds:
        torch.mm(left, right, out=out)
        if out.is_cuda:
            torch.cuda.synchronize(device)
        number += 1
    spent = time.perf_counter() - begun, time.process_time() - cpu
    return Timing(2 * SQUARE**3 * number, *spent)


def roofline(flops: Mapping[str, float], rates: Mapping[str, float]) -> float:
    """Seconds that these operations take at least, at these rates; other kinds count as fp32.

    >>> roofline({"fp32": 6.0, "bf16": 8.0}, {"fp32": 3.0, "bf16": 4.0})
    4.0
    """
    return sum(count / rates.get(kind, rates["fp32"]) for kind, count in flops.items())
