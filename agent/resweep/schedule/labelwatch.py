"""Watching over the labelled set: its size, its age, and whether it still speaks for the traffic."""

from __future__ import annotations

from collections.abc import Iterator

from resweep.domain.case import CASE_STATES, SIDES, CaseLine, Filter
from resweep.domain.clock import Clock, SystemClock
from resweep.domain.event import UNKNOWN
from resweep.domain.verdict import Flag
from resweep.label.mix import Mix, compare
from resweep.label.weights import factors, reweighted
from resweep.schedule.desk import Desk
from resweep.schedule.due import Due
from resweep.store.sql import SqlStore

ABOUT = "labelled-set"  # the last part of the keys of these flags
DAY = 86_400.0
TRAFFIC_S = 7 * DAY  # traffic that the set is compared with
OLD_S = 180 * DAY  # without a new label, a set is old
MIX_S = 6 * 3600.0  # how often the mix is looked at
LABELLED = ("labelled", "needs_look", "unanswerable")


class LabelWatch:
    """Measures the labelled sets; a flag says where one went stale."""

    def __init__(self, store: SqlStore, desk: Desk, clock: Clock | None = None) -> None:
        self._store = store
        self._desk = desk
        self._clock = clock or SystemClock()
        self._looked = 0.0

    def run(self, run: Due | None = None) -> None:
        """Bring the gauges up to date; now and then look at the mix, too."""
        self._gauges()
        now = self._clock.now()
        if now - self._looked >= MIX_S:
            self._looked = now
            self._desk.hold(ABOUT, list(self._flags(now)))

    def _gauges(self) -> None:
        cells = self._store.case_cells()
        names = {cell.pipeline for cell in cells}
        counts: dict[tuple[str, ...], float] = {
            (p, state, side): 0.0 for p in names for state in CASE_STATES for side in SIDES
        }
        for cell in cells:
            counts[cell.pipeline, cell.state, cell.split] += cell.n
        self._store.set_gauges("resweep_labelled_cases", counts, replace=True)
        now, oldest = self._clock.now(), self._store.oldest_waiting()
        ages: dict[tuple[str, ...], float] = {
            (name,): max(0.0, now - oldest[name]) if name in oldest else 0.0 for name in names
        }
        self._store.set_gauges("resweep_review_queue_oldest_seconds", ages, replace=True)

    def _flags(self, now: float) -> Iterator[Flag]:
        for pipeline in sorted({cell.pipeline for cell in self._store.case_cells()}):
            cases = self._labelled(pipeline)
            if not cases:
                continue
            mix = self.mix(pipeline, now, cases)
            if mix is not None and mix.stale:
                yield self._flag(pipeline, "mix", _told(pipeline, mix), _evidence(mix))
            newest = self._store.newest_label(pipeline)
            if newest is not None and now - newest > OLD_S:
                days = (now - newest) / DAY
                message = f"{pipeline}: nobody judged a case for {days:.0f} days; judge some of this week's"
                yield self._flag(pipeline, "age", message, {"days": round(days, 1), "cases": len(cases)})

    def mix(self, pipeline: str, now: float, cases: list[CaseLine] | None = None) -> Mix | None:
        """Return the mix of a week's traffic against the labelled set; None for too little of either."""
        known = self._labelled(pipeline) if cases is None else cases
        asked = [
            e.query for e in self._store.events(pipeline, now - TRAFFIC_S, now) if e.query and not e.probe
        ]
        return compare(asked, [c.query or "" for c in known], [c.weight or 0.0 for c in known])

    def _labelled(self, pipeline: str) -> list[CaseLine]:
        """Return the judged cases that stand for traffic; where none does, all judged ones, alike."""
        by = factors(self._store.case_cells(pipeline, by_plan=True))
        lines = self._store.case_lines(Filter(pipeline=pipeline, states=LABELLED))
        judged = [case for case in reweighted(lines, by) if case.query]
        return [case for case in judged if case.weight] or [_alike(case) for case in judged]

    def _flag(self, pipeline: str, what: str, message: str, evidence: dict[str, object]) -> Flag:
        verdict = next((v for v in self._desk.verdicts(self._clock.now()) if v.pipeline == pipeline), None)
        return Flag(
            key=f"{pipeline}:labelled_set_stale:{what}:{ABOUT}",
            pipeline=pipeline,
            config=verdict.config if verdict else UNKNOWN,
            basis=verdict.basis if verdict else UNKNOWN,
            reason="labelled_set_stale",
            layer="outcome",
            components=("traffic",),
            severity="notice",
            message=message,
            opened_ts=0.0,
            evidence=evidence,
            next_command=f"resweep cases list --pipeline {pipeline}",
        )


def _alike(case: CaseLine) -> CaseLine:
    case.weight = 1.0
    return case


def _told(pipeline: str, mix: Mix) -> str:
    more = f", with more about {', '.join(mix.words[:3])}" if mix.words else ""
    return (
        f"{pipeline}: this week's questions are not those of the labelled set{more}: a classifier tells them "
        f"apart with an area of {mix.auc:.2f} ({mix.low:.2f} to {mix.high:.2f}; alike would be 0.50), "
        f"{mix.traffic} questions against {mix.labelled} cases. Review what was sampled lately, then sweep"
    )


def _evidence(mix: Mix) -> dict[str, object]:
    return {
        "auc": round(mix.auc, 4),
        "low": round(mix.low, 4),
        "high": round(mix.high, 4),
        "traffic": mix.traffic,
        "labelled": mix.labelled,
        "words": list(mix.words),
    }
