"""`resweep.lock`: tuned depths as a file that people review and keep in version control.

TOML, one `[[tuned]]` table for each pipeline, basis and epoch, in that order. The store decides at run time;
the file is how its records are exchanged. Writing keeps the comments of people and every key that resweep
does not know.
"""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import date, datetime
from pathlib import Path
from typing import Any

import tomlkit
from tomlkit.exceptions import ParseError, TOMLKitError
from tomlkit.items import AoT, Table

from resweep.documents import read_bytes
from resweep.domain.errors import InputError, LockFileError, NewerFormatError
from resweep.domain.verdict import TunedK
from resweep.store.lockentry import PLAIN, TABLES, EntryReader, Key, key, line_of, plain, seconds, values_of

FILE_NAME = "resweep.lock"
FORMAT = "resweep.lock/1"
LARGEST = 10 << 20  # bytes
HEADER = (
    "The retrieval depth tuned for each pipeline, beside the hash of the config (the basis) it holds for.",
    "Written by `resweep accept`, `resweep sweep` and `resweep lock pull`; review it and keep it in version",
    "control. Comments, and keys that resweep does not know, are kept.",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class LockFile:
    """The entries of a lock file, and the text they were read from (which carries the comments)."""

    entries: tuple[TunedK, ...] = ()
    text: str = ""

    def tuned(self, pipeline: str, basis: str) -> TunedK | None:
        """Return the entry in force for a basis: that of its newest epoch."""
        mine = [entry for entry in self.entries if (entry.pipeline, entry.basis) == (pipeline, basis)]
        return max(mine, key=lambda entry: entry.epoch, default=None)


def find_lock(start: Path | str) -> Path | None:
    """Return the nearest `resweep.lock` in a folder or those above it."""
    folder = Path(start).resolve()
    return next((f for f in (p / FILE_NAME for p in (folder, *folder.parents)) if f.is_file()), None)


def read_lock(path: Path | str) -> LockFile:
    """Return the lock file at a path.

    Raises LockFileError (with the line where one can be named) for a file that is missing, unreadable, no
    TOML or not as it must be; NewerFormatError for one of a later format.
    """
    path = Path(path)
    return _parsed(path, _text(path))


def write_lock(path: Path | str, lock: LockFile) -> None:
    """Write the entries into the file at a path, whole or not at all.

    A file that is there keeps its comments and unknown keys; entries that are not in `lock` leave it.
    Raises LockFileError where the file cannot be written, or is there and cannot be read.
    """
    path = Path(os.path.realpath(path))
    text = _text(path) if path.exists() else lock.text
    if text:
        _parsed(path, text)
    document = tomlkit.parse(text) if text else _empty()
    _set_entries(document, sorted(lock.entries, key=key))
    try:
        _replace(path, _spaced(tomlkit.dumps(document)).encode())
    except OSError as error:
        raise LockFileError(
            f"expected to write {path}; got {error.strerror}: make file and folder writable, or name another "
            f"with --lock; the file is as it was"
        ) from None
    except UnicodeEncodeError as error:
        raise LockFileError(f"{path}: expected text; got {error.object[error.start :][:20]!r}") from None


# --- reading


def _text(path: Path) -> str:
    try:
        body = read_bytes(path, LARGEST)
    except InputError as error:
        raise LockFileError(f"expected a lock file; {error}, or give its place with --lock") from None
    try:
        return body.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = body.count(b"\n", 0, error.start) + 1
        raise LockFileError(
            f"{path}:{line}: expected UTF-8 text; got the byte {body[error.start]:#x}"
        ) from None


def _parsed(path: Path, text: str) -> LockFile:
    try:
        document = tomlkit.parse(text).unwrap()
    except ParseError as error:
        raise LockFileError(f"{path}:{error.line}: {_why(text, error)}") from None
    except (TOMLKitError, ValueError, RecursionError) as error:
        raise LockFileError(
            f"{path}: expected TOML; got {error}: mend it or take it from the history"
        ) from None
    _check_format(path, document)
    tables = document.get("tuned", [])
    if not isinstance(tables, list) or not all(isinstance(table, dict) for table in tables):
        raise LockFileError(
            f"{path}:{line_of(text, None, 'tuned')}: expected [[tuned]] tables; got {tables!r:.60}"
        )
    entries = [EntryReader(path, text, index, table).read() for index, table in enumerate(tables)]
    _check_unique(path, text, entries)
    return LockFile(entries=tuple(sorted(entries, key=key)), text=text)


def _why(text: str, error: ParseError) -> str:
    lines = text.splitlines()
    got = lines[error.line - 1].strip()[:60] if error.line <= len(lines) else "the end of the file"
    if any(line.startswith(("<<<<<<<", ">>>>>>>")) for line in lines):
        return f"expected TOML; got {got!r}: a merge conflict is left in the file, settle it"
    return f"expected TOML; got {got!r}: mend the line or take the file from the history"


def _check_format(path: Path, document: Mapping[str, Any]) -> None:
    found = document.get("format")
    if found == FORMAT:
        return
    name, _, version = str(found).partition("/")
    if name == FORMAT.partition("/")[0] and version.isdecimal():
        raise NewerFormatError(
            f"{path}: expected format {FORMAT!r}; got {found!r}, written by another resweep: update this one"
        )
    raise LockFileError(f"{path}:1: expected format = {FORMAT!r}; got {found!r}: is this a resweep.lock?")


def _check_unique(path: Path, text: str, entries: Sequence[TunedK]) -> None:
    first: dict[Key, int] = {}
    for index, entry in enumerate(entries):
        at = first.setdefault(key(entry), index)
        if at != index:
            raise LockFileError(
                f"{path}:{line_of(text, index, None)}: expected one entry for {entry.pipeline!r}, basis "
                f"{entry.basis}, epoch {entry.epoch}; got another at line {line_of(text, at, None)}: keep one"
            )


# --- writing


def _empty() -> tomlkit.TOMLDocument:
    document = tomlkit.document()
    for line in HEADER:
        document.add(tomlkit.comment(line))
    document.add("format", tomlkit.item(FORMAT))
    return document


_CROWDED = re.compile(r"^(?![ \t]*(?:#.*)?$)(.*\n)(?=\[\[tuned\]\])", re.MULTILINE)


def _spaced(text: str) -> str:
    """Put an empty line before each entry, unless the like of one stands inside a text."""
    spaced = _CROWDED.sub(r"\1\n", text)
    return spaced if tomlkit.parse(spaced).unwrap() == tomlkit.parse(text).unwrap() else text


def _set_entries(document: tomlkit.TOMLDocument, entries: Iterable[TunedK]) -> None:
    """Bring the `[[tuned]]` tables in line with the entries, touching only what differs."""
    wanted = {key(entry): values_of(entry) for entry in entries}
    tables = document.get("tuned")
    if not isinstance(tables, AoT):
        tables = tomlkit.aot()
        document.pop("tuned", None)
        document.add("tuned", tables)
    for index in reversed(range(len(tables))):
        values = wanted.pop(_key_of(tables[index]), None)
        if values is None:
            del tables[index]
        else:
            _update(tables[index], values, keep=frozenset(tables[index]) - {*PLAIN, *TABLES})
    for at, values in wanted.items():
        later = (i for i, table in enumerate(tables) if _key_of(table) > at)
        tables.insert(next(later, len(tables)), _table(values))


def _key_of(table: Mapping[str, Any]) -> Key:
    return str(table["pipeline"]), str(table["basis"]), int(table.get("epoch", 1))


def _update(table: Any, values: Mapping[str, Any], keep: frozenset[str] = frozenset()) -> None:
    for name in [name for name in table if name not in values and name not in keep]:
        del table[name]
    for name, value in values.items():
        if name in table and isinstance(value, dict) and isinstance(table[name], Mapping):
            _update(table[name], value)
        elif name not in table:
            _add(table, name, value)
        elif not _equal(table[name], value):
            table[name] = value


def _equal(held: Any, value: object) -> bool:
    held = held.unwrap() if hasattr(held, "unwrap") else held
    if isinstance(held, date) and isinstance(value, datetime):
        return seconds(held) == value.timestamp()
    return bool(plain(held) == value and isinstance(held, bool) == isinstance(value, bool))


def _add(table: Any, name: str, value: object) -> None:
    """Add a plain key before the tables of an entry, where it would otherwise become a part of the last."""
    table.add(name, _table(value) if isinstance(value, dict) else tomlkit.item(value))


def _table(values: Mapping[str, Any]) -> Table:
    table = tomlkit.table()
    for name, value in sorted(values.items(), key=lambda pair: isinstance(pair[1], dict)):
        _add(table, name, value)
    return table


def _replace(path: Path, body: bytes) -> None:
    """Write beside the file, then take its place: a reader sees the old file or the new one."""
    handle, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(body)
            file.flush()
            os.fsync(file.fileno())
        os.chmod(name, path.stat().st_mode & 0o777 if path.exists() else 0o644)
        os.replace(name, path)
    except BaseException:
        with suppress(OSError):
            os.unlink(name)
        raise
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)
