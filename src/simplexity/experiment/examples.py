"""Figure 4: examples chosen by a rule; their texts never leave the working folder.

The rule: of the test sentences whose translation by EG under the joint objective (from the beam's
best) differs from the beam's, those whose chrF against the reference rises most, and those whose
chrF falls most. Ties go to the earlier sentence.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from simplexity.evaluate.metrics import from_sufficient, metric_named, sufficient
from simplexity.experiment.tuning import Chosen
from simplexity.experiment.workbench import Decoded, Workbench, decode
from simplexity.text.files import writing

RULE = (
    "Of the test sentences whose translation by joint EG from the beam's best differs from the "
    "beam's: those whose sentence chrF rises most, and those whose chrF falls most."
)
EQUAL = 1e-9


def figure4(bench: Workbench, choice: Chosen) -> dict[str, Any]:
    """Numbers of the sentences, from 1, what changed in them, and how many rose and fell."""
    found, change = _changes(bench, choice)
    order = np.argsort(-change, kind="stable").tolist()
    number = bench.recipe.examples
    mended = [n for n in order if change[n] > EQUAL][:number]
    broken = [n for n in reversed(order) if change[n] < -EQUAL][:number]
    return {
        "rule": RULE,
        "sentences": len(change),
        "different": sum(a != b for a, b in zip(*_texts(bench, found), strict=True)),
        "better": int((change > EQUAL).sum()),
        "worse": int((change < -EQUAL).sum()),
        "mended": [_row(n, change, found) for n in mended],
        "broken": [_row(n, change, found) for n in broken],
    }


def write_texts(bench: Workbench, report: dict[str, Any], choice: Chosen, file: Path) -> None:
    """The examples as text, for the eyes of whoever has the corpus."""
    found, _ = _changes(bench, choice)
    before, after = _texts(bench, found)
    with writing(file, overwrite=True) as out:
        for kind in ("mended", "broken"):
            for row in report[kind]:
                n = row["sentence"] - 1
                out.write(
                    f"{kind}, sentence {n + 1}, chrF {row['chrf']:+.1f}\n"
                    f"  source     {bench.test.sources[n]}\n"
                    f"  reference  {bench.test.references[n]}\n"
                    f"  beam       {before[n]}\n"
                    f"  joint EG   {after[n]}\n\n"
                )


def _changes(bench: Workbench, choice: Chosen) -> tuple[Decoded, Any]:
    """Joint EG, and by how much it changes the chrF of each sentence."""
    found = decode(bench, bench.test, choice.options("eg", "beam", "joint"))
    chrf = metric_named("chrf", bench.recipe.tokenise)
    references = [list(bench.test.references)]
    before, after = (
        from_sufficient(chrf, sufficient(chrf, texts, references)) for texts in _texts(bench, found)
    )
    return found, after - before


def _texts(bench: Workbench, found: Decoded) -> tuple[list[str], list[str]]:
    return decode(bench, bench.test, {"decoder": "beam"}).texts, found.texts


def _row(n: int, change: Any, found: Decoded) -> dict[str, Any]:
    return {
        "sentence": n + 1,
        "chrf": float(change[n]),
        "start": found.initial[n],
        "cost": found.discrete[n],
    }
