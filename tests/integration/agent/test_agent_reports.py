"""Reports of sweeps in an agent that runs: in once, out in brief, whole, as a page, and as a metric."""

from __future__ import annotations

import time
from typing import Any

from resweep.sweep.engine import sweep_lists
from resweep.sweep.lists import Case, RankedList
from resweep.sweep.settings import SweepSettings


def report(pipeline: str) -> dict[str, Any]:
    """Give a small report on a pipeline."""
    cases = [Case(case_id=f"c{i}", judgments={"r": 1.0}) for i in range(12)]
    lists = {case.case_id: RankedList(["x", "r", "y"]) for case in cases}
    settings = SweepSettings(objective="recall", resamples=200)
    swept = sweep_lists(cases, {3: lists}, (1, 2), settings, pipeline=pipeline, basis_hash="b" * 12)
    told = swept.report.stamped({"how": "recorded", "run": "a.run"}, time.time() - 60).as_dict()
    return told | {"slices": [], "definitions": {}}  # within the small bodies that this agent takes


def test_a_report_is_taken_once_and_shown_in_every_way(traffic: Any, agent: Any) -> None:
    """In brief in the list, whole by its id, as a page; its time is the last sweep of the pipeline."""
    traffic.send(agent, traffic.batch(1, traffic.config("swept"), writer="swept"))
    told = report("swept")
    assert agent.call("/v1/reports", {"report": told}) == (200, {"report_id": told["report_id"], "new": True})
    assert agent.call("/v1/reports", {"report": told})[1]["new"] is False
    brief = agent.get("/v1/reports?pipeline=swept")["reports"]
    assert [(one["report_id"], one["context_k"]) for one in brief] == [(told["report_id"], 2)]
    assert agent.get(f"/v1/reports/{told['report_id']}") == told
    assert agent.get("/v1/reports?pipeline=other")["reports"] == []
    status, page = agent.call(f"/v1/reports/{told['report_id']}?format=html")
    assert (status, b"<h1>Sweep of" in page) == (200, True)
    assert agent.metric('resweep_last_sweep_timestamp_seconds{pipeline="swept"}') == [told["made_at"]]


def test_what_is_no_report_is_refused(agent: Any) -> None:
    """With what was expected; an unknown one is not found."""
    bodies: list[Any] = [{}, {"report": 1}, {"report": {}}, {"report": {}, "cases": "no base64!"}, []]
    for body in bodies:
        assert agent.call("/v1/reports", body)[0] == 400
    assert agent.call("/v1/reports/nope")[0] == 404
