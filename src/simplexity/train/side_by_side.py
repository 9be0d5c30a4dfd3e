"""Train several members at once, one process each: two threads of one process get less done."""

from __future__ import annotations

import os
import subprocess
import sys
from collections import deque
from pathlib import Path
from threading import Thread
from typing import IO

from simplexity.config import TrainConfig
from simplexity.errors import SimplexityError
from simplexity.models.family import MemberName
from simplexity.runtime import PARENT
from simplexity.settings import dump_config


def train_side_by_side(config: TrainConfig, names: list[MemberName]) -> None:
    """Run `simplexity train` for every member, `config.jobs` at a time; all of them or an error."""
    waiting, running, failed = deque(names), dict[MemberName, _Job](), list[MemberName]()
    try:
        while waiting or running:
            while waiting and len(running) < config.jobs:
                name = waiting.popleft()
                running[name] = _Job(config, name)
            name = _first_to_end(running)
            if running.pop(name).end() != 0:
                failed.append(name)
    finally:
        for job in running.values():  # only when this process is told to stop
            job.process.terminate()
            job.end()
    if failed:
        raise SimplexityError(
            f"Training of {', '.join(failed)} failed (see above); "
            "the same command goes on where it stopped."
        )


class _Job:
    """One training process, its talk passed on with its name in front."""

    def __init__(self, config: TrainConfig, name: MemberName) -> None:
        settings = config.output / f"{name}.settings.yaml"
        mine = {"directions": (name,), "jobs": 1, "overwrite": False}
        settings.write_text(dump_config(config.model_copy(update=mine)), encoding="utf-8")
        command = [sys.executable, "-m", "simplexity", "train", "--config", str(settings)]
        self.settings: Path = settings
        self.process = subprocess.Popen(
            command,
            stderr=subprocess.PIPE,
            encoding="utf-8",
            errors="replace",
            env={**os.environ, PARENT: str(os.getpid())},
        )
        assert self.process.stderr is not None
        self.talk: IO[str] = self.process.stderr
        self.relay = Thread(target=_pass_on, args=(self.talk, name), daemon=True)
        self.relay.start()

    def end(self) -> int:
        """Wait for the process; its exit code."""
        code = self.process.wait()
        self.relay.join()
        self.talk.close()
        self.settings.unlink()
        return code


def _first_to_end(running: dict[MemberName, _Job]) -> MemberName:
    while True:
        for name, job in running.items():
            try:
                job.process.wait(timeout=0.2)
            except subprocess.TimeoutExpired:
                continue
            return name


def _pass_on(lines: IO[str], name: str) -> None:
    for line in lines:
        print(line if name in line else f"{name}: {line}", end="", file=sys.stderr, flush=True)
