"""Processes that come and go: forked, spawned, recycled, ended, killed. What they recorded adds up."""

from __future__ import annotations

import multiprocessing
import os
import signal
import socket
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path

import pytest

import resweep
from resweep.domain.batch import Batch, decode_batch
from resweep.record.process import recorders

pytestmark = pytest.mark.integration
RECYCLED = 50
CALLS = 40


@pytest.fixture(autouse=True)
def _end() -> Iterator[None]:
    yield
    resweep.shutdown()


def batches(spool: Path) -> list[Batch]:
    return [decode_batch(file.read_bytes()) for file in sorted(spool.glob("*.json"))]


def calls(spool: Path) -> int:
    return sum(window.get("retrievals") for batch in batches(spool) for window in batch.windows)


def retrieve(query: str) -> list[str]:
    return ["a", "b", "c"]


def work(watched: object, times: int) -> None:
    for _ in range(times):
        watched("q")  # type: ignore[operator]


def test_50_recycled_workers_lose_nothing_and_leave_nothing(tmp_path: Path) -> None:
    """Watched before the fork, 4 at a time: the sum is every call made, each writer is its own."""
    watched = resweep.watch(retrieve, sink=f"spool:{tmp_path}", config={"context_k": 3})
    work(watched, 7)  # the parent records too, before and after
    context = multiprocessing.get_context("fork")
    for start in range(0, RECYCLED, 4):
        workers = [
            context.Process(target=work, args=(watched, CALLS)) for _ in range(min(4, RECYCLED - start))
        ]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
            assert worker.exitcode == 0
    work(watched, 3)
    resweep.flush()
    assert calls(tmp_path) == RECYCLED * CALLS + 10
    found = batches(tmp_path)
    assert len({batch.writer for batch in found}) == RECYCLED + 1
    assert len({(batch.writer, batch.seq) for batch in found}) == len(found)
    assert not list(tmp_path.glob(".*"))


def test_what_the_parent_had_not_handed_over_is_not_sent_twice(tmp_path: Path) -> None:
    """A child starts from nothing: the parent's pending calls are the parent's."""
    watched = resweep.watch(retrieve, sink=f"spool:{tmp_path}")
    work(watched, 5)
    pid = os.fork()
    if pid == 0:
        work(watched, 2)
        resweep.flush()
        os._exit(0)
    os.waitpid(pid, 0)
    resweep.flush()
    assert calls(tmp_path) == 7


SCRIPT = """
import os, sys, threading, time
import resweep
watched = resweep.watch(lambda query: ["a", "b"], sink={sink!r}, config={{"context_k": 2}})
{body}
"""


def run(body: str, sink: str, **more: str) -> subprocess.Popen[str]:
    code = SCRIPT.format(sink=sink, body=textwrap.dedent(body))
    environ = {"PYTHONPATH": ":".join(sys.path), **more}
    return subprocess.Popen([sys.executable, "-c", code], env=environ, stdout=subprocess.PIPE, text=True)


LAST_THREAD = "threading.Thread(target=watched, args=('q',)).start()"


@pytest.mark.parametrize("end", ["", "sys.exit(3)", "raise SystemExit", LAST_THREAD])
def test_a_process_that_ends_loses_nothing(tmp_path: Path, end: str) -> None:
    """Whatever way it ends, as long as Python ends it; what its last threads did too."""
    with run(f"[watched('q') for _ in range(100)]\n{end}", f"spool:{tmp_path}") as process:
        process.wait(30)
    assert calls(tmp_path) == 100 + (end == LAST_THREAD)


def test_daemon_threads_that_still_run_do_not_hold_the_exit_up(tmp_path: Path) -> None:
    """Threads that call on and on end with the process; what was handed over is whole."""
    body = """
    for _ in range(4):
        threading.Thread(target=lambda: [watched("q") for _ in iter(int, 1)], daemon=True).start()
    time.sleep(0.3)
    """
    with run(body, f"spool:{tmp_path}") as process:
        assert process.wait(30) == 0
    assert calls(tmp_path) > 0


def test_a_killed_process_loses_less_than_a_flush_interval(tmp_path: Path) -> None:
    """SIGTERM with its default action: what was handed over before is there."""
    body = """
    [watched("q") for _ in range(50)]
    time.sleep(1.6)
    print("ready", flush=True)
    time.sleep(60)
    """
    with run(body, f"spool:{tmp_path}") as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        process.send_signal(signal.SIGTERM)
        assert process.wait(30) == -signal.SIGTERM
    assert calls(tmp_path) == 50


def test_an_agent_that_accepts_and_never_answers_does_not_hold_the_exit_up() -> None:
    """Calls return at once and the process ends by itself, soon."""
    body = "[watched('q') for _ in range(3000)]\nprint('done', flush=True)"
    with socket.create_server(("127.0.0.1", 0)) as server:
        url = f"http://127.0.0.1:{server.getsockname()[1]}"
        with run(body, url) as process:
            assert process.stdout is not None
            assert process.stdout.readline() == "done\n"
            assert process.wait(5) == 0


@pytest.mark.parametrize("silent", [True, False])
def test_a_collector_that_is_away_does_not_hold_the_exit_up(tmp_path: Path, silent: bool) -> None:
    """Spans to a port that accepts and never answers, and to one that refuses: 3,000 calls, then the end."""
    body = "assert all(watched('q') == ['a', 'b'] for _ in range(3000))\nprint('done', flush=True)"
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1] if silent else 9
        spans = {"RESWEEP_SPANS": f"http://127.0.0.1:{port}/v1/traces"}
        with run(body, f"spool:{tmp_path}", **spans) as process:
            assert process.stdout is not None
            assert process.stdout.readline() == "done\n"
            assert process.wait(5) == 0
    assert calls(tmp_path) == 3000


def _spawned(sink: str) -> None:
    watched = resweep.watch(retrieve, sink=sink)
    work(watched, CALLS)


def test_spawned_workers_lose_nothing(tmp_path: Path) -> None:
    """A spawned process watches anew and hands over when it ends."""
    context = multiprocessing.get_context("spawn")
    workers = [context.Process(target=_spawned, args=(f"spool:{tmp_path}",)) for _ in range(2)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert calls(tmp_path) == 2 * CALLS


def test_a_pool_of_processes_loses_nothing(tmp_path: Path) -> None:
    """Workers of a pool are ended by their parent with a signal; closing the pool lets them end."""
    watched = resweep.watch(retrieve, sink=f"spool:{tmp_path}")
    global _watched
    _watched = watched
    with multiprocessing.get_context("fork").Pool(3, maxtasksperchild=5) as pool:
        pool.map(_one, range(60), chunksize=1)
        pool.close()
        pool.join()
    assert calls(tmp_path) == 60
    assert recorders()


_watched = retrieve


def _one(number: int) -> int:
    return len(_watched(f"q{number}"))
