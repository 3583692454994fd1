"""Four processes on one store: each tick is run once, by one of them, whoever dies."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from resweep.store import open_store

WORKER = """
import os, sys, time
from pathlib import Path
from resweep.schedule.due import Due, Every
from resweep.schedule.job import Job
from resweep.schedule.leading import Leadership
from resweep.schedule.ledger import StoreLedger
from resweep.schedule.runner import Runner
from resweep.store import open_store
from resweep.store.lease import Lease

store, log = open_store(sys.argv[1]), Path(sys.argv[2])
lease = Lease(sys.argv[1])

def note(what: str) -> None:
    with log.open("a") as file:
        file.write(f"{what}\\n")

def body(run: Due) -> None:
    note(f"begin {run.tick:.1f} {run.start:.1f} {run.skipped} {os.getpid()}")
    time.sleep(0.05)
    note(f"end {run.tick:.1f}")

runner = Runner([Job(name="j", timetable=Every(0.5), run=body)], StoreLedger(store), leads=lambda: lease.held)
leadership = Leadership(lease, begin=runner.start, end=runner.stop)
leadership.start()
while True:
    time.sleep(1)
"""


class Fleet:
    """Processes that all want to run one job, and what they wrote down."""

    def __init__(self, folder: Path) -> None:
        self.log = folder / "log"
        self.log.touch()
        open_store(str(folder / "s.db")).close()
        command = [sys.executable, "-c", WORKER, str(folder / "s.db"), str(self.log)]
        environ = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
        self.processes = [subprocess.Popen(command, env=environ) for _ in range(4)]

    def lines(self, word: str) -> list[list[str]]:
        """Return what was written, by its first word."""
        return [line.split() for line in self.log.read_text().splitlines() if line.startswith(word)]

    def leader(self) -> int:
        """Return the pid of the process that ran last."""
        return int(self.lines("begin")[-1][4])

    def end(self) -> None:
        """End them all."""
        for process in self.processes:
            process.kill()
            process.wait()


@pytest.fixture(name="fleet")
def _fleet(tmp_path: Path) -> Iterator[Fleet]:
    fleet = Fleet(tmp_path)
    yield fleet
    fleet.end()


def test_each_tick_runs_once_and_another_takes_over(fleet: Fleet, until: Callable[..., Any]) -> None:
    """The leader is killed in the middle; what was missed becomes one run that covers it."""
    until(lambda: len(fleet.lines("begin")) >= 4, 30)
    first = fleet.leader()
    os.kill(first, signal.SIGKILL)
    before = len(fleet.lines("begin"))
    until(lambda: len(fleet.lines("begin")) >= before + 5, 30)
    begun = fleet.lines("begin")
    ticks = [line[1] for line in begun]
    assert len(set(ticks)) == len(ticks)
    assert {line[4] for line in begun} == {str(first), str(fleet.leader())}
    takeover = next(line for line in begun if line[4] != str(first))
    last_of_first = [line for line in begun if line[4] == str(first)][-1]
    assert float(takeover[2]) <= float(last_of_first[1])
    whole = [line.split()[0] for line in fleet.log.read_text().splitlines()]
    overlapping = [a for a, b in pairwise(whole) if a == b == "begin"]
    assert len(overlapping) <= 1  # the run that the kill cut short never ended
