"""Where settings come from: a file, the environment, flags; each stronger than the one before."""

from __future__ import annotations

import os
import tomllib
import types
import typing
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import date
from difflib import get_close_matches
from pathlib import Path
from typing import Any, Literal, get_args, get_origin

from resweep import documents
from resweep.domain.errors import InputError, UsageError
from resweep.domain.verdict import REASONS, Reason, Severity
from resweep.settings import PREFIX, Known, Settings, known

FILE_NAME = "resweep.toml"
# A variable this close to a setting's is taken for a slip of the pen; others belong to somebody else.
# (Kubernetes puts RESWEEP_PORT and RESWEEP_SERVICE_HOST beside a Service called resweep.)
_SLIP = 0.9
_OTHERS = frozenset({"RESWEEP_CONFIG"})  # of a pipeline that our webhook started


@dataclass(frozen=True, slots=True, kw_only=True)
class Loaded:
    """The settings, and for each that is not at its default, where it came from."""

    settings: Settings
    origins: Mapping[str, str]
    file: Path | None = None


def load(
    file: Path | None = None,
    environ: Mapping[str, str] = os.environ,
    flags: Mapping[str, object] | None = None,
    *,
    folder: Path | None = None,
) -> Loaded:
    """Return the settings of a file, an environment and flags named `section.name`.

    Without `file`, RESWEEP_SETTINGS or the nearest `resweep.toml` from `folder` (the current one)
    upward is read. An empty variable is none where the setting needs a value. Raises UsageError for an
    unknown name, a value of the wrong kind or out of its range, or a file that cannot be read.
    """
    path = _file(file, environ, folder or Path.cwd())
    values: dict[str, object] = {}
    origins: dict[str, str] = {}
    severities: Mapping[Reason, Severity] = {}
    if path is not None:
        document = _read(path)
        severities = _severities(document.pop("severities", {}), path)
        values = _entries(document, path)
        origins = dict.fromkeys(values, str(path))
    for key, (variable, text) in _from_environment(environ).items():
        values[key], origins[key] = text, variable
    for key, value in (flags or {}).items():
        if value is not None:
            values[key], origins[key] = value, "flag"
    settings = replace(_build(values, origins), severities=severities)
    return Loaded(settings=settings, origins=origins, file=path)


def as_environment(settings: Settings) -> dict[str, str]:
    """Return settings as the variables that give them to another process, defaults left out.

    `severities` have no variable and stay with the file.
    """
    given: dict[str, str] = {}
    for one in known():
        value = getattr(getattr(settings, one.section), one.name)
        if value != one.default:
            given[one.variable] = ",".join(map(str, value)) if isinstance(value, tuple) else str(value)
    return given


def _file(file: Path | None, environ: Mapping[str, str], folder: Path) -> Path | None:
    if file is None and (named := environ.get(f"{PREFIX}SETTINGS")):
        file = Path(named)
    if file is not None:
        return file
    upward = (at / FILE_NAME for at in (folder, *folder.parents))
    return next((at for at in upward if at.is_file()), None)


def _read(path: Path) -> dict[str, object]:
    try:
        return tomllib.loads(documents.read_bytes(path).decode("utf-8-sig"))
    except InputError as error:
        raise UsageError(f"expected settings; {error}, given by --settings") from None
    except (ValueError, RecursionError) as error:
        raise UsageError(f"expected TOML in {path}; got {error}: mend the file") from None


def _entries(document: Mapping[str, object], path: Path) -> dict[str, object]:
    names = {one.key: one for one in known()}
    sections = sorted({one.section for one in names.values()} | {"severities"})
    values: dict[str, object] = {}
    for section, entries in document.items():
        if section not in sections or not isinstance(entries, dict):
            raise UsageError(_unknown(str(path), f"[{section}]", [f"[{s}]" for s in sections]))
        for name, value in entries.items():
            key = f"{section}.{name}"
            if key not in names:
                raise UsageError(_unknown(str(path), key, list(names)))
            values[key] = _beside(path, value) if names[key].path else value
    return values


def _severities(given: object, path: Path) -> Mapping[Reason, Severity]:
    if not isinstance(given, dict):
        raise UsageError(f"{path}: expected [severities] to be a section; got {given!r:.60}")
    for reason, severity in given.items():
        if reason not in REASONS:
            raise UsageError(
                _unknown(str(path), f"severities.{reason}", [f"severities.{r}" for r in REASONS])
            )
        if severity not in get_args(Severity):
            raise UsageError(
                f"{path}: severities.{reason}: expected {describe(Severity)}; got {severity!r:.60}"
            )
    return given


def _beside(path: Path, value: object) -> object:
    return str(path.resolve().parent / value) if isinstance(value, str) else value


def _unknown(where: str, name: str, names: list[str]) -> str:
    near = get_close_matches(name, names, n=1, cutoff=0.5)
    hint = f"did you mean {near[0]}?" if near else "docs/configuration.md lists them all"
    return f"{where}: there is no setting {name}; {hint}"


def _from_environment(environ: Mapping[str, str]) -> dict[str, tuple[str, str]]:
    variables = {one.variable for one in known()}
    _check_slips(environ, variables)
    return {one.key: (one.variable, environ[one.variable]) for one in known() if one.variable in environ}


def _check_slips(environ: Mapping[str, str], variables: set[str]) -> None:
    for variable in environ:
        if variable.startswith(PREFIX) and variable not in variables | _OTHERS:
            near = get_close_matches(variable, variables, n=1, cutoff=_SLIP)
            if near:
                raise UsageError(f"there is no variable {variable}; did you mean {near[0]}?")


def _build(values: Mapping[str, object], origins: Mapping[str, str]) -> Settings:
    by_key = {one.key: one for one in known()}
    changed: dict[str, dict[str, object]] = {}
    for key, value in values.items():
        if key not in by_key:
            raise UsageError(_unknown("flags", key, list(by_key)))
        one = by_key[key]
        changed.setdefault(one.section, {})[one.name] = _convert(one, value, origins[key])
    settings = Settings()
    for section, entries in changed.items():
        part: Any = getattr(settings, section)
        whole: dict[str, Any] = {section: replace(part, **entries)}
        settings = replace(settings, **whole)
    return settings


def _convert(one: Known, value: object, origin: str) -> object:
    converted = _as_type(one.type, value)
    if converted is _WRONG:
        shown = "a value" if one.secret else repr(value)
        raise UsageError(f"{one.key} ({origin}): expected {describe(one.type)}; got {shown}")
    if isinstance(converted, (int, float)) and not _within(one, converted):
        raise UsageError(f"{one.key} ({origin}): expected {_range(one)}; got {value!r}")
    return converted


_WRONG = object()
_TRUE = ("1", "true", "yes", "on")
_FALSE = ("0", "false", "no", "off")


def _as_type(kind: Any, value: object) -> object:
    if get_origin(kind) is Literal:
        return value if value in get_args(kind) else _WRONG
    if get_origin(kind) in (types.UnionType, typing.Union):
        return _as_type(next(a for a in get_args(kind) if a is not type(None)), value) if value else None
    if get_origin(kind) is tuple:
        return _as_dates(value)
    if kind is bool:
        return _as_bool(value)
    if kind is str:
        return value if isinstance(value, str) else _WRONG
    return _as_number(kind, value)


def _as_dates(value: object) -> object:
    """A list of dates, as TOML's own or in words; or one text, parted by commas."""
    many = [word for word in value.split(",") if word.strip()] if isinstance(value, str) else value
    if not isinstance(many, (list, tuple)):
        return _WRONG
    try:
        return tuple(date.fromisoformat(str(one).strip()) for one in many)
    except ValueError:
        return _WRONG


def _as_bool(value: object) -> object:
    if isinstance(value, bool):
        return value
    word = value.strip().lower() if isinstance(value, str) else ""
    return True if word in _TRUE else False if word in _FALSE else _WRONG


def _as_number(kind: type[int] | type[float], value: object) -> object:
    if isinstance(value, bool) or not isinstance(value, (int, float, str)):
        return _WRONG
    try:
        number = kind(value)
    except ValueError:
        return _WRONG
    return number if isinstance(value, str) or number == value else _WRONG


def _within(one: Known, value: float) -> bool:
    return (one.low is None or value >= one.low) and (one.high is None or value <= one.high)


def _range(one: Known) -> str:
    low = "" if one.low is None else f"at least {one.low:g}"
    high = "" if one.high is None else f"at most {one.high:g}"
    return " and ".join(part for part in (low, high) if part)


def describe(kind: Any) -> str:
    """Return a setting's type in words."""
    if get_origin(kind) is Literal:
        return " or ".join(repr(choice) for choice in get_args(kind))
    if get_origin(kind) in (types.UnionType, typing.Union):
        return describe(next(a for a in get_args(kind) if a is not type(None)))
    if get_origin(kind) is tuple:
        return "a list of dates"
    return {bool: "true or false", int: "a whole number", float: "a number"}.get(kind, "text")
