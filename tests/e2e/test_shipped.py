"""The recipe of the models that ship, from a corpus to a card, on a toy and far too small."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import simplexity
from simplexity.shipped import SHIPPED
from simplexity.text.toy import SOURCE, TARGET, write_toy

ROOT = Path(__file__).parents[2]


def commands(folder: Path) -> str:
    """A PATH on which `simplexity` and `python` are those of this test."""
    folder.mkdir()
    for name, more in (("simplexity", "-m simplexity "), ("python", "")):
        script = folder / name
        script.write_text(f'#!/bin/sh\nexec "{sys.executable}" {more}"$@"\n')
        script.chmod(0o755)
    return f"{folder}:{os.environ['PATH']}"


def test_the_family_that_ships_translates_and_is_small() -> None:
    (found,) = simplexity.load(device="cpu").translate(["Guten Morgen!"], objective="joint")
    assert found.text == "Good morning."
    assert set(found.terms) == {"l2r", "r2l", "reverse"}
    assert sum(file.stat().st_size for file in SHIPPED.rglob("*")) < 20 << 20
    card = (SHIPPED / "README.md").read_text(encoding="utf-8")
    assert "CC BY 2.0 FR" in card
    assert "@TEST@" not in card


def test_it_makes_a_packed_family_with_its_card(tmp_path: Path) -> None:
    corpus = write_toy(tmp_path / "corpus", train=200, dev=3, test=3)
    small = ["--vocabulary-size", "150", "--embedding", "8", "--hidden", "8", "--alignment", "8"]
    settings = [*small, "--max-epochs", "1", "--jobs", "1", "--quiet"]
    environment = {"SOURCE": SOURCE, "TARGET": TARGET, "PARTS": "dev", "OMP_NUM_THREADS": "1"}
    run = subprocess.run(
        [ROOT / "examples" / "shipped.sh", corpus, tmp_path / "out", *settings],
        env={**os.environ, **environment, "PATH": commands(tmp_path / "bin")},
        capture_output=True,
        text=True,
    )
    assert run.returncode == 0, run.stderr
    packed = tmp_path / "out" / "packed"
    card = (packed / "README.md").read_text(encoding="utf-8")
    assert "| eg-joint |" in card
    assert "| beam-5-unpacked |" in card
    assert "@DEV@" not in card
    assert "CC BY 2.0 FR" in card
    for member in ("l2r", "r2l", "reverse"):
        assert (packed / member / "model.int8.safetensors").exists()
