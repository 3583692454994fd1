"""The uniform sample: a pure function of the event's number, at a rate that keeps to a budget.

Numbers are spread by Fibonacci hashing (Knuth, TAOCP 6.4): any run of them is sampled evenly.

Rates are powers of two below the base rate, so that a sample at a lower rate is part of the one above.
"""

from __future__ import annotations

_MASK = (1 << 64) - 1


_GOLDEN = 0x9E3779B97F4A7C15


class Uniform:
    """Decides which events of a config are sampled: `rate` of them, about `per_minute` at most.

    The rate of a minute follows from the traffic of the minute before; within a minute it only falls. `share`
    is the rate at which the last event was taken: its probability of being sampled.
    """

    def __init__(self, rate: float = 0.05, per_minute: int = 60) -> None:
        self._rate = rate
        self._budget = per_minute
        self._bound = int(rate * (1 << 64))
        self._minute = 0
        self._taken = 0
        self._calls = 0
        self.share = rate

    def takes(self, number: int, minute: int) -> bool:
        """Whether an event is sampled; `number` is the last 40 bits of its id."""
        if minute != self._minute:
            self._restart(minute)
        self._calls += 1
        if (number * _GOLDEN & _MASK) >= self._bound:
            return False
        self._taken += 1
        self.share = self._bound / (1 << 64)
        if self._taken >= 2 * self._budget:
            self._bound //= 2
            self._taken = 0
        return True

    def _restart(self, minute: int) -> None:
        rate = self._rate
        if minute == self._minute + 1:
            while rate * self._calls > self._budget:
                rate /= 2
        self._bound = int(rate * (1 << 64))
        self._minute, self._taken, self._calls = minute, 0, 0
