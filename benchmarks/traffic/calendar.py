"""When people ask: hours, weeks, lunch, holidays, clock changes, launches, and what machines add."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


@dataclass(frozen=True, kw_only=True)
class Calendar:
    """Shape of a year's traffic. `zones`: hours ahead of UTC of the offices that ask."""

    rate: float = 40.0  # mean calls an hour
    zones: tuple[float, ...] = (0.0,)
    weekend: float = 0.4  # of a weekday's volume
    lunch: float = 0.0  # part of the volume that goes at noon
    holidays: tuple[int, ...] = ()  # days that look like Sundays
    clock_changes: tuple[int, ...] = ()  # days from which the clock is an hour on (then back)
    launches: tuple[int, ...] = ()  # days with three times the volume, decaying over a week
    noise: float = 0.2  # AR(1) of log volume

    def volume(self, hours: int, rng: np.random.Generator) -> Array:
        """Return expected calls of each hour."""
        h = np.arange(hours)
        day = h // 24
        shift = np.array([sum(d <= x for d in self.clock_changes) % 2 for x in range(hours // 24 + 1)])[day]
        total = np.zeros(hours)
        for zone in self.zones:
            local = (h + zone + shift) % 24
            work = np.exp(-(((local - 14) / 4.5) ** 2)) + 0.06
            work *= 1 - self.lunch * np.exp(-(((local - 12.5) / 0.7) ** 2))
            total += work
        total *= np.where(self.resting(day), self.weekend, 1.0)
        for launch in self.launches:
            since = h / 24 - launch
            total *= 1 + np.where(since >= 0, 2 * np.exp(-np.maximum(since, 0) / 3), 0.0)
        total *= np.exp(wander(hours, 0.8, self.noise, rng))
        return np.asarray(total * self.rate / total.mean(), dtype=np.float64)

    def resting(self, day: NDArray[np.int_]) -> NDArray[np.bool_]:
        """Which days are weekends or holidays."""
        return np.asarray((day % 7 >= 5) | np.isin(day, self.holidays))


def wander(steps: int, phi: float, sd: float, rng: np.random.Generator, width: int = 0) -> Array:
    """Return an AR(1) path (steps, or steps x width) with stationary standard deviation `sd`."""
    shape = (steps, width) if width else (steps,)
    shocks = rng.normal(0, sd * np.sqrt(1 - phi**2), shape)
    out = np.zeros(shape)
    for t in range(1, steps):
        out[t] = phi * out[t - 1] + shocks[t]
    return out
