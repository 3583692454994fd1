"""At most one log line an interval: what fails at each scrape must not fill a disk."""

from __future__ import annotations

import time
from collections.abc import Callable


class Throttle:
    """Says whether it is time for another line; `every` is in seconds."""

    def __init__(self, every: float = 60.0, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._every = every
        self._monotonic = monotonic
        self._next = float("-inf")

    def ready(self) -> bool:
        """Return True once an interval."""
        now = self._monotonic()
        if now < self._next:
            return False
        self._next = now + self._every
        return True
