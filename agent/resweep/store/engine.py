"""Connections and transactions: SQLite in a file by default, PostgreSQL by URL.

Writing transactions come one after the other on either database: `BEGIN IMMEDIATE` on SQLite, where a
transaction that reads first and writes later fails at once instead of waiting; an advisory lock on
PostgreSQL, where several agents may take batches in.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, Literal

from sqlalchemy import URL, Connection, Engine, create_engine, event, make_url, text
from sqlalchemy.exc import ArgumentError, NoSuchModuleError
from sqlalchemy.pool import ConnectionPoolEntry

from resweep.domain.errors import StoreError, UsageError
from resweep.store.failures import translated
from resweep.store.settings import StoreSettings

WRITE_LOCK = 0x7265_7377  # one advisory lock for the writers of a database, another for the leader
LEADER_LOCK = 0x7265_7378
_PAGE = 4096


def store_url(given: str) -> URL:
    """Return the URL of a store; a bare path is that of an SQLite file.

    Raises UsageError for a URL that is none, another database, or an SQLite database in memory.
    """
    try:
        url = make_url(given if "://" in given else f"sqlite:///{given}")
    except ArgumentError:
        raise UsageError(f"expected a database URL or a path for the store; got {given[:40]!r}") from None
    name = url.get_backend_name()
    if name == "sqlite":
        if not url.database or url.database == ":memory:" or url.database.startswith("file:"):
            raise UsageError("the store needs a file that outlives the agent: give sqlite:///PATH")
        return url.set(drivername="sqlite")
    if name in ("postgresql", "postgres"):
        return url.set(drivername="postgresql+psycopg")
    raise UsageError(f"expected sqlite:///PATH or postgresql://HOST/NAME for the store; got {name!r}")


class Database:
    """An open database: `read()` and `write()` are one transaction each."""

    def __init__(self, given: str, settings: StoreSettings) -> None:
        self.url = store_url(given)
        self.where = self.url.render_as_string(hide_password=True)
        self.sqlite = self.url.get_backend_name() == "sqlite"
        self._writing = threading.Lock()
        with translated(self.where):
            self.engine = self._sqlite(settings) if self.sqlite else self._postgresql(settings)

    def _sqlite(self, settings: StoreSettings) -> Engine:
        _make_file(Path(str(self.url.database)))
        engine = create_engine(self.url, connect_args={"timeout": settings.busy_timeout_s})
        event.listen(engine, "connect", _pragmas(settings))
        event.listen(engine, "begin", _begin)
        return engine

    def _postgresql(self, settings: StoreSettings) -> Engine:
        milliseconds = int(settings.busy_timeout_s * 1000)
        try:
            return create_engine(
                self.url,
                pool_pre_ping=True,
                connect_args={"options": f"-c lock_timeout={milliseconds}", "connect_timeout": 5},
            )
        except (ModuleNotFoundError, NoSuchModuleError):
            raise StoreError(
                "a PostgreSQL store needs the driver: install it with `pip install 'resweep[postgres]'`"
            ) from None

    @contextmanager
    def read(self) -> Iterator[Connection]:
        """Give a connection that sees one moment of the store."""
        with translated(self.where), self._connect("REPEATABLE READ") as connection, connection.begin():
            yield connection

    @contextmanager
    def write(self) -> Iterator[Connection]:
        """Give a connection that may write; commits at the end, or rolls everything back."""
        with translated(self.where), self._writing, self._connect("READ COMMITTED") as connection:
            connection.execution_options(resweep_write=True)
            with connection.begin():
                if not self.sqlite:
                    connection.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": WRITE_LOCK})
                yield connection

    def _connect(self, isolation: Literal["READ COMMITTED", "REPEATABLE READ"]) -> Connection:
        connection = self.engine.connect()
        return connection if self.sqlite else connection.execution_options(isolation_level=isolation)

    def forget(self) -> None:
        """Let no copy of what was deleted remain in the write-ahead log; readers may put it off."""
        if not self.sqlite:
            return  # rows are out of sight at once; the server's own vacuum removes them
        with translated(self.where), closing(self.engine.raw_connection()) as connection:
            connection.cursor().execute("PRAGMA wal_checkpoint(TRUNCATE)")

    def close(self) -> None:
        """Close all connections."""
        self.engine.dispose()


def _make_file(path: Path) -> None:
    """Make folder and file; the file is for its owner alone, since it may come to hold query texts."""
    path.parent.mkdir(parents=True, exist_ok=True)
    if not path.exists():
        os.close(os.open(path, os.O_CREAT | os.O_RDWR, 0o600))


def _pragmas(settings: StoreSettings) -> Any:
    def connected(connection: Any, _: ConnectionPoolEntry) -> None:
        connection.isolation_level = None  # transactions are begun by `_begin`, not by the driver
        cursor = connection.cursor()
        cursor.execute(f"PRAGMA busy_timeout = {int(settings.busy_timeout_s * 1000)}")
        cursor.execute("PRAGMA journal_mode = WAL")
        cursor.execute("PRAGMA synchronous = NORMAL")
        cursor.execute("PRAGMA foreign_keys = ON")
        cursor.execute("PRAGMA secure_delete = ON")  # a deleted query text is gone from the file, too
        if settings.max_bytes is not None:
            cursor.execute(f"PRAGMA max_page_count = {max(1, settings.max_bytes // _PAGE)}")
        cursor.close()

    return connected


def _begin(connection: Connection) -> None:
    writes = connection.get_execution_options().get("resweep_write")
    connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")
