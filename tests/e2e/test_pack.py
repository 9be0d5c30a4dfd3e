"""A family in 8 bits, and the family that comes with the package."""

from __future__ import annotations

import json
import shutil
import sys
from io import BytesIO, TextIOWrapper
from pathlib import Path

import pytest

import simplexity
from simplexity import shipped
from simplexity.cli import main

MEMBERS = ("l2r", "r2l", "reverse")


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", "1")


@pytest.fixture(scope="module")
def packed(toy_family: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The toy family in 8 bits."""
    output = tmp_path_factory.mktemp("packed") / "family"
    assert main(["pack", str(toy_family), "-o", str(output), "--quiet"]) == 0
    return output


def size(directory: Path) -> int:
    return sum(file.stat().st_size for file in directory.glob("*/*.safetensors"))


def test_it_takes_less_than_a_third_of_the_room(toy_family: Path, packed: Path) -> None:
    assert size(packed) < size(toy_family) / 3
    assert {path.name for path in packed.iterdir()} == set(MEMBERS)
    for name in MEMBERS:
        assert not (packed / name / "training").exists()
        assert json.loads((packed / name / "simplexity.json").read_text())["format"] == 2


def test_it_translates_nearly_alike(toy_family: Path, packed: Path, toy_corpus: Path) -> None:
    lines = (toy_corpus / "test.xa").read_text().splitlines()
    texts = []
    for directory in (toy_family, packed):
        found = simplexity.load(directory, device="cpu").translate(lines, objective="joint")
        texts.append([hypothesis.text for hypothesis in found])
    same = sum(a == b for a, b in zip(*texts, strict=True))
    assert same >= 0.9 * len(lines)


def test_packing_again_changes_nothing(packed: Path, tmp_path: Path) -> None:
    assert main(["pack", str(packed), "-o", str(tmp_path / "again"), "--quiet"]) == 0
    for name in MEMBERS:
        file = Path(name) / "model.int8.safetensors"
        assert (packed / file).read_bytes() == (tmp_path / "again" / file).read_bytes()


def test_one_model_with_its_card(
    toy_family: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    model, output = tmp_path / "l2r", tmp_path / "out"
    shutil.copytree(toy_family / "l2r", model)
    (model / "README.md").write_text("the card\n")
    assert main(["pack", str(model), "-o", str(output)]) == 0
    assert "l2r: " in capsys.readouterr().err
    assert (output / "README.md").read_text() == "the card\n"
    assert main(["info", str(output)]) == 0
    told = capsys.readouterr().out
    assert "format 2" in told
    assert main(["info", str(model)]) == 0
    weights = [line.split(" weights")[0] for line in told.splitlines() if " weights" in line]
    assert weights[0] in capsys.readouterr().out  # scales are no weights


def refusal(capsys: pytest.CaptureFixture[str], *arguments: object) -> str:
    capsys.readouterr()
    assert main([str(argument) for argument in arguments]) != 0
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.count("\n") == 1
    return captured.err


def test_what_cannot_be_packed(
    toy_family: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    output = tmp_path / "out"
    assert "holds no model" in refusal(capsys, "pack", tmp_path, "-o", output)
    assert "make the folder" in refusal(capsys, "pack", toy_family, "-o", output / "in" / "it")
    if sys.platform == "linux":
        told = refusal(capsys, "pack", toy_family, "-o", "/proc/out")
        assert "/proc/out cannot be written" in told
    (tmp_path / "mine").mkdir()
    told = refusal(capsys, "pack", toy_family, "-o", tmp_path / "mine")
    assert "mine exists" in told
    told = refusal(capsys, "pack", toy_family, "-o", tmp_path / "mine", "--overwrite")
    assert "is no model directory, so it stays" in told
    broken = tmp_path / "broken"
    shutil.copytree(toy_family, broken)
    (broken / "reverse" / "model.safetensors").write_bytes(b"short")
    assert "cannot be read" in refusal(capsys, "pack", broken, "-o", output)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["broken", "mine"]


def test_an_older_packed_family_is_replaced_whole(
    packed: Path, toy_family: Path, tmp_path: Path
) -> None:
    shutil.copytree(packed, tmp_path / "out")
    (tmp_path / "out" / "l2r" / "left-over").touch()
    shutil.rmtree(tmp_path / "out" / "r2l")
    arguments = ["pack", str(toy_family), "-o", str(tmp_path / "out"), "--overwrite", "--quiet"]
    assert main(arguments) == 0
    assert not (tmp_path / "out" / "l2r" / "left-over").exists()
    assert (tmp_path / "out" / "r2l").is_dir()


def test_a_damaged_packed_model_is_one_line(
    packed: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.copytree(packed, tmp_path / "family")
    file = tmp_path / "family" / "l2r" / "model.int8.safetensors"
    file.write_bytes(file.read_bytes()[:1000])
    told = refusal(capsys, "translate", "-m", tmp_path / "family", "-i", "/dev/null")
    assert "cannot be read" in told


def test_without_a_model_the_shipped_one_is_used(
    packed: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(shipped, "SHIPPED", packed)
    monkeypatch.setattr(sys, "stdin", TextIOWrapper(BytesIO(b"ana nap.\n")))
    assert main(["translate", "--quiet"]) == 0
    said = capsys.readouterr().out
    assert said == simplexity.load(None, device="cpu").translate(["ana nap."])[0].text + "\n"
    assert said == simplexity.load(packed, device="cpu").translate(["ana nap."])[0].text + "\n"


@pytest.mark.parametrize("command", [["translate"], ["score", "-s", "a", "-t", "b"]])
def test_without_a_model_and_without_a_shipped_one(
    command: list[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(shipped, "SHIPPED", tmp_path)
    told = refusal(capsys, *command)
    assert "comes without models" in told
    assert "-m" in told
