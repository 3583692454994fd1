"""Whether time grows in a straight line with what is sent, or has a knee."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from resweep.domain.errors import UsageError
from resweep.domain.measures import FloatArray


@dataclass(frozen=True, slots=True)
class Line:
    """y = fixed + slope * x, by least squares; `largest_residual` in units of y.

    `knee` is the position of the row at which two lines meet, None where one line fits every row within
    the tolerance, or two do no better.
    """

    fixed: float
    slope: float
    largest_residual: float
    knee: int | None = None


def fit_line(x: Sequence[float], y: Sequence[float], tolerance: float) -> Line:
    """Return the line through the rows, and where it bends if no row-wise error within `tolerance` is got.

    Raises UsageError for fewer than 2 rows, or where all x are equal.
    """
    if len(x) != len(y) or len(set(x)) < 2:
        raise UsageError(f"expected at least two rows with different x, got {len(x)} and {len(y)}")
    across, up = np.array(x, dtype=np.float64), np.array(y, dtype=np.float64)
    straight = np.column_stack([np.ones_like(across), across])
    (fixed, slope), worst = _solve(straight, up)
    knee = None if worst <= tolerance else _knee(straight, across, up, worst)
    return Line(float(fixed), float(slope), worst, knee)


def _solve(design: FloatArray, y: FloatArray) -> tuple[FloatArray, float]:
    solution: FloatArray = np.linalg.lstsq(design, y, rcond=None)[0].astype(np.float64)
    return solution, float(np.abs(y - design @ solution).max())


def _knee(straight: FloatArray, x: FloatArray, y: FloatArray, worst: float) -> int | None:
    """Return the inner row at which a second slope helps most, if it halves the largest error at least."""
    bends = {}
    for row in range(1, len(x) - 1):
        hinge = np.maximum(x - x[row], 0.0)
        if np.ptp(hinge) > 0:
            bends[row] = _solve(np.column_stack([straight, hinge]), y)[1]
    best = min(bends, key=lambda row: bends[row], default=None)
    return best if best is not None and bends[best] <= worst / 2 else None
