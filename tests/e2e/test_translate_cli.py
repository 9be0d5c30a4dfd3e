"""Translating and scoring by the command line: pipes, forms of output, what is promised of them."""

from __future__ import annotations

import json
import math
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from simplexity.cli import main
from simplexity.objectives import NAMED
from simplexity.search.nbest import NBestLine, read_nbest

DECODERS = {
    "greedy": ["--decoder", "greedy"],
    "beam": ["--decoder", "beam"],
    "right to left": ["--decoder", "beam", "--member", "r2l"],
    "eg": ["--decoder", "eg", "--objective", "joint"],
}
MEMBERS = ("l2r", "r2l", "reverse")

Run = Callable[..., list[str]]


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", "1")


@pytest.fixture(scope="module")
def known() -> dict[tuple[object, ...], list[str]]:
    """Translations of the test set by their options: several tests look at the same ones."""
    return {}


@pytest.fixture
def translate(
    toy_family: Path,
    toy_corpus: Path,
    tmp_path: Path,
    known: dict[tuple[object, ...], list[str]],
) -> Run:
    """The lines of the translations of the test set, or of another source, under some options."""

    def run(*options: object, source: Path | None = None) -> list[str]:
        if source is None:
            if options not in known:
                known[options] = run(*options, source=toy_corpus / "test.xa")
            return known[options]
        out = tmp_path / "translations"
        files = ["-m", toy_family, "-i", source, "-o", out, "--overwrite", "--device", "cpu"]
        command = ["translate", "--quiet", *files, *options]
        assert main([str(part) for part in command]) == 0
        return out.read_text(encoding="utf-8").split("\n")[:-1]

    return run


@pytest.fixture
def score(toy_family: Path, toy_corpus: Path, tmp_path: Path) -> Callable[..., list[float]]:
    """log P of translations of the test set."""

    def run(texts: list[str], member: str, *options: object) -> list[float]:
        target, out = tmp_path / "target", tmp_path / "scores"
        target.write_text("".join(f"{text}\n" for text in texts))
        pair = ["-s", toy_corpus / "test.xa", "-t", target]
        files = ["-m", toy_family, *pair, "-o", out, "--overwrite", "--device", "cpu"]
        command = ["score", "--quiet", *files, "--member", member, *options]
        assert main([str(part) for part in command]) == 0
        return [math.fsum(map(float, line.split())) for line in out.read_text().splitlines()]

    return run


def program(*arguments: object) -> list[str]:
    return [sys.executable, "-m", "simplexity", *(str(argument) for argument in arguments)]


def test_the_family_translates_well(toy_corpus: Path, translate: Run, tmp_path: Path) -> None:
    systems = {name: tmp_path / name.replace(" ", "-") for name in DECODERS}
    for name, file in systems.items():
        file.write_text("".join(f"{line}\n" for line in translate(*DECODERS[name])))
    table, references = tmp_path / "table", toy_corpus / "test.xb"
    asked = [*systems.values(), "-r", references, "--format", "json", "-o", table]
    assert main([str(part) for part in ["evaluate", *asked]]) == 0
    rows = {
        row["system"]: row["cells"][0]["value"] for row in json.loads(table.read_text())["rows"]
    }
    bleu = {name: rows[str(file)] for name, file in systems.items()}
    assert min(bleu["beam"], bleu["right to left"], bleu["eg"]) > 60
    assert bleu["beam"] >= bleu["greedy"] - 5
    assert bleu["eg"] >= bleu["beam"] - 1  # it minds two more models


def test_a_pipe_gives_the_bytes_of_a_file(
    toy_family: Path, toy_corpus: Path, tmp_path: Path
) -> None:
    """Lines as they come: empty ones, ends of Windows, a last one that does not end."""
    lines = (toy_corpus / "test.xa").read_text().splitlines()[:5]
    text = f"{lines[0]}\n\n{lines[1]}\r\n   \n{lines[2]}\n\n{lines[3]}".encode()
    source, out = tmp_path / "source", tmp_path / "out"
    source.write_bytes(text)
    options = ["translate", "-m", toy_family, "--quiet", "--device", "cpu"]
    assert main([str(part) for part in [*options, "-i", source, "-o", out]]) == 0
    piped = subprocess.run(program(*options), input=text, capture_output=True)
    assert (piped.returncode, piped.stderr) == (0, b"")
    assert piped.stdout == out.read_bytes()
    empty = [not line for line in piped.stdout.decode().split("\n")]
    assert empty == [False, True, False, True, False, True, False, True]


def test_a_reader_that_has_enough_ends_it_quietly(toy_family: Path, toy_corpus: Path) -> None:
    # More than a pipe holds, or the program would never notice.
    options = ["-m", toy_family, "--decoder", "greedy", "--output-type", "json", "--device", "cpu"]
    run = subprocess.Popen(
        program("translate", *options),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert run.stdin is not None
    assert run.stdout is not None
    assert run.stderr is not None
    run.stdin.write((toy_corpus / "train.xa").read_bytes())
    run.stdin.close()
    assert json.loads(run.stdout.readline())["sentence_id"] == 0
    run.stdout.close()
    told = run.stderr.read()
    run.stderr.close()
    assert (run.wait(), told) == (0, b"")


@pytest.mark.parametrize("decoder", DECODERS)
def test_batches_change_nothing(
    decoder: str, translate: Run, toy_corpus: Path, tmp_path: Path
) -> None:
    lines = (toy_corpus / "test.xa").read_text().splitlines(keepends=True)[-20:]
    source = tmp_path / "source"
    source.write_text("".join(lines))
    # In bfloat16 the last digits of a sum may depend on what is summed beside it.
    options = [*DECODERS[decoder], *(["--precision", "fp32"] if decoder == "eg" else [])]
    one, three, many = (
        translate(*options, "--batch-size", size, source=source) for size in (1, 3, 64)
    )
    assert one == three == many == translate(*options)[-20:]
    assert len(one) == 20


@pytest.mark.parametrize("decoder", DECODERS)
def test_empty_lines_stay_where_they_are(
    decoder: str, translate: Run, toy_corpus: Path, tmp_path: Path
) -> None:
    lines = (toy_corpus / "test.xa").read_text().splitlines()[:6]
    mixed = tmp_path / "mixed"
    mixed.write_text("\n" + "\n\n".join(lines) + "\n")
    found = translate(*DECODERS[decoder], source=mixed)
    assert found[1::2] == translate(*DECODERS[decoder])[:6]
    assert found[::2] == [""] * 6
    mixed.write_text("")
    assert translate(*DECODERS[decoder], source=mixed) == []


@pytest.mark.parametrize("member", ["l2r", "r2l"])
def test_n_best_lists_hold_the_scores_of_the_model(
    member: str, translate: Run, score: Callable[..., list[float]]
) -> None:
    options = ["--output-type", "nbest", "--n-best", 3, "--beam-size", 3, "--member", member]
    groups = list(read_nbest(translate(*options), "translations"))
    assert len(groups) == 100
    assert [line.text for line, *_ in groups] == translate("--beam-size", 3, "--member", member)
    for group in groups:
        texts = [line.text for line in group]
        assert len(set(texts)) == len(texts)
        assert [line.score for line in group] == sorted((x.score for x in group), reverse=True)
        assert {name for line in group for name in line.features} == {member}
    assert sum(map(len, groups)) > 250

    for place in range(3):
        chosen = []
        for best, *others in groups:
            line = others[place - 1] if 0 < place <= len(others) else best
            # Read again, an end such as ".." is one word, not the two of the search.
            chosen.append(best if re.search(r"\W\W$", line.text) else line)
        own = score([line.text for line in chosen], member)
        assert own == pytest.approx([line.features[member] for line in chosen], abs=1e-4)


def test_relaxed_lists_hold_the_scores_of_all_models(
    translate: Run, score: Callable[..., list[float]]
) -> None:
    groups = read_nbest(translate(*DECODERS["eg"], "--output-type", "nbest"), "translations")
    lines: list[NBestLine] = [line for (line,) in groups]
    for member in MEMBERS:
        own = score([line.text for line in lines], member, "--per-token")
        assert own == pytest.approx([line.features[member] for line in lines], abs=1e-4)


def test_the_guard_keeps_the_joint_cost_below_that_of_the_beam(
    translate: Run, score: Callable[..., list[float]]
) -> None:
    """As the score command counts it, which knows nothing of how the strings were found."""
    weights = NAMED["joint"]

    def joint(texts: list[str]) -> list[float]:
        costs = zip(*(score(texts, member) for member in MEMBERS), strict=True)
        return [-sum(weights[m] * c for m, c in zip(MEMBERS, row, strict=True)) for row in costs]

    start, found = joint(translate("--decoder", "beam")), joint(translate(*DECODERS["eg"]))
    assert all(after <= before + 1e-4 for before, after in zip(start, found, strict=True))
    assert sum(found) < sum(start)
    better = sum(after < before - 1e-3 for before, after in zip(start, found, strict=True))
    assert better >= 3

    records = [json.loads(line) for line in translate(*DECODERS["eg"], "--output-type", "json")]
    assert [r["discrete_cost"] for r in records] == pytest.approx(found, abs=1e-4)
    assert [r["initial_cost"] for r in records] == pytest.approx(start, abs=1e-4)


def test_json_lines_are_complete(translate: Run) -> None:
    keys = {"sentence_id", "translation", "score", "translations", "scores", "terms"}
    keys |= {"continuous_cost", "discrete_cost", "initial_cost", "iterations", "stop"}
    for decoder, options in DECODERS.items():
        lines = translate(*options, "--output-type", "json")
        records = [json.loads(line) for line in lines]
        assert [record["sentence_id"] for record in records] == list(range(100))
        assert [record["translation"] for record in records] == translate(*options)
        for record in records:
            assert keys <= set(record)
            assert record["translations"][0] == record["translation"]
            assert record["scores"][0] == record["score"] <= 0
            assert all(cost > 0 for cost in record["terms"].values())
            if decoder == "eg":
                weighted = sum(NAMED["joint"][n] * c for n, c in record["terms"].items())
                assert record["discrete_cost"] == pytest.approx(weighted, abs=1e-4)
                assert record["discrete_cost"] <= record["initial_cost"]
                assert record["iterations"] >= 1
            else:
                assert list(record["terms"].values()) == [record["discrete_cost"]]


def test_scores_do_not_depend_on_the_batch(
    score: Callable[..., list[float]], toy_corpus: Path
) -> None:
    references = (toy_corpus / "test.xb").read_text().splitlines()
    for member in MEMBERS:
        one, three, many = (score(references, member, "--batch-size", n) for n in (1, 3, 64))
        assert one == pytest.approx(three, abs=1e-5)
        assert one == pytest.approx(many, abs=1e-5)
        assert -100 < min(one) < max(one) < 0


def test_descent_from_a_file_is_descent_from_the_beam(
    translate: Run, toy_corpus: Path, tmp_path: Path
) -> None:
    start = tmp_path / "start"
    start.write_text("".join(f"{line}\n" for line in translate("--decoder", "beam")))
    given = ["--init", "file", "--init-file", start]
    assert translate(*DECODERS["eg"], *given) == translate(*DECODERS["eg"])
