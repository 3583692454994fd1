"""How far the labelled set is: cases by stratum, against the number that a sweep needs."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from resweep.domain.case import OPEN_STATES, REVIEWED_STATES, Cell

Z = 1.959963984540054  # 97.5 % quantile of the normal distribution


@dataclass(frozen=True, slots=True, kw_only=True)
class StratumProgress:
    """Cases of one stratum: in all, waiting, labelled, and whatever else a reviewer said of them."""

    stratum: str
    cases: int = 0
    waiting: int = 0
    labelled: int = 0
    unanswerable: int = 0
    rejected: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """How far a pipeline's set is.

    `effective` is the number of equally weighted cases that tell as much as the labelled ones. `half_width`
    is that of the 95 % interval of a rate of one half now, None without cases; `half_width_wanted` that at
    `wanted` cases. `holdout` counts the labelled cases kept for confirming.
    """

    pipeline: str
    wanted: int
    labelled: int
    waiting: int
    holdout: int
    quarantined: int
    effective: float
    half_width: float | None
    half_width_wanted: float
    strata: tuple[StratumProgress, ...]

    @property
    def missing(self) -> int:
        """How many cases are still to be judged."""
        return max(0, self.wanted - self.labelled)


def progress(pipeline: str, cells: Sequence[Cell], wanted: int) -> Progress:
    """Return the progress that cells of one pipeline tell."""
    done = [cell for cell in cells if cell.state in ("labelled", "needs_look")]
    labelled = sum(cell.n for cell in done)
    weight, squares = sum(c.weight for c in done), sum(c.squares for c in done)
    effective = weight * weight / squares if squares else float(labelled)
    effective = min(effective, float(labelled))
    names = sorted({cell.stratum for cell in cells})
    return Progress(
        pipeline=pipeline,
        wanted=wanted,
        labelled=labelled,
        waiting=_count(cells, OPEN_STATES),
        holdout=sum(c.n for c in done if c.split == "holdout"),
        quarantined=sum(c.n for c in cells if c.split == "quarantined"),
        effective=effective,
        half_width=half_width(effective) if effective else None,
        half_width_wanted=half_width(float(wanted)),
        strata=tuple(_stratum(name, [c for c in cells if c.stratum == name]) for name in names),
    )


def half_width(n: float) -> float:
    """Return half the width of the 95 % interval of a rate of one half over n cases: 1.96 sqrt(1/4n)."""
    return Z * math.sqrt(0.25 / n)


def _stratum(name: str, cells: Sequence[Cell]) -> StratumProgress:
    return StratumProgress(
        stratum=name,
        cases=_count(cells, (*OPEN_STATES, *REVIEWED_STATES)),
        waiting=_count(cells, OPEN_STATES),
        labelled=_count(cells, ("labelled", "needs_look")),
        unanswerable=_count(cells, ("unanswerable",)),
        rejected=_count(cells, ("rejected",)),
    )


def _count(cells: Sequence[Cell], states: Sequence[str]) -> int:
    return sum(cell.n for cell in cells if cell.state in states)
