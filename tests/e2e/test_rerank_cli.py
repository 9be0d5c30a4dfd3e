"""Reranking and tuning by the command line, with models and from scores that are kept."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from simplexity.cli import main
from simplexity.evaluate.metrics import Bleu, score
from simplexity.search.nbest import NBestLine, format_line, read_nbest

Run = Callable[..., list[str]]


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", "1")


def lines(path: Path) -> list[str]:
    return path.read_text(encoding="utf-8").split("\n")[:-1]


def command(*arguments: object) -> int:
    return main([str(argument) for argument in arguments])


@pytest.fixture
def run(tmp_path: Path) -> Run:
    """What a command writes."""

    def write(*arguments: object) -> list[str]:
        out = tmp_path / "out"
        assert command(*arguments, "-o", out, "--overwrite", "--quiet") == 0
        return lines(out)

    return write


@pytest.fixture(scope="module")
def source(toy_corpus: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Thirty lines, one of them empty."""
    path = tmp_path_factory.mktemp("source") / "source"
    kept = lines(toy_corpus / "test.xa")[:30]
    kept[7] = ""
    path.write_text("".join(f"{line}\n" for line in kept))
    return path


@pytest.fixture(scope="module")
def reference(toy_corpus: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("reference") / "reference"
    path.write_text("".join(f"{line}\n" for line in lines(toy_corpus / "test.xb")[:30]))
    return path


@pytest.fixture(scope="module")
def ours(source: Path, toy_family: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A list of our beam search, with the scores of l2r."""
    path = tmp_path_factory.mktemp("lists") / "nbest"
    beam = ["--beam-size", 8, "--n-best", 8, "--output-type", "nbest", "--quiet"]
    assert command("translate", "-m", toy_family, "-i", source, "-o", path, *beam) == 0
    return path


@pytest.fixture(scope="module")
def scored(
    ours: Path, source: Path, toy_family: Path, tmp_path_factory: pytest.TempPathFactory
) -> tuple[Path, list[str]]:
    """The same list with all scores, and the best by the joint objective as models chose it."""
    folder = tmp_path_factory.mktemp("scored")
    cache, best = folder / "cache", folder / "best"
    given = ["-n", ours, "-s", source, "-m", toy_family, "--scores-cache", cache, "-o", best]
    assert command("rerank", *given, "--quiet") == 0
    return cache, lines(best)


def test_the_cache_is_the_list_with_features(ours: Path, scored: tuple[Path, list[str]]) -> None:
    before = [line for group in read_nbest(lines(ours), "ours") for line in group]
    after = [line for group in read_nbest(lines(scored[0]), "cache") for line in group]
    assert [(x.sentence, x.text, x.score) for x in after] == (
        [(x.sentence, x.text, x.score) for x in before]
    )
    for old, new in zip(before, after, strict=True):
        assert list(new.features) == ["l2r", "r2l", "reverse", "tokens", "source_tokens"]
        assert new.features["l2r"] == old.features.get("l2r", 0.0)  # taken as it stood there


def test_kept_scores_give_the_same_without_a_model(
    scored: tuple[Path, list[str]], run: Run
) -> None:
    cache, best = scored
    assert len(best) == 30
    assert best[7] == ""
    assert run("rerank", "-n", cache) == best
    assert run("rerank", "-n", cache, "--normalise", "sum", "--objective", "l2r=1") != best


def test_without_models_torch_is_not_imported(scored: tuple[Path, list[str]]) -> None:
    asked = ["rerank", "--quiet", "-n", str(scored[0])]
    code = f"import sys; from simplexity.cli import main; assert main({asked!r}) == 0; "
    code += "sys.exit('torch' in sys.modules)"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert (run.returncode, run.stderr) == (0, "")
    assert run.stdout.split("\n")[:-1] == scored[1]


def test_standard_input_is_as_good_as_a_file(scored: tuple[Path, list[str]]) -> None:
    cache, best = scored
    asked = [sys.executable, "-m", "simplexity", "rerank", "--quiet"]
    with cache.open() as stdin:
        run = subprocess.run(asked, stdin=stdin, capture_output=True, text=True, check=True)
    assert run.stdout.split("\n")[:-1] == best


def test_the_decoder_agrees_with_the_command(
    scored: tuple[Path, list[str]], source: Path, toy_family: Path, run: Run
) -> None:
    joint = ["--objective", "joint", "--decoder", "rerank", "--beam-size", 8]
    assert run("translate", "-m", toy_family, "-i", source, *joint) == scored[1]


def test_scores_are_those_of_the_score_command(
    scored: tuple[Path, list[str]], source: Path, toy_family: Path, tmp_path: Path, run: Run
) -> None:
    groups = list(read_nbest(lines(scored[0]), "cache"))
    kept = [group[-1] for group in groups if group[0].text]
    full = [line for line in lines(source) if line]
    (tmp_path / "x").write_text("".join(f"{line}\n" for line in full))
    (tmp_path / "y").write_text("".join(f"{line.text}\n" for line in kept))
    for member in ("l2r", "r2l", "reverse"):
        pair = ["-m", toy_family, "-s", tmp_path / "x", "-t", tmp_path / "y"]
        found = list(map(float, run("score", *pair, "--member", member)))
        assert found == pytest.approx([line.features[member] for line in kept], abs=2e-4)


def test_all_forms_of_output_tell_the_same(scored: tuple[Path, list[str]], run: Run) -> None:
    cache, best = scored
    records = [json.loads(line) for line in run("rerank", "-n", cache, "--output-type", "json")]
    assert [record["translation"] for record in records] == best
    nbest = run("rerank", "-n", cache, "--output-type", "nbest", "--n-best", 3)
    for number, group in enumerate(read_nbest(nbest, "out")):
        assert [line.text for line in group] == records[number]["translations"][:3]
        assert [line.score for line in group] == records[number]["scores"][:3]
        assert all(line.features["reverse"] <= 0 for line in group)
    assert any(record["discrete_cost"] < record["initial_cost"] for record in records)


def test_filtered_is_never_longer_than_the_one_best(
    scored: tuple[Path, list[str]], run: Run
) -> None:
    cache, best = scored
    firsts = [group[0] for group in read_nbest(lines(cache), "cache")]
    asked = ["--filtered", "--output-type", "nbest"]
    groups = list(read_nbest(run("rerank", "-n", cache, *asked), "out"))
    for first, group in zip(firsts, groups, strict=True):
        assert all(line.features["tokens"] <= first.features["tokens"] for line in group)
    assert [group[0].text for group in groups] != best


def test_another_systems_list_and_its_own_features(
    source: Path, toy_family: Path, tmp_path: Path, run: Run
) -> None:
    """Marian's names; sentences without hypotheses, also at the end, get empty lines."""
    path = tmp_path / "marian"
    path.write_text(
        "1 ||| ni birdo ||| F0= -4.25 F1= -3.5 ||| -0.5\n"
        "1 ||| zzz yyy ||| F0= -9.5 F1= -0.5 ||| -0.7\n"
    )
    given = ["-n", path, "-s", source, "-m", toy_family]
    found = run("rerank", *given, "--objective", "F0=0.5,r2l=0.5")
    assert found == ["", "ni birdo", *[""] * 28]
    assert run("rerank", "-n", path, "--objective", "F1=1", "--normalise", "sum")[1] == "zzz yyy"
    assert run("rerank", "-n", path, "--objective", "F1=-1", "--normalise", "sum")[1] == "ni birdo"


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("0 ||| a dog", "line 3: expected 'sentence ||| text ||| features ||| score'"),
        ("zero ||| a ||| l2r= -1 ||| -1", "line 3: 'zero' is no sentence number"),
        ("0 ||| a ||| l2r= x ||| -1", "line 3: the value of l2r is no number"),
        ("0 ||| a ||| F0= -1 ||| -1", "line 3 has no feature 'l2r'"),
        ("30 ||| a ||| l2r= -1 ||| -1", "line 3: its sentence lies beyond the 30 lines"),
    ],
)
def test_a_wrong_line_is_named_before_anything_is_written(
    line: str,
    expected: str,
    source: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    path, cache = tmp_path / "list", tmp_path / "cache"
    good = "0 ||| a ||| l2r= -1 tokens= 1 ||| -1\n"
    path.write_text(good * 2 + line + "\n")
    asked = ["rerank", "-n", path, "-s", source, "--objective", "l2r=1", "--scores-cache", cache]
    assert command(*asked) == 1
    said = capsys.readouterr()
    assert said.out == ""
    assert f"list, {expected}" in said.err
    assert said.err.count("\n") == 1
    assert not cache.exists()


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["rerank", "-m", "family"], "give --source"),
        (["rerank", "--rescore"], "--rescore needs --model"),
        (["rerank", "-s", "-", "-m", "family"], "cannot both be standard input"),
        (["rerank", "--objective", "l2r=0"], "The weight of l2r is 0"),
        (["rerank", "--objective", "l2r=1,l2r=2"], "names l2r twice"),
        (["rerank", "--objective", "=1"], "has a part without a name"),
        (["rerank", "--objective", "jiont"], "did you mean 'joint'?"),
        (["translate", "-m", "f", "--filtered"], "--filtered goes with --decoder rerank"),
        (["tune", "-r", "r"], "give --model FAMILY and --source FILE, or an n-best list"),
        (["tune", "step", "-r", "r", "-n", "x"], "give --model FAMILY and --source FILE"),
        (["tune", "-r", "r", "-m", "f"], "--model needs --source"),
        (["tune", "steps", "-r", "r"], "'steps' is not one of 'weights', 'step'"),
        (
            ["tune", "step", "-r", "r", "-m", "f", "-s", "s", "--decoder", "rerank"],
            "reranking has no step size",
        ),
        (
            ["tune", "-r", "r", "-m", "f", "-s", "s", "--decoder", "eg", "--method", "mert"],
            "mert needs n-best lists",
        ),
        (
            ["tune", "-r", "r", "-m", "f", "-s", "s", "--decoder", "eg", "--by", "cost"],
            "costs of different weights cannot be compared",
        ),
        (
            ["tune", "step", "-r", "r", "-m", "f", "-s", "s", "--filtered"],
            "--filtered is for the weights of reranking",
        ),
    ],
)
def test_requests_that_make_no_sense(
    arguments: list[str], expected: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert command(*arguments) == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert expected in said.err


def bleu(texts: list[str], reference: Path) -> float:
    return score(Bleu(), texts, [lines(reference)]).value


@pytest.mark.parametrize("method", [["mert", "--non-negative"], ["random", "--samples", 50]])
def test_learnt_weights_do_what_is_said_of_them(
    method: list[object],
    scored: tuple[Path, list[str]],
    reference: Path,
    run: Run,
) -> None:
    asked = ["tune", "-n", scored[0], "-r", reference, "--resamples", 50, "--objective", "joint"]
    report = json.loads("\n".join(run(*asked, "--format", "json", "--method", *method)))
    assert report["before"] == pytest.approx(bleu(scored[1], reference))
    assert report["after"] >= report["before"]
    assert sum(report["weights"].values()) == pytest.approx(1, abs=1e-5)
    again = run("rerank", "-n", scored[0], *report["flags"].split())
    assert bleu(again, reference) == pytest.approx(report["after"])
    assert report["gain"]["low"] <= report["gain"]["difference"] <= report["gain"]["high"]
    assert report["held_out"] is not None


def test_unset_all_features_of_the_list_are_weighed(tmp_path: Path, run: Run) -> None:
    words = ["one", "two", "three", "four", "five", "six", "seven"]
    reference, path = tmp_path / "reference", tmp_path / "list"
    reference.write_text("".join(f"{' '.join(words[n:] + words[:n])}\n" for n in range(7)))
    path.write_text(
        "".join(
            format_line(NBestLine(n, text, {"F0": good, "F1": 1.0 - good}, 0.0)) + "\n"
            for n, right in enumerate(lines(reference))
            for text, good in [("zero", 0.0), (right, 1.0)]
        )
    )
    asked = ["tune", "-n", path, "-r", reference, "--resamples", 20, "--normalise", "sum"]
    *_, flags = run(*asked)
    assert set(flags.split()[1].replace("=", ",").split(",")) >= {"F0"}
    assert run("rerank", "-n", path, *flags.split()) == lines(reference)


def test_tune_makes_and_keeps_its_own_list(
    scored: tuple[Path, list[str]],
    source: Path,
    reference: Path,
    toy_family: Path,
    tmp_path: Path,
    run: Run,
) -> None:
    cache = tmp_path / "cache"
    asked = ["tune", "-r", reference, "--resamples", 50, "--objective", "joint"]
    made = ["-m", toy_family, "-s", source, "--beam-size", 8, "--scores-cache", cache]
    report = run(*asked, *made)
    assert run(*asked, "-n", cache) == report
    assert run("rerank", "-n", cache) == scored[1]
    # A list and models together: what the list lacks is computed.
    completed = run(*asked, "-n", scored[0], "-m", toy_family, "-s", source)
    assert completed[0] == report[0]


def test_tune_step_decodes_with_every_step(
    source: Path, reference: Path, toy_family: Path, tmp_path: Path, run: Run
) -> None:
    settings = tmp_path / "settings.yaml"
    settings.write_text("iterations: 3\ninit: greedy\n")
    given = ["-m", toy_family, "-s", source, "-r", reference, "--settings", settings]
    asked = ["tune", "step", *given, "--resamples", 20, "--format", "json", "--steps", "0.01,0.5"]
    report = json.loads("\n".join(run(*asked, "--objective", "bidirectional", "--by", "cost")))
    found = {row["label"]: row for row in report["candidates"]}
    assert list(found) == ["0.01", "0.5", "1"]  # the preset's own is among them
    assert all(row["cost"] <= report["start"]["cost"] for row in found.values())
    assert found[report["best"]]["cost"] == min(row["cost"] for row in found.values())
    eg = ["--decoder", "eg", "--objective", "bidirectional", "--step", 0.5]
    same = ["--iterations", 3, "--init", "greedy"]
    texts = run("translate", "-m", toy_family, "-i", source, *eg, *same)
    assert bleu(texts, reference) == pytest.approx(found["0.5"]["score"])


def test_tune_weights_by_decoding(
    source: Path, reference: Path, toy_family: Path, run: Run
) -> None:
    given = ["-m", toy_family, "-s", source, "-r", reference, "--resamples", 20]
    asked = ["--decoder", "eg", "--objective", "bidirectional", "--samples", 1]
    report = run("tune", *given, *asked)
    assert [row.split()[0] for row in report[:3]] == ["setting", "start", "l2r=0.5,r2l=0.5"]
    assert report[-1] == "--objective l2r=0.5,r2l=0.5"  # one sample: the middle, again


def test_descent_from_reranking_improves_on_it(source: Path, toy_family: Path, run: Run) -> None:
    joint = ["--objective", "joint", "--beam-size", 8, "--output-type", "json"]
    common = ["translate", "-m", toy_family, "-i", source, *joint]
    best = [json.loads(line) for line in run(*common, "--decoder", "rerank")]
    found = [json.loads(line) for line in run(*common, "--decoder", "eg", "--init", "rerank")]
    pairs = [pair for pair in zip(best, found, strict=True) if pair[0]["stop"] != "empty"]
    assert len(pairs) == 29
    for start, end in pairs:
        assert end["initial_cost"] == pytest.approx(start["discrete_cost"], rel=1e-4)
        assert end["discrete_cost"] <= end["initial_cost"]
    assert any(end["discrete_cost"] < start["discrete_cost"] - 0.01 for start, end in pairs)
