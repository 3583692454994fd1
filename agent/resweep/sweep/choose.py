"""The choice of a depth: the set not distinguishable from the best, and inside it the smallest allowed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from resweep.domain.errors import UsageError
from resweep.domain.measures import FloatArray
from resweep.domain.resample import BestSet, best_set, smallest_within
from resweep.sweep.constraints import QUANTITIES, Met
from resweep.sweep.costs import cell_cost
from resweep.sweep.evidence import Cell, Evidence
from resweep.sweep.settings import Latency, SweepSettings
from resweep.sweep.slices import Slice


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """What was chosen and why.

    `cells` are those compared, `best` their comparison (None: no data), `best_cells` the set not shown worse
    than the best by more than the margin. `chosen` is None where none of them meets the constraints;
    `unmet` says, cell by cell, what failed.
    """

    objective: str
    margin: float
    cells: tuple[Cell, ...]
    best: BestSet | None
    best_cells: tuple[Cell, ...]
    chosen: Cell | None
    why: str
    unmet: Mapping[Cell, str]

    @property
    def best_depths(self) -> tuple[int, ...]:
        """Return the context depths of the best set, ascending."""
        return tuple(sorted({cell.context_k for cell in self.best_cells}))


@dataclass(frozen=True, slots=True)
class CellNumbers:
    """What the constraints may ask of one cell."""

    evidence: Evidence
    settings: SweepSettings
    slices: Mapping[str, Slice]
    cell: Cell

    def number(self, name: str, statistic: str, part: str | None) -> float | None:
        """Return a quantity, or a measure's statistic over all cases or a slice; None without data."""
        if name in QUANTITIES:
            return self._quantity(name)
        if name not in self.evidence.values or (part is not None and part not in self.slices):
            return None
        rows = None if part is None else self.slices[part].rows.astype(np.float64)
        found = self.evidence.estimate(
            name, self.cell, rows, alpha=self.settings.alpha, standard=self.settings.standard
        )
        value: float | None = getattr(found, statistic)
        return value

    def _quantity(self, name: str) -> float | None:
        latency = self.settings.latency.get(self.cell, Latency())
        cost = cell_cost(self.evidence, self.cell, self.settings)
        known: Mapping[str, float | None] = {
            "prompt_tokens": cost.prompt_tokens,
            "cost_usd": cost.cost_usd,
            "latency_p50_s": latency.p50_s,
            "latency_p95_s": latency.p95_s,
            "context_k": self.cell.context_k,
            "candidate_k": self.cell.candidate_k,
        }
        return known[name]


def observed(evidence: Evidence, objective: str) -> tuple[FloatArray, FloatArray, tuple[Cell, ...]]:
    """Return values, weights and cells, for the cases seen at every cell that has the objective at all."""
    values = evidence.values[objective]
    if not len(values):
        return values, evidence.weights, ()
    columns = np.flatnonzero(~np.isnan(values).all(axis=0))
    values = values[:, columns]
    rows = ~np.asarray(np.isnan(values).any(axis=1))
    cells = tuple(evidence.cells[i] for i in columns)
    return values[rows], evidence.weights[rows], cells if rows.any() else ()


def compare_cells(
    evidence: Evidence, settings: SweepSettings, alpha: float
) -> tuple[BestSet | None, tuple[Cell, ...]]:
    """Return the comparison of all cells with the best, and the cells compared; None without data."""
    values, weights, cells = observed(evidence, settings.objective)
    if not cells:
        return None, ()
    best = best_set(
        values,
        weights,
        margin=settings.margin_used(),
        alpha=alpha,
        resamples=settings.resamples,
        seed=settings.seed,
    )
    return best, cells


def choose(evidence: Evidence, settings: SweepSettings, slices: Sequence[Slice] = ()) -> Choice:
    """Return the smallest depth of the best set that meets the constraints.

    Smallest means least context, then fewest candidates. Reads tuning cases alone: evidence of the holdout
    raises UsageError, for a depth chosen on the holdout can no longer be confirmed by it.
    """
    if evidence.split == "holdout":
        raise UsageError(
            "expected tuning cases, got the holdout: choose on the tuning split, then confirm on the holdout"
        )
    best, cells = compare_cells(evidence, settings, settings.alpha)
    ordered = sorted(range(len(cells)), key=lambda i: (cells[i].context_k, cells[i].candidate_k))
    met: dict[Cell, Met] = {}
    by_label = {one.label: one for one in slices}

    def meets(place: int) -> bool:
        cell = cells[ordered[place]]
        numbers = CellNumbers(evidence, settings, by_label, cell)
        met[cell] = settings.constraint(numbers) if settings.constraint else Met(True, "")
        return met[cell].ok

    kept = [bool(best.kept[i]) for i in ordered] if best else []
    place = smallest_within(range(len(ordered)), kept, meets)
    chosen = None if place is None else cells[ordered[place]]
    choice = Choice(
        objective=settings.objective,
        margin=settings.margin_used(),
        cells=cells,
        best=best,
        best_cells=tuple(cells[i] for i in ordered if best and best.kept[i]),
        chosen=chosen,
        why="",
        unmet={cell: one.text for cell, one in met.items() if not one.ok},
    )
    return replace(choice, why=_why(choice, met.get(chosen) if chosen else None))


def label(cell: Cell, cells: Sequence[Cell]) -> str:
    """Return a cell's name: its context depth, with the candidate depth where there are several."""
    several = len({one.candidate_k for one in cells}) > 1
    return f"{cell.candidate_k} x {cell.context_k}" if several else str(cell.context_k)


def _why(choice: Choice, met: Met | None) -> str:
    if choice.best is None:
        return "no data: no judged case with a relevant passage was measured"
    names = ", ".join(label(cell, choice.cells) for cell in choice.best_cells)
    top = choice.cells[choice.best.best]
    size = len(choice.best_cells)
    within = f" by more than {choice.margin:g}" if choice.margin else ""
    best = f"the best mean ({label(top, choice.cells)}: {choice.best.means[choice.best.best]:.3f})"
    verb = "is" if size == 1 else "are"
    parts = [f"{names} {verb} not shown worse{within} in {choice.objective} than {best}"]
    if choice.best.too_few:
        parts.append(f"{choice.best.n_effective:.0f} effective cases are too few to leave any depth out")
    parts += [f"{label(cell, choice.cells)} is passed over: {text}" for cell, text in choice.unmet.items()]
    if choice.chosen is None:
        parts.append("none of them meets the constraints")
    else:
        parts.append(f"{label(choice.chosen, choice.cells)} is the smallest of them{_allowed(choice, met)}")
    return "; ".join(parts)


def _allowed(choice: Choice, met: Met | None) -> str:
    return f" that meets the constraints ({met.text})" if met is not None and met.text else ""
