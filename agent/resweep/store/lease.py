"""The leader's lease: one agent on a store runs the jobs, the others wait.

The lease is held by the system, not by a row with a time in it: a lock on a file beside an SQLite store, or
an advisory lock of a PostgreSQL session. It ends with the process however that ends, and no two clocks have
to agree. A pooler in transaction mode between agent and PostgreSQL breaks session locks: connect directly.
"""

from __future__ import annotations

import fcntl
import os
import socket
import threading
from contextlib import suppress
from pathlib import Path
from typing import Protocol

from sqlalchemy import URL, Connection, Engine, create_engine, text
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.pool import NullPool

from resweep.store.engine import LEADER_LOCK, store_url
from resweep.store.failures import translated


class Lease:
    """The lease of the store at a URL. May be used from any thread of the process that made it."""

    def __init__(self, url: str) -> None:
        self._guard = threading.Lock()  # a session must not be used by two threads at once
        parsed = store_url(url)
        sqlite = parsed.get_backend_name() == "sqlite"
        self._lock: _Lock = _FileLock(Path(f"{parsed.database}.lease")) if sqlite else _SessionLock(parsed)

    def acquire(self) -> bool:
        """Take the lease if nobody holds it; True where it is ours now. Never waits.

        Raises StoreError where file or server cannot be used.
        """
        with self._guard:
            return self._lock.held() or self._lock.acquire()

    @property
    def held(self) -> bool:
        """Whether the lease is ours at this moment: asked of the system each time."""
        with self._guard:
            return self._lock.held()

    def release(self) -> None:
        """Give the lease up, so that another agent takes over at once."""
        with self._guard:
            self._lock.release()

    def holder(self) -> str | None:
        """Return who holds the lease, as `pid N on HOST`; None where nobody does."""
        with self._guard:
            return self._lock.holder()


class _Lock(Protocol):
    def acquire(self) -> bool: ...

    def held(self) -> bool: ...

    def release(self) -> None: ...

    def holder(self) -> str | None: ...


def _myself() -> str:
    return f"pid {os.getpid()} on {socket.gethostname()}"


class _FileLock:
    """A lock on a file beside the store; who holds it is written inside, for messages alone."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file: int | None = None
        self._owner = 0

    def acquire(self) -> bool:
        self.release()
        with translated(str(self._path)):
            self._path.parent.mkdir(parents=True, exist_ok=True)
            file = os.open(self._path, os.O_CREAT | os.O_RDWR, 0o600)
            if not _locked(file, fcntl.LOCK_EX) or not self._is_at_path(file):
                os.close(file)
                return False
            os.ftruncate(file, 0)
            os.pwrite(file, _myself().encode(), 0)
        self._file, self._owner = file, os.getpid()
        return True

    def held(self) -> bool:
        """A forked child shares the lock but does not lead; a file removed by hand guards nothing."""
        return self._file is not None and self._owner == os.getpid() and self._is_at_path(self._file)

    def release(self) -> None:
        if self._file is not None:
            os.close(self._file)
            self._file = None

    def holder(self) -> str | None:
        if self.held():
            return _myself()
        try:
            file = os.open(self._path, os.O_RDONLY)
        except OSError:
            return None
        try:
            return None if _locked(file, fcntl.LOCK_SH) else os.pread(file, 400, 0).decode("utf-8", "replace")
        finally:
            os.close(file)

    def _is_at_path(self, file: int) -> bool:
        try:
            return os.path.samestat(os.fstat(file), self._path.stat())
        except OSError:
            return False


def _locked(file: int, how: int) -> bool:
    try:
        fcntl.flock(file, how | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


# A server that hears nothing from a dead host gives its session up after 10 + 3 x 5 seconds.
_KEEPALIVE = "-c tcp_keepalives_idle=10 -c tcp_keepalives_interval=5 -c tcp_keepalives_count=3"
_MINE = text(
    "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND pid = pg_backend_pid() "
    "AND classid = 0 AND objid = :key AND granted "
    "AND database = (SELECT oid FROM pg_database WHERE datname = current_database())"
)
_WHO = text(
    "SELECT a.application_name FROM pg_locks l JOIN pg_stat_activity a USING (pid) "
    "WHERE l.locktype = 'advisory' AND l.classid = 0 AND l.objid = :key AND l.granted "
    "AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database())"
)


class _SessionLock:
    """An advisory lock of a session of its own; a lost connection is a lost lock."""

    def __init__(self, url: URL) -> None:
        self._where = url.render_as_string(hide_password=True)
        self._url = url
        self._session: Connection | None = None
        self._owner = 0

    def acquire(self) -> bool:
        self.release()
        with translated(self._where):
            session = self._engine().connect()
            if not session.execute(text("SELECT pg_try_advisory_lock(:key)"), {"key": LEADER_LOCK}).scalar():
                session.close()
                return False
        self._session, self._owner = session, os.getpid()
        return True

    def held(self) -> bool:
        if self._session is None or self._owner != os.getpid():
            return False
        try:
            return bool(self._session.execute(_MINE, {"key": LEADER_LOCK}).scalar())
        except SQLAlchemyError:
            self.release()
            return False

    def release(self) -> None:
        session, self._session = self._session, None
        if session is not None and self._owner == os.getpid():
            with suppress(SQLAlchemyError):
                session.close()

    def holder(self) -> str | None:
        with translated(self._where), self._engine().connect() as connection:
            return connection.execute(_WHO, {"key": LEADER_LOCK}).scalar()

    def _engine(self) -> Engine:
        arguments = {"connect_timeout": 5, "application_name": _myself()[:63], "options": _KEEPALIVE}
        return create_engine(
            self._url, poolclass=NullPool, isolation_level="AUTOCOMMIT", connect_args=arguments
        )
