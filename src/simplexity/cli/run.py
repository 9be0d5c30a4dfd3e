"""The boundary of the program: what goes wrong becomes one line and an exit code.

0: done. 1: the run could not be done. 2: the request makes no sense. 130: interrupted. A fault of
the program itself keeps its traceback.
"""

from __future__ import annotations

import contextlib
import errno
import io
import os
import sys
import traceback
from collections.abc import Sequence

import click

from simplexity.errors import SimplexityError

FULL = (errno.ENOSPC, errno.EDQUOT)


def guarded(group: click.Group, arguments: Sequence[str]) -> int:
    """Run the command that the arguments name; the answer is the exit code."""
    _prepare()
    try:
        # Without standalone mode click hands back what the command answers: the job to do, or
        # an exit code.
        job = group.main(list(arguments) or ["--help"], "simplexity", standalone_mode=False)
        if callable(job):
            job()
        sys.stdout.flush()
        return job if isinstance(job, int) else 0
    except click.ClickException as error:
        return _say(_click_message(error), error.exit_code)
    except SimplexityError as error:
        return _say(str(error), error.exit_code)
    except (KeyboardInterrupt, click.Abort):
        return _say("interrupted", 130)
    except BrokenPipeError:  # the reader has enough, as in `| head`
        _abandon_stdout()
        return 0
    except OSError as error:
        if error.filename is None and error.errno not in FULL:
            return _bug()
        _abandon_stdout()
        return _say(f"{error.filename or 'output'}: {error.strerror}", 1)
    except Exception:
        return _bug()


def _prepare() -> None:
    """Set what must stand before torch and transformers are imported."""
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    os.environ.setdefault("TRANSFORMERS_VERBOSITY", "error")
    os.environ.setdefault("HF_HUB_DISABLE_PROGRESS_BARS", "1")
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(encoding="utf-8")


def _say(message: str, code: int) -> int:
    with contextlib.suppress(OSError):
        print(f"simplexity: {message}", file=sys.stderr)
    return code


def _click_message(error: click.ClickException) -> str:
    context = error.ctx if isinstance(error, click.UsageError) else None
    hint = "" if context is None else f" See '{context.command_path} --help'."
    return " ".join(error.format_message().split()) + hint


def _bug() -> int:
    traceback.print_exc()
    return _say("this is a fault of the program; report it with what 'simplexity info' says", 1)


def _abandon_stdout() -> None:
    """Let the interpreter's last flush go nowhere, since it would fail again."""
    with contextlib.suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
