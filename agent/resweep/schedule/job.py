"""A job, and what is known of its runs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Protocol

import msgspec

from resweep.schedule.due import Due, Timetable

LATE_S = 1.0  # a run that starts later than this after its tick counts as late
GRACE_S = 30.0  # readiness waits for two intervals and this before it calls a job stale


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """Something to do on a timetable. `run` is given the stretch of time it has to cover.

    `vital` is False for a job that fails by no fault of this process, such as a push to a collector that is
    down: readiness does not wait for it.
    """

    name: str
    timetable: Timetable
    run: Callable[[Due], None]
    vital: bool = True


class JobState(msgspec.Struct, kw_only=True):
    """The runs of one job so far. Times are unix seconds, None before the first.

    `tick` is the tick that was started last: it is never started again, by no process. `covered` is the end
    of the time served by successful runs, `lateness_s` how long after its tick the last run began.
    """

    name: str
    tick: float | None = None
    covered: float | None = None
    succeeded: float | None = None
    runs: int = 0
    failures: int = 0
    late: int = 0
    skipped: int = 0
    lateness_s: float = 0.0
    error: str | None = None

    def started(self, run: Due) -> None:
        """Note that a run begins."""
        self.tick = run.tick
        self.runs += 1
        self.skipped += run.skipped
        self.late += run.late_s > LATE_S
        self.lateness_s = run.late_s

    def done(self, run: Due, now: float) -> None:
        """Note that a run came to its end."""
        self.covered, self.succeeded, self.error = run.end, now, None

    def failed(self, error: BaseException) -> None:
        """Note that a run raised."""
        self.failures += 1
        self.error = f"{type(error).__name__}: {error}"[:500]

    def stale(self, seconds: float, since: float, now: float) -> bool:
        """Whether the last success, or the start where there is none, is too long ago."""
        return now - max(self.succeeded or 0.0, since) > 2 * seconds + GRACE_S


class Ledger(Protocol):
    """Where job states outlive the process; both methods may raise."""

    def load_jobs(self) -> Mapping[str, JobState]:
        """Return the states on record, by name."""

    def save_job(self, state: JobState) -> None:
        """Put one state on record."""


@dataclass(slots=True)
class MemoryLedger:
    """A ledger that forgets with the process: for tests, and where there is no store."""

    states: dict[str, JobState] = field(default_factory=dict)

    def load_jobs(self) -> Mapping[str, JobState]:
        """Return copies of the states on record."""
        return {name: msgspec.structs.replace(state) for name, state in self.states.items()}

    def save_job(self, state: JobState) -> None:
        """Put a copy of one state on record."""
        self.states[state.name] = msgspec.structs.replace(state)
