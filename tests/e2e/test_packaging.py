"""The package as it is installed: what the wheel holds, and that it works from there."""

from __future__ import annotations

import importlib
import importlib.util
import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

import simplexity

ROOT = Path(__file__).parents[2]
SOURCES = ("pyproject.toml", "README.md", "LICENSE", "NOTICE", "src")


def test_importing_is_fast() -> None:
    """Measured in processor time, as other work may share the machine."""
    code = "import time; t = time.process_time(); import simplexity; print(time.process_time() - t)"

    def once() -> float:
        run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
        return float(run.stdout)

    assert min(once() for _ in range(3)) < 0.3


@pytest.mark.parametrize("name", simplexity.__all__)
def test_public_names_are_there(name: str) -> None:
    assert getattr(simplexity, name) is not None


def test_a_name_that_is_not_there() -> None:
    with pytest.raises(AttributeError, match="has no attribute 'decipher'"):
        _ = simplexity.decipher


@pytest.fixture(scope="module")
def installed(toy_family: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A wheel with a small family inside, built from a copy of the sources and unpacked."""
    if importlib.util.find_spec("hatchling") is None:
        pytest.skip("hatchling is not installed; it comes with the extra dev")
    from simplexity.models.packing import pack_family

    copy = tmp_path_factory.mktemp("project")
    for name in SOURCES:
        source = ROOT / name
        ignore = shutil.ignore_patterns("__pycache__", "de-en")
        if source.is_dir():
            shutil.copytree(source, copy / name, ignore=ignore)
        else:
            shutil.copyfile(source, copy / name)
    pack_family(toy_family, copy / "src" / "simplexity" / "shipped" / "de-en")
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", "dist"]
    subprocess.run(command, cwd=copy, check=True, capture_output=True)
    (wheel,) = (copy / "dist").glob("*.whl")
    place = tmp_path_factory.mktemp("site")
    with zipfile.ZipFile(wheel) as content:
        content.extractall(place)
    return place


def test_the_wheel_is_whole(installed: Path) -> None:
    there = {str(path.relative_to(installed)) for path in installed.rglob("*") if path.is_file()}
    mine = ROOT / "src"
    modules = {str(path.relative_to(mine)) for path in mine.rglob("*.py")}
    assert modules <= there
    assert "simplexity/py.typed" in there
    assert "simplexity/shipped/de-en/reverse/model.int8.safetensors" in there
    metadata = next(installed.glob("*.dist-info/METADATA")).read_text(encoding="utf-8")
    assert f"Version: {simplexity.__version__}\n" in metadata
    assert "Tatoeba" in next(installed.glob("*.dist-info/licenses/NOTICE")).read_text()


def test_it_translates_without_being_told_a_model(installed: Path, tmp_path: Path) -> None:
    run = subprocess.run(
        [sys.executable, "-m", "simplexity", "translate", "--objective", "joint"],
        env={**os.environ, "PYTHONPATH": str(installed), "OMP_NUM_THREADS": "1"},
        cwd=tmp_path,
        input="ana nap.\n",
        capture_output=True,
        text=True,
    )
    assert run.returncode == 0, run.stderr
    assert (
        run.stdout
        == simplexity.load(installed / "simplexity/shipped/de-en")
        .translate(["ana nap."], objective="joint")[0]
        .text
        + "\n"
    )
