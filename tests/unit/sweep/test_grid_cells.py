"""Cells that cannot be, cells that are never reached, and cases that take no part."""

from __future__ import annotations

from typing import Any

import pytest

from resweep.sweep.engine import sweep_lists
from resweep.sweep.lists import Case, RankedList
from resweep.sweep.report import Report
from resweep.sweep.settings import SweepSettings

CASES = [Case(case_id=f"q{i}", judgments={"d1": 1.0}) for i in range(50)]


def _states(report: Report) -> dict[tuple[int, int], str]:
    return {(p["candidate_k"], p["context_k"]): p["state"] for p in report.points}


def _codes(report: Report) -> dict[str, str]:
    return {finding["code"]: finding["text"] for finding in report.diagnosis}


def test_a_depth_never_served_is_not_a_flat_curve() -> None:
    """Always 4 returned: 8 and 16 are not reachable, carry no numbers, and are never chosen."""
    lists = {case.case_id: RankedList([f"d{i}" for i in range(4)]) for case in CASES}
    report = sweep_lists(CASES, {20: lists}, [2, 4, 8, 16]).report
    assert [p["state"] for p in report.points] == ["measured", "measured", "unreachable", "unreachable"]
    for point in report.points[2:]:
        assert point["measures"] == {}
        assert point["why"] == "not reachable, at most 4 returned"
    assert report.best_set == (2, 4)
    assert report.chosen["context_k"] == 2
    assert _codes(report)["unreachable"] == "Not measured: 8, 16 (not reachable, at most 4 returned)."


def _reranked(depth: int) -> dict[str, RankedList]:
    """Return lists reranked at a depth: the evidence is first where the pool is deep enough."""
    ids = ["d1"] if depth >= 10 else []
    return {case.case_id: RankedList([*ids, *(f"x{i}" for i in range(depth - len(ids)))]) for case in CASES}


def test_cells_with_more_context_than_candidates_are_impossible() -> None:
    """Depths 5, 10, 20 by k 3, 5, 10, 20: 9 cells of 12 are measured, 3 are impossible."""
    runs = {depth: _reranked(depth) for depth in (5, 10, 20)}
    report = sweep_lists(CASES, runs, [3, 5, 10, 20], grid=True).report
    states = _states(report)
    assert sum(state == "measured" for state in states.values()) == 9
    assert [cell for cell, state in states.items() if state == "impossible"] == [(5, 10), (5, 20), (10, 20)]


def test_every_cell_is_its_own_run() -> None:
    """The run at depth 5 never found it and the run at depth 10 did: nothing is sliced across."""
    runs = {depth: _reranked(depth) for depth in (5, 10)}
    report = sweep_lists(CASES, runs, [3], grid=True).report
    found = {p["candidate_k"]: p["measures"]["recall"]["mean"] for p in report.points}
    assert found == {5: 0.0, 10: 1.0}
    assert report.chosen["candidate_k"] == 10
    assert report.best_cells == [[10, 3]]


def test_a_reranker_that_keeps_three_makes_five_unreachable() -> None:
    """Within a grid, too, a depth beyond the longest list is no cell."""
    runs = {20: {case.case_id: RankedList(["d1", "a", "b"]) for case in CASES}}
    report = sweep_lists(CASES, runs, [3, 5], grid=True).report
    assert report.points[1]["why"] == "not reachable, at most 3 returned"


def test_grid_and_first_stage_agree_where_they_overlap() -> None:
    """Keeping the whole pool of 10 finds what the first stage's first 10 hold."""
    first = {case.case_id: RankedList([*(f"x{i}" for i in range(9)), "d1"]) for case in CASES}
    runs = {10: {case.case_id: RankedList(["d1", *(f"x{i}" for i in range(9))]) for case in CASES}}
    codes = _codes(sweep_lists(CASES, runs, [3, 10], grid=True, first_stage=first).report)
    assert codes["grid_agrees"].endswith("(10: 1.000 and 1.000).")
    assert "0.0 % before the reranker and 100.0 % after" in codes["reranker"]
    other = {case.case_id: RankedList([f"x{i}" for i in range(10)]) for case in CASES}
    codes = _codes(sweep_lists(CASES, runs, [3, 10], grid=True, first_stage=other).report)
    assert "cannot be compared" in codes["grid_disagrees"]


def test_questions_without_an_answer_have_their_own_counts() -> None:
    """Recall@3 is 0.75 over 2; 2 unanswerable, 1 still got passages; an unlabelled one is a third kind."""
    cases = [
        Case(case_id="1", judgments={"a": 1.0}),
        Case(case_id="2", judgments={"a": 1.0, "b": 1.0}),
        Case(case_id="3", judgments={}),
        Case(case_id="4", answerable=False),
        Case(case_id="5"),
    ]
    lists = {
        "1": RankedList(["a", "b", "c"]),
        "2": RankedList(["a", "x", "y"]),
        "3": RankedList(["x"]),
        "4": RankedList([]),
        "5": RankedList(["z"]),
    }
    report = sweep_lists(cases, {3: lists}, [3]).report
    assert report.points[0]["measures"]["recall"]["mean"] == 0.75
    assert (report.n_cases, report.n_unanswerable, report.n_unanswerable_with_passages) == (2, 2, 1)
    assert report.n_excluded_unjudged == 1


def test_no_answerable_case_is_no_data() -> None:
    """Neither 0 nor a crash."""
    report = sweep_lists([Case(case_id="1", judgments={})], {3: {"1": RankedList(["x"])}}, [1]).report
    assert report.points[0]["measures"]["recall"]["mean"] is None
    assert report.best_set == ()
    assert report.chosen["context_k"] is None
    assert "no data" in report.chosen["why"]
    assert report.to_json()


def test_a_missing_case_counts_nothing_and_is_listed() -> None:
    """9 of 10 answered: recall 0.9, the tenth named, and the mean without it told."""
    lists = {case.case_id: RankedList(["d1"]) for case in CASES[:9]}
    report = sweep_lists(CASES[:10], {1: lists}, [1], SweepSettings(objective="recall", resamples=500)).report
    assert report.points[0]["measures"]["recall"]["mean"] == 0.9
    assert (report.n_missing, report.missing) == (1, ("q9",))
    assert "Without them recall at 1 is 1.000" in _codes(report)["missing"]


@pytest.mark.parametrize("weights", [(1.0, 1.0), (3.0, 1.0)])
def test_weights_are_shown_with_and_without(weights: tuple[float, float]) -> None:
    """Found in the first half alone: 0.5 without weights, 0.75 at three to one."""
    lists = {c.case_id: RankedList(["d1" if i < 25 else "x"]) for i, c in enumerate(CASES)}
    cases: list[Any] = [
        Case(case_id=c.case_id, judgments=c.judgments, weight=weights[i >= 25]) for i, c in enumerate(CASES)
    ]
    report = sweep_lists(cases, {1: lists}, [1]).report
    recall = report.points[0]["measures"]["recall"]
    assert recall["mean"] == weights[0] / sum(weights)
    assert recall["unweighted"] == 0.5
    assert report.weighted is (weights[0] != weights[1])
    assert ("weighted" in _codes(report)) is report.weighted
    assert report.n_effective == pytest.approx(50 if not report.weighted else 100**2 / 250)
