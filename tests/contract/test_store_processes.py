"""Several processes on one store: no write is lost, and one of them leads."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from multiprocessing.context import ForkServerContext, ForkServerProcess
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import create_engine, func, insert, select, text
from sqlalchemy.pool import NullPool

from resweep.domain.batch import Batch
from resweep.domain.window import Window
from resweep.store import open_store
from resweep.store.lease import Lease
from resweep.store.rows import JobRow
from resweep.store.schema import tallies
from resweep.store.sql import SqlStore

NOW = 1_796_000_000.0
TICK_S = 0.2
Start = Callable[..., ForkServerProcess]


@pytest.fixture
def started(processes: ForkServerContext) -> Iterator[Start]:
    """Give a function that starts a process, and end all of them in the end."""
    running: list[ForkServerProcess] = []

    def start(target: Callable[..., None], *args: Any) -> ForkServerProcess:
        running.append(processes.Process(target=target, args=args, daemon=True))
        running[-1].start()
        return running[-1]

    yield start
    for process in running:
        process.kill()
        process.join()


def test_four_writers_never_find_the_store_locked(opened: Callable[..., SqlStore], started: Start) -> None:
    """4 x 250 transactions that count the rows and then insert one, and batches that meet in one window."""
    store = opened()
    url = store._db.url.render_as_string(hide_password=False)
    processes = [started(_write, url, f"w{n}") for n in range(4)]
    for process in processes:
        process.join()
    assert [process.exitcode for process in processes] == [0, 0, 0, 0]
    assert sum(store.tallies().values()) == 1000
    (window,) = store.windows("bot", 0, 2**40)
    assert window.counts == {"retrievals": 100, "ok": 100}


def test_one_of_four_leads_and_another_after_it(store_url: str, tmp_path: Path, started: Start) -> None:
    """Every tick is run once at most; when the leader is killed, another goes on."""
    open_store(store_url).close()
    log = tmp_path / "ticks"
    log.touch()
    for _ in range(4):
        started(_lead, store_url, str(log))
    first = _wait_for(log, lambda lines: len(lines) >= 5)[-1][0]
    os.kill(first, signal.SIGKILL)
    lines = _wait_for(log, lambda lines: len([pid for pid, _ in lines if pid != first]) >= 5)
    ticks = [tick for _, tick in lines]
    assert ticks == sorted(set(ticks))
    assert len({pid for pid, _ in lines}) == 2


def test_threads_of_one_process_take_turns(store: SqlStore) -> None:
    """Requests, jobs and scrapes meet in one agent."""

    def apply(seq: int) -> bool:
        one = Window("bot", "aaaaaaaaaaaa", int(NOW // 60), {"retrievals": 1})
        return store.apply(Batch(writer="w", seq=seq, ts=NOW, windows=[one])) and store.snapshot().complete

    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(apply, range(40)))
    assert [w.get("retrievals") for w in store.windows("bot", 0, 2**40)] == [40]


@pytest.mark.integration
def test_a_lost_session_is_a_lost_lease(postgresql: Callable[[], str]) -> None:
    """The server ends it, and the leader finds out when it asks."""
    url = postgresql()
    with _leases(url, 2) as (one, other):
        one.acquire()
        engine = create_engine(url.replace("postgresql:", "postgresql+psycopg:"), poolclass=NullPool)
        with engine.connect() as connection:
            mine = "SELECT pg_terminate_backend(pid, 5000) FROM pg_locks WHERE locktype = 'advisory'"
            connection.execute(text(mine)).all()
        assert not one.held
        assert other.acquire()
        assert not one.acquire()


def test_a_lease_is_held_by_one(store_url: str) -> None:
    """The other waits, and learns by whom it is held."""
    with _leases(store_url, 2) as (one, other):
        assert one.holder() is None
        assert one.acquire()
        assert one.acquire()
        assert not other.acquire()
        assert (one.held, other.held) == (True, False)
        assert other.holder() == one.holder() == f"pid {os.getpid()} on {os.uname().nodename}"


def test_a_lease_that_was_given_up_can_be_taken(store_url: str) -> None:
    """At once."""
    with _leases(store_url, 2) as (one, other):
        one.acquire()
        one.release()
        assert not one.held
        assert other.holder() is None
        assert other.acquire()


@contextmanager
def _leases(url: str, n: int) -> Iterator[list[Lease]]:
    leases = [Lease(url) for _ in range(n)]
    try:
        yield leases
    finally:
        for lease in leases:
            lease.release()


def _write(url: str, name: str) -> None:
    store = open_store(url)
    for n in range(250):
        with store._db.write() as connection:
            assert connection.execute(select(func.count()).select_from(tallies)).scalar() is not None
            connection.execute(insert(tallies).values(name=f"{name}-{n}", value=1))
    for seq in range(25):
        one = Window("bot", "aaaaaaaaaaaa", int(NOW // 60), {"retrievals": 1, "ok": 1})
        assert store.apply(Batch(writer=name, seq=seq, ts=NOW, windows=[one]))
    store.close()


def _lead(url: str, log: str) -> None:
    """Run a job every 0.2 s while leading; what was begun is on record first, so nobody begins it again."""
    store, lease = open_store(url), Lease(url)
    while True:
        if lease.acquire():
            last = max([row.tick or 0.0 for row in store.jobs()], default=0.0)
            tick = time.time() // TICK_S
            if tick > last:
                store.save_job(JobRow(name="job", tick=tick))
                with open(log, "a") as file:
                    file.write(f"{os.getpid()} {tick:.0f}\n")
        time.sleep(TICK_S / 4)


def _wait_for(log: Path, enough: Callable[[list[tuple[int, int]]], bool]) -> list[tuple[int, int]]:
    until = time.monotonic() + 60
    while time.monotonic() < until:
        lines = [line.split() for line in log.read_text().splitlines()]
        pairs = [(int(pid), int(tick)) for pid, tick in lines]
        if enough(pairs):
            return pairs
        time.sleep(TICK_S / 4)
    pytest.fail(f"nobody led: {log.read_text()!r}")
