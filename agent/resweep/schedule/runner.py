"""Running jobs: the only place that knows APScheduler.

Its memory store and thread wake us; what is due is decided by `due`, and what was done is kept in our own
ledger. APScheduler's thread can die while `running` stays true (an error while a fetched job is written
back), and it sleeps by the wall clock, so it sleeps on when the clock is set back. Hence the heartbeat, and
`revive`, which starts a fresh one.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

import msgspec
from apscheduler.schedulers.background import BackgroundScheduler
from apscheduler.triggers.base import BaseTrigger

from resweep.domain.clock import Clock, SystemClock
from resweep.schedule.due import Due, Every, due
from resweep.schedule.job import Job, JobState, Ledger

log = logging.getLogger("resweep.schedule")

WAKE_S = 5.0  # seconds between two looks at whether a slow job is due
SLOW_S = 30.0  # jobs with longer intervals are looked at, quicker ones woken at their ticks
DEAD_S = 10.0  # a heartbeat older than this means that the loop is dead


@dataclass(slots=True)
class _Slot:
    """One job at work: its state, and a lock that keeps it to one run at any moment."""

    job: Job
    state: JobState
    busy: threading.Lock = field(default_factory=threading.Lock)


class Runner:
    """Runs jobs on their timetables while `leads()` says so.

    A job whose body raises is counted and runs again at its next tick; so does one whose claim cannot be
    written to the ledger. `start` reads the ledger, so that ticks missed while no process ran become one
    run that covers them.
    """

    def __init__(
        self,
        jobs: Sequence[Job],
        ledger: Ledger,
        *,
        clock: Clock | None = None,
        leads: Callable[[], bool] = lambda: True,
        heartbeat: Callable[[], float] = time.monotonic,
    ) -> None:
        self._jobs = tuple(jobs)
        self._ledger = ledger
        self._clock = clock or SystemClock()
        self._leads = leads
        self._heartbeat = heartbeat
        self._slots: dict[str, _Slot] = {}
        self._scheduler: Any = None
        self._guard = threading.Lock()
        self._beat = heartbeat()
        self._since = self._clock.now()
        self.revivals = 0

    def start(self) -> None:
        """Take up the states on record and begin; raises what the ledger raises."""
        states = self._ledger.load_jobs()
        self._slots = {
            job.name: _Slot(job, states.get(job.name) or JobState(name=job.name)) for job in self._jobs
        }
        self._since = self._clock.now()
        with self._guard:
            self._launch()

    def _launch(self) -> None:
        scheduler = BackgroundScheduler(
            timezone=UTC, job_defaults={"coalesce": True, "max_instances": 1, "misfire_grace_time": None}
        )
        for job in self._jobs:
            scheduler.add_job(self.wake, _Ticks(_pace(job)), args=[job.name], id=job.name)
        self._beat = self._heartbeat()
        scheduler.start()
        self._scheduler = scheduler

    def stop(self, timeout: float = 1.5) -> bool:
        """Start nothing more and wait for what runs; False where something still runs after `timeout` s."""
        with self._guard:
            scheduler, self._scheduler = self._scheduler, None
        if scheduler is None:
            return True
        _discard(scheduler)
        until = time.monotonic() + timeout
        ended = [
            slot.busy.acquire(timeout=max(0.0, until - time.monotonic())) for slot in self._slots.values()
        ]
        for slot, free in zip(self._slots.values(), ended, strict=True):
            if free:
                slot.busy.release()
                self._record(slot.state)
        return all(ended)

    def alive(self) -> bool:
        """Whether the loop gave a sign of life lately."""
        return self._heartbeat() - self._beat < DEAD_S

    def revive(self) -> bool:
        """Start a new loop where this one's thread is dead or silent; return whether one was needed."""
        with self._guard:
            if self._scheduler is None or (_thread_lives(self._scheduler) and self.alive()):
                return False
            log.error("the scheduler's thread stopped; starting it again")
            _discard(self._scheduler)
            self._launch()
            self.revivals += 1
        return True

    def states(self) -> list[JobState]:
        """Return what is known of every job, as copies."""
        return [msgspec.structs.replace(slot.state) for slot in list(self._slots.values())]

    def stale(self) -> list[str]:
        """Return the names of vital jobs whose last success is more than two intervals and a grace ago."""
        now = self._clock.now()
        return [
            name
            for name, slot in list(self._slots.items())
            if slot.job.vital and slot.state.stale(slot.job.timetable.seconds, self._since, now)
        ]

    def wake(self, name: str) -> None:
        """Run a job if it is due and not running."""
        self._beat = self._heartbeat()
        slot = self._slots[name]
        if not self._leads() or not slot.busy.acquire(blocking=False):
            return
        try:
            run = due(slot.state.tick, slot.state.covered, slot.job.timetable, self._clock.now())
            if run is not None:
                self._run(slot, run)
        finally:
            slot.busy.release()

    def _run(self, slot: _Slot, run: Due) -> None:
        claim = msgspec.structs.replace(slot.state)
        claim.started(run)
        try:
            self._ledger.save_job(claim)
        except Exception as error:  # noqa: BLE001  (a store that fails once must not end the job)
            self._failed(slot, error)
            return
        slot.state = claim
        try:
            slot.job.run(run)
        except Exception as error:  # noqa: BLE001  (whatever a body raises is counted)
            self._failed(slot, error)
        else:
            slot.state.done(run, self._clock.now())
        self._record(slot.state)

    def _failed(self, slot: _Slot, error: Exception) -> None:
        seen = slot.state.error
        slot.state.failed(error)
        if slot.state.error != seen:  # the same words every second help nobody
            log.warning("job %s failed: %s", slot.job.name, slot.state.error)

    def _record(self, state: JobState) -> None:
        try:
            self._ledger.save_job(state)
        except Exception as error:  # noqa: BLE001  (the next claim writes it again)
            log.warning("state of job %s not written: %s", state.name, error)


class _Ticks(BaseTrigger):  # type: ignore[misc]
    """Fires at once, so that what was missed waits no longer, then at whole multiples of `seconds`."""

    def __init__(self, seconds: float) -> None:
        self.every = Every(seconds)

    def get_next_fire_time(self, previous: datetime | None, now: datetime) -> datetime:
        """Return the next time to fire."""
        if previous is None:
            return now
        following = self.every.last(now.timestamp()) + self.every.seconds
        return datetime.fromtimestamp(following, UTC)


def _pace(job: Job) -> float:
    """Return the seconds between two wakings that meet all ticks of a job."""
    seconds = job.timetable.seconds
    if seconds <= SLOW_S:
        return seconds
    return WAKE_S if seconds % WAKE_S == 0 else 1.0


def _thread_lives(scheduler: Any) -> bool:
    thread = getattr(scheduler, "_thread", None)
    return thread is not None and thread.is_alive()


def _discard(scheduler: Any) -> None:
    """End a scheduler without waiting for what it runs, even where its thread is dead already."""
    try:
        scheduler.shutdown(wait=False)
    except Exception as error:  # noqa: BLE001  (it is thrown away whatever it says)
        log.debug("scheduler did not shut down cleanly: %s", error)
