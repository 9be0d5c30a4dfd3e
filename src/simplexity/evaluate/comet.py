"""COMET through files, run by the user's `comet-score` from an environment of its own.

COMET asks for an older transformers than we do, so it cannot be imported here.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from simplexity.errors import SimplexityError
from simplexity.evaluate.metrics import check_parallel


def write_comet_inputs(
    folder: Path,
    sources: Sequence[str],
    systems: Mapping[str, Sequence[str]],
    references: Sequence[str],
) -> list[str]:
    """Write the files that `comet-score` reads; returns its arguments, systems in their order."""
    names = {f"system {name!r}": lines for name, lines in systems.items()}
    check_parallel({"the source": sources, "the reference": references, **names})
    folder.mkdir(parents=True, exist_ok=True)
    files = [f"system-{number}.txt" for number in range(1, len(systems) + 1)]
    parts = [sources, references, *systems.values()]
    for file, lines in zip(["source.txt", "reference.txt", *files], parts, strict=True):
        text = "".join(" ".join(line.splitlines()) + "\n" for line in lines)
        (folder / file).write_text(text, encoding="utf-8")
    return ["-s", "source.txt", "-r", "reference.txt", "-t", *files]


def read_comet_scores(path: Path) -> dict[str, list[float]]:
    """Scores of each sentence by translation file, from the file that `--to_json` wrote."""
    try:
        written = json.loads(path.read_text(encoding="utf-8"))
        return {
            Path(file).name: [float(line["COMET"]) for line in lines]
            for file, lines in written.items()
        }
    except (OSError, ValueError, TypeError, KeyError, AttributeError) as error:
        raise SimplexityError(
            f"{path} holds no COMET scores: give the file that comet-score --to_json wrote"
        ) from error


def run_comet(
    executable: str,
    model: str,
    folder: Path,
    sources: Sequence[str],
    systems: Mapping[str, Sequence[str]],
    references: Sequence[str],
) -> dict[str, list[float]]:
    """Scores of each system's sentences by running `comet-score`; its files stay in `folder`."""
    arguments = write_comet_inputs(folder, sources, systems, references)
    command = [executable, *arguments, "--model", model, "--to_json", "scores.json", "--quiet"]
    try:
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    except OSError as error:
        raise SimplexityError(
            f"cannot run {executable}: give the full path of comet-score in its environment"
        ) from error
    if done.returncode:
        last = (done.stderr.strip().splitlines() or ["it says nothing"])[-1]
        raise SimplexityError(f"{executable} failed with exit code {done.returncode}: {last}")
    scores = read_comet_scores(folder / "scores.json")
    found = {
        name: scores.get(f"system-{number}.txt", []) for number, name in enumerate(systems, start=1)
    }
    check_parallel({"the source": sources, **{f"COMET of {n!r}": s for n, s in found.items()}})
    return found
