"""What was asked before and what came back, on disk: one SQLite file in a folder of the user's.

An answer is on disk before the next call begins, so that a sweep killed at any moment goes on where it was
and pays for nothing twice. Keys are made of content and versions: what was asked, of what, in which version.
"""

from __future__ import annotations

import hashlib
import json
import os
import sqlite3
import threading
from collections.abc import Iterable
from pathlib import Path
from typing import Protocol

from resweep.domain.errors import InputError
from resweep.domain.turn import MINE, Turn

FILE_NAME = "answers.sqlite"
_BUSY_S = 30.0
_MODE = 0o600  # the answers hold passages


def key_of(*parts: object) -> str:
    """Return the key of what is asked: a digest of its parts, which are plain data."""
    text = json.dumps(parts, sort_keys=True, ensure_ascii=False, separators=(",", ":"))
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


KEPT_S = 90 * 86400.0  # for what follows from its key alone: a model's answer to the same words


class Kept(Protocol):
    """Answers by key, in a file of this machine or shared by the workers of several.

    `shared`: others may be at the same work, so that a call is taken before it is made.
    """

    shared: bool

    def get(self, key: str, *, ever: bool = False) -> bytes | None:
        """Return the answer of a key, None where there is none young enough; `ever`: of any age."""

    def put(self, key: str, value: bytes) -> None:
        """Keep an answer; it outlives this process when this returns."""

    def known(self, keys: Iterable[str]) -> int:
        """Return how many different keys of these have an answer."""

    def take(self, key: str, for_s: float, *, ever: bool = False) -> Turn:
        """Return whose turn a call is, and take it for `for_s` seconds, or longer, where it is nobody's."""

    def fail(self, key: str, error: str) -> None:
        """Note that a call failed for good."""

    def release(self, keys: Iterable[str]) -> None:
        """Give back what was taken and not answered."""

    def close(self) -> None:
        """Let the file or database go."""


class Cache:
    """Answers by key, shared by threads and processes. `now` (unix s) dates what is put in.

    Answers older than `max_age_s` count as not there, those not put in anew for `KEPT_S` are removed.
    Raises InputError where the folder cannot be used.
    """

    shared = False

    def __init__(self, folder: Path, now: float, max_age_s: float | None = None) -> None:
        self._lock = threading.Lock()
        self._now = now
        self._oldest = 0.0 if max_age_s is None else now - max_age_s
        self._anew = max_age_s == 0
        path = folder / FILE_NAME
        try:
            folder.mkdir(parents=True, exist_ok=True)
            os.close(os.open(path, os.O_RDWR | os.O_CREAT, _MODE))
            self._db = sqlite3.connect(path, timeout=_BUSY_S, check_same_thread=False, isolation_level=None)
            self._db.execute("PRAGMA journal_mode=WAL")
            self._db.execute("CREATE TABLE IF NOT EXISTS answers (key TEXT PRIMARY KEY, at REAL, value BLOB)")
            self._db.execute("DELETE FROM answers WHERE at < ?", (now - max(KEPT_S, max_age_s or 0.0),))
        except (OSError, sqlite3.Error) as error:
            raise InputError(
                f"expected a folder for answers at {folder}; {error}: name another with --cache"
            ) from None

    def get(self, key: str, *, ever: bool = False) -> bytes | None:
        """Return the answer of a key, None where there is none young enough.

        `ever`: of any age, for what follows from its key alone (unless everything is to be asked anew).
        """
        oldest = 0.0 if ever and not self._anew else self._oldest
        with self._lock:
            row = self._db.execute(
                "SELECT value FROM answers WHERE key = ? AND at >= ?", (key, oldest)
            ).fetchone()
        return None if row is None else bytes(row[0])

    def put(self, key: str, value: bytes) -> None:
        """Keep an answer; it is on disk when this returns."""
        with self._lock:
            self._db.execute("INSERT OR REPLACE INTO answers VALUES (?, ?, ?)", (key, self._now, value))

    def known(self, keys: Iterable[str]) -> int:
        """Return how many different keys of these have an answer."""
        return sum(self.get(key) is not None for key in set(keys))

    def take(self, key: str, for_s: float, *, ever: bool = False) -> Turn:
        """Return that the call is this process's: nobody else is at its work."""
        return MINE

    def fail(self, key: str, error: str) -> None:
        """Keep nothing of a failure: the next sweep tries again."""

    def release(self, keys: Iterable[str]) -> None:
        """Give nothing back: nothing was taken from others."""

    def close(self) -> None:
        """Close the file."""
        self._db.close()
