"""The command line as a user meets it: help, errors, pipes, exit codes."""

from __future__ import annotations

import errno
import io
import json
import os
import resource
import subprocess
import sys
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import get_type_hints

import click
import pytest

import simplexity
from simplexity.cli import COMMANDS, main
from simplexity.cli.progress import ERASE, Progress
from simplexity.cli.run import guarded
from simplexity.errors import SimplexityError, UsageError
from simplexity.settings import Settings

GOLDEN = Path(__file__).parents[1] / "golden" / "help"
REFERENCE_HEAD = """# Commands

Made from the settings of the commands by `make golden`; do not edit. Every option is also a key of
a YAML file for `--config`, with `_` for `-`.
"""
FRAME = {"__init__", "__main__", "options", "progress", "run"}


def start(*arguments: str, **options: object) -> subprocess.CompletedProcess[str]:
    """Run the command line in a process of its own."""
    command = [sys.executable, "-m", "simplexity", *arguments]
    return subprocess.run(command, text=True, **{"capture_output": True, **options})  # type: ignore


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """What the command line sets in the environment is gone after each test."""
    for name in ("OMP_NUM_THREADS", "TRANSFORMERS_VERBOSITY", "HF_HUB_DISABLE_PROGRESS_BARS"):
        monkeypatch.setenv(name, os.environ.get(name, "1" if name[0] != "T" else "error"))
    monkeypatch.setenv("COLUMNS", "80")


def refusal(capsys: pytest.CaptureFixture[str], *arguments: str, code: int) -> str:
    """The one line of a run that ends with this code and writes nothing to stdout."""
    assert main(arguments) == code
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.startswith("simplexity: ")
    assert captured.err.count("\n") == 1
    return captured.err.removeprefix("simplexity: ")


@pytest.mark.parametrize("command", ["", *COMMANDS])
def test_help_is_as_agreed(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    """`make golden` writes these files anew."""
    assert main([*command.split(), "--help"]) == 0
    shown = capsys.readouterr().out
    path = GOLDEN / f"{command or 'simplexity'}.txt"
    if os.environ.get("REFRESH_GOLDEN"):
        path.write_text(shown, encoding="utf-8")
    assert shown == path.read_text(encoding="utf-8")


def test_the_command_reference_is_as_generated(capsys: pytest.CaptureFixture[str]) -> None:
    """docs/commands.md is the help of all commands; `make golden` writes it anew."""
    parts = [REFERENCE_HEAD]
    for command in COMMANDS:
        assert main([command, "--help"]) == 0
        parts.append(f"## simplexity {command}\n\n```text\n{capsys.readouterr().out}```\n")
    path = GOLDEN.parents[2] / "docs" / "commands.md"
    if os.environ.get("REFRESH_GOLDEN"):
        path.write_text("\n".join(parts), encoding="utf-8")
    assert "\n".join(parts) == path.read_text(encoding="utf-8")


def test_every_command_module_is_registered_and_documented() -> None:
    found = {path.stem for path in Path(str(simplexity.__file__)).parent.glob("cli/*.py")} - FRAME
    assert found == set(COMMANDS)
    for name in COMMANDS:
        run = import_module(f"simplexity.cli.{name}").run
        assert issubclass(get_type_hints(run)["config"], Settings)
        assert run.__doc__


@pytest.mark.parametrize("command", ["", *COMMANDS])
def test_help_comes_at_once(command: str) -> None:
    code = f"""
import sys
from simplexity.cli import main
code = main({[*command.split(), "--help"]!r})
heavy = {{"torch", "transformers", "sacrebleu", "sentencepiece", "numpy"}} & set(sys.modules)
sys.exit(f"imported {{heavy}}" if heavy else code)
"""

    def once() -> float:
        # Of the processor: other work may share the machine.
        begin = resource.getrusage(resource.RUSAGE_CHILDREN)
        run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
        assert run.returncode == 0, run.stderr
        end = resource.getrusage(resource.RUSAGE_CHILDREN)
        return end.ru_utime + end.ru_stime - begin.ru_utime - begin.ru_stime

    assert min(once() for _ in range(3)) < 0.6


def test_no_arguments_show_the_help(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 0
    assert "Commands:" in capsys.readouterr().out


def test_version(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--version"]) == 0
    assert capsys.readouterr().out == f"simplexity {simplexity.__version__}\n"


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (("evaluat",), "No such command 'evaluat'. Did you mean 'evaluate'?"),
        (("frobnicate",), "No such command 'frobnicate'"),
        (("--frobnicate",), "No such option '--frobnicate'. See 'simplexity --help'."),
        (("evaluate", "--reference", "x"), "See 'simplexity evaluate --help'."),
        (("evaluate", "-r", "x"), "HYPOTHESES is missing"),
        (("evaluate", "x"), "--references is missing"),
        (("evaluate", "x", "-r", "y", "--samples", "few"), "--samples should be a valid integer"),
        (("evaluate", "x", "-r", "y", "--format", "word"), "'word' is not one of 'text'"),
        (("evaluate", "x", "-r", "y", "--metrics", "bleu,meteor"), "--metrics should be 'bleu'"),
        (("evaluate", "-c", "nowhere.yaml"), "nowhere.yaml cannot be read"),
    ],
)
def test_a_wrong_request_gets_one_line_and_exit_code_2(
    arguments: tuple[str, ...], expected: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert expected in refusal(capsys, *arguments, code=2)


def test_settings_come_from_a_file_and_can_be_dumped(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "evaluate.yaml"
    path.write_text("hypotheses: [one]\nreferences: [r]\noverwrite: true\nsamples: 7\n")
    assert main(["evaluate", "-c", str(path), "--no-overwrite", "--dump-config", "two"]) == 0
    dumped = capsys.readouterr().out
    assert "samples: 7\n" in dumped
    assert "overwrite: false\n" in dumped
    assert "hypotheses:\n- two\n" in dumped


def test_completion_knows_commands_options_and_values() -> None:
    def complete(words: str) -> str:
        asked = {"_SIMPLEXITY_COMPLETE": "bash_complete", "COMP_WORDS": words}
        place = {"COMP_CWORD": str(words.count(" "))}
        return start(env={**os.environ, **asked, **place}).stdout

    assert "plain,evaluate" in complete("simplexity ev")
    assert "plain,--references" in complete("simplexity evaluate --ref")
    assert "plain,markdown" in complete("simplexity evaluate --format mark")


def write(folder: Path, **files: str) -> list[str]:
    for name, text in files.items():
        (folder / name).write_text(text, encoding="utf-8")
    return [str(folder / name) for name in files]


def test_evaluate_puts_systems_into_a_table(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    good, bad, reference = write(
        tmp_path,
        good="The cat sat on the mat .\nA dog barks at the moon .\n",
        bad="cat mat\ndog moon\n",
        reference="the cat sat on the mat .\na dog barks at the moon .\n",
    )
    out = tmp_path / "table.json"
    asked = ["evaluate", good, "-b", bad, "-r", reference, "--samples", "20", "--format", "json"]
    assert main([*asked, "-o", str(out)]) == 0
    assert capsys.readouterr().out == ""
    rows = {row["system"]: row for row in json.loads(out.read_text())["rows"]}
    assert rows[good]["cells"][0]["value"] == pytest.approx(100)
    assert rows[bad]["cells"][0]["value"] < 50
    assert rows[good]["lengths"]["average"] == 7.0
    assert "table.json exists" in refusal(capsys, *asked, "-o", str(out), code=1)
    assert main([*asked, "-o", str(out), "--overwrite"]) == 0


def test_evaluate_refuses_files_that_are_not_parallel(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    one, two = write(tmp_path, one="a\n", two="a\nb\n")
    assert "must be parallel" in refusal(capsys, "evaluate", one, "-r", two, code=1)
    assert "does not exist" in refusal(capsys, "evaluate", one + "?", "-r", two, code=1)


def test_info_names_versions_and_refuses_an_empty_directory(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["info"]) == 0
    shown = capsys.readouterr().out
    assert shown.startswith(f"simplexity {simplexity.__version__}\n")
    assert f"python {sys.version.split()[0]}" in shown
    assert "\ndevices: cpu" in shown
    assert "holds no model" in refusal(capsys, "info", str(tmp_path), code=1)


def test_a_reader_that_has_enough_ends_the_run_quietly(tmp_path: Path) -> None:
    (same,) = write(tmp_path, same="a b c d\n")
    read, write_end = os.pipe()
    os.close(read)
    run = start(
        "evaluate", same, "-r", same, stdout=write_end, stderr=subprocess.PIPE, capture_output=False
    )
    os.close(write_end)
    assert (run.returncode, run.stderr) == (0, "")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no device that is full")
@pytest.mark.parametrize("command", ["--help", "evaluate -h", "evaluate {0} -r {0}"])
def test_a_full_disk_is_one_line(command: str, tmp_path: Path) -> None:
    (same,) = write(tmp_path, same="a b c d\n")
    with Path("/dev/full").open("w") as full:
        run = start(
            *command.format(same).split(), stdout=full, stderr=subprocess.PIPE, capture_output=False
        )
    assert (run.returncode, run.stderr.count("\n")) == (1, 1)
    assert "space" in run.stderr


def outcome(job: Callable[[], None]) -> int:
    """The exit code of a command line whose only command does this job."""
    return guarded(click.Group("g", [click.Command("c", callback=lambda: job)]), ["c"])


def raising(error: BaseException) -> Callable[[], None]:
    def job() -> None:
        raise error

    return job


@pytest.mark.parametrize(
    ("error", "code", "line"),
    [
        (SimplexityError("no such thing"), 1, "simplexity: no such thing\n"),
        (UsageError("makes no sense"), 2, "simplexity: makes no sense\n"),
        (KeyboardInterrupt(), 130, "simplexity: interrupted\n"),
        (PermissionError(errno.EACCES, "Permission denied", "f"), 1, "f: Permission denied\n"),
        (OSError(errno.ENOSPC, "No space left on device"), 1, "output: No space left on device\n"),
    ],
)
def test_an_error_of_the_input_is_one_line(
    error: BaseException, code: int, line: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert outcome(raising(error)) == code
    told = capsys.readouterr().err
    assert told.endswith(line)
    assert told.count("\n") == 1


@pytest.mark.parametrize("error", [ValueError("oops"), OSError(errno.EBADF, "oops"), EOFError()])
def test_an_error_of_the_program_keeps_its_traceback(
    error: Exception, capsys: pytest.CaptureFixture[str]
) -> None:
    assert outcome(raising(error)) == 1
    told = capsys.readouterr().err
    assert "Traceback" in told
    assert "raise error" in told
    assert "simplexity info" in told.splitlines()[-1]


def test_talk_on_stderr_leaves_stdout_alone(capsys: pytest.CaptureFixture[str]) -> None:
    def job() -> None:
        print("data")
        with Progress("working", 2) as progress:
            progress.say("talk")

    assert outcome(job) == 0
    assert capsys.readouterr() == ("data\n", "talk\n")


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


class Clock:
    """Time that passes only when told."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def test_progress_on_a_terminal_is_one_line_that_moves() -> None:
    stream, clock = Terminal(), Clock()
    with Progress("training", 1000, "steps", stream=stream, clock=clock) as progress:
        for step in range(0, 600, 100):
            clock.now += 1.0
            progress.update(step, "perplexity 5.5")
            progress.update(step)  # at the same moment: not shown
        progress.say("done")
    drawn = stream.getvalue().split(ERASE)[1:]
    assert drawn[-3] == "training: 500/1,000 steps (50%), 83.3/s, 0:06 left, perplexity 5.5"
    assert drawn[-2:] == ["done\n", ""]
    assert len(drawn) == 6 + 2


def test_progress_elsewhere_is_a_line_now_and_then() -> None:
    stream, clock = io.StringIO(), Clock()
    with Progress("reading", stream=stream, clock=clock) as progress:
        for second in range(100):
            progress.update(100 * second)
            clock.now += 1.0
    assert stream.getvalue().splitlines() == [
        "reading: 3,000, 100.0/s",
        "reading: 6,000, 100.0/s",
        "reading: 9,000, 100.0/s",
    ]


def test_a_run_that_goes_on_counts_only_its_own_speed() -> None:
    stream, clock = io.StringIO(), Clock()
    progress = Progress("training", 1000, stream=stream, clock=clock)
    progress.update(500)
    clock.now += 100.0
    progress.update(600)
    assert stream.getvalue() == "training: 600/1,000 (60%), 1.0/s, 6:40 left\n"


@pytest.mark.parametrize("stream", [Terminal(), io.StringIO()])
def test_quiet_progress_says_nothing(stream: io.StringIO) -> None:
    clock = Clock()
    with Progress("training", 10, stream=stream, quiet=True, clock=clock) as progress:
        clock.now += 1000.0
        progress.update(5)
        progress.say("talk")
    assert stream.getvalue() == ""
