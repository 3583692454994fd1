"""Reports in the store: once each, newest first, with the gauge of the last sweep."""

from __future__ import annotations

from typing import Any

import pytest

from resweep.domain.clock import VirtualClock
from resweep.domain.errors import InputError
from resweep.store.reports import LAST_SWEEP
from resweep.store.sql import SqlStore

NOW = 1_796_000_000.0
DAY = 86_400.0


def report(report_id: str | None = "r1", made_at: float | None = NOW - DAY, **changes: Any) -> dict[str, Any]:
    """Give a report that chose 8 of 40."""
    measures = {"recall": {"mean": 0.8, "low": 0.7, "high": 0.9, "n": 10}}
    return {
        "schema": "resweep.report/1",
        "report_id": report_id,
        "pipeline": "bot",
        "basis_hash": "b" * 12,
        "made_at": made_at,
        "n_cases": 10,
        "n_effective": 9.5,
        "objective": "recall",
        "best_set": [8, 10],
        "chosen": {"context_k": 8, "candidate_k": 40, "why": "…"},
        "points": [{"context_k": 8, "candidate_k": 40, "measures": measures}],
        **changes,
    }


def test_a_report_comes_back_as_it_was(store: SqlStore) -> None:
    """Whole, in brief, and with the lists behind it."""
    assert store.record_report(report(), b"packed")
    assert store.report("r1") == report()
    assert store.report_cases("r1") == b"packed"
    brief = store.reports("bot")[0]
    assert (brief["context_k"], brief["best_set"], brief["basis_hash"]) == (8, [8, 10], "b" * 12)
    assert brief["value"] == {"mean": 0.8, "low": 0.7, "high": 0.9}


def test_a_report_is_kept_once(store: SqlStore) -> None:
    """Handed over again, by the sweep and by whoever accepts it, it changes nothing."""
    assert [store.record_report(report()) for _ in range(3)] == [True, False, False]
    assert len(store.reports()) == 1


def test_the_newest_report_comes_first(store: SqlStore) -> None:
    """By when it was made, not by when it came; others' pipelines are apart."""
    store.record_report(report("new", NOW - 10))
    store.record_report(report("old", NOW - 99))
    store.record_report(report("other", NOW, pipeline="faq"))
    assert [one["report_id"] for one in store.reports("bot")] == ["new", "old"]
    assert [one["report_id"] for one in store.reports(limit=2)] == ["other", "new"]


def test_a_report_without_a_time_is_of_now(store: SqlStore, clock: VirtualClock) -> None:
    """Recorded lists carry no clock; a time to come is none."""
    store.record_report(report("a", None))
    store.record_report(report("b", NOW + 10 * DAY))
    assert {one["made_at"] for one in store.reports()} == {clock.now()}


def test_what_is_no_report_is_refused(store: SqlStore) -> None:
    """With what was expected; nothing of it stays."""
    for wrong in (
        {},
        report(schema="other"),
        report(pipeline=None),
        report(report_id=None),
        report(chosen={}),
        report(points="x"),
        report(n_cases=object()),
    ):
        with pytest.raises(InputError, match="expected"):
            store.record_report(wrong)
    assert store.reports() == []


def test_an_unknown_report_is_none(store: SqlStore) -> None:
    """Neither it nor its lists."""
    assert (store.report("nope"), store.report_cases("nope")) == (None, None)


def test_the_gauge_says_when_the_last_sweep_was(store: SqlStore) -> None:
    """The newest, whatever order reports come in."""
    store.record_report(report("new", NOW - 10))
    store.record_report(report("old", NOW - 99))
    assert _gauges(store) == {("bot",): NOW - 10}


def _gauges(store: SqlStore) -> dict[tuple[str, ...], float]:
    from sqlalchemy import select

    from resweep.store.schema import gauges

    query = select(gauges.c.labels, gauges.c.value).where(gauges.c.metric == LAST_SWEEP)
    with store._db.read() as connection:
        import json

        return {tuple(json.loads(labels)): value for labels, value in connection.execute(query)}


def test_reports_outlive_events_and_go_with_the_hours(store: SqlStore, clock: VirtualClock) -> None:
    """400 days, as the windows of an hour."""
    store.record_report(report())
    clock.ts = NOW + 300 * DAY
    store.housekeep()
    assert len(store.reports()) == 1
    clock.ts = NOW + 500 * DAY
    store.housekeep()
    assert store.reports() == []
