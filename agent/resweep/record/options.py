"""What holds for every `watch` of a process: `configure`, the environment, `[record]` in resweep.toml.

The stronger wins: an argument, then `configure`, then `RESWEEP_…`, then the file found from the current
folder upward, then the default.
"""

from __future__ import annotations

import logging
import os
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, replace
from hashlib import blake2b
from pathlib import Path
from typing import Any

from resweep.paths import FILE_MODE, home
from resweep.record.exposure import OWN_CONFIGS
from resweep.record.recorder import FLUSH_S, RING_BYTES, SAMPLE_PER_MINUTE, SAMPLE_RATE
from resweep.record.watching import CAPTURES, Capture

_FILE = "resweep.toml"
_log = logging.getLogger("resweep")


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """Defaults of a process.

    `sink` is "none", "spool:PATH", an http URL, or a sink object. `sample_rate` is a share of calls, at most
    `sample_per_minute` of each config. `ring_bytes` bounds what records keep alive until they are folded;
    `flush_s` is how often they are handed over. `configs` is how many keep series of their own. `salt` joins
    the veiled queries of processes that do not share a home folder. `spans` is True (or "otel") for a span of
    each retrieval through the process's own tracer provider, a provider, or the URL of an OTLP/HTTP intake.
    `canaries` lets the agent run canaries on the retrievers whose `watch` does not say. `rules_file` holds
    the user's own rules on what a change to a config means, as `[agent] rules_file`: the same for recorders,
    agent and `resweep check`, or their hashes would differ.
    """

    sink: Any = None
    registry: Any = None
    capture: Capture = "none"
    redact: Callable[[str], str] | None = None
    tokens: Any = None
    token: str | None = None
    salt: str | None = None
    sample_rate: float = SAMPLE_RATE
    sample_per_minute: int = SAMPLE_PER_MINUTE
    ring_bytes: int = RING_BYTES
    flush_s: float = FLUSH_S
    configs: int = OWN_CONFIGS
    metrics: bool = True
    spans: Any = None
    canaries: bool = False
    rules_file: str | None = None


_FROM_OUTSIDE: Mapping[str, type] = {
    "sink": str,
    "spans": str,
    "capture": str,
    "token": str,
    "salt": str,
    "sample_rate": float,
    "sample_per_minute": int,
    "ring_bytes": int,
    "flush_s": float,
    "configs": int,
    "canaries": bool,
    "rules_file": str,
}
_TRUTHS: Mapping[str, bool] = {
    **dict.fromkeys(("1", "true", "yes", "on"), True),
    **dict.fromkeys(("0", "false", "no", "off"), False),
}
_configured: dict[str, Any] = globals().get("_configured") or {}


def configure(values: Mapping[str, Any]) -> None:
    """Set defaults of this process. Raises TypeError for a name that is none."""
    known = {one.name for one in fields(Options)}
    for name in values:
        if name not in known:
            raise TypeError(f"configure() has no argument {name!r}; it takes {', '.join(sorted(known))}")
    _configured.update(values)


def reset() -> None:
    """Forget what `configure` set."""
    _configured.clear()


def options(environ: Mapping[str, str] = os.environ, folder: Path | None = None) -> Options:
    """Return what holds now. A value that cannot be meant is left out with a warning."""
    values: dict[str, Any] = {}
    for where, found in (("resweep.toml: {}", _file(folder)), ("RESWEEP_{}", _environment(environ))):
        for name, value in found.items():
            usable = _usable(name, value)
            if usable is None:
                said = where.format(name.upper() if where[0] == "R" else name)
                _log.warning("%s=%r is not usable (expected %s); leaving it out", said, value, _meant(name))
            else:
                values[name] = usable
    values |= {name: value for name, value in _configured.items() if value is not None}
    return replace(Options(), **values)


def _usable(name: str, value: object) -> object | None:
    if name == "canaries":
        return _TRUTHS.get(str(value).lower())
    try:
        found = _FROM_OUTSIDE[name](value)
    except (TypeError, ValueError):
        return None
    if name == "capture":
        return found if found in CAPTURES else None
    return found if not isinstance(found, int | float) or found > 0 else None


def _meant(name: str) -> str:
    """Return what a setting takes, in words."""
    if name == "capture":
        return ", ".join(CAPTURES[:-1]) + f" or {CAPTURES[-1]}"
    if name == "canaries":
        return "yes or no"
    return {int: "a whole number above 0", float: "a number above 0"}.get(_FROM_OUTSIDE[name], "text")


def _environment(environ: Mapping[str, str]) -> dict[str, object]:
    found: dict[str, object] = _canaries({"every": environ.get("RESWEEP_CANARY_EVERY")})
    return found | {name: text for name in _FROM_OUTSIDE if (text := environ.get(f"RESWEEP_{name.upper()}"))}


def _file(folder: Path | None) -> dict[str, object]:
    """The section [record] of the nearest resweep.toml from a folder upward."""
    try:
        start = (folder or Path.cwd()).absolute()
        path = next((at / _FILE for at in (start, *start.parents) if (at / _FILE).is_file()), None)
        document = tomllib.loads(path.read_text("utf-8")) if path else {}
        section = {**_canaries(document.get("canary", {})), **document.get("record", {})}
        own = document.get("agent", {}).get("rules_file")
        if path is not None and isinstance(own, str):
            section["rules_file"] = str(path.parent / Path(own).expanduser())
    except (OSError, tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        _log.warning("resweep.toml could not be read (%s); going on without it", type(error).__name__)
        return {}
    return {name: value for name, value in section.items() if name in _FROM_OUTSIDE}


def _canaries(section: Mapping[str, object]) -> dict[str, object]:
    """A timetable for canaries says that they are wanted."""
    return {"canaries": True} if section.get("every") else {}


def salt_of(
    wanted: str | None, environ: Mapping[str, str] = os.environ, *, secret: str | None = None
) -> bytes:
    """Return the salt that veils queries, equal for all that hand over to one agent.

    The given one; else one made of the `secret` that they share, the agent's token; else one kept beside the
    spool, made at first need.
    """
    if wanted:
        return wanted.encode("utf-8", "replace")[:64]
    if secret:
        return blake2b(secret.encode("utf-8", "replace"), digest_size=16, person=b"resweep salt").digest()
    folder = home(environ)
    if folder is None:
        return b""
    path = folder / "salt"
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, FILE_MODE)
        with os.fdopen(descriptor, "wb") as file:
            file.write(os.urandom(16).hex().encode())
    except FileExistsError:
        pass
    except OSError:
        return b""
    try:
        return path.read_bytes().strip()[:64]
    except OSError:
        return b""
