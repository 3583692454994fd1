"""Rules that stop a list early, and what they are worth beside a fixed depth."""

from __future__ import annotations

import pytest

from resweep.domain.errors import UsageError
from resweep.sweep.engine import sweep_lists
from resweep.sweep.lists import Case, RankedList
from resweep.sweep.rules import Stop, distances, parse_rule
from resweep.sweep.settings import SweepSettings

LIST = RankedList(
    ["a", "b", "c", "d", "e"],
    scores=[0.9, 0.85, 0.5, None, 0.3],
    sources=["s", "s", "t", None, "u"],
    tokens=[100, 200, 300, None, 50],
)


@pytest.mark.parametrize(
    ("text", "stop"),
    [
        ("min_score(0.5)", Stop(4, "score below 0.5")),
        ("score_gap(0.2)", Stop(2, "score gap above 0.2")),
        ("token_budget(300)", Stop(2, "budget of 300 tokens")),
        ("sources(2)", Stop(3, "2 sources")),
        ("at_most(2)", Stop(2, "2 passages")),
        ("at_most(9)", Stop(5, "end of the list")),
        ("min_score(0.5) & at_most(3)", Stop(3, "3 passages")),
        ("min_score(0.95) | at_least(1)", Stop(1, "1 passages")),
        ("at_least(1) | score_gap(0.2) & at_most(1)", Stop(1, "1 passages")),
        ("(at_least(3) | score_gap(0.2)) & at_most(9)", Stop(3, "3 passages")),
    ],
)
def test_where_a_rule_stops(text: str, stop: Stop) -> None:
    """Each rule alone; & takes the earlier stop, | the later, & binds first, brackets bind before it."""
    assert parse_rule(text)(LIST) == stop


def test_distances_are_told_by_the_order() -> None:
    """Scores that rise down the list are distances: below is better, and the gap turns round."""
    ranked = RankedList(["a", "b", "c"], scores=[0.08, 0.12, 0.5])
    assert distances([ranked])
    assert not distances([LIST])
    assert parse_rule("min_score(0.2)")(ranked, True).kept == 2
    assert parse_rule("score_gap(0.1)")(ranked, True).kept == 2


def test_a_rule_reads_as_it_is_written() -> None:
    """Brackets stay where they are needed."""
    for text in ("min_score(0.4) & at_most(10) | at_least(1)", "(sources(2) | at_least(3)) & at_most(9)"):
        assert str(parse_rule(text)) == text


@pytest.mark.parametrize(
    "text", ["", "best()", "at_most(2.5)", "at_most(k)", "__import__('os')", "at_most(1) + 1", "(" * 300]
)
def test_nothing_but_rules_is_read(text: str) -> None:
    """Anything else is refused unread, with what may be written."""
    with pytest.raises(UsageError, match="expected rules among min_score"):
        parse_rule(text)


def test_a_rule_is_judged_by_what_it_selects() -> None:
    """Half the cases are sure at rank 1, half need three: the rule keeps 2 on average, finds all, gains."""
    sure = RankedList(["r", "x", "y"], scores=[0.9, 0.2, 0.1], tokens=[10, 10, 10])
    unsure = RankedList(["x", "y", "r"], scores=[0.9, 0.88, 0.86], tokens=[10, 10, 10])
    cases = [Case(case_id=f"c{i}", judgments={"r": 1.0}, slices={"kind": "ab"[i % 2]}) for i in range(100)]
    lists = {case.case_id: (sure, unsure)[i % 2] for i, case in enumerate(cases)}
    settings = SweepSettings(objective="recall", rules=[parse_rule("score_gap(0.3)")])
    (rule,) = sweep_lists(cases, {3: lists}, [1, 2, 3], settings).report.rules
    assert rule["selected"] == {"mean": 2.0, "q10": 1.0, "median": 2.0, "q90": 3.0, "none": 0.0}
    assert rule["measures"]["recall"]["mean"] == 1.0
    assert rule["measures"]["precision"]["mean"] == pytest.approx((1 + 1 / 3) / 2)
    assert rule["prompt_tokens"] == 20.0
    assert rule["against"] == {"candidate_k": 3, "context_k": 2}
    assert (rule["change"]["gained"], rule["change"]["lost"]) == (50, 0)
    assert rule["slices"]["kind=a"] == {"selected": 1.0, "empty": 0.0, "recall": 1.0}
    assert rule["stops"] == {"score gap above 0.3": 50, "end of the list": 50}


def test_a_token_budget_beside_the_fixed_number_of_passages() -> None:
    """At the mean tokens of k = 2 (300), the view takes 3 short passages or 1 long one."""
    short = RankedList(["x", "y", "r"], tokens=[100, 100, 100])
    long = RankedList(["r", "x", "y"], tokens=[200, 200, 200])
    cases = [Case(case_id=f"c{i}", judgments={"r": 1.0}) for i in range(20)]
    lists = {case.case_id: (short, long)[i % 2] for i, case in enumerate(cases)}
    report = sweep_lists(cases, {3: lists}, [1, 2], SweepSettings(objective="recall")).report
    view = report.fixed_tokens[1]
    assert view["name"] == "300 tokens"
    assert view["selected"]["mean"] == 2.0
    assert view["measures"]["recall"]["mean"] == 1.0
    assert report.points[1]["measures"]["recall"]["mean"] == 0.5
