"""How far a config has come from what it was when its depth was chosen: a distance, never an alarm.

Alarms compare with the last 28 days, and a reference that rolls follows whatever drifts slowly. So a week of
means is pinned after an acceptance (or the first traffic), and the newest week is set against it: whole
weeks, so that neither hours nor weekdays matter.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from resweep.detect.passive.features import INDEX, STREAMS, Block
from resweep.detect.passive.season import DAY

Array = NDArray[np.float64]

WEEK_DAYS = 7
LEAST = 100.0  # votes in each of the two weeks
LOOKED_AT = ("top", "gap", "spread", "tail", "tokens", "context", "count", "sources", "query_words")
_COLUMNS = [INDEX[name] for name in LOOKED_AT]
_GROUP_0 = INDEX["group_0"]
_MEAN_OF_ABS = 0.798  # of a standard normal variable: sqrt(2 / pi)


class Distance(NamedTuple):
    """The newest week against the pinned one, which began at `since` (unix s).

    `sd` is the shift of the stream that moved most, in SD between queries; `mix` the share of questions that
    would have to change groups (total variation), less what chance alone makes of so few.
    """

    since: float
    sd: float
    stream: str
    mix: float


class Pinned:
    """The pinned week of one (pipeline, config), and the sums of its newest days.

    A day's sums are votes, means and variances by stream, weighted by votes: an array of 3 x streams.
    """

    def __init__(self) -> None:
        self.first = -1  # the day after which the pinned week begins
        self.then: Array | None = None
        self.days: dict[int, Array] = {}

    def restart(self) -> None:
        """A depth was accepted: pin the week that begins tomorrow."""
        self.first, self.then, self.days = -1, None, {}

    def add(self, block: Block) -> None:
        """Take one closed block, in time order."""
        day = int(block.ts // DAY)
        if self.first < 0:
            self.first = day
        shown = np.isfinite(block.mean)
        sums = self.days.setdefault(day, np.zeros((3, len(STREAMS))))
        sums[0] += block.n * shown
        sums[1] += block.n * np.where(shown, block.mean, 0.0)
        sums[2] += block.n * np.where(shown, block.variance, 0.0)
        if self.then is None and day > self.first + WEEK_DAYS:
            self.then = self._week(self.first + 1)
        self.days = {d: sums for d, sums in self.days.items() if d >= day - WEEK_DAYS}

    def _week(self, first: int) -> Array:
        week = [self.days[day] for day in range(first, first + WEEK_DAYS) if day in self.days]
        return np.asarray(sum(week, np.zeros((3, len(STREAMS)))), dtype=np.float64)

    def distance(self) -> Distance | None:
        """Return the distance; None before two whole weeks that do not overlap, or with too few votes."""
        today = max(self.days, default=0)
        if self.then is None or today <= self.first + 2 * WEEK_DAYS:
            return None
        now = self._week(today - WEEK_DAYS)
        shown = [i for i in _COLUMNS if min(self.then[0, i], now[0, i]) >= LEAST]
        if not shown:
            return None
        before, after = self.then[:, shown], now[:, shown]
        moved = np.abs(after[1] / after[0] - before[1] / before[0])
        sd = moved / np.sqrt(np.maximum(before[2] / before[0], 1e-12))
        most = int(sd.argmax())
        since = float((self.first + 1) * DAY)
        return Distance(since, float(sd[most]), STREAMS[shown[most]], _mix(self.then, now))


def _mix(then: Array, now: Array) -> float:
    """Total variation between the query groups of two weeks, less its expectation under no change."""
    then, now = then[:, _GROUP_0:], now[:, _GROUP_0:]
    if min(then[0].max(), now[0].max()) < LEAST:
        return 0.0
    n, m = np.maximum(then[0], 1.0), np.maximum(now[0], 1.0)
    p, q = then[1] / n, now[1] / m
    share = (then[1] + now[1]) / (n + m)
    noise = _MEAN_OF_ABS * np.sqrt(share * (1 - share) * (1 / n + 1 / m))
    return max(0.0, float(np.abs(p - q).sum() - noise.sum()) / 2)
