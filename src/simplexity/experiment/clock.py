"""What work costs: seconds of the clock and of the processor."""

from __future__ import annotations

import os
import platform
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

Found = TypeVar("Found")


@dataclass(frozen=True)
class Timing:
    """So much done, in so many seconds of the clock and of the processor."""

    amount: int
    seconds: float
    cpu_seconds: float

    def __add__(self, other: Timing) -> Timing:
        return Timing(
            self.amount + other.amount,
            self.seconds + other.seconds,
            self.cpu_seconds + other.cpu_seconds,
        )


NONE = Timing(0, 0.0, 0.0)


def timed(amount: int, work: Callable[[], Found]) -> tuple[Timing, Found]:
    """Do this much work; the time that it took, and what came of it."""
    begun, cpu = time.perf_counter(), time.process_time()
    found = work()
    return Timing(amount, time.perf_counter() - begun, time.process_time() - cpu), found


def machine() -> dict[str, Any]:
    """With what figures were found."""
    import torch

    import simplexity

    return {
        "torch": torch.__version__,
        "threads": torch.get_num_threads(),
        "load": os.getloadavg(),
        "processor": platform.processor() or platform.machine(),
        "simplexity": simplexity.__version__,
    }
