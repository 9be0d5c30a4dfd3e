"""A toy language and a small family that translates it, trained by the command line."""

from __future__ import annotations

from pathlib import Path

import pytest

from simplexity.cli import main
from simplexity.text.toy import SOURCE, TARGET, write_toy

SIZES = {"embedding": 32, "hidden": 64, "alignment": 32}
RECIPE = {
    "cutoff": 1,
    "dropout": 0.1,
    "learning-rate": 0.01,
    "warmup": 50,
    "average": "none",
    "precision": "fp32",
    "batch-tokens": 512,
    "max-epochs": 5,
}


@pytest.fixture(scope="session")
def toy_corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with train, dev and test of the toy language: 2000, 100 and 100 pairs."""
    return write_toy(tmp_path_factory.mktemp("toy"), train=2000, dev=100, test=100)


@pytest.fixture(scope="session")
def toy_family(toy_corpus: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The directory of l2r, r2l and reverse, good but not perfect: read it, never write to it."""
    family = tmp_path_factory.mktemp("models") / "family"
    given = {"train": toy_corpus / "train", "dev": toy_corpus / "dev", "output": family}
    given |= {"source-language": SOURCE, "target-language": TARGET, "device": "cpu"}
    given |= {"directions": "l2r,r2l,reverse"} | SIZES | RECIPE
    flags = [str(part) for key, value in given.items() for part in (f"--{key}", value)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("OMP_NUM_THREADS", "1")
        assert main(["train", "--quiet", *flags]) == 0
    return family
