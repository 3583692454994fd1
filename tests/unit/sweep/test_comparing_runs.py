"""Two runs of the same cases: lost and gained by name, whatever the mean does."""

from __future__ import annotations

from typing import Any

import pytest

from resweep.domain.errors import UsageError
from resweep.sweep.compare import compare_runs
from resweep.sweep.lists import Case, RankedList
from resweep.sweep.settings import SweepSettings

RECALL = SweepSettings(objective="recall", resamples=500)


def test_equal_recall_hides_a_lost_question(figures: Any) -> None:
    """Recall@3 stays at 4/6, and q4 is lost while q3 is gained."""
    two = figures["two_runs"]
    cases = [Case(case_id=q, judgments={passage: 1.0}) for q, passage in two["gold"].items()]
    before, after = (
        {q: RankedList(ids) for q, ids in two["runs"][name].items()} for name in ("baseline", "new-chunking")
    )
    found = compare_runs(cases, before, after, 3, RECALL)
    assert found.result.difference == 0
    assert [change.case_id for change in found.lost] == two["lost"]
    assert [change.case_id for change in found.gained] == two["gained"]
    assert found.lost[0].passages == ("p1", "p2", "p3")


def test_a_system_that_returns_fewer_can_be_compared() -> None:
    """At k = 8 against a system that always gives 4: what lay at rank 6 is lost, and shown worse."""
    cases = [Case(case_id=f"c{i}", judgments={"p6": 1.0}) for i in range(40)]
    long, short = ([f"p{i}" for i in range(1, n)] for n in (9, 5))
    before, after = ({c.case_id: RankedList(ids) for c in cases} for ids in (long, short))
    found = compare_runs(cases, before, after, 8, RECALL)
    assert found.result.shown_worse()
    assert len(found.lost) == 40


def test_answers_are_not_in_a_run() -> None:
    """The objective must be of retrieval."""
    with pytest.raises(UsageError, match="got `answer_accuracy`"):
        compare_runs([], {}, {}, 3, SweepSettings(objective="answer_accuracy"))
