"""Which run of a job is due, and what stretch of time it has to cover: pure functions of times.

APScheduler only wakes us; it reads the wall clock itself, drops what is late and skips or repeats a day when
the clocks change. So the question "is it time?" is answered here.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta, tzinfo
from typing import Protocol


class Timetable(Protocol):
    """When a job ticks."""

    def last(self, now: float) -> float:
        """Return the latest tick at or before `now`, unix seconds."""

    def before(self, tick: float) -> float:
        """Return the tick before one."""

    def between(self, after: float, until: float) -> int:
        """Return how many ticks lie in (after, until]."""

    @property
    def seconds(self) -> float:
        """The longest time from one tick to the next."""


@dataclass(frozen=True, slots=True)
class Every:
    """Ticks at whole multiples of `seconds` since the epoch, so that every host has the same ticks."""

    seconds: float

    def last(self, now: float) -> float:
        """Return the latest tick at or before `now`, unix seconds."""
        return math.floor(now / self.seconds) * self.seconds

    def before(self, tick: float) -> float:
        """Return the tick before one."""
        return tick - self.seconds

    def between(self, after: float, until: float) -> int:
        """Return how many ticks lie in (after, until]."""
        return math.floor(until / self.seconds) - math.floor(after / self.seconds)


@dataclass(frozen=True, slots=True)
class Daily:
    """Ticks once on every calendar day of a zone, at a time of the wall clock.

    Where that time does not exist (clocks go forward), the tick comes as long after midnight as it would
    have; where it exists twice, at the first.
    """

    at: time = time(0, 0)
    zone: tzinfo = UTC

    @property
    def seconds(self) -> float:
        """The longest time from one tick to the next: a day of 25 hours."""
        return 25 * 3600.0

    def tick(self, day: date) -> float:
        """Return the tick of a calendar day, unix seconds."""
        return datetime.combine(day, self.at, self.zone).timestamp()

    def last(self, now: float) -> float:
        """Return the latest tick at or before `now`, unix seconds."""
        return self.tick(self._day(now))

    def before(self, tick: float) -> float:
        """Return the tick of the day before."""
        return self.tick(self._day(tick) - timedelta(days=1))

    def between(self, after: float, until: float) -> int:
        """Return how many ticks lie in (after, until]."""
        return (self._day(until) - self._day(after)).days

    def _day(self, now: float) -> date:
        """Return the day whose tick is the latest at or before `now`."""
        day = datetime.fromtimestamp(now, UTC).astimezone(self.zone).date() + timedelta(days=1)
        while self.tick(day) > now:
            day -= timedelta(days=1)
        return day


@dataclass(frozen=True, slots=True, kw_only=True)
class Due:
    """One run that is due. It covers [start, end) and stands for `tick`; `skipped` ticks passed unserved."""

    tick: float
    start: float
    end: float
    late_s: float
    skipped: int


def due(last: float | None, covered: float | None, timetable: Timetable, now: float) -> Due | None:
    """Return the run that is due at `now`, or None.

    `last` is the tick that was started last, `covered` the end of what was done; None where nothing was.
    Ticks that were missed become one run that covers them all. Of a clock that was set back by more than
    a tick, only the new time counts: a job must not wait for a clock to catch up with its past.
    """
    tick = timetable.last(now)
    if last is not None and last > now + timetable.seconds:
        return Due(tick=tick, start=tick, end=tick, late_s=0.0, skipped=0)
    if last is not None and tick <= last:
        return None
    start = timetable.before(tick) if covered is None else covered
    skipped = 0 if last is None else timetable.between(last, tick) - 1
    late_s = 0.0 if last is None else now - tick
    return Due(tick=tick, start=min(start, tick), end=tick, late_s=late_s, skipped=skipped)
