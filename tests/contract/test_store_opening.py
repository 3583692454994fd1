"""Opening a store, moving it to a newer schema, and what it says when it cannot."""

from __future__ import annotations

import multiprocessing
import os
import sqlite3
from collections.abc import Callable
from multiprocessing.context import ForkServerContext
from pathlib import Path

import pytest
from alembic.autogenerate import compare_metadata
from alembic.runtime.migration import MigrationContext
from sqlalchemy import column, table, update

from resweep.domain.batch import Batch
from resweep.domain.clock import VirtualClock
from resweep.domain.errors import (
    NewerFormatError,
    ResweepError,
    StoreBusyError,
    StoreError,
    StoreFullError,
    StoreReadOnlyError,
    UsageError,
)
from resweep.domain.event import RetrievalEvent
from resweep.domain.window import Window
from resweep.store import StoreSettings, open_store
from resweep.store.engine import store_url
from resweep.store.migrate import schema_version
from resweep.store.schema import VERSION_TABLE, metadata
from resweep.store.sql import SqlStore

NOW = 1_796_000_000.0
CLOCK = VirtualClock(NOW)


def batch(seq: int = 1, events: int = 0) -> Batch:
    """Return a batch with one window, and events to make it large."""
    window = Window("bot", "aaaaaaaaaaaa", int(NOW // 60), {"retrievals": 1})
    many = [
        RetrievalEvent(id=f"{seq}-{n}", ts=NOW, pipeline="bot", config="aaaaaaaaaaaa", query="q" * 2000)
        for n in range(events)
    ]
    return Batch(writer="w", seq=seq, ts=NOW, windows=[window], events=many)


def test_migrations_make_the_tables_that_the_code_uses(store: SqlStore) -> None:
    """A change of schema.py without a migration is found here."""
    with store._db.engine.connect() as connection:
        context = MigrationContext.configure(connection, opts={"version_table": VERSION_TABLE})
        found = compare_metadata(context, metadata)
    assert [difference for difference in found if "resweep_" in str(difference)] == []


def test_a_store_is_made_by_its_migrations(tmp_path: Path) -> None:
    """From nothing, with the folders above it, for its owner's eyes alone."""
    path = tmp_path / "new" / "deep" / "resweep.db"
    open_store(f"sqlite:///{path}").close()
    assert path.stat().st_mode & 0o777 == 0o600
    open_store(str(path)).close()


def test_several_agents_may_open_a_new_store_at_once(tmp_path: Path, processes: ForkServerContext) -> None:
    """The migrations run once."""
    with processes.Pool(3) as pool:
        assert pool.map(_open_and_close, [str(tmp_path / "resweep.db")] * 3) == ["opened"] * 3


def test_a_newer_store_is_left_alone(store: SqlStore, opened: Callable[..., SqlStore]) -> None:
    """An older agent must not write what it does not understand."""
    with store._db.read() as connection:
        current = str(schema_version(connection))
    _set_version(store, "9999")
    try:
        with pytest.raises(NewerFormatError, match="9999"):
            opened()
    finally:
        _set_version(store, current)


def test_a_full_store_refuses_whole_and_goes_on_later(tmp_path: Path) -> None:
    """The batch is not taken, so its file stays; with room it goes in."""
    url = str(tmp_path / "resweep.db")
    store = open_store(url, clock=CLOCK, settings=StoreSettings(max_bytes=600_000))
    with pytest.raises(StoreFullError, match="free space"):
        store.apply(batch(1, events=400))
    assert store.pipelines() == []
    store.close()
    store = open_store(url, clock=CLOCK)
    assert store.apply(batch(1, events=400))
    store.close()


def test_a_locked_store_says_so(tmp_path: Path) -> None:
    """After the busy timeout, with what to look for; nothing is half done."""
    path = tmp_path / "resweep.db"
    store = open_store(str(path), clock=CLOCK, settings=StoreSettings(busy_timeout_s=0.05))
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    with pytest.raises(StoreBusyError, match="second agent"):
        store.apply(batch())
    assert store.pipelines() == []  # readers do not wait for a writer
    other.execute("ROLLBACK")
    other.close()
    assert store.apply(batch())
    store.close()


def test_a_file_that_is_no_database_is_left_alone(tmp_path: Path) -> None:
    """It says what to do, and does not touch the file."""
    path = tmp_path / "resweep.db"
    path.write_text("this is somebody's diary\n" * 100)
    with pytest.raises(StoreError, match="move it away"):
        open_store(str(path))
    assert path.read_text().startswith("this is somebody's diary")


def test_a_damaged_store_says_so(tmp_path: Path) -> None:
    """A page of it was overwritten."""
    path = tmp_path / "resweep.db"
    open_store(str(path)).close()
    body = bytearray(path.read_bytes())
    body[4096:] = b"\xff" * (len(body) - 4096)
    path.write_bytes(body)
    with pytest.raises(StoreError, match="backup"):
        open_store(str(path)).pipelines()


def test_a_folder_that_cannot_be_written(tmp_path: Path) -> None:
    """Read-only before there is a store."""
    assert (
        _without_rights(tmp_path, _open_and_close, str(tmp_path / "resweep.db"))
        == StoreReadOnlyError.__name__
    )


def test_a_store_that_cannot_be_written(tmp_path: Path) -> None:
    """Read-only with a store in it."""
    path = tmp_path / "resweep.db"
    open_store(str(path)).close()
    path.chmod(0o444)
    assert _without_rights(tmp_path, _open_and_apply, str(path)) == StoreReadOnlyError.__name__


def test_a_folder_in_the_place_of_the_store(tmp_path: Path) -> None:
    """Is no database either."""
    with pytest.raises(StoreError):
        open_store(str(tmp_path))


def test_a_server_that_is_away(tmp_path: Path) -> None:
    """Is named without the password."""
    with pytest.raises(StoreError) as caught:
        open_store("postgresql://resweep:s3cret@127.0.0.1:9/none")
    assert "127.0.0.1:9" in str(caught.value)
    assert "s3cret" not in str(caught.value)


@pytest.mark.parametrize(
    ("given", "driver"),
    [
        ("state/resweep.db", "sqlite"),
        ("sqlite:////var/lib/resweep.db", "sqlite"),
        ("postgresql://h/db", "postgresql+psycopg"),
        ("postgres://h/db", "postgresql+psycopg"),
    ],
)
def test_a_path_or_a_url_names_a_store(given: str, driver: str) -> None:
    """With the driver of ours."""
    assert store_url(given).drivername == driver


@pytest.mark.parametrize("given", ["mysql://h/db", "sqlite://", "sqlite:///:memory:", "http://[", ""])
def test_other_places_are_refused(given: str) -> None:
    """A database of another kind, or one that forgets."""
    with pytest.raises(UsageError, match=r"expected|needs a file"):
        store_url(given)


def _set_version(store: SqlStore, version: str) -> None:
    with store._db.write() as connection:
        connection.execute(update(table(VERSION_TABLE, column("version_num"))).values(version_num=version))


def _open_and_close(url: str) -> str:
    open_store(url).close()
    return "opened"


def _open_and_apply(url: str) -> str:
    store = open_store(url, clock=CLOCK)
    try:
        return str(store.apply(batch()))
    finally:
        store.close()


def _without_rights(folder: Path, act: Callable[[str], str], url: str) -> str:
    """Return what comes of an action of a user who may look at a folder and not write into it."""
    for parent in folder.parents:
        if parent.stat().st_uid == os.getuid() and parent.name.startswith("pytest-"):
            parent.chmod(0o755)
    folder.chmod(0o555)
    context = multiprocessing.get_context("fork")
    ours, theirs = context.Pipe()
    process = context.Process(target=_as_nobody, args=(act, url, theirs))
    process.start()
    process.join(20)
    folder.chmod(0o755)
    return str(ours.recv()) if ours.poll() else "nothing"


def _as_nobody(act: Callable[[str], str], url: str, answer: object) -> None:
    if os.geteuid() == 0:
        os.setuid(65534)
    try:
        result = act(url)
    except ResweepError as error:
        result = type(error).__name__
    answer.send(result)  # type: ignore[attr-defined]
