"""What `make demo` shows, on the toy family."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import simplexity

ROOT = Path(__file__).parents[2]


def test_it_compares_beam_search_with_joint_searches(
    toy_corpus: Path, toy_family: Path, tmp_path: Path
) -> None:
    lines = (toy_corpus / "test.xa").read_text().splitlines()[:12]
    (tmp_path / "dozen").write_text("\n".join(lines) + "\n")
    run = subprocess.run(
        [sys.executable, ROOT / "examples" / "compare.py", tmp_path / "dozen", toy_family],
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
    )
    assert (run.returncode, run.stderr) == (0, "")
    kinds = ("beam ", "descent ", "edits ")
    rows = [line for line in run.stdout.splitlines() if line.startswith(kinds)]
    assert len(rows) == 36
    costs = [[float(cost) for cost in row.split()[-3:]] for row in rows]
    for before, after in zip(costs[::3], costs[1::3], strict=True):
        assert sum(after) <= sum(before) + 0.05  # weights are not quite equal, figures are rounded
    models = simplexity.load(toy_family, device="cpu")
    for number, (line, found) in enumerate(zip(lines, models.translate(lines), strict=True)):
        assert line in run.stdout
        assert f"beam     {found.text} " in rows[3 * number]
    score = next(iter(models.score([(lines[0], models.translate(lines[:1])[0].text)], "reverse")))
    assert abs(costs[0][2] + score.total) < 0.006


def test_the_sentences_of_the_demo_are_a_dozen() -> None:
    sentences = (ROOT / "examples" / "sentences.de").read_text(encoding="utf-8").splitlines()
    assert len(sentences) == len(set(sentences)) == 12
