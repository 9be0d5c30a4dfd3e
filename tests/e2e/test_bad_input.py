"""Input that cannot be used: one line on stderr, the right exit code, nothing half written."""

from __future__ import annotations

import io
import json
import shutil
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from simplexity.cli import main
from simplexity.text.toy import write_toy

Arguments = Callable[..., list[str]]
Refusal = Callable[..., str]


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    monkeypatch.setenv("COLUMNS", "80")


@pytest.fixture
def refusal(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> Refusal:
    """Run a command that must fail, and give the one line it says of why.

    The test's folder holds the same afterwards as before, to the byte.
    """

    def run(*arguments: object, code: int = 1) -> str:
        before = snapshot(tmp_path)
        capsys.readouterr()
        assert main([str(argument) for argument in arguments]) == code
        captured = capsys.readouterr()
        assert captured.out == ""
        assert captured.err.count("\n") == 1
        assert captured.err.startswith("simplexity: ")
        assert snapshot(tmp_path) == before
        return captured.err.removeprefix("simplexity: ")

    return run


def snapshot(folder: Path) -> dict[str, bytes | None]:
    return {
        str(path.relative_to(folder)): path.read_bytes() if path.is_file() else None
        for path in folder.rglob("*")
    }


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    return write_toy(tmp_path / "corpus", train=30, dev=5, test=5)


@pytest.fixture
def family(toy_family: Path, tmp_path: Path) -> Path:
    """A copy that may be spoilt."""
    return Path(shutil.copytree(toy_family, tmp_path / "family"))


def append(path: Path, content: bytes) -> None:
    path.write_bytes(path.read_bytes() + content)


@pytest.mark.parametrize("part", ["train", "dev"])
@pytest.mark.parametrize(
    ("language", "content", "expected"),
    [  # what was there before is {old}
        ("xa", "{old}one line more\n", "line n of one must translate line n of the other"),
        ("xb", "{old}ein Wei\udcdf\n", "byte 8 of the line is not valid UTF-8"),
        ("xa", "", "line n of one must translate line n of the other"),
        ("both", "", "are empty"),
        ("both", "\n\n", "{nothing}"),
    ],
)
def test_corpora_that_cannot_be_trained_on(
    part: str,
    language: str,
    content: str,
    expected: str,
    corpus: Path,
    tmp_path: Path,
    train_arguments: Arguments,
    refusal: Refusal,
) -> None:
    for end in ("xa", "xb") if language == "both" else (language,):
        file = corpus / f"{part}.{end}"
        text = content.format(old=file.read_text(encoding="utf-8"))
        file.write_bytes(text.encode("utf-8", "surrogateescape"))
    told = refusal(*train_arguments(corpus, tmp_path / "family"))
    nothing = {"train": "there is no text to learn", "dev": "all are empty or longer than 100"}
    assert expected.format(nothing=nothing[part]) in told
    if "UTF-8" in expected:
        lines = {"train": 31, "dev": 6}[part]
        assert f"{part}.xb, line {lines}: " in told


def test_languages_that_are_not_there(
    corpus: Path, tmp_path: Path, train_arguments: Arguments, refusal: Refusal
) -> None:
    told = refusal(*train_arguments(corpus, tmp_path / "family", source_language="de"))
    assert "there is no " in told
    assert "train.de" in told
    assert "xa, xb" in told


def test_settings_that_make_no_sense(
    corpus: Path, tmp_path: Path, train_arguments: Arguments, refusal: Refusal
) -> None:
    def told(**settings: object) -> str:
        return refusal(*train_arguments(corpus, tmp_path / "family", **settings), code=2)

    assert told(hidden=-8).startswith("--hidden should be greater than or equal to 1, not '-8'")
    assert told(learning_rate=-0.1).startswith("--learning-rate should be greater than 0")
    assert told(dropout=-0.5).startswith("--dropout should be greater than or equal to 0")
    assert told(vocabulary_size=4).startswith("a vocabulary of 4 has no room")
    assert "'--hidden'?) See" in told(hiden=8)


def test_limits_that_leave_nothing_to_learn_from(
    corpus: Path, tmp_path: Path, train_arguments: Arguments, refusal: Refusal
) -> None:
    told = refusal(*train_arguments(corpus, tmp_path / "family", max_length=1))
    assert "train.xa" in told
    assert "longer than 1 words" in told
    assert "no word occurs 500 times" in refusal(
        *train_arguments(corpus, tmp_path / "family", cutoff=500)
    )


COMMANDS = {
    "translate": ["translate", "--quiet", "-i", "{corpus}/test.xa", "-m"],
    "score": ["score", "--quiet", "-s", "{corpus}/test.xa", "-t", "{corpus}/test.xb", "-m"],
}
BOTH = pytest.mark.parametrize("command", COMMANDS)


def on(command: str, corpus: Path, *more: object) -> list[object]:
    return [*(part.format(corpus=corpus) for part in COMMANDS[command]), *more]


@BOTH
def test_directories_without_a_model(
    command: str, corpus: Path, family: Path, tmp_path: Path, refusal: Refusal
) -> None:
    out = ["-o", tmp_path / "out"]
    for directory in (corpus, tmp_path / "nowhere", corpus / "test.xa"):
        told = refusal(*on(command, corpus, directory, *out))
        assert told.startswith(f"{directory} holds no model")
    for member in ("r2l", "reverse"):
        shutil.rmtree(family / member)
    told = refusal(*on(command, corpus, family, *out, "--member", "r2l"))
    assert "r2l" in told
    assert "has" in told or "holds no model" in told


@BOTH
@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("model.safetensors", b"short"),
        ("model.safetensors", None),
        ("config.json", b"{"),
        ("config.json", b'{"model_type": "unheard-of"}'),
        ("simplexity.json", b"[]"),
        ("simplexity.json", b"{}"),
        ("source.vocabulary.json", b"{}"),
        ("target.vocabulary.json", None),
    ],
)
def test_models_that_are_damaged(
    command: str,
    name: str,
    content: bytes | None,
    corpus: Path,
    family: Path,
    tmp_path: Path,
    refusal: Refusal,
) -> None:
    file = family / "l2r" / name
    if content is None:
        file.unlink()
    else:
        file.write_bytes(content)
    told = refusal(*on(command, corpus, family, "-o", tmp_path / "out"))
    assert str(family / "l2r") in told


@BOTH
@pytest.mark.parametrize("more", [{}, {"licence": "a key of tomorrow"}])
def test_a_model_of_a_newer_format(
    command: str,
    more: dict[str, str],
    corpus: Path,
    family: Path,
    tmp_path: Path,
    refusal: Refusal,
) -> None:
    card = family / "l2r" / "simplexity.json"
    card.write_text(json.dumps({**json.loads(card.read_text()), "format": 99, **more}))
    told = refusal(*on(command, corpus, family, "-o", tmp_path / "out"))
    assert "written by a newer simplexity (format 99" in told
    assert "upgrade" in told


@pytest.mark.parametrize("side", ["source", "target"])
def test_members_that_share_no_words(
    side: str, corpus: Path, family: Path, tmp_path: Path, refusal: Refusal
) -> None:
    file = family / "r2l" / f"{side}.vocabulary.json"
    words = json.loads(file.read_text())
    words["words"][3], words["words"][5] = words["words"][5], words["words"][3]
    file.write_text(json.dumps(words))
    told = refusal(*on("translate", corpus, family, "-o", tmp_path / "out"))
    assert f"l2r and r2l in {family} share no {side} vocabulary" in told
    assert "first difference at id 7" in told


def test_a_member_trained_with_other_words(
    corpus: Path, family: Path, tmp_path: Path, train_arguments: Arguments, refusal: Refusal
) -> None:
    sizes = {"embedding": 8, "hidden": 8, "alignment": 8, "max_epochs": 1}
    assert main(train_arguments(corpus, tmp_path / "other", directions="r2l", **sizes)) == 0
    shutil.rmtree(family / "r2l")
    shutil.copytree(tmp_path / "other" / "r2l", family / "r2l")
    told = refusal(*on("translate", corpus, family, "-o", tmp_path / "out"))
    assert "l2r and r2l" in told
    assert "train them as one family with --directions" in told


@BOTH
def test_outputs_that_cannot_be_written(
    command: str, corpus: Path, toy_family: Path, tmp_path: Path, refusal: Refusal
) -> None:
    (tmp_path / "out").write_text("dear to someone\n")
    told = refusal(*on(command, corpus, toy_family, "-o", tmp_path / "out"))
    assert "out exists; choose another name or pass --overwrite" in told
    assert "is a directory" in refusal(*on(command, corpus, toy_family, "-o", tmp_path))
    told = refusal(*on(command, corpus, toy_family, "-o", tmp_path / "no" / "out"))
    assert "make the folder" in told


@BOTH
@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no device that is full")
def test_a_full_disk(command: str, corpus: Path, toy_family: Path, refusal: Refusal) -> None:
    told = refusal(*on(command, corpus, toy_family, "-o", "/dev/full"))
    assert told.startswith("/dev/full could not be written, no space is left")


def test_a_trace_on_a_full_disk_leaves_no_translations(
    corpus: Path, toy_family: Path, tmp_path: Path, refusal: Refusal
) -> None:
    options = ["-o", tmp_path / "out", "--decoder", "eg", "--trace", "/dev/full"]
    assert "no space is left" in refusal(*on("translate", corpus, toy_family, *options))


@BOTH
def test_texts_that_cannot_be_read(
    command: str, corpus: Path, toy_family: Path, tmp_path: Path, refusal: Refusal
) -> None:
    arguments = on(command, corpus, toy_family, "-o", tmp_path / "out")
    append(corpus / "test.xa", b"\xff\n")
    told = refusal(*arguments)
    assert "test.xa, line 6: byte 1 of the line is not valid UTF-8" in told
    (corpus / "test.xa").unlink()
    assert "test.xa does not exist" in refusal(*arguments)


def test_translations_of_other_sources(
    corpus: Path, toy_family: Path, tmp_path: Path, refusal: Refusal
) -> None:
    append(corpus / "test.xb", b"one more\n")
    told = refusal(*on("score", corpus, toy_family, "-o", tmp_path / "out"))
    assert "test.xa has 5 lines and " in told
    assert "test.xb has 6; " in told
    begin = ["--decoder", "eg", "--init", "file", "--init-file", corpus / "test.xb"]
    told = refusal(*on("translate", corpus, toy_family, "-o", tmp_path / "out", *begin))
    assert "has 5 lines and " in told


def test_translations_of_other_sources_from_standard_input(
    corpus: Path,
    toy_family: Path,
    tmp_path: Path,
    refusal: Refusal,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    begin = ["--decoder", "eg", "--init", "file", "--init-file", corpus / "test.xb"]
    for text in ("ana nap.\n", "ana nap.\n" * 9):
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text.encode())))
        told = refusal("translate", "-m", toy_family, "-o", tmp_path / "out", "--quiet", *begin)
        assert "standard input" in told
        assert "5" in told


@BOTH
def test_sentences_longer_than_the_model_reads(
    command: str, corpus: Path, toy_family: Path, tmp_path: Path, refusal: Refusal
) -> None:
    lines = (corpus / "test.xa").read_text().splitlines()
    (corpus / "test.xa").write_text("\n".join([*lines[:2], "ana " * 600, *lines[3:]]) + "\n")
    told = refusal(*on(command, corpus, toy_family, "-o", tmp_path / "out"))
    assert "Line 3 " in told
    assert " has 600 tokens, but " in told
    assert "512 at most; split it into sentences" in told


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (["--beam-size", "-1"], "--beam-size should be greater than or equal to 1, not '-1'"),
        (["--batch-size", "0"], "--batch-size should be greater than or equal to 1"),
        (["--length-penalty", "-1"], "--length-penalty should be greater than or equal to 0"),
        (["--step", "-5"], "--step should be greater than 0"),
        (["--iterations", "-5"], "--iterations should be greater than or equal to 0"),
        (["--threads", "-1"], "--threads should be greater than or equal to 1"),
        (["--beam-sise", "3"], "'--beam-size'?) See"),
        (["--decoder", "beem"], "'beem' is not one of "),
        (["--objective", "bilinguel"], "did you mean 'bilingual'?"),
        (["--objective", "l2r=0.5,r2l=0.7"], "sum to 1"),
        (["--objective", "l2r=-1,r2l=2"], "The weight of l2r must be above 0"),
        (["--n-best", "9"], "n_best 9 needs"),
        (["--init-file", "x"], "go together"),
    ],
)
def test_requests_that_make_no_sense(
    options: list[str], expected: str, tmp_path: Path, refusal: Refusal
) -> None:
    told = refusal("translate", "-m", tmp_path, "-o", tmp_path / "out", *options, code=2)
    assert expected in told
