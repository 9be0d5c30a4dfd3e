"""One comparison of systems written as text, JSON, Markdown or LaTeX."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import asdict

from simplexity.errors import UsageError
from simplexity.evaluate.comparison import (
    LEVEL,
    Cell,
    Row,
    SearchError,
    Table,
    compare,
)

__all__ = ["FORMATS", "Cell", "Row", "SearchError", "Table", "compare", "render"]

FORMATS = ("text", "json", "markdown", "latex")


def render(table: Table, style: str) -> str:
    """The table as `text`, `json`, `markdown` or `latex`, ending in a line break."""
    writers: dict[str, Callable[[Table], str]] = {
        "text": _text,
        "json": _json,
        "markdown": _markdown,
        "latex": _latex,
    }
    if style not in writers:
        raise UsageError(f"there is no table format {style!r}; choose from {', '.join(FORMATS)}")
    return writers[style](table)


def _head(table: Table) -> list[str]:
    tested = ["p"] if table.baseline is not None else []
    searched = ["search error", "excess cost"] if _searched(table) else []
    scores = [name for label in table.labels for name in (label, *tested)]
    return ["system", *scores, "length", "ratio", *searched]


def _searched(table: Table) -> bool:
    return any(row.search is not None for row in table.rows)


def _body(
    table: Table, name: Callable[[str], str], value: Callable[[Cell], str], percent: str
) -> list[list[str]]:
    lines = []
    for row in table.rows:
        line = [name(row.system)]
        for cell in row.cells:
            line.append(value(cell))
            if table.baseline is not None:
                line.append("" if cell.against is None else f"{cell.against.p_value:.4f}")
        line += [f"{row.lengths.average:.2f}", f"{row.lengths.ratio:.3f}"]
        if _searched(table):
            line += _search(row.search, percent)
        lines.append(line)
    return lines


def _search(error: SearchError | None, percent: str) -> list[str]:
    if error is None:
        return ["", ""]
    return [f"{100 * error.share:.1f}{percent}", f"{error.excess:.4f}"]


def _notes(table: Table) -> list[str]:
    pairs = zip(table.labels, table.signatures, strict=True)
    return [f"{label}: {text}" for label, text in pairs]


def _legend(table: Table, strong: str, best: str) -> list[str]:
    parts = [f"{best}: best of its column"] if len(table.rows) > 1 else []
    if table.baseline is not None:
        parts.append(f"{strong}: better than {table.baseline}, {table.test} p < {LEVEL}")
    return parts


def _text(table: Table) -> str:
    def value(cell: Cell) -> str:
        return f"{cell.value:.2f}{'*' if cell.better else ' '}{'†' if cell.best else ' '}"

    lines = [_head(table), *_body(table, str, value, "%")]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    shown = [
        "  ".join([line[0].ljust(widths[0]), *map(str.rjust, line[1:], widths[1:])]).rstrip()
        for line in lines
    ]
    shown.insert(1, "  ".join("-" * width for width in widths))
    return _joined([*shown, "", *_legend(table, "*", "†"), *_notes(table)])


def _json(table: Table) -> str:
    return json.dumps(asdict(table), ensure_ascii=False, indent=2, allow_nan=False) + "\n"


def _markdown(table: Table) -> str:
    def value(cell: Cell) -> str:
        number = f"**{cell.value:.2f}**" if cell.better else f"{cell.value:.2f}"
        return number + ("†" if cell.best else "")

    def name(text: str) -> str:
        return text.replace("\\", "\\\\").replace("|", "\\|")

    head = _head(table)
    rule = ["---", *["---:"] * (len(head) - 1)]
    shown = [f"| {' | '.join(line)} |" for line in [head, rule, *_body(table, name, value, "%")]]
    legend = [f"- {name(line)}" for line in _legend(table, "bold", "†")]
    return _joined([*shown, "", *legend, *[f"- `{note}`" for note in _notes(table)]])


def _latex(table: Table) -> str:
    def value(cell: Cell) -> str:
        number = f"\\textbf{{{cell.value:.2f}}}" if cell.better else f"{cell.value:.2f}"
        return number + ("$^\\dagger$" if cell.best else "")

    head = _head(table)
    body = _body(table, _escaped, value, "\\%")
    notes = map(_escaped, [*_legend(table, "bold", "dagger"), *_notes(table)])
    wide = f"\\multicolumn{{{len(head)}}}{{l}}"
    return _joined(
        [
            f"\\begin{{tabular}}{{l{'r' * (len(head) - 1)}}}",
            "\\toprule",
            " & ".join(head) + r" \\",
            "\\midrule",
            *[" & ".join(line) + r" \\" for line in body],
            "\\bottomrule",
            *[f"{wide}{{\\footnotesize {note}}} \\\\" for note in notes],
            "\\end{tabular}",
        ]
    )


def _escaped(text: str) -> str:
    special = {
        "\\": r"\textbackslash{}",
        "~": r"\textasciitilde{}",
        "^": r"\textasciicircum{}",
        "|": r"\textbar{}",
        "<": r"\textless{}",
        ">": r"\textgreater{}",
    }
    return "".join(special.get(c, f"\\{c}" if c in "&%$#_{}" else c) for c in text)


def _joined(lines: Sequence[str]) -> str:
    return "\n".join(lines).rstrip("\n") + "\n"
