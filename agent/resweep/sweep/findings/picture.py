"""What there is to look at, and what a look gives."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from resweep.domain.estimate import Estimate
from resweep.sweep.choose import Choice, label
from resweep.sweep.evidence import Cell, Evidence
from resweep.sweep.settings import SweepSettings
from resweep.sweep.slices import Slice

_LISTED = 10


class Finding(NamedTuple):
    """One thing the sweep shows: a code that does not change, and a text with the numbers."""

    code: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Picture:
    """Everything there is to look at. `first_stage` is the same cases before the reranker, where recorded."""

    evidence: Evidence
    choice: Choice
    settings: SweepSettings
    slices: Sequence[Slice] = ()
    first_stage: Evidence | None = None

    def mean(self, name: str, cell: Cell) -> float | None:
        """Return a measure's weighted mean at a cell; None without data or where it was not measured."""
        return self.estimate(name, cell).mean if name in self.evidence.values else None

    def estimate(self, name: str, cell: Cell) -> Estimate:
        """Return a measure's estimate at a cell."""
        return self.evidence.estimate(name, cell, alpha=self.settings.alpha, standard=self.settings.standard)

    @property
    def row(self) -> tuple[Cell, ...]:
        """Return the measured cells of the chosen (else the largest) candidate depth, by context depth."""
        cells = self.evidence.cells
        depth = self.choice.chosen.candidate_k if self.choice.chosen else max(c.candidate_k for c in cells)
        return tuple(cell for cell in cells if cell.candidate_k == depth)

    @property
    def at(self) -> Cell:
        """Return the chosen cell, else the one with the best mean, else the deepest."""
        if self.choice.chosen is not None:
            return self.choice.chosen
        return self.choice.cells[self.choice.best.best] if self.choice.best else self.row[-1]

    def name(self, cell: Cell) -> str:
        """Return a cell's name."""
        return label(cell, self.evidence.cells)


def percent(share: float) -> str:
    """Return a share as a percentage with one decimal."""
    return f"{100 * share:.1f} %"


def listed(ids: Sequence[str]) -> str:
    """Return the first ten ids, and how many more there are."""
    more = f" and {len(ids) - _LISTED} more" if len(ids) > _LISTED else ""
    return ", ".join(ids[:_LISTED]) + more
