"""What a database says when it refuses, as errors of ours that say what to do."""

from __future__ import annotations

import errno
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager

from sqlalchemy.exc import DBAPIError, SQLAlchemyError

from resweep.domain.errors import StoreBusyError, StoreError, StoreFullError, StoreReadOnlyError

_FULL = "no space is left for the store {where}: free space there or lower the retention; nothing was lost"
_READ_ONLY = (
    "the store {where} cannot be written ({detail}): make the file and its folder writable for this user, "
    "or name another place with RESWEEP_STORE"
)
_BUSY = (
    "the store {where} stayed locked by another program for longer than the busy timeout ({detail}): "
    "look for a second agent, a backup or an open database shell"
)
_CORRUPT = (
    "expected a resweep store at {where}; got a file that is no usable database ({detail}): restore it from "
    "a backup, or move it away and let the agent start a new one"
)
_DISK = "the disk under the store {where} fails ({detail}): check the disk and its file system"
_AWAY = "the store {where} cannot be used ({detail}): check that the database runs and the address is right"

# Primary result codes, https://www.sqlite.org/rescode.html
_SQLITE: dict[int, tuple[type[StoreError], str]] = {
    sqlite3.SQLITE_FULL: (StoreFullError, _FULL),
    sqlite3.SQLITE_READONLY: (StoreReadOnlyError, _READ_ONLY),
    sqlite3.SQLITE_PERM: (StoreReadOnlyError, _READ_ONLY),
    sqlite3.SQLITE_CANTOPEN: (StoreReadOnlyError, _READ_ONLY),
    sqlite3.SQLITE_BUSY: (StoreBusyError, _BUSY),
    sqlite3.SQLITE_LOCKED: (StoreBusyError, _BUSY),
    sqlite3.SQLITE_IOERR: (StoreError, _DISK),
    sqlite3.SQLITE_CORRUPT: (StoreError, _CORRUPT),
    sqlite3.SQLITE_NOTADB: (StoreError, _CORRUPT),
}
# https://www.postgresql.org/docs/current/errcodes-appendix.html
_POSTGRESQL: dict[str, tuple[type[StoreError], str]] = {
    "53100": (StoreFullError, _FULL),
    "25006": (StoreReadOnlyError, _READ_ONLY),
    "42501": (StoreReadOnlyError, _READ_ONLY),
    "55P03": (StoreBusyError, _BUSY),
    "57014": (StoreBusyError, _BUSY),
    "40P01": (StoreBusyError, _BUSY),
}
_OS: dict[int, tuple[type[StoreError], str]] = {
    errno.ENOSPC: (StoreFullError, _FULL),
    errno.EDQUOT: (StoreFullError, _FULL),
    errno.EACCES: (StoreReadOnlyError, _READ_ONLY),
    errno.EPERM: (StoreReadOnlyError, _READ_ONLY),
    errno.EROFS: (StoreReadOnlyError, _READ_ONLY),
}


@contextmanager
def translated(where: str) -> Iterator[None]:
    """Raise a database's refusals as StoreError; `where` is the store's address without a password."""
    try:
        yield
    except (SQLAlchemyError, sqlite3.Error, OSError) as error:
        raise store_error(where, error) from error


def store_error(where: str, error: Exception) -> StoreError:
    """Return the error to raise for what a driver, the database toolkit or the system raised."""
    cause = error.orig if isinstance(error, DBAPIError) and error.orig is not None else error
    kind, text = _classify(cause)
    detail = " ".join(str(cause).split())[:200] or type(cause).__name__
    return kind(text.format(where=where, detail=detail))


def _classify(cause: BaseException) -> tuple[type[StoreError], str]:
    if isinstance(cause, sqlite3.Error):
        code = getattr(cause, "sqlite_errorcode", None)
        return _SQLITE.get((code or 0) & 0xFF, (StoreError, _AWAY))
    if isinstance(cause, OSError):
        return _OS.get(cause.errno or 0, (StoreError, _AWAY))
    return _POSTGRESQL.get(str(getattr(cause, "sqlstate", "")), (StoreError, _AWAY))
