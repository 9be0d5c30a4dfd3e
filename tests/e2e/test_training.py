"""Training by the command line: killed, resumed, shared among processes, refused."""

from __future__ import annotations

import json
import multiprocessing
import os
import random
import resource
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from simplexity.cli import main
from simplexity.models.family import load_family
from simplexity.score import score_pairs
from simplexity.text.corpora import Bitext
from simplexity.text.toy import write_toy
from simplexity.train.checkpoint import append_log, read_log

TINY = {
    "embedding": 16,
    "hidden": 16,
    "alignment": 8,
    "learning_rate": 0.01,
    "warmup": 10,
    "batch_tokens": 256,
    "max_epochs": 4,
}
SINGLE = pytest.mark.skipif(sys.platform != "linux", reason="needs fork and /proc")

Arguments = Callable[..., list[str]]


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", "1")


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Fewer sentences than the family learns from: here a run need not become good."""
    return write_toy(tmp_path_factory.mktemp("small"), train=300, dev=40, test=20)


@pytest.fixture
def training(corpus: Path, tmp_path: Path, train_arguments: Arguments) -> Arguments:
    """The arguments of a tiny training into this folder of the test's own."""

    def arguments(output: str, **settings: object) -> list[str]:
        return train_arguments(corpus, tmp_path / output, **{**TINY, **settings})

    return arguments


def log(family: Path, member: str = "l2r") -> list[dict[str, Any]]:
    text = (family / member / "training" / "log.jsonl").read_text()
    return [json.loads(line) for line in text.splitlines()]


def contents(directory: Path) -> dict[str, bytes]:
    return {file.name: file.read_bytes() for file in directory.iterdir() if file.is_file()}


def refusal(capsys: pytest.CaptureFixture[str], arguments: list[str], code: int = 1) -> str:
    """The one line on stderr of a run that ends with this code."""
    assert main(arguments) == code
    captured = capsys.readouterr()
    assert (captured.out, captured.err.count("\n")) == ("", 1)
    return captured.err.removeprefix("simplexity: ")


def forked(arguments: list[str]) -> multiprocessing.process.BaseProcess:
    """The command line in a process of its own, without the seconds that imports take."""
    process = multiprocessing.get_context("fork").Process(target=main, args=(arguments,))
    process.start()
    return process


def wait_for(condition: Callable[[], bool], seconds: float = 60.0) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it never came"
        time.sleep(0.002)


def stamp(path: Path) -> int | None:
    """Changes whenever the file is replaced."""
    return path.stat().st_mtime_ns if path.exists() else None


@SINGLE
def test_killed_at_any_moment_it_ends_as_if_unbroken(training: Arguments, tmp_path: Path) -> None:
    settings = {"validate_every": 3, "average": 0.9, "dropout": 0.2, "patience": 1}
    assert main(training("unbroken", **settings)) == 0

    moment = random.Random(3)
    checkpoint = tmp_path / "broken" / "l2r" / "training" / "checkpoint.pt"
    kills, ended = 0, False
    while not ended:
        before = stamp(checkpoint)
        process = forked(training("broken", **settings))
        if kills == 0:  # before there is anything to go on from
            wait_for((tmp_path / "broken").exists)
        while kills > 0 and stamp(checkpoint) == before and process.is_alive():
            time.sleep(0.002)
        time.sleep(moment.random() * 0.03)
        process.kill()
        process.join()
        ended = process.exitcode != -signal.SIGKILL
        kills += not ended

    assert kills > 3
    assert contents(tmp_path / "broken" / "l2r") == contents(tmp_path / "unbroken" / "l2r")
    assert log(tmp_path / "broken") == log(tmp_path / "unbroken")
    assert not (checkpoint.parent / "best.pt").exists()
    assert not checkpoint.exists()


def test_the_log_forgets_what_is_validated_anew(tmp_path: Path) -> None:
    """A kill between a validation and its checkpoint: too short a moment to be met above."""
    file = tmp_path / "log.jsonl"
    for step, perplexity in ((5, 9.0), (10, 8.0), (15, 7.0), (10, 8.0), (15, 7.0), (20, 6.0)):
        append_log(file, {"step": step, "perplexity": perplexity})
    assert [line["step"] for line in read_log(file)] == [5, 10, 15, 20]


def test_two_processes_train_as_one_does(training: Arguments, tmp_path: Path) -> None:
    # The budget leaves the longest sentences alone in their batches: one process has nothing then.
    settings = {"dropout": 0.0, "precision": "fp32", "batch_tokens": 18, "max_epochs": 1}
    settings |= {"validate_every": 25}
    assert main(training("one", **settings)) == 0
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    where = ["--nproc-per-node", "2", "--master-addr", "127.0.0.1", "--master-port", str(port)]
    command = [sys.executable, "-m", "torch.distributed.run", *where, "-m", "simplexity"]
    run = subprocess.run([*command, *training("two", **settings)], capture_output=True, text=True)
    assert run.returncode == 0, run.stderr

    one, two = log(tmp_path / "one"), log(tmp_path / "two")
    assert [line["step"] for line in two] == [line["step"] for line in one]
    assert len(one) > 3
    curves = [[line["perplexity"] for line in lines] for lines in (one, two)]
    assert curves[1] == pytest.approx(curves[0], rel=1e-3)
    assert curves[0][-1] < curves[0][0]


def children(process: int) -> list[int]:
    text = Path(f"/proc/{process}/task/{process}/children").read_text()
    return [int(child) for child in text.split()]


def running(process: int) -> bool:
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


@SINGLE
def test_members_train_side_by_side(training: Arguments, tmp_path: Path) -> None:
    """Also when the process that started them is killed, and started again."""
    settings = {"directions": "l2r,reverse", "validate_every": 5}
    assert main(training("one", **settings)) == 0

    arguments = training("two", **settings, jobs=2)
    process = forked(arguments)
    assert process.pid is not None
    wait_for(lambda: len(children(process.pid)) == 2)
    jobs = children(process.pid)
    process.kill()
    process.join()
    wait_for(lambda: not any(map(running, jobs)))

    assert main(arguments) == 0
    for name in ("l2r", "reverse"):
        assert contents(tmp_path / "two" / name) == contents(tmp_path / "one" / name)
        assert log(tmp_path / "two", name) == log(tmp_path / "one", name)
    assert {path.name for path in (tmp_path / "two").iterdir()} == {
        path.name for path in (tmp_path / "one").iterdir()
    }


def test_a_transformer_is_a_model_like_any_other(
    toy_corpus: Path,
    tmp_path: Path,
    train_arguments: Arguments,
    capsys: pytest.CaptureFixture[str],
) -> None:
    from transformers import AutoModelForSeq2SeqLM

    sizes = {"hidden": 64, "heads": 2, "feedforward": 64, "encoder_layers": 1, "decoder_layers": 1}
    recipe = {"learning_rate": 0.005, "warmup": 50, "batch_tokens": 512, "max_epochs": 7}
    recipe |= {"dropout": 0.0, "label_smoothing": 0.0, "average": "none", "precision": "fp32"}
    settings = {"architecture": "transformer", **sizes, **recipe}
    assert main(train_arguments(toy_corpus, tmp_path / "family", **settings)) == 0

    source, hypotheses = toy_corpus / "test.xa", tmp_path / "beam"
    files = ["-i", str(source), "-o", str(hypotheses)]
    assert main(["translate", "-m", str(tmp_path / "family"), "--quiet", *files]) == 0
    capsys.readouterr()
    references = str(toy_corpus / "test.xb")
    assert main(["evaluate", str(hypotheses), "-r", references, "--format", "json"]) == 0
    bleu = json.loads(capsys.readouterr().out)["rows"][0]["cells"][0]["value"]
    assert bleu > 60

    # transformers alone finds the same model in the directory: it gives the same scores.
    member = load_family(tmp_path / "family")["l2r"]
    plain = AutoModelForSeq2SeqLM.from_pretrained(tmp_path / "family" / "l2r").eval()
    assert type(plain).__name__ == "MarianMTModel"
    pairs = list(Bitext(source, toy_corpus / "test.xb"))[:10]
    for (x, y), score in zip(pairs, score_pairs(pairs, member, 4), strict=True):
        labels = torch.tensor([[*member.target.encode(y), plain.config.eos_token_id]])
        words = torch.tensor([[*member.source.encode(x), plain.config.eos_token_id]])
        with torch.no_grad():
            cost = plain(input_ids=words, labels=labels).loss * labels.numel()
        assert score.total == pytest.approx(-float(cost), abs=1e-3)


@pytest.mark.parametrize("architecture", ["attentional", "transformer"])
def test_tied_embeddings_come_back_tied(
    architecture: str, training: Arguments, tmp_path: Path, corpus: Path
) -> None:
    sizes = {"heads": 2, "feedforward": 32, "encoder_layers": 1, "decoder_layers": 1}
    sizes |= {"architecture": architecture, "max_epochs": 2, "average": "none"}
    sizes |= {"precision": "fp32", "label_smoothing": 0.0}
    for tied in ("tie", "no-tie"):
        flags = [*training(tied, **sizes), f"--{tied}-embeddings"]
        assert main(flags) == 0
    free, shared = ((tmp_path / n / "l2r" / "model.safetensors") for n in ("no-tie", "tie"))
    member = load_family(tmp_path / "tie")["l2r"]
    table = len(member.target) * TINY["hidden"] * 4
    assert free.stat().st_size - shared.stat().st_size == pytest.approx(table, abs=200)

    # A table that was not tied again would be random, and no such model is as good as its log says.
    pairs = list(Bitext(corpus / "dev.xa", corpus / "dev.xb"))
    scores = list(score_pairs(pairs, member, 16))
    words = sum(len(score.tokens) for score in scores)
    perplexity = 2.718281828459045 ** (-sum(score.total for score in scores) / words)
    assert perplexity == pytest.approx(min(line["perplexity"] for line in log(tmp_path / "tie")))


def test_tied_embeddings_need_one_size(
    training: Arguments, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    flags = [*training("family", embedding=8), "--tie-embeddings"]
    told = refusal(capsys, flags, code=2)
    assert "tie_embeddings" in told
    assert "(8)" in told
    assert not (tmp_path / "family").exists()


def test_a_family_once_trained_is_left_alone(
    training: Arguments, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    family = tmp_path / "family"
    assert main(training("family", max_epochs=1)) == 0
    before = contents(family / "l2r")
    when = stamp(family / "l2r" / "model.safetensors")

    again = training("family", max_epochs=1)
    again.remove("--quiet")
    assert refusal(capsys, again, code=0) == "l2r: trained already; --overwrite starts it anew\n"
    assert stamp(family / "l2r" / "model.safetensors") == when

    for key, value in (("hidden", 24), ("dropout", 0.3), ("seed", 2), ("lowercase", True)):
        changed = training("family", max_epochs=1, **({} if value is True else {key: value}))
        told = refusal(capsys, [*changed, *(["--lowercase"] if value is True else [])])
        assert f"begun with {key}: " in told
        assert "--overwrite" in told
    assert contents(family / "l2r") == before

    # A new member joins with the words of the old one.
    assert main(training("family", max_epochs=1, directions="l2r,reverse")) == 0
    assert load_family(family)["reverse"].target == load_family(family)["l2r"].source
    assert stamp(family / "l2r" / "model.safetensors") == when

    assert main([*training("family", max_epochs=1, seed=2), "--overwrite"]) == 0
    assert contents(family / "l2r") != before
    assert not (family / "reverse").exists()


def test_what_others_wrote_is_left_alone(
    training: Arguments, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "photos").mkdir()
    (tmp_path / "photos" / "me.jpg").write_text("smile")
    for more in ([], ["--overwrite"]):
        told = refusal(capsys, [*training("photos"), *more])
        assert "exists and was not written by `simplexity train`" in told
    assert contents(tmp_path / "photos") == {"me.jpg": b"smile"}

    (tmp_path / "new").mkdir()
    assert main(training("new", max_epochs=1)) == 0


def test_a_failed_start_leaves_an_older_family_alone(
    training: Arguments, corpus: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(training("family", max_epochs=1)) == 0
    before = contents(tmp_path / "family" / "l2r")
    wrong = training("family", max_epochs=1, dev=corpus / "none")
    assert "there is no" in refusal(capsys, [*wrong, "--overwrite"])
    assert contents(tmp_path / "family" / "l2r") == before


@pytest.mark.parametrize("architecture", ["attentional", "transformer"])
def test_a_model_reads_what_it_was_trained_on(
    architecture: str, tmp_path: Path, train_arguments: Arguments
) -> None:
    """Sentences longer than usual: their words have places in the model."""
    long = "ana " * 520
    for part in ("train", "dev"):
        write_pairs(tmp_path / part, [("ana nap.", "Ana dorme."), (long, long)])
    sizes = {**TINY, "architecture": architecture, "heads": 2, "feedforward": 16}
    settings = {**sizes, "max_length": 520, "max_epochs": 1}
    family = tmp_path / "family"
    assert main(train_arguments(tmp_path, family, **settings)) == 0
    (score,) = score_pairs([(long, long)], load_family(family)["l2r"], 1)
    assert len(score.tokens) == 521


def write_pairs(prefix: Path, pairs: list[tuple[str, str]]) -> None:
    for language, side in (("xa", 0), ("xb", 1)):
        Path(f"{prefix}.{language}").write_text("".join(f"{pair[side]}\n" for pair in pairs))


def test_the_last_update_is_validated(training: Arguments, tmp_path: Path) -> None:
    assert main(training("family", max_epochs=2, validate_every=1000)) == 0
    (last,) = log(tmp_path / "family")
    assert last["epoch"] == 1


def test_training_that_goes_astray_says_so(
    training: Arguments, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    told = refusal(capsys, training("family", learning_rate=1e38, warmup=0))
    assert "lower --learning-rate" in told
    assert not (tmp_path / "family" / "l2r" / "model.safetensors").exists()


def on_a_small_disk(arguments: list[str], largest: int, told: int) -> None:
    """Run with files limited in size, as a full disk would; stderr goes into a pipe."""
    resource.setrlimit(resource.RLIMIT_FSIZE, (largest, largest))
    sys.stderr = os.fdopen(told, "w")
    code = main(arguments)
    sys.stderr.flush()
    os._exit(code)


@SINGLE
@pytest.mark.parametrize("largest", [100, 2_000, 5_000, 60_000])
def test_a_full_disk_ends_training_with_one_line(
    largest: int, training: Arguments, tmp_path: Path
) -> None:
    """Of the settings, a vocabulary, the weights, the checkpoint: whichever is too large first."""
    arguments = training("family", max_epochs=1)
    reading, writing = os.pipe()
    context = multiprocessing.get_context("fork")
    process = context.Process(target=on_a_small_disk, args=(arguments, largest, writing))
    process.start()
    os.close(writing)
    with os.fdopen(reading) as pipe:
        told = pipe.read()
    process.join()
    assert process.exitcode == 1
    assert told.count("\n") == 1
    assert "family" in told
    left = [path.name for path in (tmp_path / "family").rglob("*")]
    assert not any(name.endswith((".partial", ".part")) for name in left)
    assert main(arguments) == 0
