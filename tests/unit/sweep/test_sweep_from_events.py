"""Recorded retrievals as ranked lists: which event speaks for a case, and how deep it is."""

from __future__ import annotations

from typing import Any

import pytest

from resweep.domain.errors import UsageError
from resweep.domain.event import ErrorInfo, Hit, RetrievalEvent
from resweep.sweep.engine import sweep_lists
from resweep.sweep.fromevents import as_list, lists_from_events
from resweep.sweep.lists import Case


def event(name: str, hits: int, **fields: Any) -> RetrievalEvent:
    """Return an event with passages p1..p<hits>, asked for 3 unless said otherwise."""
    stated: dict[str, Any] = {"ts": 1.0, "pipeline": "bot", "config": "a" * 12, "asked": 3} | fields
    returned = min(3, hits)
    made = RetrievalEvent(name, 0.0, "", "", hits=tuple(Hit(f"p{i + 1}") for i in range(hits)))
    return made._replace(**({"returned": returned} | stated))


def test_a_case_finds_its_event_by_id_and_by_query() -> None:
    """By event id, by query as normalised, or by case id; a case nobody asked has no list."""
    events = [event("e1", 3), event("e2", 2, query="Reset  my password?")]
    cases = [
        Case(case_id="c1", event_id="e1"),
        Case(case_id="c2", query="reset my password"),
        Case(case_id="e1"),
        Case(case_id="c4", query="else"),
    ]
    found = lists_from_events(events, cases)
    assert {case: len(ranked.ids) for case, ranked in found.items()} == {"c1": 3, "c2": 2, "e1": 3}


def test_the_deepest_list_speaks_then_the_latest() -> None:
    """A probe of 40 goes before a later live answer of 3."""
    events = [event("e1", 40, query="q"), event("e2", 3, query="q", ts=9.0)]
    assert len(lists_from_events(events, [Case(case_id="c", query="q")])["c"].ids) == 40


def test_only_the_latest_config_counts() -> None:
    """A deep list of the system before is no evidence for the system now; another can be named."""
    old, new = event("e1", 40, query="q"), event("e2", 3, query="q", ts=9.0, config="b" * 12)
    case = [Case(case_id="c", query="q")]
    assert len(lists_from_events([old, new], case)["c"].ids) == 3
    assert len(lists_from_events([old, new], case, config="a" * 12)["c"].ids) == 40


def test_failed_and_half_read_retrievals_are_passed_over() -> None:
    """An error is no empty list, and a closed stream no short one."""
    events = [
        event("e1", 0, query="q", error=ErrorInfo("ValueError")),
        event("e2", 2, query="q", partial=True),
    ]
    assert lists_from_events(events, [Case(case_id="c", query="q")]) == {}


def test_several_pipelines_must_be_told_apart() -> None:
    """The message names them, and how to choose."""
    events = [event("e1", 1), event("e2", 1, pipeline="other")]
    with pytest.raises(UsageError, match="bot, other; name one"):
        lists_from_events(events, [])
    assert lists_from_events(events, [Case(case_id="e2")], pipeline="other").keys() == {"e2"}


@pytest.mark.parametrize(
    ("hits", "asked", "complete"),
    [(3, 3, False), (2, 3, True), (40, 3, True), (3, None, True)],
)
def test_a_list_is_complete_where_the_retriever_had_no_more(
    hits: int, asked: int | None, complete: bool
) -> None:
    """Filled to what was asked: cut off. Unfilled, probed, or asked for nothing known: complete."""
    assert as_list(event("e", hits, asked=asked)).complete is complete


def test_a_cut_off_list_is_not_counted_as_lost_evidence() -> None:
    """Ten probed cases carry k = 5; the one recorded to rank 3 is left out by name, not scored 0."""
    events = [event(f"e{i}", 40, query=f"q{i}") for i in range(10)] + [event("e10", 3, query="q10")]
    cases = [Case(case_id=f"c{i}", query=f"q{i}", judgments={"p5": 1.0}) for i in range(11)]
    report = sweep_lists(cases, {40: lists_from_events(events, cases)}, [3, 5]).report
    assert (report.n_cases, report.n_excluded_shallow) == (10, 1)
    assert report.points[1]["measures"]["recall"]["mean"] == 1.0
    assert any(finding["code"] == "left_out" for finding in report.diagnosis)
