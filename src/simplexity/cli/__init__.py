"""The command line: `simplexity COMMAND`, one module a command.

A command is a module here with `run(config)`: the type of `config` says its options, the docstring
its help. Modules are imported when their command is used, and they import torch when they run, so
that help comes at once.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from difflib import get_close_matches
from importlib import import_module
from typing import get_type_hints

import click

import simplexity
from simplexity.cli.run import guarded

COMMANDS = {
    "train": "Train models from parallel text.",
    "translate": "Translate sentences, one a line.",
    "explain": "Show how a joint translation of one sentence comes about.",
    "plot": "Draw the same as a picture.",
    "score": "Give the log-probability of translations.",
    "rerank": "Put n-best lists into the order of a joint objective.",
    "tune": "Learn weights or a step size on development data.",
    "evaluate": "Compare translations with references.",
    "experiment": "Redo the paper's tables and figures on a corpus.",
    "bench": "Measure what decoders cost, side by side.",
    "pack": "Store models in a quarter of their room.",
    "export": "Write a Transformer for transformers and CTranslate2.",
    "info": "Show versions, devices, and what model directories hold.",
}


class LazyGroup(click.Group):
    """A group that knows its commands by name and imports one when it is used."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """All commands, in the order in which they are used."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import the command's module and make a command of its `run`."""
        if cmd_name not in COMMANDS:
            near = get_close_matches(cmd_name, COMMANDS, n=1)
            if near and not ctx.resilient_parsing:
                ctx.fail(f"No such command {cmd_name!r}. Did you mean {near[0]!r}?")
            return None
        from simplexity.cli.options import command_from

        run = import_module(f"simplexity.cli.{cmd_name}").run
        return command_from(get_type_hints(run)["config"], run, cmd_name, run.__doc__)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the commands without importing any."""
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))


def group() -> click.Group:
    """The whole command line."""
    version = click.version_option(simplexity.__version__, message="%(prog)s %(version)s")
    return version(
        LazyGroup(
            "simplexity",
            help=simplexity.__doc__,
            epilog="See 'simplexity COMMAND --help' for the options of a command.",
            context_settings={"help_option_names": ["-h", "--help"]},
        )
    )


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and answer with its exit code."""
    return guarded(group(), sys.argv[1:] if arguments is None else arguments)
