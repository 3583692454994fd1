"""pgvector asked the way people ask it: psycopg and SQLAlchemy, in functions of their own."""

# The library is only in an environment of its own, where types are not checked.
# mypy: disable-error-code="import-not-found, import-untyped, no-untyped-call, misc"
from __future__ import annotations

import importlib.util
import os
import pwd
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import resweep
from resweep.testing import MemorySink

psycopg = pytest.importorskip("psycopg")
pytest.importorskip("pgvector")

import numpy  # noqa: E402
from pgvector.psycopg import register_vector  # noqa: E402
from pgvector.sqlalchemy import Vector  # noqa: E402
from psycopg.rows import dict_row, namedtuple_row, tuple_row  # noqa: E402
from sqlalchemy import create_engine, select, text  # noqa: E402
from sqlalchemy.orm import DeclarativeBase, Mapped, Session, mapped_column  # noqa: E402

pytestmark = pytest.mark.integration
QUERY = numpy.array([1.0, 0.0, 0.0])
NEAREST = "SELECT id, content, source, embedding <=> %s AS distance FROM passages ORDER BY distance LIMIT %s"


@pytest.fixture
def sink() -> Iterator[MemorySink]:
    with resweep.testing.capture() as memory:
        yield memory


def _run(command: list[str], user: str | None) -> int:
    nowhere = subprocess.DEVNULL
    return subprocess.run(command, user=user, check=False, stdout=nowhere, stderr=nowhere, cwd="/").returncode


def _programs() -> Iterator[Path]:
    """Folders of a server's programs: those that pgserver brings, with the extension; then the system's."""
    bundled = importlib.util.find_spec("pgserver")
    if bundled is not None and bundled.origin is not None:
        yield Path(bundled.origin).parent / "pginstall" / "bin"
    yield from sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    """A server of our own with the extension, or the one that RESWEEP_TEST_PGVECTOR names."""
    if named := os.environ.get("RESWEEP_TEST_PGVECTOR"):
        yield named
        return
    folders = list(_programs())
    if not folders or not any(p.pw_name == "postgres" for p in pwd.getpwall()):
        pytest.skip("needs the PostgreSQL server's programs")
    base, user = Path(tempfile.mkdtemp(prefix="resweep-pgvector-")), "postgres" if os.geteuid() == 0 else None
    if user:
        shutil.chown(base, user)
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    data, control = f"{base}/data", str(folders[0] / "pg_ctl")
    options = f"-p {port} -c listen_addresses=127.0.0.1 -c unix_socket_directories={base} -c fsync=off"
    try:
        _run([str(folders[0] / "initdb"), "--no-sync", "-A", "trust", "-U", "resweep", "-D", data], user)
        _run([control, "-D", data, "-o", options, "-l", f"{base}/log", "-w", "start"], user)
        yield f"postgresql://resweep@127.0.0.1:{port}/postgres"
    finally:
        _run([control, "-D", data, "-m", "immediate", "stop"], user)
        shutil.rmtree(base, ignore_errors=True)


@pytest.fixture(scope="module")
def filled(address: str) -> str:
    """The address of a server with twenty passages."""
    with psycopg.connect(address, autocommit=True) as connection:
        try:
            connection.execute("CREATE EXTENSION IF NOT EXISTS vector")
        except psycopg.Error:
            pytest.skip("needs the pgvector extension (Debian: postgresql-15-pgvector)")
        register_vector(connection)
        connection.execute("DROP TABLE IF EXISTS passages")
        connection.execute("CREATE TABLE passages (id text, content text, source text, embedding vector(3))")
        for i in range(20):
            row = (f"d{i}", f"text {i}", f"{i}.md", numpy.array([1.0, i / 20, 0.0]))
            connection.execute("INSERT INTO passages VALUES (%s, %s, %s, %s)", row)
    return address


@pytest.mark.parametrize("rows", [tuple_row, dict_row, namedtuple_row])
def test_rows_of_psycopg_are_read(sink: MemorySink, filled: str, rows: Any) -> None:
    """Whatever the row factory: ids, texts, distances; sources where columns have names."""
    with psycopg.connect(filled, row_factory=rows) as connection:
        register_vector(connection)

        def retrieve(query: Any, k: int = 4) -> list[Any]:
            return list(connection.execute(NEAREST, (query, k)).fetchall())

        assert len(resweep.watch(retrieve, sink=sink)(QUERY, k=4)) == 4
    (event,) = sink.events
    assert (event.asked, event.returned) == (4, 4)
    assert [hit.id for hit in event.hits] == ["d0", "d1", "d2", "d3"]
    assert event.hits[0].score == 0.0
    assert event.hits[0].tokens is not None
    assert event.query_key is not None
    if rows is not tuple_row:
        assert (event.hits[0].source, event.hits[0].kind) == ("0.md", "distance")


class Base(DeclarativeBase):
    pass


class Passage(Base):
    __tablename__ = "passages"
    id: Mapped[str] = mapped_column(primary_key=True)
    content: Mapped[str]
    source: Mapped[str]
    embedding: Mapped[Any] = mapped_column(Vector(3))


def test_rows_of_sqlalchemy_are_read(sink: MemorySink, filled: str) -> None:
    """Core rows by their column names, mapped objects beside their distance, and mapped objects alone."""
    engine = create_engine(filled.replace("postgresql://", "postgresql+psycopg://"))
    distance = Passage.embedding.cosine_distance(QUERY).label("distance")
    core = text("SELECT id, content, source FROM passages ORDER BY id LIMIT 3")
    with Session(engine) as session:
        asks: list[Any] = [
            lambda query: session.execute(core).all(),
            lambda query: session.execute(select(Passage, distance).order_by(distance).limit(3)).all(),
            lambda query: session.scalars(select(Passage).order_by(distance).limit(3)).all(),
        ]
        for ask in asks:
            resweep.watch(ask, sink=sink)("how long do refunds take")
        events = sink.events
    engine.dispose()
    assert [event.returned for event in events] == [3, 3, 3]
    assert [event.hits[0].id for event in events] == ["d0", "d0", "d0"]
    assert [event.hits[0].source for event in events] == ["0.md", "0.md", "0.md"]
    assert (events[1].hits[0].kind, events[1].hits[0].score) == ("distance", 0.0)


def test_a_wrong_vector_size_is_a_dimension_mismatch(sink: MemorySink, filled: str) -> None:
    """The server's own words are classed, and reach the caller."""
    with psycopg.connect(filled) as connection:
        register_vector(connection)
        retrieve = resweep.watch(lambda query: connection.execute(NEAREST, (query, 3)).fetchall(), sink=sink)
        with pytest.raises(psycopg.Error, match="different vector dimensions"):
            retrieve(numpy.array([1.0, 0.0]))
    assert sink.counts["error:dimension_mismatch"] == 1
