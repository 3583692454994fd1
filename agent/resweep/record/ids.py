"""Event ids, formatted only when somebody asks: `<ulid>-<config 12 hex>` out of a time and a number.

The 80 bits beside the time are 40 random bits of the process and 40 bits of a counter that starts anywhere.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable
from time import perf_counter, time

from resweep.domain.event import CROCKFORD

_PAIRS = tuple(a + b for a in CROCKFORD for b in CROCKFORD)
_HALF = 1 << 40
_STEP_S = 0.5  # how far the system's clock may move before times follow it


def _five_bits(value: int, letters: int) -> str:
    return "".join(CROCKFORD[(value >> 5 * at) & 31] for at in range(letters - 1, -1, -1))


class Ids:
    """Numbers for calls and, from a call's number and time, its id. Not shared across a fork."""

    def __init__(self, now: Callable[[], float] = time) -> None:
        self._now = now
        self.restart()

    def restart(self) -> None:
        """Take a new random part: what a forked child does, whose parent goes on counting."""
        self.prefix = int.from_bytes(os.urandom(5), "big")
        self._prefix_text = _five_bits(self.prefix, 8)
        self.next: Callable[[], int] = itertools.count(int.from_bytes(os.urandom(4), "big")).__next__
        self._anchors = [(perf_counter(), self._now())]

    def wall(self, t: float) -> float:
        """Return unix seconds of a time of `perf_counter`; the same for the same time, whenever asked."""
        for at, wall in reversed(self._anchors):
            if at <= t:
                return wall + (t - at)
        at, wall = self._anchors[0]
        return wall + (t - at)

    def follow_clock(self) -> None:
        """Let times after now follow the system's clock where that was set."""
        at, now = perf_counter(), self._now()
        if abs(self.wall(at) - now) > _STEP_S:
            self._anchors = [*self._anchors[-8:], (at, now)]

    def entropy(self, number: int) -> int:
        """Return the 80 bits of an id beside its time."""
        return self.prefix << 40 | number % _HALF

    def text(self, t: float, number: int, config: str) -> str:
        """Return the id of a call that began at `t` of `perf_counter`."""
        time_part = _five_bits(int(self.wall(t) * 1000.0) & ((1 << 48) - 1), 10)
        return f"{time_part}{self._prefix_text}{_letters(number % _HALF)}-{config}"


def _letters(value: int) -> str:
    high, low = value >> 20, value & 0xFFFFF
    return _PAIRS[high >> 10] + _PAIRS[high & 1023] + _PAIRS[low >> 10] + _PAIRS[low & 1023]
