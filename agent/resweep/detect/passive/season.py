"""The season of every stream at once: a ridge profile of the hour and the weekday, fitted to past blocks.

y(t) = constant + weekday + three daily harmonics, apart for weekdays and weekends, + slow level + rest.
Residuals of the past are taken with the week (or, in the first fortnight, the day) left out, so that they
are as wide as those of days to come.
"""

from __future__ import annotations

from math import pi

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
DAY = 86_400.0
WEEK = 7 * DAY
HARMONICS = 3


def weekday(ts: Array, holidays: tuple[int, ...] = ()) -> NDArray[np.int_]:
    """Return the days of the week at unix times, Monday 0; `holidays` (days since 1970) are Sundays."""
    number = (ts // DAY).astype(int)
    return np.where(np.isin(number, holidays), 6, (number + 3) % 7)


def design(ts: Array, stage: int, holidays: tuple[int, ...] = ()) -> Array:
    """Return the design matrix at unix times; `stage` 0: constant, 1: and the hour, 2: and the weekday."""
    constant = np.ones((len(ts), 1))
    if stage == 0:
        return constant
    angle = 2 * pi * (ts % DAY)[:, None] / DAY * np.arange(1, HARMONICS + 1)
    daily = np.hstack([np.sin(angle), np.cos(angle)])
    if stage == 1:
        return np.hstack([constant, daily])
    day = weekday(ts, holidays)
    weekdays = (day[:, None] == np.arange(7)).astype(float)
    weekend = (day >= 5).astype(float)[:, None]
    return np.hstack([constant, daily, weekdays, daily * weekend])


def fit(x: Array, y: Array, weight: Array, ridge: float = 1.0) -> Array:
    """Return coefficients (columns of x by streams) by weighted ridge; the constant is not shrunk."""
    return _solved(*_moments(x, y, weight), ridge)


def left_out(ts: Array, x: Array, y: Array, weight: Array, span: float) -> Array:
    """Return residuals of y, each predicted without its own `span` seconds."""
    fold = (ts // span).astype(int)
    parts = {int(f): np.flatnonzero(fold == f) for f in np.unique(fold)}
    if len(parts) == 1:
        return np.asarray(y - x @ fit(x, y, weight), dtype=np.float64)
    moments = {f: _moments(x[rows], y[rows], weight[rows]) for f, rows in parts.items()}
    gram, moment = (np.sum([m[i] for m in moments.values()], axis=0) for i in (0, 1))
    out = np.empty_like(y)
    for f, rows in parts.items():  # the whole less one part is what the others give
        beta = _solved(gram - moments[f][0], moment - moments[f][1])
        out[rows] = y[rows] - x[rows] @ beta
    return out


def _moments(x: Array, y: Array, weight: Array) -> tuple[Array, Array]:
    xw = (x * weight[:, None]).T
    return xw @ x, xw @ y


def _solved(gram: Array, moment: Array, ridge: float = 1.0) -> Array:
    penalty = np.eye(len(gram)) * ridge
    penalty[0, 0] = 1e-9
    return np.asarray(np.linalg.solve(gram + penalty, moment), dtype=np.float64)
