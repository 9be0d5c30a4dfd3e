"""How settings are declared, read from YAML and flags, refused, and written down again."""

from __future__ import annotations

from collections.abc import Mapping
from difflib import get_close_matches
from pathlib import Path
from typing import Any, TypeVar

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError
from pydantic.fields import FieldInfo

from simplexity.errors import UsageError


class Settings(BaseModel):
    """Settings that never change once read; a key nobody knows is refused."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)


S = TypeVar("S", bound=Settings)


def setting(
    default: Any,
    text: str,
    *,
    section: str | None = None,
    short: str | None = None,
    positional: bool = False,
) -> Any:
    """A field with its help; `section` opens a heading that holds until the next one.

    A default of `...` makes the field obligatory.
    """
    extra: dict[str, Any] = {"section": section, "short": short, "positional": positional}
    return Field(default, description=text, json_schema_extra=extra)


def shown(field: FieldInfo) -> dict[str, Any]:
    """What `setting` noted for the command line: section, short flag, whether it is positional."""
    assert isinstance(field.json_schema_extra, dict)
    return field.json_schema_extra


def flag(key: str) -> str:
    """The flag of a field.

    >>> flag("beam_size")
    '--beam-size'
    """
    return "--" + key.replace("_", "-")


def load_config(cls: type[S], path: Path | None, overrides: Mapping[str, object]) -> S:
    """Settings from a YAML file, then from flags, which win; what neither names has its default."""
    given = {} if path is None else read_yaml(path)
    try:
        return cls.model_validate({**given, **overrides})
    except ValidationError as error:
        raise UsageError(_explain(error, cls, path, overrides)) from error


def dump_config(settings: Settings) -> str:
    """The settings as YAML that `load_config` reads back to the same settings."""
    plain = settings.model_dump(mode="json")
    return yaml.safe_dump(plain, sort_keys=False, allow_unicode=False)


def read_yaml(path: Path) -> dict[str, object]:
    """The keys and values of a YAML file; one key twice is a mistake, not a choice."""
    try:
        text = path.read_text(encoding="utf-8")
        tree = yaml.compose(text, Loader=yaml.SafeLoader)
        values = yaml.safe_load(text)
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise UsageError(f"{path} is not valid UTF-8; convert it to UTF-8") from error
    except yaml.YAMLError as error:
        raise UsageError(f"{path}{_where(error)} is not valid YAML") from error
    if tree is None:
        return {}
    if not isinstance(tree, yaml.MappingNode):
        raise UsageError(f"{path} must consist of lines such as 'seed: 1'")
    seen: set[object] = set()
    for key, _ in tree.value:
        if key.value in seen:
            line = key.start_mark.line + 1
            raise UsageError(f"{path}, line {line}: the key {key.value!r} stands there twice")
        seen.add(key.value)
    return {str(key): value for key, value in values.items()}


def _where(error: yaml.YAMLError) -> str:
    mark = error.problem_mark if isinstance(error, yaml.MarkedYAMLError) else None
    return "" if mark is None else f", line {mark.line + 1},"


def _explain(
    error: ValidationError, cls: type[Settings], path: Path | None, overrides: Mapping[str, object]
) -> str:
    """The first fault in one sentence; a misspelt key comes first, as it may explain the others."""
    faults = sorted(error.errors(), key=lambda fault: fault["type"] != "extra_forbidden")
    fault = faults[0]
    key = str(fault["loc"][0]) if fault["loc"] else ""
    where = flag(key) if key in overrides or path is None else f"{path}: {key}"
    given = fault["input"]
    match fault["type"]:
        case "extra_forbidden":
            return f"{path or 'settings'}: unknown key {key!r}; {_nearest(key, cls)}"
        case "missing":
            return f"{_name(key, cls)} is missing: give it, or the key {key!r} in a --config file"
        case "value_error":
            text = str(fault["ctx"]["error"])
            return text if path is None else f"{path}: {text}"
        case "string_type" if isinstance(given, bool):
            return f"{where} should be text: put it in quotes, or YAML reads it as {given}"
        case kind:
            wish = fault["msg"].removeprefix("Input ")
            wish = wish.split(",")[0] if kind.endswith("_parsing") else wish
            return f"{where} {wish}, not {given!r}"


def _nearest(key: str, cls: type[Settings]) -> str:
    near = get_close_matches(key.replace("-", "_"), cls.model_fields, n=1)
    return f"did you mean {near[0]!r}?" if near else f"known are {', '.join(cls.model_fields)}"


def _name(key: str, cls: type[Settings]) -> str:
    return key.upper() if shown(cls.model_fields[key])["positional"] else flag(key)
