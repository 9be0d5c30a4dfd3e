"""The page that puts all experiments beside the paper, made from their committed results."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from simplexity.experiment import paper
from simplexity.experiment.report import table

Results = dict[str, Any]

HEAD = """# The paper, redone

Every table and figure of Hoang, Haffari and Cohn (EMNLP 2017), on corpora that anyone can get, with
tests of significance. Made from `experiments/results/*/results.json` by `make results`; do not
edit: what is said about the figures stands in `experiments/notes.md`.

    simplexity experiment tatoeba-zh-en --corpus FOLDER --family FAMILY
    make paper-small

One command makes all items of a corpus: it trains what is not there, chooses weights and steps on
development data, tests, draws. Recipes are in `experiments/`; a finished step is never redone. The
full results of each corpus, with all costs, times, p-values and pictures:"""


def page(experiments: Mapping[str, Results], notes: str) -> str:
    """The page; `experiments` are results by the name of their recipe."""
    links = "\n".join(
        f"* [{found['title']}](../experiments/results/{name}/results.md)"
        + (f", for the paper's {paper.NAMES[found['paper']]}" if found["paper"] else "")
        + f": {found['test_sentences']} test sentences"
        for name, found in experiments.items()
    )
    parts = [
        f"{HEAD}\n\n{links}",
        f"## What the paper claims\n\n{verdicts(experiments)}",
        notes.strip(),
        f"## Table 2: main results\n\n{main_results(experiments)}",
        f"## Table 3: reranking, bidirectional\n\n{reranking(experiments)}",
        figures(experiments),
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def verdicts(experiments: Mapping[str, Results]) -> str:
    """Each claim with its verdict on every corpus."""
    claims: dict[str, str] = {}
    by_corpus: dict[str, dict[str, str]] = {}
    for name, found in experiments.items():
        by_corpus[name] = {c["name"]: c["verdict"] for c in found["claims"]}
        claims |= {c["name"]: c["claim"] for c in found["claims"]}
    rows = [
        [claim, *(found.get(short, "not measured") for found in by_corpus.values())]
        for short, claim in claims.items()
    ]
    return (
        "Each is judged by a rule from the figures (`src/simplexity/experiment/claims.py`); the "
        "results of each corpus say the rules and the figures.\n\n"
        + table(["claim", *experiments], rows)
    )


def main_results(experiments: Mapping[str, Results]) -> str:
    """BLEU of all corpora, the paper's column beside ours."""
    shown = {name: found for name, found in experiments.items() if "table2" in found}
    if not shown:
        return "Not measured yet."
    head = ["system"]
    for name, found in shown.items():
        head += [f"paper: {paper.NAMES[found['paper']]}"] if found["paper"] else []
        head.append(name)
    rows = [
        [system, *(cell for found in shown.values() for cell in _cells(found, start, system))]
        for start, half in next(iter(shown.values()))["table2"].items()
        for system in half["rows"]
    ]
    return (
        table(head, rows)
        + "\n\nCase-insensitive BLEU. Bold: significantly better (p < 0.05) than the best greedy "
        "or beam search of its half; †: best of its half. `+joint` is not in the paper."
    )


def _cells(found: Results, start: str, system: str) -> list[str]:
    row = found["table2"][start]["rows"][system]
    number = f"**{row['bleu']:.2f}**" if row["better"] else f"{row['bleu']:.2f}"
    cells = [number + ("†" if row["best"] else "")]
    if found["paper"]:
        value = paper.BLEU[found["paper"]][start].get(system)
        bold = "**" if (start, system) in paper.BOLD[found["paper"]] else ""
        cells.insert(0, "" if value is None else f"{bold}{value:.2f}{bold}")
    return cells


def reranking(experiments: Mapping[str, Results]) -> str:
    """BLEU and average length of all corpora."""
    shown = {name: found for name, found in experiments.items() if "table3" in found}
    if not shown:
        return "Not measured yet."
    head = ["system", "paper: WMT", "words"]
    for name in shown:
        head += [name, "words"]
    rows = []
    for system, (bleu, length) in paper.RERANKING.items():
        row = [system, f"{bleu:.2f}", f"{length:.2f}"]
        for found in shown.values():
            ours = found["table3"]["bidirectional"][system]
            bold = "**" if ours["better"] else ""
            row += [f"{bold}{ours['bleu']:.2f}{bold}", f"{ours['length']:.2f}"]
        rows.append(row)
    return table(head, rows) + "\n\nBold: significantly better than beam search."


def figures(experiments: Mapping[str, Results]) -> str:
    """The pictures of every corpus that has them."""
    parts = []
    for number, title in (
        (1, "starts, step size, annealing, momentum"),
        (2, "discrete against continuous cost"),
        (3, "EG against SGD"),
    ):
        shown = [name for name, found in experiments.items() if f"figure{number}" in found]
        if shown:
            parts.append(f"## Figure {number}: {title}")
        for name in shown:
            file = f"../experiments/results/{name}/figure{number}.svg"
            parts.append(f"{experiments[name]['title']}:\n\n![Figure {number}]({file})")
    return "\n\n".join(parts)
