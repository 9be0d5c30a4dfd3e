"""How far a run has come: on a terminal one line that moves, elsewhere a line now and then."""

from __future__ import annotations

import shutil
import sys
import time
from collections.abc import Callable
from types import TracebackType
from typing import Self, TextIO

REDRAW_SECONDS = 0.1
PLAIN_SECONDS = 30.0
ERASE = "\r\x1b[K"


class Progress:
    """One thing that is counted up to its total.

    >>> with Progress("translating", 1000, "sentences") as progress:
    ...     progress.update(500)
    """

    def __init__(
        self,
        label: str,
        total: int | None = None,
        unit: str = "",
        *,
        quiet: bool = False,
        stream: TextIO | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._label, self._total, self._unit = label, total, unit
        self._quiet, self._clock = quiet, clock
        self._stream = sys.stderr if stream is None else stream
        self._moving = self._stream.isatty()
        self._start = self._told = clock()
        self._first: int | None = None

    def update(self, done: int, note: str = "") -> None:
        """Tell how much is done, unless something was told a moment ago."""
        now = self._clock()
        # A run that goes on begins above nothing, and must not count that as its own speed.
        self._first = done if self._first is None else self._first
        if self._quiet or now - self._told < (REDRAW_SECONDS if self._moving else PLAIN_SECONDS):
            return
        self._told = now
        line = self._line(done, now - self._start, note)
        if self._moving:
            width = shutil.get_terminal_size().columns - 1
            self._write(ERASE + line[:width])
        else:
            self._write(line + "\n")

    def say(self, line: str) -> None:
        """Leave a line that stays."""
        if not self._quiet:
            self._write((ERASE if self._moving else "") + line + "\n")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._moving and not self._quiet:
            self._write(ERASE)

    def _line(self, done: int, seconds: float, note: str) -> str:
        speed = (done - (self._first or 0)) / seconds if seconds > 0 else 0.0
        count = f"{done:,}" if self._total is None else f"{done:,}/{self._total:,}"
        parts = [f"{self._label}: {count} {self._unit}".rstrip(), f"{speed:,.1f}/s"]
        if self._total and speed > 0:
            parts[0] += f" ({100 * done // self._total}%)"
            parts.append(f"{_clock_time((self._total - done) / speed)} left")
        return ", ".join([*parts, *([note] if note else [])])

    def _write(self, text: str) -> None:
        self._stream.write(text)
        self._stream.flush()


def _clock_time(seconds: float) -> str:
    """Seconds as hours, minutes and seconds.

    >>> _clock_time(3725)
    '1:02:05'
    """
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"
