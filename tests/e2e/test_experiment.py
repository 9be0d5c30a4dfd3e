"""`simplexity experiment` on the toy family: all items, resumed, with nothing done twice."""

from __future__ import annotations

import json
import shutil
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import yaml

import simplexity
from simplexity.bench.clock import Clock, clocked
from simplexity.cli import main
from simplexity.config import ITEMS, Recipe
from simplexity.evaluate.metrics import Bleu, score
from simplexity.experiment.curves import FIGURE1, follow
from simplexity.experiment.lists import n_best
from simplexity.experiment.run import workbench
from simplexity.experiment.speed import split
from simplexity.experiment.tuning import choose_weights, tenths
from simplexity.experiment.workbench import Workbench
from simplexity.settings import load_config

ROOT = Path(__file__).parents[2]
RECIPE = ROOT / "experiments" / "toy.yaml"


@pytest.fixture(scope="module")
def arguments(
    toy_corpus: Path, toy_family: Path, tmp_path_factory: pytest.TempPathFactory
) -> list[str]:
    working = tmp_path_factory.mktemp("experiment")
    where = ["--corpus", str(toy_corpus), "--family", str(toy_family), "--output", str(working)]
    return ["experiment", str(RECIPE), *where, "--device", "cpu"]


@pytest.fixture(scope="module")
def working(arguments: list[str]) -> Path:
    """The working folder after `simplexity experiment toy`."""
    assert main(arguments) == 0
    return Path(arguments[arguments.index("--output") + 1])


@pytest.fixture(scope="module")
def results(working: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((working / "results" / "results.json").read_text())
    return found


@pytest.fixture
def bench(toy_corpus: Path, toy_family: Path, tmp_path: Path) -> Workbench:
    """A workbench of its own on five sentences."""
    recipe = load_config(Recipe, RECIPE, {"limit": 5, "curves": {"sentences": 5, "iterations": 6}})
    family = simplexity.load(toy_family, device="cpu").family
    return workbench(recipe, toy_corpus, family, tmp_path, lambda _: None)


def test_every_item_is_there(results: dict[str, Any], working: Path) -> None:
    assert set(ITEMS) <= set(results)
    page = (working / "results" / "results.md").read_text()
    for heading in ("Table 1", "Table 2", "Table 3", "Figure 4", "Timing", "claims", "Beyond"):
        assert f"{heading}" in page
    pictures = {file.name for file in (working / "results").glob("*.svg")}
    assert pictures == {"figure1.svg", "figure2.svg", "figure3.svg"}
    assert len(results["claims"]) == 13


def test_the_scores_are_those_of_the_library(
    results: dict[str, Any], toy_corpus: Path, toy_family: Path
) -> None:
    lines, references = (
        (toy_corpus / f"test.{end}").read_text().splitlines()[:60] for end in ("xa", "xb")
    )
    found = simplexity.load(toy_family, device="cpu").translate(lines, decoder="beam")
    bleu = score(Bleu(), [h.text for h in found], [references]).value
    row = results["table2"]["beam"]["rows"]["beam l2r"]
    assert row["bleu"] == pytest.approx(bleu)
    assert results["table3"]["joint"]["beam l2r"]["bleu"] == pytest.approx(bleu)


def test_the_guard_and_more_models_show(results: dict[str, Any]) -> None:
    for half in results["table2"].values():
        rows = half["rows"]
        relaxed = [row for row in rows.values() if "start" in row]
        assert len(relaxed) == 4
        assert all(row["worsened"] == 0 and row["cost"] <= row["start"] for row in relaxed)
        assert rows[half["baseline"]]["p"] is None
    best = results["table3"]["joint"]
    assert best["EG from rerank"]["cost"] <= best["EG from rerank"]["start"]


def test_curves_go_down_and_times_add_up(results: dict[str, Any]) -> None:
    for curve in results["figure1"].values():
        costs = curve["continuous"]
        assert len(costs) == 31
        assert all(b <= a + 1e-9 for a, b in pairwise(costs))
    assert results["figure1"]["EG uniform"]["discrete"][0] > 2  # any words at all
    row = results["timing"]["EG joint, 8 iterations"]
    assert 0 < row["forward"] + row["backward"] + row["update"] <= row["ms"]
    assert min(row["forward"], row["backward"]) > 0


def test_nothing_is_computed_twice(
    working: Path, arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    before = {file: file.stat().st_mtime_ns for file in (working / "steps").iterdir()}
    old = (working / "results" / "results.md").read_text()
    removed = next(file for file in before if file.name.startswith("timing-"))
    removed.unlink()
    assert main([*arguments, "--only", "table2,timing"]) == 0
    told = capsys.readouterr().err
    assert "timing, by turns" in told
    assert "decoder" not in told
    after = {file: file.stat().st_mtime_ns for file in (working / "steps").iterdir()}
    assert set(before) == set(after)
    assert {file for file in before if before[file] != after[file]} == {removed}
    new = (working / "results" / "results.md").read_text()
    assert [part for part in new.split("##") if part not in old] == [
        part for part in new.split("##") if part.startswith((" Timing", " The paper's claims"))
    ]  # items that were not asked for are still there, and the others are the same


def test_other_sentences_are_another_step(
    working: Path, arguments: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    results = ["--results", str(tmp_path / "results"), "--only", "table2", "--limit", "10"]
    assert main([*arguments, *results]) == 0
    assert "test, 10 sentences: decoder greedy" in capsys.readouterr().err
    found = json.loads((tmp_path / "results" / "results.json").read_text())
    assert found["test_sentences"] == 10


def test_results_hold_no_sentence_of_the_corpus(
    working: Path, results: dict[str, Any], toy_corpus: Path
) -> None:
    written = "".join(file.read_text() for file in (working / "results").iterdir())
    for end in ("xa", "xb"):
        lines = (toy_corpus / f"test.{end}").read_text().splitlines()[:60]
        assert not [line for line in lines if line in written]
    texts = (working / "examples.txt").read_text()
    assert results["figure4"]["mended"]
    for row in results["figure4"]["mended"]:
        assert row["chrf"] > 0
        assert (toy_corpus / "test.xa").read_text().splitlines()[row["sentence"] - 1] in texts


@pytest.mark.parametrize("name", ["EG-MOM beam", "EG uniform", "default"])
def test_a_followed_descent_ends_where_the_decoder_does(bench: Workbench, name: str) -> None:
    usual = {"decoder": "eg", "objective": "bidirectional", "exact": True, "guard": False}
    options = FIGURE1.get(name, usual)
    followed = follow(bench, options)
    lines = bench.dev.sources[:5]
    models = simplexity.load(bench.family.directory, device="cpu")
    found = models.translate(lines, **options, iterations=6)
    for (relaxed, rounded), h in zip(followed["points"], found, strict=True):
        words = len(h.ids) + 1 if name == "default" else 1  # the paper's costs are those of words
        assert relaxed == pytest.approx(h.continuous_cost / words, abs=1e-4)
        assert rounded == pytest.approx(h.discrete_cost / words, abs=1e-4)


def test_weights_are_those_that_rerank_best(bench: Workbench) -> None:
    found = choose_weights(bench, "joint")
    part = bench.dev.first(bench.recipe.tuning.sentences)
    lists = n_best(bench, part, bench.recipe.tuning.best)
    for weights in (found["chosen"], "l2r=0.1,r2l=0.8,reverse=0.1"):
        bleu = score(Bleu(), lists.reranked(weights), [part.references]).value
        assert found["bleu"][weights] == pytest.approx(bleu)
    assert found["bleu"][found["chosen"]] == pytest.approx(max(found["bleu"].values()))
    assert tenths(2) == [[n / 10, (10 - n) / 10] for n in range(1, 10)]
    assert len(tenths(3)) == 36
    assert all(sum(row) == pytest.approx(1) and min(row) > 0 for row in tenths(3))


def test_filtered_lists_are_no_longer_than_the_beam(bench: Workbench) -> None:
    lists = n_best(bench, bench.test, 10)
    counts = [{text: f["tokens"] for text, f in found} for found in lists.lists]
    for found, count in zip(lists.reranked("joint", filtered=True), counts, strict=True):
        assert count[found] <= next(iter(count.values()))


def test_clocks_change_nothing(bench: Workbench) -> None:
    from simplexity import build

    config = bench.config({"decoder": "eg", "objective": "joint"})
    plain = build.translator(config, bench.family)
    clock = Clock()
    watched = build.translator(config, clocked(bench.family, clock))
    with clock.running():
        found = list(watched(bench.test.sources))
    assert found == list(plain(bench.test.sources))
    assert all(value > 0 for value in split(clock, 5).values())


def test_a_family_is_trained_where_there_is_none(
    toy_corpus: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    recipe = yaml.safe_load(RECIPE.read_text())
    recipe["training"] |= {"max_epochs": 1, "embedding": 8, "hidden": 8, "alignment": 8}
    (tmp_path / "tiny.yaml").write_text(yaml.safe_dump(recipe))
    given = ["experiment", str(tmp_path / "tiny.yaml"), "--corpus", str(toy_corpus)]
    given += ["--output", str(tmp_path / "out"), "--only", "table1", "--device", "cpu"]
    assert main(given) == 0
    assert "l2r: epoch 1" in capsys.readouterr().err
    rows = json.loads((tmp_path / "out" / "results" / "results.json").read_text())["table1"]
    source, target = ((toy_corpus / f"train.{end}").read_text() for end in ("xa", "xb"))
    assert [row["sentences"] for row in rows] == [1500, 100, 100]
    assert rows[0]["tokens"] == [len(source.split()) + 1500, len(target.split()) + 1500]  # marks
    assert main(given) == 0
    assert "epoch" not in capsys.readouterr().err
    shutil.rmtree(tmp_path / "out")


def test_what_is_not_there_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(ROOT)
    assert main(["experiment", "btec", "--corpus", str(tmp_path)]) == 2
    assert "experiments has mixed-de-en, multi30k-de-en" in capsys.readouterr().err
    (tmp_path / "wrong.yaml").write_text("title: x\nlimits: 5\n")
    assert main(["experiment", str(tmp_path / "wrong.yaml"), "--corpus", str(tmp_path)]) == 2
    assert "unknown key 'limits'; did you mean 'limit'?" in capsys.readouterr().err
