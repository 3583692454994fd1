"""Pieces of work on their way: each leased to one recorder, offered again where no answer came in time.

Time is the agent's own monotonic clock: no two machines' clocks are compared, and one that is set back
keeps nothing waiting. Work lives in memory: after a restart what is due is simply planned again.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from resweep.domain.work import Work

TRIES_MAX = 3
WAITING_MAX = 1000
WAIT_S = 3600.0


@dataclass(slots=True)
class Lease:
    """One piece of work. `only` names the one recorder that can do it; `until` is when its lease ends."""

    work: Work
    only: str | None = None
    holder: str | None = None
    since: float = 0.0
    until: float = 0.0
    tries: int = 0


class Leases:
    """What waits and what is out. `lease_s` is how long an answer may take; `now` a monotonic clock."""

    def __init__(self, lease_s: float, now: Callable[[], float]) -> None:
        self._lease_s = lease_s
        self._now = now
        self._all: dict[str, Lease] = {}
        self.given_up = 0

    def put(self, work: Work, only: str | None = None) -> bool:
        """Let a piece of work wait; False where too much waits already."""
        if len(self._all) >= WAITING_MAX:
            self.given_up += 1
            return False
        self._all[work.id] = Lease(work, only, since=self._now())
        return True

    def take(self, writer: str, fits: Callable[[Work], bool], at_most: int) -> list[Work]:
        """Lease some of what waits, or was never answered, to a recorder."""
        now = self._now()
        self._give_up(now)
        taken: list[Work] = []
        for lease in self._all.values():
            free = lease.holder is None or now >= lease.until
            if len(taken) < at_most and free and lease.only in (None, writer) and fits(lease.work):
                lease.holder, lease.until = writer, now + self._lease_s
                lease.tries += 1
                taken.append(lease.work)
        return taken

    def done(self, work_id: str, writer: str) -> Work | None:
        """Take a piece of work off; None where it is not this recorder's any more: none counts twice."""
        lease = self._all.get(work_id)
        if lease is None or lease.holder != writer:
            return None
        del self._all[work_id]
        return lease.work

    def outstanding(self, same: Callable[[Work], bool]) -> bool:
        """Whether such work waits or is out."""
        self._give_up(self._now())
        return any(same(lease.work) for lease in self._all.values())

    def _give_up(self, now: float) -> None:
        """Forget what was leased several times and never answered, and what nobody came for."""
        over = [
            work_id
            for work_id, one in self._all.items()
            if (one.holder is not None and now >= one.until and one.tries >= TRIES_MAX)
            or (one.holder is None and now - one.since >= WAIT_S)
        ]
        for work_id in over:
            del self._all[work_id]
        self.given_up += len(over)
