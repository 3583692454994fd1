"""Reports in the store: once each, newest first, with the gauge of the last sweep."""

from __future__ import annotations

import gzip
import json
from typing import Any

import pytest

from resweep.domain.case import Candidate, question_key
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


def _asked_by(store: SqlStore, *queries: str) -> list[str]:
    """Put questions into the labelled set; return the ids of their cases."""
    wishes = [Candidate(pipeline="bot", question=question_key(q), query=q, asked=1) for q in queries]
    found = store.enqueue(wishes)
    return [found[question_key(q)] for q in queries]


def test_a_report_loses_the_words_of_a_case_that_is_deleted(store: SqlStore) -> None:
    """Question, reference and answers of that case alone; every figure stays, in the report and its lines."""
    gone, stays = _asked_by(store, "secret one", "open two")
    lines = [
        {
            "case_id": case_id,
            "query": words,
            "reference_answer": words,
            "lists": [{"ids": ["a"]}],
            "answers": [{"answer": words, "right": True, "reason": words}],
        }
        for case_id, words in ((gone, "secret one"), (stays, "open two"))
    ]
    packed = gzip.compress(b"".join(json.dumps(line).encode() + b"\n" for line in lines))
    lost = [{"case_id": gone, "query": "secret one", "before": 1.0, "after": 0.0}]
    store.record_report(report(regressions=lost), packed)
    store.delete_cases([gone])
    assert store.report("r1") == report(regressions=[{**lost[0], "query": None}])
    left = gzip.decompress(store.report_cases("r1") or b"")
    assert b"secret" not in left
    one, two = (json.loads(line) for line in left.splitlines())
    assert (one["lists"], one["answers"]) == (
        lines[0]["lists"],
        [{"answer": None, "right": True, "reason": None}],
    )
    assert two == lines[1]


def test_lines_behind_a_report_that_cannot_be_read_go_with_the_case(store: SqlStore) -> None:
    """Nobody knows whose words they hold."""
    (gone,) = _asked_by(store, "secret one")
    store.record_report(report(), b"no gzip")
    store.delete_cases([gone])
    assert gzip.decompress(store.report_cases("r1") or b"") == b""
