"""Stores to run a suite over: SQLite in a file, and PostgreSQL where a server can be started."""

from __future__ import annotations

import itertools
import multiprocessing
import os
import pwd
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from multiprocessing.context import ForkServerContext
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import create_engine, text
from sqlalchemy.pool import NullPool

from resweep.domain.batch import Batch
from resweep.domain.clock import VirtualClock
from resweep.store import StoreSettings, open_store
from resweep.store.schema import metadata
from resweep.store.sql import SqlStore

NOW = 1_796_000_000.0  # 2026-11-30, on a whole minute plus 20 s
OpenStore = Callable[..., SqlStore]


@pytest.fixture(scope="session")
def postgresql() -> Iterator[Callable[[], str]]:
    """Start a server of our own on a free port; give a function that empties it and returns its URL."""
    folder = _programs()
    if folder is None:
        pytest.skip("needs the PostgreSQL server's programs (Debian: postgresql)")
    base = Path(tempfile.mkdtemp(prefix="resweep-pg-"))
    user = _server_user(base)
    data, port = str(base / "data"), _free_port()
    options = f"-p {port} -c listen_addresses=127.0.0.1 -c unix_socket_directories={base} -c fsync=off"
    try:
        _run([folder / "initdb", "--no-sync", "-A", "trust", "-U", "resweep", "-D", data], user)
        _run([folder / "pg_ctl", "-D", data, "-o", options, "-l", str(base / "log"), "-w", "start"], user)
        yield _database_emptier(f"postgresql://resweep@127.0.0.1:{port}/postgres")
    finally:
        subprocess.run(
            [folder / "pg_ctl", "-D", data, "-m", "immediate", "stop"], user=user, capture_output=True
        )
        shutil.rmtree(base, ignore_errors=True)


def _programs() -> Path | None:
    found = shutil.which("pg_ctl")
    beside = [Path(found).resolve().parent] if found else []
    for folder in (*beside, *sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)):
        if (folder / "initdb").exists() and (folder / "pg_ctl").exists():
            return folder
    return None


def _server_user(base: Path) -> str | None:
    """The server refuses to run as root; give its folder to another user then."""
    if os.geteuid() != 0:
        return None
    names = [p.pw_name for p in pwd.getpwall() if p.pw_name in ("postgres", "nobody")]
    if not names:
        pytest.skip("needs a user other than root to run PostgreSQL as")
    user = "postgres" if "postgres" in names else names[0]
    shutil.chown(base, user)
    return user


def _run(command: list[Any], user: str | None) -> None:
    # Output goes to nobody: the server started by pg_ctl would keep a pipe open.
    subprocess.run(
        command, user=user, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, cwd="/"
    )


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _database_emptier(url: str) -> Callable[[], str]:
    """Empty one migrated database again and again: quicker than making a new one."""
    open_store(url).close()
    engine = create_engine(url.replace("postgresql:", "postgresql+psycopg:"), poolclass=NullPool)
    names = ", ".join(table.name for table in metadata.sorted_tables)

    def empty() -> str:
        with engine.begin() as connection:
            connection.execute(text(f"TRUNCATE {names} RESTART IDENTITY"))
        return url

    return empty


@pytest.fixture(scope="session")
def sqlite_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Give a fresh store to copy."""
    path = tmp_path_factory.mktemp("store") / "fresh.db"
    open_store(str(path)).close()
    return path


@pytest.fixture(params=["sqlite", pytest.param("postgresql", marks=pytest.mark.integration)])
def store_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Give the URL of an empty store of each kind."""
    if request.param == "sqlite":
        copy = shutil.copy(request.getfixturevalue("sqlite_file"), tmp_path / "resweep.db")
        return f"sqlite:///{copy}"
    empty: Callable[[], str] = request.getfixturevalue("postgresql")
    return empty()


@pytest.fixture(scope="session")
def processes() -> ForkServerContext:
    """Give clean processes that have the store loaded already, so that a start costs little."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["pytest", "resweep.store.sql", "resweep.store.lease"])
    return context


@pytest.fixture
def clock() -> VirtualClock:
    """Give a clock that stands still until it is set."""
    return VirtualClock(NOW)


@pytest.fixture
def opened(store_url: str, clock: VirtualClock) -> Iterator[OpenStore]:
    """Give a function that opens the store with settings, as often as needed."""
    stores: list[SqlStore] = []

    def open_it(**settings: Any) -> SqlStore:
        stores.append(open_store(store_url, clock=clock, settings=StoreSettings(**settings)))
        return stores[-1]

    yield open_it
    for store in stores:
        store.close()


@pytest.fixture
def store(opened: OpenStore) -> SqlStore:
    """Give a fresh store with default settings."""
    return opened()


@pytest.fixture
def post() -> Callable[..., bool]:
    """Give a function that applies the parts of a batch to a store under the next number of one writer."""
    numbers = itertools.count(1)

    def apply(store: SqlStore, **parts: Any) -> bool:
        return store.apply(Batch(writer="w1", seq=next(numbers), ts=NOW, **parts))

    return apply
