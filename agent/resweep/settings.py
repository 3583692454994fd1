"""The agent's settings: `resweep.toml`, then the environment (`RESWEEP_…`), then flags; the later wins.

A setting is named `section.name` in the file and `RESWEEP_SECTION_NAME` in the environment; the section
`agent` is left out there (`RESWEEP_LISTEN`). What every one means is in docs/configuration.md, which is
checked against this table.
"""

from __future__ import annotations

import os
import tomllib
import types
import typing
from collections.abc import Iterator, Mapping
from dataclasses import MISSING, dataclass, field, fields, replace
from difflib import get_close_matches
from pathlib import Path
from typing import Any, Literal, get_args, get_origin, get_type_hints
from zoneinfo import ZoneInfo

from resweep.domain.errors import UsageError

FILE_NAME = "resweep.toml"
PREFIX = "RESWEEP_"
# A variable this close to a setting's is taken for a slip of the pen; others belong to somebody else.
# (Kubernetes puts RESWEEP_PORT and RESWEEP_SERVICE_HOST beside a Service called resweep.)
_SLIP = 0.9


def _setting(
    default: Any, doc: str, *, low: float | None = None, high: float | None = None, path: bool = False
) -> Any:
    return field(default=default, metadata={"doc": doc, "low": low, "high": high, "path": path})


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentSettings:
    """Where the agent listens, keeps its state, and how it speaks."""

    listen: str = _setting(
        "127.0.0.1:9464",
        "Address and port of the HTTP API and /metrics; port 0 takes a free one. An address that is not "
        "loopback needs RESWEEP_TOKEN.",
    )
    home: str | None = _setting(
        None,
        "Folder of the agent's own files (store, token, address) with the spool in it; recorders read the "
        "same variable. Default: `$XDG_STATE_HOME/resweep`, else `~/.local/state/resweep`.",
        path=True,
    )
    spool_dir: str | None = _setting(
        None,
        "Folder into which recorders put their batches, where it is not `spool` in the home folder.",
        path=True,
    )
    store: str | None = _setting(
        None, "Database URL; without one, an SQLite file `resweep.db` in the home folder."
    )
    token: str | None = _setting(
        None,
        "Bearer token of the HTTP API. Keep it in the environment. Without one, and on loopback only, a "
        "token is made and kept in the file `token` of the home folder, readable by its owner alone.",
    )
    lock_file: str | None = _setting(
        None,
        "resweep.lock to follow; without one, the file found from the agent's folder upward, if any.",
        path=True,
    )
    standby: bool = _setting(
        False, "Wait for the lease while another agent leads on the same store, and take over when it ends."
    )
    time_zone: str = _setting("UTC", "Time zone of daily jobs, as in the IANA database. Windows are in UTC.")
    log_format: Literal["plain", "json"] = _setting(
        "plain", "One line of text, or one JSON object, a log entry."
    )
    log_level: Literal["debug", "info", "warning", "error"] = _setting("info", "Least level that is logged.")


@dataclass(frozen=True, slots=True, kw_only=True)
class RetentionSettings:
    """How long the store keeps what. Totals, flags, configs and tuned depths stay."""

    minutes_days: float = _setting(3.0, "Days for which windows of a minute are kept.", low=1)
    hours_days: float = _setting(90.0, "Days for which windows of an hour are kept.", low=1)
    events_days: float = _setting(30.0, "Days for which sampled events are kept.", low=0)


@dataclass(frozen=True, slots=True, kw_only=True)
class LimitSettings:
    """What the HTTP intake takes at most."""

    body_bytes: int = _setting(
        8 << 20, "Largest request body, in bytes, as sent and as unpacked from gzip.", low=1024
    )
    requests_per_second: float = _setting(
        200.0, "Requests a second that one address may send on average; bursts of twice that pass.", low=1
    )
    spool_files: int = _setting(500, "Batches read from the spool in one go.", low=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class MetricsSettings:
    """What /metrics shows."""

    configs: int = _setting(
        5, "Busiest configs of a pipeline that keep their own series; the rest share `other`.", low=1, high=20
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class OtlpSettings:
    """Metrics pushed to an OpenTelemetry collector."""

    endpoint: str | None = _setting(
        None, "URL of an OTLP/HTTP metrics intake, as `http://127.0.0.1:4318/v1/metrics`; none: no push."
    )
    interval_s: float = _setting(60.0, "Seconds between two pushes.", low=1)
    timeout_s: float = _setting(5.0, "Seconds after which a push is given up.", low=0.1)


@dataclass(frozen=True, slots=True, kw_only=True)
class WebhookSettings:
    """A signed call for each flag that opens or clears."""

    url: str | None = _setting(None, "URL to call; none: no calls.")
    secret: str | None = _setting(None, "Key of the signature (HMAC-SHA256). Keep it in the environment.")
    allow_private: bool = _setting(False, "Also call private and loopback addresses.")
    timeout_s: float = _setting(5.0, "Seconds after which a call is given up; it is tried again.", low=0.1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """All settings of one agent."""

    agent: AgentSettings = field(default_factory=AgentSettings)
    retention: RetentionSettings = field(default_factory=RetentionSettings)
    limits: LimitSettings = field(default_factory=LimitSettings)
    metrics: MetricsSettings = field(default_factory=MetricsSettings)
    otlp: OtlpSettings = field(default_factory=OtlpSettings)
    webhook: WebhookSettings = field(default_factory=WebhookSettings)
    detect: Mapping[str, object] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Known:
    """One setting: where it stands in the file and the environment, what it takes and what it does."""

    section: str
    name: str
    type: Any
    default: object
    doc: str
    low: float | None
    high: float | None
    path: bool

    @property
    def key(self) -> str:
        """Its name in the file, `section.name`."""
        return f"{self.section}.{self.name}"

    @property
    def variable(self) -> str:
        """Its name in the environment."""
        section = "" if self.section == "agent" else f"{self.section}_"
        return f"{PREFIX}{section}{self.name}".upper()

    @property
    def secret(self) -> bool:
        """Whether its value must never be shown."""
        return self.name in ("token", "secret")


@dataclass(frozen=True, slots=True, kw_only=True)
class Loaded:
    """The settings, and for each that is not at its default, where it came from."""

    settings: Settings
    origins: Mapping[str, str]
    file: Path | None = None


def known() -> Iterator[Known]:
    """Yield every setting, section by section."""
    for section in fields(Settings):
        if section.name != "detect":
            yield from _of(section.name, section.default_factory)  # type: ignore[arg-type]


def _of(section: str, kind: type) -> Iterator[Known]:
    hints = get_type_hints(kind)
    for one in fields(kind):
        assert one.default is not MISSING
        yield Known(section=section, name=one.name, type=hints[one.name], default=one.default, **one.metadata)


def load(
    file: Path | None = None,
    environ: Mapping[str, str] = os.environ,
    flags: Mapping[str, object] | None = None,
    *,
    folder: Path | None = None,
) -> Loaded:
    """Return the settings of a file, an environment and flags named `section.name`.

    Without `file`, RESWEEP_SETTINGS or `resweep.toml` in `folder` (the current one) is read, if there is
    one. Raises UsageError for an unknown name, a value of the wrong kind or out of its range, or a file
    that cannot be read.
    """
    path = _file(file, environ, folder or Path.cwd())
    values: dict[str, object] = {}
    origins: dict[str, str] = {}
    detect: Mapping[str, object] = {}
    if path is not None:
        from_file, detect = _read(path)
        values |= from_file
        origins |= dict.fromkeys(from_file, str(path))
    for key, (variable, text) in _from_environment(environ).items():
        values[key], origins[key] = text, variable
    for key, value in (flags or {}).items():
        if value is not None:
            values[key], origins[key] = value, "flag"
    return Loaded(settings=_build(values, origins, detect), origins=origins, file=path)


def _file(file: Path | None, environ: Mapping[str, str], folder: Path) -> Path | None:
    if file is None and (named := environ.get(f"{PREFIX}SETTINGS")):
        file = Path(named)
    if file is not None:
        return file
    default = folder / FILE_NAME
    return default if default.is_file() else None


def _read(path: Path) -> tuple[dict[str, object], Mapping[str, object]]:
    try:
        document = tomllib.loads(path.read_text("utf-8"))
    except OSError as error:
        raise UsageError(f"expected settings in {path}; got {error.strerror}: check --settings") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise UsageError(f"expected TOML in {path}; got {error}: mend the file") from None
    detect = document.pop("detect", {})
    if not isinstance(detect, dict):
        raise UsageError(f"{path}: expected [detect] to be a section; got {detect!r}")
    sections = {one.section for one in known()}
    names = {one.key: one for one in known()}
    values: dict[str, object] = {}
    for section, entries in document.items():
        if section not in sections or not isinstance(entries, dict):
            raise UsageError(_unknown(str(path), f"[{section}]", [f"[{s}]" for s in sorted(sections)]))
        for name, value in entries.items():
            key = f"{section}.{name}"
            if key not in names:
                raise UsageError(_unknown(str(path), key, list(names)))
            values[key] = _beside(path, value) if names[key].path else value
    return values, detect


def _beside(path: Path, value: object) -> object:
    return str(path.resolve().parent / value) if isinstance(value, str) else value


def _unknown(where: str, name: str, names: list[str]) -> str:
    near = get_close_matches(name, names, n=1, cutoff=0.5)
    hint = f"did you mean {near[0]}?" if near else "docs/configuration.md lists them all"
    return f"{where}: there is no setting {name}; {hint}"


def _from_environment(environ: Mapping[str, str]) -> dict[str, tuple[str, str]]:
    variables = {one.variable: one.key for one in known()}
    found: dict[str, tuple[str, str]] = {}
    for variable, text in environ.items():
        if variable in variables:
            found[variables[variable]] = (variable, text)
        elif variable.startswith(PREFIX):
            near = get_close_matches(variable, variables, n=1, cutoff=_SLIP)
            if near:
                raise UsageError(f"there is no variable {variable}; did you mean {near[0]}?")
    return found


def _build(
    values: Mapping[str, object], origins: Mapping[str, str], detect: Mapping[str, object]
) -> Settings:
    by_key = {one.key: one for one in known()}
    changed: dict[str, dict[str, object]] = {}
    for key, value in values.items():
        if key not in by_key:
            raise UsageError(_unknown("flags", key, list(by_key)))
        one = by_key[key]
        changed.setdefault(one.section, {})[one.name] = _convert(one, value, origins[key])
    settings = Settings(detect=detect)
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
    if one.name == "time_zone":
        _check_zone(str(converted), origin)
    return converted


_WRONG = object()
_TRUE = ("1", "true", "yes", "on")
_FALSE = ("0", "false", "no", "off")


def _as_type(kind: Any, value: object) -> object:
    if get_origin(kind) is Literal:
        return value if value in get_args(kind) else _WRONG
    if get_origin(kind) in (types.UnionType, typing.Union):
        return _as_type(next(a for a in get_args(kind) if a is not type(None)), value) if value else None
    if kind is bool:
        return _as_bool(value)
    if kind is str:
        return value if isinstance(value, str) else _WRONG
    return _as_number(kind, value)


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


def _check_zone(name: str, origin: str) -> None:
    try:
        ZoneInfo(name)
    except (KeyError, ValueError, OSError):
        raise UsageError(
            f"agent.time_zone ({origin}): expected a zone like Europe/Berlin; got {name!r}"
        ) from None


def describe(kind: Any) -> str:
    """Return a setting's type in words."""
    if get_origin(kind) is Literal:
        return " or ".join(repr(choice) for choice in get_args(kind))
    if get_origin(kind) in (types.UnionType, typing.Union):
        return describe(next(a for a in get_args(kind) if a is not type(None)))
    return {bool: "true or false", int: "a whole number", float: "a number"}.get(kind, "text")
