"""`resweep.case/1` lines as cases of a sweep."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from resweep.domain.errors import InputError
from resweep.sweep.caselines import case_of, read_cases
from resweep.sweep.lists import Case, split_cases

LABELLED: dict[str, Any] = {
    "case_id": "c1",
    "query": "how long do refunds take",
    "stratum": "uniform",
    "inclusion_probability": 0.25,
    "weight": 4.5,
    "state": "labelled",
    "split": "tune",
    "judgments": [
        {"passage_id": "p1", "text_hash": "h1", "grade": 1},
        {"passage_id": "p2", "text_hash": None, "grade": 0},
    ],
    "required": [{"fact": "five days", "passages": ["p1"]}, "p1", "a fact in words"],
    "slices": {"language": "en"},
    "event_id": "e1",
}


def test_a_labelled_case() -> None:
    """Grades, text hashes, facts that name passages, weight, split, slices, event."""
    case = case_of(LABELLED)
    assert case.judgments == {"p1": 1.0, "p2": 0.0}
    assert case.text_hashes == {"p1": "h1"}
    assert case.required == (frozenset({"p1"}), frozenset({"p1"}))
    assert (case.weight, case.split, case.event_id, case.kind) == (4.5, "tune", "e1", "answerable")
    assert case.slices == {"stratum": "uniform", "language": "en"}


def test_a_weight_follows_from_the_probability() -> None:
    """1 / 0.25 where no weight is given, 1 where neither is."""
    assert case_of(LABELLED | {"weight": None}).weight == 4.0
    assert case_of({"case_id": "c", "judgments": []}).weight == 1.0


@pytest.mark.parametrize(
    ("fields", "kind"),
    [
        ({"state": "candidate"}, "unjudged"),
        ({"state": "in_review"}, "unjudged"),
        ({"state": "needs_look"}, "answerable"),
        ({"state": "unanswerable", "judgments": []}, "unanswerable"),
        ({"answerable": False, "judgments": []}, "unanswerable"),
        ({"judgments": []}, "unanswerable"),
        ({"judgments": [], "answerable": True}, "unjudged"),
        ({"judgments": None, "state": None}, "unjudged"),
    ],
)
def test_what_a_case_is(fields: dict[str, Any], kind: str) -> None:
    """Answerable, unanswerable, or not judged yet: a suggestion or half a review never counts."""
    assert case_of(LABELLED | fields).kind == kind


@pytest.mark.parametrize(
    ("fields", "says"),
    [
        ({"case_id": ""}, "case_id"),
        ({"state": "rejected"}, "was rejected"),
        ({"split": "quarantine"}, "takes no part"),
        ({"weight": 0}, "above 0"),
        ({"weight": None, "inclusion_probability": "often"}, "often"),
        ({"judgments": ["p1"]}, "expected a judgment"),
        ({"judgments": [{"grade": 1}]}, "passage_id"),
    ],
)
def test_what_takes_no_part(fields: dict[str, Any], says: str) -> None:
    """Each with its reason."""
    with pytest.raises(InputError, match=says):
        case_of(LABELLED | fields)


def test_bad_lines_are_told_and_the_rest_go_in(tmp_path: Path) -> None:
    """Line numbers and reasons of what takes no part."""
    path = tmp_path / "cases.jsonl"
    path.write_text("{\n" + json.dumps(LABELLED) + "\n[1]\n")
    found = read_cases(path)
    assert [case.case_id for case in found.cases] == ["c1"]
    assert [line.line for line in found.left_out] == [1, 3]


def test_a_repeated_case_is_refused() -> None:
    """Twice the same id would count twice."""
    with pytest.raises(InputError, match="'c' twice"):
        split_cases([Case(case_id="c"), Case(case_id="c")])


def test_an_unsplit_case_is_for_tuning() -> None:
    """Only `holdout` is kept away from choosing."""
    splits = split_cases([Case(case_id="a"), Case(case_id="b", split="holdout")])
    assert [c.case_id for c in splits.tune] == ["a"]
    assert [c.case_id for c in splits.holdout] == ["b"]


def test_the_origin_of_a_case_is_a_slice() -> None:
    """Synthetic questions are reported apart from real ones; what a case says of itself goes before."""
    line = {"case_id": "c1", "query": "q", "stratum": "uniform", "provenance": "synthetic"}
    assert case_of(line).slices == {"stratum": "uniform", "origin": "synthetic"}
    assert case_of({**line, "slices": {"origin": "faq"}}).slices == {"stratum": "uniform", "origin": "faq"}
