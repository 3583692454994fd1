"""What was measured: every cell of the grid, case by case.

A cell is a pair of depths: candidate_k passages asked of the index (and reranked), context_k of them in the
prompt. Each candidate depth has its own recorded run: a reranker that saw ten candidates cannot be sliced
out of one that saw fifty. Within one run, smaller context depths are prefixes of the longest.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

import numpy as np

from resweep.domain.errors import UsageError
from resweep.domain.estimate import Estimate, estimate
from resweep.domain.measures import (
    MEASURES,
    FloatArray,
    RankTable,
    check_depths,
    duplicate_source_rate,
    evidence_coverage,
    measure,
    rank_table,
)
from resweep.sweep.lists import Case, Lists, RankedList, Split
from resweep.sweep.matching import Matched, match
from resweep.sweep.tokens import Spent, spent_tokens

CellState = Literal["measured", "unreachable", "impossible"]
# The answer side: measured by a generator and a judge, these can turn over with depth.
ANSWER_MEASURES: frozenset[str] = frozenset({"answer_accuracy", "faithfulness", "citation_validity"})

USEFULNESS = "ragas_context_precision"  # weighed by a model, and a measure of the ranking all the same


class Cell(NamedTuple):
    """One pair of depths."""

    candidate_k: int
    context_k: int


class CellStatus(NamedTuple):
    """Whether a cell was measured, and why not."""

    state: CellState
    why: str = ""


# Per-case values measured elsewhere (answers): measure -> cell -> case id -> value in [0, 1].
Extra = Mapping[str, Mapping[Cell, Mapping[str, float]]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Roll:
    """Which cases take part, and which do not and why, by id.

    `measured` are in (R >= 1), those in `missing` with 0. `shallow` were recorded to fewer ranks than the
    deepest swept and would count unfairly as lost. `misled` are the unanswerable ones that still got
    passages.
    """

    measured: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()
    unjudged: tuple[str, ...] = ()
    unanswerable: tuple[str, ...] = ()
    misled: tuple[str, ...] = ()
    shallow: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, eq=False)
class Run:
    """One recorded run over the measured cases: lists (None: missing), their matching and the ranks.

    `spent` is None where the tokens of any passage are unknown.
    """

    candidate_k: int
    lists: tuple[RankedList | None, ...]
    matched: tuple[Matched, ...]
    table: RankTable
    spent: Spent | None

    @property
    def longest(self) -> int:
        """Return the length of the longest list."""
        return max((len(ranked.ids) for ranked in self.lists if ranked is not None), default=0)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Evidence:
    """Per-case values of every measured cell on one split.

    `values[measure]` has a row per case of `cases` and a column per cell of `cells` (measured ones alone,
    by candidate then context depth); NaN where a case was not observed. `status` has every cell asked for.
    `own` are runs of cells that were retrieved by themselves, where lists are not prefixes of one another.
    """

    split: Split
    cases: tuple[Case, ...]
    weights: FloatArray
    cells: tuple[Cell, ...]
    status: Mapping[Cell, CellStatus]
    values: Mapping[str, FloatArray]
    runs: Mapping[int, Run]
    roll: Roll
    own: Mapping[Cell, Run] = field(default_factory=dict)

    def run(self, cell: Cell) -> Run:
        """Return the run that a cell was measured on: its own, else that of its candidate depth."""
        return self.own.get(cell) or self.runs[cell.candidate_k]

    def column(self, cell: Cell) -> int:
        """Return the column of a measured cell; raises UsageError for any other."""
        if cell not in self.cells:
            raise UsageError(
                f"expected a measured depth, got context_k {cell.context_k} with candidate_k "
                f"{cell.candidate_k}: {self.status.get(cell, CellStatus('unreachable', 'not asked for')).why}"
            )
        return self.cells.index(cell)

    def estimate(
        self, name: str, cell: Cell, rows: FloatArray | None = None, *, alpha: float, standard: float
    ) -> Estimate:
        """Return a measure's estimate at a cell, over all cases or those where `rows` (a mask) is set."""
        values = self.values[name][:, self.column(cell)]
        if rows is None:
            return estimate(values, self.weights, alpha=alpha, standard=standard)
        chosen = rows.astype(bool)
        return estimate(values[chosen], self.weights[chosen], alpha=alpha, standard=standard)

    @property
    def weighted(self) -> bool:
        """Return whether the cases have different weights."""
        return bool(len(self.weights)) and bool(np.ptp(self.weights) > 0)


def gather(
    cases: Sequence[Case],
    runs: Mapping[int, Lists],
    ks: Sequence[int],
    *,
    split: Split = "tune",
    grid: bool = False,
    reach: bool = True,
    passage_tokens: int | None = None,
    extra: Extra | None = None,
    own: Mapping[Cell, Lists] | None = None,
) -> Evidence:
    """Return what the recorded lists of each candidate depth show at every context depth of `ks`.

    `runs` maps candidate_k to lists by case id. With `grid`, context depths above the candidate depth are
    impossible; a depth beyond the longest list is unreachable (unless `reach` is off: two systems may be
    compared at a depth that one of them never fills). Neither is measured. `passage_tokens` stands in for
    passages whose tokens are not recorded. `own` holds the lists of cells that were retrieved by themselves,
    in place of the beginnings of their candidate depth's. Raises UsageError for depths below 1 or no run.
    """
    depths = check_depths(ks).tolist()
    if not runs:
        raise UsageError("expected at least one recorded run, got none")
    longest = {depth: _longest(lists, cases) if reach else depths[-1] for depth, lists in runs.items()}
    alone = own or {}
    lengths = {cell: _longest(lists, cases) for cell, lists in alone.items()}
    status = {
        cell: _status(*cell, lengths.get(cell, longest[cell.candidate_k]), grid)
        for cell in (Cell(candidate_k, k) for candidate_k in sorted(runs) for k in depths)
    }
    cells = tuple(cell for cell, one in status.items() if one.state == "measured")
    roll = _call(cases, runs, cells)
    by_id = {case.case_id: case for case in cases}
    taking_part = tuple(by_id[case_id] for case_id in roll.measured)
    built = {depth: _run(depth, taking_part, lists, passage_tokens) for depth, lists in runs.items()}
    separate = {
        cell: _run(cell.candidate_k, taking_part, lists, passage_tokens) for cell, lists in alone.items()
    }
    return Evidence(
        split=split,
        cases=taking_part,
        weights=np.array([case.weight for case in taking_part], dtype=np.float64),
        cells=cells,
        status=status,
        values=_values(taking_part, built, separate, cells, extra or {}),
        runs=built,
        roll=roll,
        own=separate,
    )


def _longest(lists: Lists, cases: Iterable[Case]) -> int:
    found = (lists.get(case.case_id) for case in cases)
    return max((len(ranked.ids) for ranked in found if ranked is not None), default=0)


def _status(candidate_k: int, context_k: int, longest: int, grid: bool) -> CellStatus:
    if grid and context_k > candidate_k:
        return CellStatus("impossible", f"impossible: only {candidate_k} candidates to choose from")
    if context_k > longest:
        return CellStatus("unreachable", f"not reachable, at most {longest} returned")
    return CellStatus("measured")


def _call(cases: Sequence[Case], runs: Mapping[int, Lists], cells: Sequence[Cell]) -> Roll:
    """Return who takes part."""
    names: dict[str, list[str]] = {}
    deepest = dict.fromkeys(runs, 0) | dict(cells)
    for case in cases:
        lists = {candidate_k: by_id.get(case.case_id) for candidate_k, by_id in runs.items()}
        for part in _parts(case, lists, deepest):
            names.setdefault(part, []).append(case.case_id)
    return Roll(**{part: tuple(ids) for part, ids in names.items()})


def _parts(case: Case, lists: Mapping[int, RankedList | None], deepest: Mapping[int, int]) -> Iterable[str]:
    if case.kind == "unjudged":
        return ("unjudged",)
    if case.kind == "unanswerable":
        got = any(ranked is not None and len(ranked.ids) for ranked in lists.values())
        return ("unanswerable", "misled") if got else ("unanswerable",)
    known = {candidate_k: ranked for candidate_k, ranked in lists.items() if ranked is not None}
    if any(not ranked.complete and len(ranked.ids) < deepest[c] for c, ranked in known.items()):
        return ("shallow",)
    return ("measured", "missing") if len(known) < len(lists) else ("measured",)


def _run(candidate_k: int, cases: Sequence[Case], lists: Lists, passage_tokens: int | None) -> Run:
    ranked = tuple(lists.get(case.case_id) for case in cases)
    matched = tuple(
        match(case, one if one is not None else RankedList(()))
        for case, one in zip(cases, ranked, strict=True)
    )
    table = rank_table(
        [m.ranking if one is not None else None for m, one in zip(matched, ranked, strict=True)],
        [m.judgments for m in matched],
    )
    return Run(candidate_k, ranked, matched, table, spent_tokens(ranked, passage_tokens))


def _values(
    cases: Sequence[Case],
    runs: Mapping[int, Run],
    own: Mapping[Cell, Run],
    cells: Sequence[Cell],
    extra: Extra,
) -> dict[str, FloatArray]:
    parts: dict[str, list[FloatArray]] = {}
    for candidate_k, run in sorted(runs.items()):
        ks = [cell.context_k for cell in cells if cell.candidate_k == candidate_k]
        if ks:
            for name, columns in _run_values(run, ks).items():
                parts.setdefault(name, []).append(columns)
    values = {name: np.hstack(columns) for name, columns in parts.items()}
    values = values or {name: np.empty((len(cases), 0)) for name in MEASURES}
    for place, cell in enumerate(cells):
        if cell in own:
            for name, column in _run_values(own[cell], [cell.context_k]).items():
                values[name][:, place] = column[:, 0]
    observed = {n: v for n, v in values.items() if n in MEASURES or not np.isnan(v).all()}
    return observed | {name: _extra_values(cases, cells, by_cell) for name, by_cell in extra.items()}


def _run_values(run: Run, ks: Sequence[int]) -> dict[str, FloatArray]:
    sources = [ranked.sources if ranked is not None else () for ranked in run.lists]
    return {
        **measure(run.table, ks, MEASURES).values,
        "duplicate_source_rate": duplicate_source_rate(sources, ks),
        "evidence_coverage": evidence_coverage(
            [m.ranking for m in run.matched], [m.required for m in run.matched], ks
        ),
    }


def _extra_values(
    cases: Sequence[Case], cells: Sequence[Cell], by_cell: Mapping[Cell, Mapping[str, float]]
) -> FloatArray:
    columns = [[by_cell.get(cell, {}).get(case.case_id, np.nan) for case in cases] for cell in cells]
    return np.array(columns, dtype=np.float64).reshape(len(cells), len(cases)).T
