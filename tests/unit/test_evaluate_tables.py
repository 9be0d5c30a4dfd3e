"""Tables of several systems: their numbers, their marks, their four formats."""

from __future__ import annotations

import json
import re

import numpy as np
import pytest
import sacrebleu

from simplexity.errors import SimplexityError, UsageError
from simplexity.evaluate.metrics import Bleu, ChrF, Ter, sufficient
from simplexity.evaluate.significance import approximate_randomisation, paired_bootstrap
from simplexity.evaluate.tables import FORMATS, compare, render

WORDS = ["the", "cat", "sat", "on", "a", "red", "mat", "while", "it", "was", "raining", "in"]
METRICS = [Bleu(), ChrF(), Ter()]


def corrupted(references, share, seed):
    rng = np.random.default_rng(seed)
    return [
        " ".join(str(rng.choice(WORDS)) if rng.random() < share else w for w in line.split())
        for line in references
    ]


@pytest.fixture(scope="module")
def references():
    rng = np.random.default_rng(0)
    return [" ".join(rng.choice(WORDS, rng.integers(6, 14))) for _ in range(40)]


@pytest.fixture(scope="module")
def systems(references):
    return {
        "beam_5": corrupted(references, 0.4, 1),
        "EG & co": corrupted(references, 0.05, 2),
        "a|b": corrupted(references, 0.8, 3),
        "same": corrupted(references, 0.4, 1),
    }


@pytest.fixture(scope="module")
def table(references, systems):
    costs = {name: np.linspace(1, 2, 40) for name in systems}
    costs["beam_5"] = costs["beam_5"] + np.where(np.arange(40) < 10, 0.5, 0.00005)
    del costs["same"]
    return compare(systems, [references], METRICS, "beam_5", search_costs=costs)


def test_cells_hold_sacrebleus_scores(table, references, systems):
    for row in table.rows:
        lines = systems[row.system]
        known = [
            sacrebleu.corpus_bleu(lines, [references], lowercase=True).score,
            sacrebleu.corpus_chrf(lines, [references]).score,
            sacrebleu.corpus_ter(lines, [references]).score,
        ]
        assert [cell.value for cell in row.cells] == pytest.approx(known)
        assert row.lengths.ratio == pytest.approx(1)
        assert all(cell.interval.low < cell.value < cell.interval.high for cell in row.cells)


@pytest.mark.parametrize(
    ("test", "run", "key"),
    [("bootstrap", paired_bootstrap, "bs"), ("randomisation", approximate_randomisation, "ar")],
)
def test_the_test_asked_for_is_the_one_done(references, systems, test, run, key):
    made = compare(systems, [references], METRICS, "beam_5", test, samples=300, seed=7)
    for i, metric in enumerate(METRICS):
        a, b = (sufficient(metric, systems[s], [references]) for s in ("a|b", "beam_5"))
        assert made.rows[2].cells[i].against == run(a, b, metric, 300, 7)
        assert f"|{key}:300|seed:7|" in made.signatures[i]


def test_marks_follow_the_metrics_direction(table):
    marks = {row.system: [(c.better, c.best) for c in row.cells] for row in table.rows}
    assert marks["EG & co"] == [(True, True)] * 3
    assert marks["a|b"] == marks["same"] == marks["beam_5"] == [(False, False)] * 3
    assert [cell.against for cell in table.rows[0].cells] == [None] * 3
    assert table.rows[3].cells[0].against.p_value == 1
    assert table.rows[2].cells[0].against.p_value < 0.05


def test_search_error_counts_what_lies_above_the_best_found(table):
    beam, eg, _, same = (row.search for row in table.rows)
    assert beam.share == pytest.approx(0.25)
    assert beam.excess == pytest.approx((10 * 0.5 + 30 * 0.00005) / 40)
    assert (eg.share, eg.excess) == (0, 0)
    assert same is None


def test_without_baseline_nothing_is_tested(references, systems):
    made = compare({"one": systems["beam_5"]}, [references], [ChrF()])
    (row,) = made.rows
    assert row.cells[0].against is None
    assert not row.cells[0].best
    assert row.search is None
    assert "seed" not in made.signatures[0]
    text = render(made, "text")
    assert text.splitlines()[0].split() == ["system", "chrF", "length", "ratio"]
    assert "†" not in text
    assert "*" not in text


@pytest.mark.parametrize("style", FORMATS)
def test_every_format_prints_every_signature_and_system(table, style):
    written = render(table, style)
    assert written.endswith("\n")
    plain = written.replace("\\textbar{}", "|").replace("\\", "")
    for signature in table.signatures:
        assert signature in plain
    for row in table.rows:
        assert row.system in plain
        if style != "json":
            assert all(f"{cell.value:.2f}" in written for cell in row.cells)


def test_text_columns_stand_below_their_heads(table):
    head, rule, *rows = render(table, "text").splitlines()[:6]
    assert head.startswith("system")
    ends = [match.end() for match in re.finditer("-+", rule)]
    for row in rows:
        assert all(row[end : end + 2].strip() == "" for end in ends)
    assert re.search(r"EG & co +\d+\.\d\d\*† +0\.0010 ", rows[1])
    assert rows[0].split()[-2:] == ["25.0%", "0.1250"]


def test_json_is_the_whole_table(table):
    read = json.loads(render(table, "json"))
    assert read["metrics"] == ["bleu", "chrf", "ter"]
    assert read["baseline"] == "beam_5"
    row = read["rows"][1]
    assert row["system"] == "EG & co"
    assert row["cells"][0]["value"] == table.rows[1].cells[0].value
    assert row["cells"][0]["against"]["p_value"] == table.rows[1].cells[0].against.p_value
    assert read["rows"][0]["cells"][0]["against"] is None
    assert read["rows"][0]["search"]["share"] == pytest.approx(0.25)


def test_markdown_rows_have_equal_cells(table):
    rows = [line for line in render(table, "markdown").splitlines() if line.startswith("|")]
    assert len(rows) == 2 + len(table.rows)
    assert {len(re.findall(r"(?<!\\)\|", row)) for row in rows} == {12}
    assert re.search(r"\| \*\*\d+\.\d\d\*\*† \|", rows[3])
    assert "**" not in rows[2]


def test_latex_is_booktabs_with_bold_and_dagger(table):
    written = render(table, "latex")
    assert written.startswith("\\begin{tabular}{lrrrrrrrrrr}\n\\toprule\n")
    rows = [line for line in written.splitlines() if line.count("&") > 5]
    assert {len(re.findall(r"(?<!\\)&", row)) for row in rows} == {10}
    assert rows[2].startswith("EG \\& co & \\textbf{")
    assert rows[2].count("$^\\dagger$") == 3
    assert rows[1].startswith("beam\\_5 & ")
    assert "25.0\\%" in rows[1]
    assert "textbf" not in rows[1] + rows[3] + rows[4]
    assert written.count("{") == written.count("}")


def test_unequal_lines_name_the_system_and_both_counts(references, systems):
    short = {**systems, "cut": systems["beam_5"][:39]}
    with pytest.raises(
        SimplexityError, match="system 'cut' has 39 lines and reference 1 has 40 lines"
    ):
        compare(short, [references], [Bleu()])
    with pytest.raises(SimplexityError, match="the costs of system 'same' has 1 line"):
        compare(systems, [references], [Bleu()], search_costs={"same": [1.0]})


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"baseline": "beam"}, "no system 'beam'; there are beam_5, EG & co"),
        ({"test": "t"}, "no test 't'; choose from bootstrap, randomisation"),
        ({"search_costs": {"eg": [1.0] * 40}}, "no system 'eg'"),
        ({"search_costs": {"same": [float("inf")] * 40}}, "no finite number"),
    ],
)
def test_requests_that_make_no_sense(references, systems, options, words):
    with pytest.raises(UsageError, match=words):
        compare(systems, [references], [Bleu()], **options)


def test_no_system_and_no_such_format(references, table):
    with pytest.raises(UsageError, match="no system to evaluate"):
        compare({}, [references], [Bleu()])
    with pytest.raises(UsageError, match="put a single set into a list"):
        compare({"one": references}, references, [Bleu()])
    with pytest.raises(UsageError, match="no table format 'pdf'; choose from text"):
        render(table, "pdf")
