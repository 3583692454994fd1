"""One entry of a lock file, between the table in the file and the record in the store."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import fields
from datetime import UTC, date, datetime, time, timedelta
from pathlib import Path
from typing import Any

from resweep.domain.errors import LockFileError
from resweep.domain.verdict import TunedK

Key = tuple[str, str, int]
TABLES = ("parts", "constraints", "labelled_set", "grid", "slices", "judge", "observed")
_TIMES = ("tuned_at", "valid_until")
_TEXTS = ("objective", "tuned_by", "because", "report")
# Order of the plain keys of an entry; its tables come after them.
PLAIN = (
    "pipeline",
    "basis",
    "epoch",
    "context_k",
    "candidate_k",
    "best_set",
    "objective",
    "provisional",
    "tuned_at",
    "tuned_by",
    "because",
    "valid_until",
    "report",
    "weak_cases",
)


def key(entry: TunedK) -> Key:
    """Return what an entry is known by: pipeline, basis, epoch."""
    return entry.pipeline, entry.basis, entry.epoch


def plain(value: object) -> Any:
    """Return data as TOML can hold it: null left out, tuples as lists, times as text."""
    if isinstance(value, Mapping):
        return {str(k): plain(v) for k, v in value.items() if v is not None}
    if isinstance(value, (list, tuple, set, frozenset)):
        return [plain(one) for one in value if one is not None]
    if isinstance(value, (date, time)):
        return value.isoformat()
    return value


def values_of(entry: TunedK) -> dict[str, Any]:
    """Return what an entry says, as the file holds it and in the file's order; what is empty is left out."""
    values: dict[str, Any] = {}
    for name in (*PLAIN, *TABLES):
        value = getattr(entry, name)
        value = _moment(value) if name in _TIMES else plain(value)
        if name in ("provisional", "epoch") or (value is not None and value not in ("", [], {})):
            values[name] = value
    return values


assert {*PLAIN, *TABLES} == {f.name for f in fields(TunedK)}


def _moment(ts: float | None) -> datetime | None:
    """Return a time to the second, which is as good as people read it."""
    if not ts or not math.isfinite(ts):
        return None
    return datetime.fromtimestamp(round(ts), UTC)


def seconds(held: date) -> float:
    """Return the unix time of a time, UTC where it names no zone; a day counts to its end."""
    if isinstance(held, datetime):
        return (held if held.tzinfo else held.replace(tzinfo=UTC)).timestamp()
    return (datetime.combine(held, time(), UTC) + timedelta(days=1)).timestamp()


def line_of(text: str, index: int | None, name: str | None) -> int:
    """Return the line of a key of the index-th entry (or of the top), of the entry itself without one."""
    seen, at = -1, 1
    for number, line in enumerate(text.splitlines(), 1):
        bare = line.strip().replace(" ", "")
        if bare.startswith("[[tuned]]"):
            seen += 1
            at = number if seen == index else at
        if name is not None and seen == (-1 if index is None else index) and bare.startswith(f"{name}="):
            return number
    return at


class EntryReader:
    """One `[[tuned]]` table on its way to a TunedK."""

    def __init__(self, path: Path, text: str, index: int, table: dict[str, Any]) -> None:
        self._path, self._text, self._index, self._table = path, text, index, table

    def read(self) -> TunedK:
        """Return the record; raises LockFileError with the line of what is wrong."""
        values: dict[str, Any] = {
            "pipeline": self._required("pipeline", str),
            "basis": self._required("basis", str),
            "context_k": self._depth("context_k", self._required("context_k", int)),
        }
        if (candidates := self._optional("candidate_k", int)) is not None:
            values["candidate_k"] = self._depth("candidate_k", candidates)
        if (epoch := self._optional("epoch", int)) is not None:
            values["epoch"] = epoch
        for name in _TEXTS:
            if (text := self._optional(name, str)) is not None:
                values[name] = text
        for name in TABLES:
            values[name] = plain(self._optional(name, dict) or {})
        values["best_set"] = tuple(self._depth("best_set", k) for k in self._optional("best_set", list) or ())
        values["weak_cases"] = tuple(str(case) for case in self._optional("weak_cases", list) or ())
        values["provisional"] = bool(self._optional("provisional", bool))
        for name in _TIMES:
            if name in self._table:
                values[name] = self._time(name)
        return TunedK(**values)

    def _required(self, name: str, kind: type) -> Any:
        if name not in self._table:
            raise self._error(None, f"expected the key {name!r} in this entry; got none")
        return self._optional(name, kind)

    def _optional(self, name: str, kind: type) -> Any:
        value = self._table.get(name)
        if value is None or (isinstance(value, kind) and (kind is bool or not isinstance(value, bool))):
            return value
        words = {str: "text", int: "a whole number", dict: "a table", list: "a list", bool: "true or false"}
        raise self._error(name, f"expected {name} to be {words[kind]}; got {value!r:.60}")

    def _depth(self, name: str, value: object) -> int:
        if not isinstance(value, int) or isinstance(value, bool) or value < 1:
            raise self._error(name, f"expected {name} to be a depth of 1 or more; got {value!r:.60}")
        return value

    def _time(self, name: str) -> float:
        value = self._table[name]
        if isinstance(value, date):
            return seconds(value)
        raise self._error(name, f"expected {name} to be a date or a time; got {value!r:.60}")

    def _error(self, name: str | None, what: str) -> LockFileError:
        line = line_of(self._text, self._index, name)
        return LockFileError(f"{self._path}:{line}: {what}: mend it or take the entry from the history")
