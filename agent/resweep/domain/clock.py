"""Time as an argument: everything that needs "now" takes a `Clock`."""

from __future__ import annotations

import time
from typing import Protocol


class Clock(Protocol):
    """Where "now" comes from."""

    def now(self) -> float:
        """Return unix time in seconds."""


class SystemClock:
    """The machine's clock."""

    def now(self) -> float:
        """Return unix time in seconds."""
        return time.time()


class VirtualClock:
    """A clock that is set: by a replay to the time of its events, by a test to what it needs."""

    def __init__(self, ts: float = 0.0) -> None:
        self.ts = ts

    def now(self) -> float:
        """Return the time that was set, in unix seconds."""
        return self.ts

    def advance(self, seconds: float) -> None:
        """Move forward by `seconds`."""
        self.ts += seconds
