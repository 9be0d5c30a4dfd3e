"""Finished steps on disk: what was computed once from the same things is read again.

A step is a function of a workbench and plain settings that answers with plain data. Its file is
named by a digest of its settings, its inputs, the weights of the models, and the source code that
it runs, so that a change of any of them computes it anew, and a broken-off experiment goes on.
"""

from __future__ import annotations

import hashlib
import inspect
import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import simplexity
from simplexity.text.files import writing

Data = Any
"""What JSON can hold."""

DECODING = (
    *("relax", "text", "models", "terms", "search", "edit", "build"),
    *("decode.py", "initialise.py", "objectives.py", "pipeline.py", "translate.py"),
    *("rerank.py", "config/translate.py"),
)
"""What decides a translation: a change there makes all steps old."""


@dataclass(frozen=True)
class Cache:
    """A folder of finished steps; `models` are the digests of the weights."""

    directory: Path
    models: tuple[str, ...]

    def get(self, step: Callable[..., Any], key: Data, compute: Callable[[], Data]) -> Data:
        """The answer of a step to a key: from its file, or computed and written there.

        What is computed is read back as JSON, so that both ways give the same.
        """
        file = self.directory / f"{step.__name__}-{self.name(step, key)}.json"
        if not file.exists():
            answer = compute()
            self.directory.mkdir(parents=True, exist_ok=True)
            with writing(file, overwrite=True) as out:
                json.dump({"key": key, "answer": answer}, out, ensure_ascii=False)
        return json.loads(file.read_text(encoding="utf-8"))["answer"]

    def name(self, step: Callable[..., Any], key: Data) -> str:
        """Twelve hexadecimal digits that change with all that decides the answer."""
        own = digest([Path(inspect.getsourcefile(step) or "").read_text(encoding="utf-8")])
        return digest([json.dumps(key, sort_keys=True), *self.models, code(), own])


def digest(parts: Iterable[str]) -> str:
    """A short hash of texts, in order."""
    found = hashlib.sha256()
    for part in parts:
        found.update(f"{len(part)}:{part}".encode())
    return found.hexdigest()[:12]


@cache
def code() -> str:
    """A digest of the source code that translations depend on."""
    package = Path(str(simplexity.__file__)).parent
    files = [
        file
        for place in DECODING
        for file in (
            [package / place] if place.endswith(".py") else (package / place).rglob("*.py")
        )
    ]
    return digest(file.read_text(encoding="utf-8") for file in sorted(files))
