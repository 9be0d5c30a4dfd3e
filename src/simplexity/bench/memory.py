"""The most memory that a piece of work holds, above what was there before."""

from __future__ import annotations

import ctypes
import gc
import multiprocessing
import resource
from collections.abc import Callable
from contextlib import suppress
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, TypeVar

import torch

from simplexity.errors import SimplexityError
from simplexity.runtime import keep_memory, use_threads

STATUS = Path("/proc/self/status")
RESET_PEAK = "5"
KIB = 1024
Given = TypeVar("Given")
Answer = TypeVar("Answer")


def held(field: str) -> int:
    """Bytes of memory of this process: `VmRSS` now, `VmHWM` at most so far."""
    if not STATUS.exists():  # not Linux; what is known there is the most so far
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * KIB
    lines = STATUS.read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(field)) * KIB


def peak_above(work: Callable[[], Any], device: torch.device | str) -> int:
    """Bytes that the work holds at most, above those of now.

    On a processor freed memory is first given back to the system, and the record of the past peak
    is wiped out (both on Linux): else a peak would hide in what was once held.
    """
    if torch.device(device).type == "cuda":
        torch.cuda.reset_peak_memory_stats(device)
        before = torch.cuda.memory_allocated(device)
        work()
        return torch.cuda.max_memory_allocated(device) - before
    give_back()
    before = held("VmRSS")
    work()
    return max(held("VmHWM") - before, 0)


def give_back() -> None:
    """Return freed memory to the system, and let the most held so far be what is held now."""
    gc.collect()
    if STATUS.exists():
        with suppress(AttributeError):  # another C library than GNU's
            ctypes.CDLL(None).malloc_trim(0)
        with suppress(OSError):  # not allowed here: then the past peak stays
            Path("/proc/self/clear_refs").write_text(RESET_PEAK)


def in_young_process(work: Callable[[Given], Answer], given: Given, threads: int) -> Answer:
    """The answer of a function in a process of its own, which ends with it."""
    context = multiprocessing.get_context("spawn")
    receiver, sender = context.Pipe(duplex=False)
    process = context.Process(target=_answer, args=(sender, work, given, threads), daemon=True)
    process.start()
    sender.close()
    try:
        found: Answer | SimplexityError = receiver.recv()
    except (EOFError, ConnectionError) as error:
        raise SimplexityError(
            "A process that was to measure ended without an answer; there may be too little memory."
        ) from error
    finally:
        process.join()
    if isinstance(found, SimplexityError):
        raise found
    return found


def _answer(sender: Connection, work: Callable[[Any], Any], given: Any, threads: int) -> None:
    keep_memory()
    use_threads(threads)
    try:
        sender.send(work(given))
    except SimplexityError as error:  # a fault of the input is told by who started this process
        sender.send(error)
