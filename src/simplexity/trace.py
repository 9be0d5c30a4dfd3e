"""Every iteration of a descent as JSON lines: costs, the string so far, the likeliest words."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from math import isfinite
from typing import Protocol, TextIO

from torch import Tensor

from simplexity.decode import Descent, Watch
from simplexity.relax.optimise import Iterate
from simplexity.relax.tokens import harden, likeliest, unpad
from simplexity.text.vocabulary import Vocabulary

TOP = 5
"""Words shown for each position."""


class Watcher(Protocol):
    """Sees what passes in the descents of whole batches."""

    def of(self, sentences: Sequence[int]) -> Watch:
        """A watch for a batch of these sentences, counted from 0 in the input."""
        ...


@dataclass(frozen=True)
class Trace:
    """Writes what passes: one line for each iteration of each sentence."""

    file: TextIO
    target: Vocabulary

    def of(self, sentences: Sequence[int]) -> Watch:
        """A watch for a batch of these sentences."""

        def watch(descent: Descent, owner: Tensor) -> Descent:
            names = _names([sentences[row] for row in owner.tolist()])
            iterate = next(descent)
            while True:
                self._write(iterate, names)
                keep = yield iterate
                iterate = next(descent) if keep is None else descent.send(keep)

        return watch

    def _write(self, iterate: Iterate, names: list[tuple[int, int]]) -> None:
        y = iterate.y.with_probs(iterate.y.probs.nan_to_num())  # JSON has no word for NaN
        words, probs = likeliest(y, min(TOP, y.probs.shape[-1]))
        rows = zip(
            iterate.rows.tolist(),
            iterate.cost.tolist(),
            unpad(harden(y)),
            words.tolist(),
            probs.tolist(),
            strict=True,
        )
        for row, cost, string, choices, masses in rows:
            top = [
                dict(zip(self.target.pieces(ids), mass, strict=True))
                for ids, mass in zip(choices[: len(string)], masses[: len(string)], strict=True)
            ]
            sentence, start = names[row]
            record = {
                "sentence_id": sentence,
                "start": start,
                "iteration": iterate.t,
                "continuous_cost": cost if isfinite(cost) else None,
                "translation": self.target.decode(string),
                "top": top,
            }
            self.file.write(json.dumps(record, ensure_ascii=False) + "\n")


def _names(sentences: list[int]) -> list[tuple[int, int]]:
    """Each start of a batch as its sentence, and which of that sentence's starts it is."""
    seen: Counter[int] = Counter()
    names = []
    for sentence in sentences:
        names.append((sentence, seen[sentence]))
        seen[sentence] += 1
    return names
