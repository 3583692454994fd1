"""Which way scores run, worked out from the order in which passages come."""

from __future__ import annotations

from collections import deque
from math import isnan

LATEST = 20
SURE = 0.9


class Direction:
    """1 where higher is better, -1 for distances; 0 before it is known."""

    def __init__(self) -> None:
        self.sign = 0
        self._votes: deque[int] = deque(maxlen=LATEST)

    def add(self, first: float, last: float) -> bool:
        """Note the first and last score of an answer; return True where the direction just turned round."""
        if first == last or isnan(first) or isnan(last):
            return False
        vote = 1 if first > last else -1
        self._votes.append(vote)
        if vote == self.sign:
            return False
        if self.sign == 0:
            self.sign = self._votes[-1] if len(self._votes) >= 5 else 0
            return False
        against = sum(1 for vote in self._votes if vote != self.sign)
        if len(self._votes) < LATEST or against < SURE * LATEST:
            return False
        self.sign = -self.sign
        self._votes.clear()
        return True

    @property
    def turning(self) -> bool:
        """Whether the latest five answers all ran the other way."""
        return len(self._votes) >= 5 and all(vote == -self.sign for vote in list(self._votes)[-5:])
