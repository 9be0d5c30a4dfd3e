"""Parallel files: found by prefix, streamed as pairs, refused when they do not match."""

from __future__ import annotations

import gzip
import lzma
from pathlib import Path

import pytest

from simplexity.errors import SimplexityError
from simplexity.text.corpora import Bitext, languages, locate


def write(path: Path, lines: list[str]) -> Path:
    pack = {".gz": gzip.compress, ".xz": lzma.compress}.get(path.suffix, bytes)
    path.write_bytes(pack("".join(f"{line}\n" for line in lines).encode()))
    return path


@pytest.mark.parametrize("suffix", ["", ".gz", ".xz"])
def test_locate_finds_plain_and_packed(tmp_path: Path, suffix: str) -> None:
    path = write(tmp_path / f"train.v1.de{suffix}", ["ja"])
    assert locate(tmp_path / "train.v1", "de") == path


def test_a_plain_file_goes_before_a_packed_one(tmp_path: Path) -> None:
    for suffix in (".gz", "", ".xz"):
        write(tmp_path / f"train.de{suffix}", ["ja"])
    assert locate(tmp_path / "train", "de").name == "train.de"


def test_an_unknown_language_is_answered_with_the_known_ones(tmp_path: Path) -> None:
    for name in ("train.en.xz", "train.de", "train.zh-CN.gz", "train.vocabulary.json", "other.fr"):
        write(tmp_path / name, ["x"])
    assert languages(tmp_path / "train") == ["de", "en", "zh-CN"]
    with pytest.raises(
        SimplexityError,
        match=r"no .*train\.fr, nor .*; the languages of .*train are de, en, zh-CN$",
    ):
        locate(tmp_path / "train", "fr")


@pytest.mark.parametrize("prefix", ["nowhere/train", "nothing"])
def test_an_unknown_prefix(tmp_path: Path, prefix: str) -> None:
    with pytest.raises(SimplexityError, match="check the name"):
        locate(tmp_path / prefix, "de")


def test_a_directory_is_no_prefix(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path / "train.de", ["ja"])
    with pytest.raises(SimplexityError, match=r"is a directory: add .*/train"):
        locate(tmp_path, "de")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SimplexityError, match="is a directory"):
        locate(Path(), "de")


def test_pairs_come_in_order_and_again(tmp_path: Path) -> None:
    write(tmp_path / "train.de.gz", ["ja", "", "nein"])
    write(tmp_path / "train.en", ["yes", "-", ""])
    bitext = Bitext.at(tmp_path / "train", "de", "en")
    assert bitext == Bitext(tmp_path / "train.de.gz", tmp_path / "train.en")
    pairs = [("ja", "yes"), ("", "-"), ("nein", "")]
    assert [list(bitext), list(bitext)] == [pairs, pairs]


@pytest.mark.parametrize(("sources", "targets"), [(3, 5), (5, 3), (0, 2), (1, 0)])
def test_unequal_files_name_both_counts(tmp_path: Path, sources: int, targets: int) -> None:
    source = write(tmp_path / "a.de", ["x"] * sources)
    target = write(tmp_path / "a.en", ["y"] * targets)
    pairs = iter(Bitext(source, target))
    assert [next(pairs) for _ in range(min(sources, targets))] == [("x", "y")] * min(
        sources, targets
    )
    with pytest.raises(
        SimplexityError, match=rf"a\.de has {sources} lines and .*a\.en has {targets};"
    ):
        next(pairs)


def test_an_empty_corpus_is_an_error(tmp_path: Path) -> None:
    bitext = Bitext(write(tmp_path / "a.de", []), write(tmp_path / "a.en", []))
    with pytest.raises(SimplexityError, match=r"a\.de and .*a\.en are empty"):
        list(bitext)


def test_errors_of_the_files_come_through(tmp_path: Path) -> None:
    source = write(tmp_path / "a.de", ["x", "y"])
    target = tmp_path / "a.en"
    target.write_bytes(b"x\n\xff\n")
    with pytest.raises(SimplexityError, match=r"a\.en, line 2"):
        list(Bitext(source, target))
