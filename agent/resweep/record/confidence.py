"""Low confidence: is this top score among the lowest 5 % of what this config usually gives?

The reference is the config's own: its last `REFERENCE` top scores, turned so that higher is better. Which
way that is is learnt from the order in which answers come; until it is known, nothing is low.
"""

from __future__ import annotations

from collections import deque

REFERENCE = 512
READY = 200  # answers before anything can be low
LOWEST = 0.05
_EVERY = 32  # answers between two looks at the reference


class Confidence:
    """The reference of one config."""

    def __init__(self) -> None:
        self._up = 0
        self._down = 0
        self._scores: deque[float] = deque(maxlen=REFERENCE)
        self._seen = 0
        self._threshold: float | None = None

    def low(self, top: float, last: float | None) -> bool:
        """Take the first and last score of one answer in and say whether its confidence is low."""
        if last is not None and last != top:
            self._up += top > last
            self._down += top < last
        sign = 1.0 if self._up >= self._down else -1.0
        low = self._threshold is not None and sign * top < sign * self._threshold
        self._scores.append(top)
        self._seen += 1
        if self._seen >= READY and self._seen % _EVERY == 0:
            self._threshold = self._quantile(sign)
        return low

    def _quantile(self, sign: float) -> float | None:
        """The score below which `LOWEST` of the reference lies; None while the direction is open."""
        clear = abs(self._up - self._down) > 0.5 * (self._up + self._down)
        if not clear:
            return None
        ordered = sorted(self._scores, reverse=sign < 0)
        return ordered[int(LOWEST * len(ordered))]
