"""Two systems, or two depths of one, case by case: what was lost and what was gained, whatever the mean."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from resweep.domain.errors import UsageError
from resweep.domain.measures import MEASURES
from resweep.domain.resample import Comparison, compare
from resweep.sweep.evidence import Cell, Evidence, gather
from resweep.sweep.lists import Case, Lists, RankedList
from resweep.sweep.matching import Matched, name_in, relevant_of
from resweep.sweep.settings import SweepSettings

SHOWN_CASES = 50  # lost cases whose passages are told in full
EXCERPT = 300  # characters of a passage


class Passage(NamedTuple):
    """A passage as a reader wants it: `grade` None if nobody judged it, `text` its first 300 characters."""

    id: str
    grade: float | None
    source: str | None
    text: str | None


class CaseChange(NamedTuple):
    """One case whose value changed; `passages` are the ids it gets after the change, in rank order.

    `shown` tells them in full for the worst 50, `wanted` the relevant ids that are not among them.
    """

    case_id: str
    query: str | None
    before: float
    after: float
    passages: tuple[str, ...]
    wanted: tuple[str, ...] = ()
    shown: tuple[Passage, ...] = ()


class Compared(NamedTuple):
    """A paired comparison with its cases; `lost` and `gained` largest change first."""

    measure: str
    result: Comparison
    lost: tuple[CaseChange, ...]
    gained: tuple[CaseChange, ...]


def compare_depths(evidence: Evidence, before: Cell, after: Cell, settings: SweepSettings) -> Compared:
    """Return what moving from one cell to another does to the objective, case by case."""
    return _compared((evidence, before), (evidence, after), settings.objective, settings)


class Side(NamedTuple):
    """One of two systems: its lists by case id, and the depth at which it is looked at."""

    lists: Lists
    k: int


def compare_runs(
    cases: Sequence[Case], before: Lists, after: Lists, k: int, settings: SweepSettings
) -> Compared:
    """Return what changing the system does to the objective at depth k, case by case.

    Cases whose list was cut off before k in either run are left out. Raises UsageError where the objective
    is not of retrieval.
    """
    return compare_sides(cases, Side(before, k), Side(after, k), settings)


def compare_sides(cases: Sequence[Case], before: Side, after: Side, settings: SweepSettings) -> Compared:
    """Return what moving from one system at its depth to another at its own does; else as `compare_runs`."""
    if settings.objective not in MEASURES:
        raise UsageError(f"expected a measure among {', '.join(MEASURES)}, got `{settings.objective}`")
    known = comparable(cases, before, after)
    sides = [
        (gather(known, {side.k: side.lists}, [side.k], reach=False), Cell(side.k, side.k))
        for side in (before, after)
    ]
    return _compared(sides[0], sides[1], settings.objective, settings)


def comparable(cases: Sequence[Case], before: Side, after: Side) -> list[Case]:
    """Return the cases whose lists reach the depth on both sides."""
    return [case for case in cases if all(_deep_enough(case, side.lists, side.k) for side in (before, after))]


def _deep_enough(case: Case, lists: Lists, k: int) -> bool:
    ranked = lists.get(case.case_id)
    return ranked is None or ranked.complete or len(ranked.ids) >= k


def _compared(
    before: tuple[Evidence, Cell], after: tuple[Evidence, Cell], measure: str, settings: SweepSettings
) -> Compared:
    evidence, cell = after
    old, new = (side.values[measure][:, side.column(at)] for side, at in (before, after))
    seen = np.flatnonzero(~(np.isnan(old) | np.isnan(new)))
    result = compare(
        old[seen],
        new[seen],
        evidence.weights[seen],
        alpha=settings.alpha,
        resamples=settings.resamples,
        seed=settings.seed,
    )

    def change(order: int, place: int) -> CaseChange:
        row = int(seen[place])
        case, run = evidence.cases[row], evidence.run(cell)
        ranked, matched = run.lists[row] or RankedList(()), run.matched[row]
        passages = tuple(ranked.ids[: cell.context_k])
        got = set(matched.ranking[: cell.context_k])
        wanted = tuple(p for p in relevant_of(case) if name_in(case, ranked, p) not in got)
        shown = _shown(ranked, matched, cell.context_k) if order < SHOWN_CASES else ()
        return CaseChange(case.case_id, case.query, float(old[row]), float(new[row]), passages, wanted, shown)

    lost, gained = (
        tuple(change(order, int(place)) for order, place in enumerate(places))
        for places in (result.lost, result.gained)
    )
    return Compared(measure, result, lost, gained)


def _shown(ranked: RankedList, matched: Matched, k: int) -> tuple[Passage, ...]:
    return tuple(
        Passage(
            passage,
            matched.judgments.get(matched.ranking[at]),
            ranked.sources[at] if at < len(ranked.sources) else None,
            (ranked.texts[at] or "")[:EXCERPT] or None if at < len(ranked.texts) else None,
        )
        for at, passage in enumerate(ranked.ids[:k])
    )
