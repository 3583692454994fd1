"""The choice of a depth: the set, the constraints, the smallest inside, and the holdout that confirms it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from resweep.domain.errors import UsageError
from resweep.sweep.choose import choose
from resweep.sweep.constraints import ceiling, floor
from resweep.sweep.engine import sweep_lists
from resweep.sweep.evidence import Cell, gather
from resweep.sweep.lists import Case, RankedList
from resweep.sweep.settings import Latency, Looks, SweepSettings

Known = tuple[list[Case], dict[str, RankedList]]
QUICK = 500  # resamples; the defaults have their own test
Answers = Mapping[str, Mapping[Cell, Mapping[str, float]]]


def test_a_retrieval_measure_gives_a_budget_choice(figures: Any, known: Known) -> None:
    """nDCG with its margin of 0.02: 15, 20 and 40 stay, 15 is chosen, and no peak is claimed."""
    report = sweep_lists(known[0], {40: known[1]}, figures["depths"]).report
    assert (report.objective, report.margin, report.best_set) == ("ndcg", 0.02, (15, 20, 40))
    assert (report.chosen["context_k"], report.chosen["candidate_k"]) == (15, 40)
    assert "budget choice, not a peak" in report.diagnosis[0]["text"]


def test_recall_never_chooses_the_deepest_for_a_crumb(known: Known) -> None:
    """Recall rises by a hundredth from 8 to 10: within the margin the smaller is as good."""
    settings = SweepSettings(resamples=QUICK, objective="recall")
    assert sweep_lists(known[0], {40: known[1]}, [3, 8, 10], settings).report.best_set == (8, 10)


def test_answers_have_a_peak_and_no_margin(figures: Any, known: Known, answers: Answers) -> None:
    """Margin 0: the set is around 8, holds 8, and the best mean is 0.735."""
    settings = SweepSettings(resamples=QUICK, objective="answer_accuracy", usd_per_million_tokens=2.98)
    sweep = sweep_lists(known[0], {40: known[1]}, figures["depths"], settings, extra=answers)
    assert sweep.report.margin == 0.0
    assert 8 in sweep.report.best_set
    assert {3, 40}.isdisjoint(sweep.report.best_set)
    assert sweep.choice.best is not None
    assert sweep.choice.best.means.max() == pytest.approx(figures["stated"]["answer_accuracy"]["8"])


def test_the_smallest_of_the_set_that_meets_the_constraints(figures: Any, known: Known) -> None:
    """A floor on recall of 0.88 passes 15 over (0.845) and takes 20; the reason has the numbers."""
    settings = SweepSettings(resamples=QUICK, constraint=floor("recall", 0.88))
    chosen = sweep_lists(known[0], {40: known[1]}, figures["depths"], settings).report.chosen
    assert chosen["context_k"] == 20
    assert "15 is passed over: recall >= 0.88 fails (0.845)" in chosen["why"]
    assert "recall >= 0.88 holds (0.89)" in chosen["why"]


def test_constraints_may_leave_nothing(figures: Any, known: Known) -> None:
    """No depth of the set within 4,096 tokens: none is chosen, and none outside the set is."""
    settings = SweepSettings(resamples=QUICK, constraint=ceiling("prompt_tokens", 4096))
    chosen = sweep_lists(known[0], {40: known[1]}, figures["depths"], settings).report.chosen
    assert (chosen["context_k"], chosen["candidate_k"]) == (None, None)
    assert "none of them meets the constraints" in chosen["why"]


def test_tokens_cost_latency_and_slices_can_be_asked_for(figures: Any, known: Known) -> None:
    """15 passages of 512 tokens at 2.98 a million, p95 2.4 s; a slice floor may rule a depth out."""
    for constraint, context_k in (
        (ceiling("cost_usd", 0.0229), 15),
        (ceiling("latency_p95_s", 2.4), 15),
        (floor("all_evidence", 0.6, part="relevant_passages=2"), 20),
        (floor("all_evidence", 0.6, part="relevant_passages=7"), None),
    ):
        settings = SweepSettings(
            resamples=QUICK,
            constraint=constraint,
            usd_per_million_tokens=figures["usd_per_million_tokens"],
            latency={Cell(40, int(k)): Latency(p95_s=s) for k, s in figures["latency_p95_s"].items()},
        )
        report = sweep_lists(known[0], {40: known[1]}, figures["depths"], settings).report
        assert report.chosen["context_k"] == context_k, str(constraint)


def test_choosing_on_the_holdout_is_an_error(known: Known) -> None:
    """Evidence of the holdout is refused by the choosing step, whatever it shows."""
    evidence = gather(known[0], {40: known[1]}, [3, 5], split="holdout")
    with pytest.raises(UsageError, match="confirm on the holdout"):
        choose(evidence, SweepSettings(resamples=QUICK))


def _split(known: Known) -> list[Case]:
    """Return every fifth case as holdout: each group keeps its share."""
    return [replace(case, split="holdout" if i % 5 == 0 else "tune") for i, case in enumerate(known[0])]


def test_the_holdout_confirms_and_both_scores_are_shown(figures: Any, known: Known) -> None:
    """320 cases choose, 80 confirm; both counts and both scores stand in the report; the look is counted."""
    settings = SweepSettings(resamples=QUICK, looks=Looks(2, 3))
    report = sweep_lists(_split(known), {40: known[1]}, figures["depths"], settings).report
    assert (report.n_cases, report.n_holdout) == (320, 80)
    assert report.holdout is not None
    assert (report.holdout["look"], report.holdout["looks_allowed"]) == (2, 3)
    assert report.holdout["agrees"] is True
    assert report.holdout["score"]["n"] == 80
    assert report.holdout["tune_score"]["n"] == 320


def test_the_holdout_can_disagree(figures: Any, known: Known) -> None:
    """Tuning cases that all find at rank 1, holdout cases that all find at rank 30: 3 is not confirmed."""
    easy = RankedList(["r", *(f"x{i}" for i in range(39))])
    hard = RankedList([*(f"x{i}" for i in range(29)), "r"])
    cases = [
        Case(case_id=f"c{i}", judgments={"r": 1.0}, split="tune" if i < 50 else "holdout") for i in range(100)
    ]
    lists = {case.case_id: easy if case.split == "tune" else hard for case in cases}
    report = sweep_lists(cases, {40: lists}, [3, 30]).report
    assert report.chosen["context_k"] == 3
    assert report.holdout is not None
    assert report.holdout["agrees"] is False
    assert "another depth is shown better" in report.holdout["text"]


def test_a_look_too_many_is_refused(known: Known) -> None:
    """The fourth look of three is no proof any more."""
    with pytest.raises(UsageError, match="refresh the holdout"):
        sweep_lists(_split(known), {40: known[1]}, [3, 5], SweepSettings(resamples=QUICK, looks=Looks(4, 3)))


def test_the_holdout_has_no_part_in_the_choice(figures: Any, known: Known) -> None:
    """Dropping the holdout changes nothing in the points or the choice."""
    cases = _split(known)
    settings = SweepSettings(resamples=QUICK)
    both = sweep_lists(cases, {40: known[1]}, figures["depths"], settings).report
    tuning = [case for case in cases if case.split == "tune"]
    alone = sweep_lists(tuning, {40: known[1]}, figures["depths"], settings).report
    assert (both.points, both.chosen, both.best_set) == (alone.points, alone.chosen, alone.best_set)


def test_few_cases_leave_every_depth_in(known: Known) -> None:
    """Six cases: the set is everything, and the reason says so."""
    report = sweep_lists(known[0][:6], {40: known[1]}, [3, 5]).report
    assert report.best_set == (3, 5)
    assert "too few" in report.chosen["why"]


def test_the_regressions_of_a_choice_are_listed(known: Known) -> None:
    """8 against a shipped 20: the 72 cases whose evidence lies between lose, by name, worst first."""
    settings = SweepSettings(resamples=QUICK, objective="recall", margin=0.2, baseline=Cell(40, 20))
    report = sweep_lists(known[0], {40: known[1]}, [8, 20], settings).report
    lost = [row["case_id"] for row in report.regressions]
    assert report.chosen["context_k"] == 8
    assert len(lost) == 76
    assert lost[:4] == ["c188", "c189", "c190", "c191"]
    assert report.comparison is not None
    assert (report.comparison["lost"], report.comparison["gained"]) == (76, 0)
    assert len(report.regressions[0]["passages"]) == 8


def test_a_holdout_that_never_reaches_the_choice_is_told() -> None:
    """Its lists end before: it can neither agree nor disagree."""
    cases = [
        Case(case_id=f"c{i}", judgments={"r": 1.0}, split="holdout" if i >= 20 else "tune") for i in range(40)
    ]
    lists = {
        case.case_id: RankedList(["x", "y"] if case.split == "holdout" else ["x", "y", "z", "r"])
        for case in cases
    }
    report = sweep_lists(cases, {4: lists}, [1, 4], SweepSettings(resamples=QUICK, objective="recall")).report
    assert (report.chosen["context_k"], report.holdout) == (4, None)
    assert report.notes == ["the holdout cannot confirm context_k 4: not reachable, at most 2 returned"]


def test_an_objective_that_was_not_measured_is_refused(known: Known) -> None:
    """Answers need answers."""
    with pytest.raises(UsageError, match="it needs answers"):
        sweep_lists(
            known[0], {40: known[1]}, [3], SweepSettings(resamples=QUICK, objective="answer_accuracy")
        )
