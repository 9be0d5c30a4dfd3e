"""A command whose options are the fields of its settings."""

from __future__ import annotations

import types
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar, Union, get_args, get_origin

import click
from pydantic.fields import FieldInfo

from simplexity.settings import Settings, dump_config, flag, load_config, shown

S = TypeVar("S", bound=Settings)

HELP_FLAGS = {"help_option_names": ["-h", "--help"]}


class SectionedCommand(click.Command):
    """A command whose help lists its parameters under headings."""

    sections: dict[str, str]
    arguments: dict[str, str]

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write each heading with what belongs under it."""
        found: dict[str, list[tuple[str, str]]] = {}
        for parameter in self.get_params(ctx):
            name = str(parameter.name)
            record = parameter.get_help_record(ctx)
            if name in self.arguments:
                more = "..." if parameter.nargs == -1 else ""
                record = (f"{name.upper()}{more}", self.arguments[name])
            if record is not None:
                found.setdefault(self.sections.get(name, "Other"), []).append(record)
        for section, records in found.items():
            with formatter.section(section):
                formatter.write_dl(records)


def command_from(
    config_class: type[S], run: Callable[[S], None], name: str, text: str
) -> click.Command:
    """A command with one option a field, `--config`, `--dump-config`.

    Invoked, it answers with the job to do, so that the work runs outside of click.
    """

    def prepare(**given: Any) -> Callable[[], None] | None:
        path, dump = given.pop("config"), given.pop("dump_config")
        config = load_config(config_class, path, {k: v for k, v in given.items() if _is_set(v)})
        if dump:
            click.echo(dump_config(config), nl=False)
            return None
        return partial(run, config)

    fields = config_class.model_fields
    command = SectionedCommand(
        name,
        callback=prepare,
        params=[*(_parameter(key, field) for key, field in fields.items()), *_common()],
        help=text,
        context_settings=HELP_FLAGS,
    )
    command.sections = dict(_sections(fields))
    command.arguments = {k: str(f.description) for k, f in fields.items() if shown(f)["positional"]}
    return command


def _is_set(value: object) -> bool:
    return value is not None and value != ()


def _common() -> list[click.Parameter]:
    return [
        click.Option(
            ["-c", "--config"],
            type=click.Path(path_type=Path),
            help="YAML file of settings, keys as the flags with _ for -; flags override it",
        ),
        click.Option(["--dump-config"], is_flag=True, help="print all settings as YAML and stop"),
    ]


def _sections(fields: dict[str, FieldInfo]) -> Iterator[tuple[str, str]]:
    section = "Options"
    for key, field in fields.items():
        section = shown(field)["section"] or section
        yield key, section


def _parameter(key: str, field: FieldInfo) -> click.Parameter:
    look = shown(field)
    text = _help(field)
    if look["positional"]:
        several = get_origin(field.annotation) is tuple
        inner = get_args(field.annotation)[0] if several else field.annotation
        return click.Argument(
            [key], nargs=-1 if several else 1, required=False, type=_kind(inner)[0]
        )
    if _inner(field.annotation) is bool:
        return click.Option([key, f"{flag(key)}/{flag('no-' + key)}"], default=None, help=text)
    names = [key, flag(key), *([look["short"]] if look["short"] else [])]
    kind, metavar = _kind(field.annotation)
    return click.Option(names, type=kind, metavar=metavar, default=None, help=text)


def _kind(annotation: Any) -> tuple[Any, str | None]:
    """How the shell completes and help shows a value; numbers are checked with the settings."""
    inner = _inner(annotation)
    if get_origin(inner) is Literal:
        return click.Choice(get_args(inner)), None
    if inner is Path:
        return click.Path(path_type=Path), None
    if inner is int or inner is float:
        return click.STRING, "NUMBER"
    return click.STRING, "A,B,..." if get_origin(inner) is tuple else "TEXT"


def _inner(annotation: Any) -> Any:
    """`X` of `Annotated[X, ...]` and of `X | None`."""
    origin, parts = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        return _inner(parts[0])
    if origin in (Union, types.UnionType):
        return _inner(next(part for part in parts if part is not type(None)))
    return annotation


def _help(field: FieldInfo) -> str:
    text = str(field.description)
    match field.default:
        case None | False | ():
            return text
        case tuple() as parts:
            return f"{text} [default: {','.join(map(str, parts))}]"
        case True:
            return f"{text} [default: yes]"
        case _ if field.is_required():
            return f"{text} [needed]"
        case default:
            return f"{text} [default: {default}]"
