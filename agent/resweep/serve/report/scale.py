"""Where things stand on a chart: from values to places, and which values to name on an axis."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

_STEPS = (1.0, 2.0, 2.5, 5.0, 10.0)


@dataclass(frozen=True, slots=True)
class Scale:
    """A line from `low` to `high` (values) onto `start` to `end` (places); `log` for depths that double."""

    low: float
    high: float
    start: float
    end: float
    log: bool = False

    def __call__(self, value: float) -> float:
        """Return the place of a value, to a tenth of a unit."""
        low, high, at = self.low, self.high, value
        if self.log:
            low, high, at = math.log(low), math.log(high), math.log(value)
        share = 0.5 if high == low else (at - low) / (high - low)
        return round(self.start + share * (self.end - self.start), 1)


def round_range(values: Sequence[float], *, zero: bool, most: float = math.inf) -> tuple[float, float]:
    """Return a range of round numbers around values: from 0 for counts, else cut; never above `most`."""
    low, high = (0.0 if zero else min(values)), max(values)
    step = _step(max(high - low, 1e-9) / 4)
    low = max(0.0, math.floor(low / step + 1e-9) * step)
    high = min(most, math.ceil(high / step - 1e-9) * step)
    return low, high if high > low else low + step


def round_ticks(low: float, high: float, about: int = 5) -> list[float]:
    """Return about so many round numbers from `low` to `high`, both ends included where they are round."""
    step = _step((high - low) / about)
    first = math.ceil(low / step - 1e-9)
    return [round(n * step, 10) for n in range(first, math.floor(high / step + 1e-9) + 1)]


def _step(size: float) -> float:
    power: float = 10.0 ** math.floor(math.log10(size))
    return next(step * power for step in _STEPS if step * power >= size * (1 - 1e-9))


def spread(places: Sequence[float], apart: float) -> list[int]:
    """Return which of ascending places can carry a label: the ends, and those far enough from a kept one."""
    if not places:
        return []
    last = len(places) - 1
    kept = [0]
    for i in range(1, last):
        if places[i] - places[kept[-1]] >= apart and places[last] - places[i] >= apart:
            kept.append(i)
    return kept if last == 0 else [*kept, last]
