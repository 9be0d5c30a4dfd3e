"""A toy language and a small family that translates it, trained by the command line."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from simplexity.cli import main
from simplexity.text.toy import SOURCE, TARGET, write_toy

FAMILY = {
    "directions": "l2r,r2l,reverse",
    "embedding": 32,
    "hidden": 64,
    "alignment": 32,
    "dropout": 0.1,
    "learning-rate": 0.007,
    "warmup": 50,
    "average": 0.9,
    "precision": "fp32",
    "batch-tokens": 512,
    "max-epochs": 8,
}

Arguments = Callable[..., list[str]]


@pytest.fixture(scope="session")
def train_arguments() -> Arguments:
    """A function of a toy corpus, an output and settings: what follows `simplexity`."""

    def arguments(corpus: Path, output: Path, **settings: object) -> list[str]:
        given = {"train": corpus / "train", "dev": corpus / "dev", "output": output}
        given |= {"source-language": SOURCE, "target-language": TARGET, "cutoff": 1}
        given |= {"device": "cpu"} | {key.replace("_", "-"): settings[key] for key in settings}
        flags = [str(part) for key, value in given.items() for part in (f"--{key}", value)]
        return ["train", "--quiet", *flags]

    return arguments


@pytest.fixture(scope="session")
def toy_corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with train, dev and test of the toy language: 1500, 100 and 100 pairs."""
    return write_toy(tmp_path_factory.mktemp("toy"), train=1500, dev=100, test=100)


@pytest.fixture(scope="session")
def toy_family(
    toy_corpus: Path, tmp_path_factory: pytest.TempPathFactory, train_arguments: Arguments
) -> Path:
    """The directory of l2r, r2l and reverse, good but not perfect: read it, never write to it."""
    family = tmp_path_factory.mktemp("models") / "family"
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("OMP_NUM_THREADS", "1")
        assert main(train_arguments(toy_corpus, family, **FAMILY)) == 0
    return family
