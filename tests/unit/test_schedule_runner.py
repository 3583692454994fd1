"""Jobs keep running: through failures, a dead scheduler thread and a ledger that refuses."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

import pytest

from resweep.domain.clock import VirtualClock
from resweep.schedule.due import Due, Every
from resweep.schedule.job import Job, JobState, MemoryLedger
from resweep.schedule.runner import Runner


class StubbornLedger(MemoryLedger):
    """Refuses the nth save."""

    def __init__(self, refuse: int) -> None:
        super().__init__()
        self.refuse = refuse
        self.saves = 0

    def save_job(self, state: JobState) -> None:
        """Refuse once, keep otherwise."""
        self.saves += 1
        if self.saves == self.refuse:
            raise OSError("database is locked")
        super().save_job(state)


def until(condition: Callable[[], bool], seconds: float = 10) -> bool:
    """Wait for a condition; return whether it came true."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if condition():
            return True
        time.sleep(0.01)
    return condition()


def woken(job: Job, ledger: MemoryLedger | None = None, ticks: int = 10) -> Runner:
    """Return a runner whose only job was woken at each of some ticks, without a scheduler."""
    clock = VirtualClock(1000.0)
    runner = Runner([job], ledger or MemoryLedger(), clock=clock)
    runner.start()
    runner.stop()
    for _ in range(ticks):
        clock.advance(job.timetable.seconds)
        runner.wake(job.name)
    return runner


@pytest.fixture(name="quiet")
def _quiet(monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep APScheduler out: these tests wake the jobs themselves."""
    monkeypatch.setattr(Runner, "_launch", lambda self: None)


@pytest.mark.usefixtures("quiet")
def test_a_body_that_always_raises_is_counted_and_never_unscheduled() -> None:
    """Ten ticks, ten failures, and the words of the last one."""

    def fail(run: Due) -> None:
        raise ValueError("no")

    (state,) = woken(Job(name="bad", timetable=Every(1), run=fail)).states()
    assert (state.runs, state.failures, state.error) == (10, 10, "ValueError: no")


@pytest.mark.usefixtures("quiet")
def test_a_ledger_that_refuses_once_costs_one_tick() -> None:
    """Tick 3 cannot be claimed and is not run; tick 4 covers its time."""
    seen: list[Due] = []
    woken(Job(name="j", timetable=Every(1), run=seen.append), StubbornLedger(refuse=5), ticks=6)
    assert [run.tick for run in seen] == [1001, 1002, 1004, 1005, 1006]
    assert (seen[2].start, seen[2].end, seen[2].skipped) == (1002, 1004, 1)


@pytest.mark.usefixtures("quiet")
def test_another_process_goes_on_after_the_last_claimed_tick() -> None:
    """What one runner claimed is not run by the next on the same ledger."""
    ledger, seen = MemoryLedger(), list[Due]()
    job = Job(name="j", timetable=Every(1), run=seen.append)
    woken(job, ledger, ticks=3)
    clock = VirtualClock(1003.5)
    second = Runner([job], ledger, clock=clock)
    second.start()
    second.wake("j")
    clock.advance(4)
    second.wake("j")
    assert [(run.tick, run.start, run.skipped) for run in seen[3:]] == [(1007, 1003, 3)]


@pytest.mark.usefixtures("quiet")
def test_who_does_not_lead_runs_nothing() -> None:
    """A runner asks before every run."""
    seen: list[Due] = []
    runner = Runner([Job(name="j", timetable=Every(1), run=seen.append)], MemoryLedger(), leads=lambda: False)
    runner.start()
    runner.wake("j")
    assert seen == []


@pytest.mark.usefixtures("quiet")
def test_a_job_without_success_for_two_intervals_and_a_grace_is_stale() -> None:
    """Counted from the start where it never succeeded."""
    clock = VirtualClock(1000.0)
    runner = Runner([Job(name="j", timetable=Every(10), run=lambda run: None)], MemoryLedger(), clock=clock)
    runner.start()
    clock.advance(50)
    assert runner.stale() == []
    clock.advance(1)
    assert runner.stale() == ["j"]
    runner.wake("j")
    assert runner.stale() == []


@pytest.mark.usefixtures("quiet")
def test_a_job_that_is_not_vital_is_never_stale() -> None:
    """A collector that is down must not take the agent out of service."""
    clock = VirtualClock(1000.0)
    job = Job(name="j", timetable=Every(10), run=lambda run: None, vital=False)
    runner = Runner([job], MemoryLedger(), clock=clock)
    runner.start()
    clock.advance(1000)
    assert runner.stale() == []


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_a_dead_scheduler_thread_is_seen_and_replaced() -> None:
    """The thread dies as on an error while a fetched job is written back; `running` stays true."""
    ran = threading.Event()
    runner = Runner([Job(name="j", timetable=Every(0.05), run=lambda run: ran.set())], MemoryLedger())
    runner.start()
    try:
        assert ran.wait(10)
        scheduler = runner._scheduler
        store = scheduler._jobstores["default"]

        def refuse(job: object) -> None:
            raise OSError("gone")

        store.update_job = refuse
        assert until(lambda: not scheduler._thread.is_alive())
        assert scheduler.running
        ran.clear()
        assert runner.revive()
        assert ran.wait(10)
        assert runner.revivals == 1
    finally:
        runner.stop()


def test_a_loop_without_a_sign_of_life_is_not_alive_and_is_replaced() -> None:
    """Its thread may live and sleep: a clock set back does that."""
    now = [0.0]
    runner = Runner([], MemoryLedger(), heartbeat=lambda: now[0])
    runner.start()
    try:
        assert runner.alive()
        assert not runner.revive()
        now[0] = 11.0
        assert not runner.alive()
        assert runner.revive()
        assert runner.alive()
    finally:
        runner.stop()


def test_a_run_that_takes_long_is_the_only_one_of_its_job() -> None:
    """A tick that comes while a run goes on does not start a second."""
    running, most, release = [0], [0], threading.Event()

    def slow(run: Due) -> None:
        running[0] += 1
        most[0] = max(most[0], running[0])
        release.wait(5)
        running[0] -= 1

    runner = Runner([Job(name="j", timetable=Every(0.02), run=slow)], MemoryLedger())
    runner.start()
    assert until(lambda: running[0] == 1)
    runner.wake("j")
    release.set()
    assert runner.stop()
    assert most == [1]


def test_stop_says_when_something_still_runs() -> None:
    """It does not wait for ever."""
    release = threading.Event()
    started = threading.Event()

    def hang(run: Due) -> None:
        started.set()
        release.wait(10)

    runner = Runner([Job(name="j", timetable=Every(0.02), run=hang)], MemoryLedger())
    runner.start()
    assert started.wait(10)
    assert not runner.stop(timeout=0.05)
    release.set()
