"""Results as a page of Markdown with pictures, the paper's figures beside ours."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from simplexity.experiment import paper

Results = dict[str, Any]
Row = dict[str, Any]


def markdown(found: Results, pictures: Sequence[str]) -> str:
    """The whole page."""
    parts = [_head(found)]
    for name, (title, write) in SECTIONS.items():
        if name in found:
            parts.append(f"## {title}")
            parts.append(write(found))
            if f"{name}.svg" in pictures:
                parts.append(f"![{title}]({name}.svg)")
    return "\n\n".join(part.strip() for part in parts) + "\n"


def table(head: Sequence[str], rows: Iterable[Sequence[str]], rule: str = "---:") -> str:
    """A table; the first column is text, the others are numbers unless the rule says otherwise."""
    lines = [head, ["---", *[rule] * (len(head) - 1)], *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _head(found: Results) -> str:
    machine = found["machine"]
    return (
        f"# {found['title']}\n\n"
        f"Written by `simplexity experiment`; models {', '.join(found['models'])}; code "
        f"{found['code']}; torch {machine['versions']['torch']}, {machine['threads']} thread, "
        f"{machine['processor']}. {found['test_sentences']} test sentences. BLEU is "
        "case-insensitive; p is by paired bootstrap. Times are those of a machine that did other "
        "work, too: processor times compare, clock times do not."
    )


def table1_page(found: Results) -> str:
    """The corpus, and the one of the paper that it stands for."""
    rows = [
        [row["part"], _pair(row["tokens"]), _pair(row["types"]), f"{row['sentences']:,}"]
        for row in found["table1"]
    ]
    head = ["part", "tokens", "types", "sentences"]
    if found["paper"] is not None:
        head += [f"{paper.NAMES[found['paper']]}: tokens", "types", "sentences"]
        printed = {name: rest for name, *rest in paper.SIZES[found["paper"]]}
        rows = [[*row, *printed[row[0]]] for row in rows]
    return table(head, rows) + (
        "\n\nSource / target. Types of the training part are those seen at least five times; "
        "Chinese is counted by characters."
    )


def _pair(values: Sequence[int]) -> str:
    return " / ".join(f"{value:,}" for value in values)


def tuning_page(found: Results) -> str:
    """What was chosen, and from what."""
    weights, steps = found["tuning"]["weights"], found["tuning"]["steps"]
    first = table(
        ["objective", "weights", "dev BLEU", "with even weights", "sentences"],
        [
            [
                name,
                row["chosen"],
                f"{max(row['bleu'].values()):.2f}",
                f"{row['even']:.2f}",
                str(row["sentences"]),
            ]
            for name, row in weights.items()
        ],
    )
    second = table(
        ["decoder", "step", "mean dev cost by step", "sentences"],
        [
            [
                name,
                f"{row['chosen']:g}",
                ", ".join(f"{step}: {cost:.3f}" for step, cost in row["costs"].items()),
                str(row["sentences"]),
            ]
            for name, row in steps.items()
        ],
    )
    return (
        "Weights: those in tenths that rerank lists of development sentences to the highest BLEU. "
        "Steps: those after which strings cost least, bidirectionally, from the beam's best.\n\n"
        f"{first}\n\n{second}"
    )


def table2_page(found: Results) -> str:
    """The main results."""
    printed = paper.BLEU.get(found["paper"] or "", {})
    rows = []
    for start, half in found["table2"].items():
        for name, row in half["rows"].items():
            theirs = printed.get(start, {}).get(name)
            bold = (start, name) in paper.BOLD.get(found["paper"] or "", ())
            beside = "" if theirs is None else _bold(f"{theirs:.2f}", bold)
            rows.append([name, *([beside] if printed else []), *_judged(row)])
    head = [paper.NAMES[found["paper"]]] if printed else []
    return (
        table(["system", *head, *JUDGED], rows)
        + "\n\nBold: significantly better than the best greedy or beam search of its half; †: best "
        "of its half. Costs are nats a sentence under each row's own objective; `improved` and "
        "`worsened` count sentences."
    )


JUDGED = (
    *("BLEU", "p", "words", "cost before", "after", "improved", "worsened"),
    "CPU ms/sentence",
)


def _judged(row: Row) -> list[str]:
    number = _bold(f"{row['bleu']:.2f}", row["better"]) + ("†" if row["best"] else "")
    return [
        number,
        "" if row["p"] is None else f"{row['p']:.3f}",
        f"{row['length']:.2f}",
        *(f"{row[name]:.3f}" if name in row else "" for name in ("start", "cost")),
        *(str(row[name]) if name in row else "" for name in ("improved", "worsened")),
        f"{row['cpu_ms']:.1f}" if "cpu_ms" in row else "",
    ]


def _bold(text: str, strong: bool) -> str:
    return f"**{text}**" if strong else text


def table3_page(found: Results) -> str:
    """Reranking."""
    data = found["table3"]
    parts = [
        f"Lists of {data['size']} strings, {data['cpu_ms']:.0f} ms of the processor a sentence to "
        "make and score by all models. p is against beam search, then against reranking (filtered "
        "for EG from the beam, full for EG from the reranked best). The paper's column is WMT."
    ]
    for objective in ("bidirectional", "joint"):
        rows = []
        for name, row in data[objective].items():
            bleu, length = paper.RERANKING[name]
            theirs = [f"{bleu:.2f}", f"{length:.2f}"] if objective == "bidirectional" else []
            other = f"{row['p_rerank']:.3f}" if "p_rerank" in row else ""
            bleu_cell, p, words, *rest = _judged(row)
            rows.append([name, *theirs, bleu_cell, p, other, words, *rest])
        head = ["paper BLEU", "paper words"] if objective == "bidirectional" else []
        names = ["BLEU", "p", "p (rerank)", *JUDGED[2:]]
        parts.append(table([f"system, {objective}", *head, *names], rows))
    return "\n\n".join(parts)


def beyond_page(found: Results) -> str:
    """The search with edits."""
    rows = []
    for name, row in found["beyond"].items():
        bleu, p, words, *_, spent = _judged(row)
        other = f"{row['p_rerank']:.3f}" if "p_rerank" in row else ""
        rows.append([name, bleu, p, other, words, spent])
    head = ["system", "BLEU", "p", "p (rerank)", "words", "CPU ms/sentence"]
    return "Not in the paper: edits and free lengths (docs/edits.md).\n\n" + table(head, rows)


ITERATIONS = (0, 1, 2, 5, 10, 20, 40, 60, 100)


def curve_table(curves: dict[str, Any]) -> str:
    """Continuous cost, discrete cost and BLEU after some numbers of iterations."""
    last = min(len(curve["bleu"]) for curve in curves.values()) - 1
    shown = [t for t in ITERATIONS if t < last] + [last]
    blocks = []
    for measure, digits in (("continuous", 3), ("discrete", 3), ("bleu", 1)):
        rows = [
            [name, *(f"{curve[measure][t]:.{digits}f}" for t in shown)]
            for name, curve in curves.items()
        ]
        label = "BLEU" if measure == "bleu" else f"{measure} cost a word"
        blocks.append(table([f"{label}, after", *map(str, shown)], rows))
    return "\n\n".join(blocks)


def figure1_page(found: Results) -> str:
    """Starts, steps, annealing, momentum."""
    number = next(iter(found["figure1"].values()))["sentences"]
    return (
        f"The first {number} development sentences, forward objective, the paper's setting: costs "
        "by their words, gradients clipped at 5, all words, no guard. EG has step 40, EG-400 and "
        "the annealed one (1 / (1 + 0.1 t)) 400, EG-MOM 50 with momentum 0.9. What is shown after "
        "n iterations is what Algorithm 1 would return then: the iterate of least continuous cost "
        "so far, and its rounding; at 0 that of the start's predictions, which need not be the "
        "string that was searched.\n\n" + curve_table(found["figure1"])
    )


def figure2_page(found: Results) -> str:
    """Discrete against continuous cost."""
    points = found["figure2"]["points"]
    apart = {limit: sum(abs(a - b) > limit for a, b in points) for limit in (0.01, 0.05, 0.2)}
    lines = ", ".join(f"more than {limit}: {number}" for limit, number in apart.items())
    return (
        f"EG with momentum, step 50, from the beam, {len(points)} development sentences after "
        f"{len(found['figure2']['bleu']) - 1} iterations. Sentences whose costs a word differ by "
        f"{lines}."
    )


def figure3_page(found: Results) -> str:
    """EG against SGD."""
    data = found["figure3"]
    return (
        "The paper's setting, step 50 with momentum, forward objective, from the beam:\n\n"
        f"{curve_table(data['paper'])}\n\nThe default setting, bidirectional, each with its own "
        f"tuned step, from the beam:\n\n{curve_table(data['default'])}"
    )


def figure4_page(found: Results) -> str:
    """Examples by number."""
    data = found["figure4"]
    rows = [
        [
            f"{kind}, {row['sentence']}",
            f"{row['chrf']:+.1f}",
            f"{row['start']:.3f}",
            f"{row['cost']:.3f}",
        ]
        for kind in ("mended", "broken")
        for row in data[kind]
    ]
    return (
        f"{data['rule']} The texts are in `examples.txt` of the working folder; sentences of the "
        f"corpora stay outside of the project. {data['different']} of {data['sentences']} "
        f"translations differ, {data['better']} for the better and {data['worse']} for the worse "
        "by chrF.\n\n" + table(["sentence", "chrF", "joint cost before", "after"], rows)
    )


def timing_page(found: Results) -> str:
    """Milliseconds."""
    rows = [
        [
            name,
            f"{row['cpu_ms']:.1f}",
            f"{row['ms']:.1f}",
            *(f"{row[part]:.1f}" if part in row else "" for part in paper.SPLIT),
        ]
        for name, row in found["timing"].items()
    ]
    theirs = ", ".join(f"{name} {spent}" for name, spent in paper.MILLISECONDS.items())
    split = ", ".join(f"{name} {spent}" for name, spent in paper.SPLIT.items())
    return (
        table(["system", "CPU ms/sentence", "clock ms", *paper.SPLIT], rows)
        + f"\n\nIn batches, by turns. The paper, on a Titan X: {theirs} ms ({split})."
    )


def claims_page(found: Results) -> str:
    """What of the paper holds here."""
    return claims_table(found["claims"])


def claims_table(claims: Iterable[dict[str, str]]) -> str:
    """Claims, rules, figures, verdicts."""
    rows = [[c["claim"], c["rule"], c["figures"], f"**{c['verdict']}**"] for c in claims]
    return table(["claim", "rule", "here", "verdict"], rows, rule="---")


SECTIONS: dict[str, tuple[str, Callable[[Results], str]]] = {
    "claims": ("The paper's claims", claims_page),
    "table1": ("Table 1: the corpus", table1_page),
    "tuning": ("Chosen on development data", tuning_page),
    "table2": ("Table 2: main results", table2_page),
    "table3": ("Table 3: reranking", table3_page),
    "beyond": ("Beyond: search with edits", beyond_page),
    "figure1": ("Figure 1: starts, steps, momentum", figure1_page),
    "figure2": ("Figure 2: discrete against continuous cost", figure2_page),
    "figure3": ("Figure 3: EG against SGD", figure3_page),
    "figure4": ("Figure 4: examples", figure4_page),
    "timing": ("Timing", timing_page),
}
