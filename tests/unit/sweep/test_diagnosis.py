"""What the curves say, in words with the numbers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from resweep.domain.errors import UsageError
from resweep.sweep.affine import fit_line
from resweep.sweep.engine import sweep_lists
from resweep.sweep.evidence import Cell
from resweep.sweep.lists import Case, RankedList
from resweep.sweep.patterns import Moves, pattern_of
from resweep.sweep.settings import Latency, SweepSettings

Known = tuple[list[Case], dict[str, RankedList]]
Answers = Mapping[str, Mapping[Cell, Mapping[str, float]]]


@pytest.fixture(scope="module")
def said(figures: Any, known: Known, answers: Answers) -> dict[str, str]:
    """Everything said of the 400 known cases with answers, prices and times, chosen against k = 5."""
    settings = SweepSettings(
        objective="answer_accuracy",
        margin=0.0,
        resamples=500,
        baseline=Cell(40, 40),
        usd_per_million_tokens=figures["usd_per_million_tokens"],
        latency={Cell(40, int(k)): Latency(p95_s=s) for k, s in figures["latency_p95_s"].items()},
    )
    report = sweep_lists(known[0], {40: known[1]}, figures["depths"], settings, extra=answers).report
    return {finding["code"]: finding["text"] for finding in report.diagnosis}


def test_a_peak_gap_is_a_reranking_problem(said: dict[str, str]) -> None:
    """Accuracy peaks at 8 (73.5 %) and loses 12 points by 40, while recall goes from 79 % to 93 %."""
    text = said["reranking_problem"]
    assert "rather than a k problem" in text
    assert "peaks at 8 (73.5 %) and loses 12.0 points by 40" in text
    assert "from 79.0 % to 93.0 %" in text


def test_a_peak_at_the_deepest_depth_is_no_peak_yet(known: Known, answers: Answers, figures: Any) -> None:
    """Of 3, 5 and 8 the last is best: whether 10 were better, nobody asked."""
    settings = SweepSettings(objective="answer_accuracy", margin=0.0, resamples=500)
    depths = [k for k in figures["depths"] if k <= 8]
    some = {name: {c: v for c, v in cells.items() if c.context_k <= 8} for name, cells in answers.items()}
    report = sweep_lists(known[0], {40: known[1]}, depths, settings, extra=some).report
    texts = {finding["code"]: finding["text"] for finding in report.diagnosis}
    assert "highest at 8, the deepest (73.5 %); deeper ones may do better still" in texts["peaks_agree"]


def test_evidence_out_of_reach_is_a_mean_and_a_number_of_cases(said: dict[str, str]) -> None:
    """7 % of the evidence as a mean; 52 of 400 cases touched."""
    assert "7.0 % of the evidence, as a mean over cases" in said["out_of_reach"]
    assert "52 of 400 cases (13.0 %) miss some" in said["out_of_reach"]


def test_no_knee_where_time_is_a_line(said: dict[str, str]) -> None:
    """A fixed part and a rate, and a warning about adding percentiles."""
    assert "No latency knee: time (p95) is 1.3" in said["no_latency_knee"]
    assert "never added" in said["no_latency_knee"]


def test_a_retrieval_sweep_claims_no_peak(said: dict[str, str]) -> None:
    """With answers the choice is of a peak: nothing speaks of a budget."""
    assert "budget_choice" not in said


def test_wrong_with_all_the_evidence_is_downstream(said: dict[str, str]) -> None:
    """The share of fully served cases answered wrong is told apart."""
    assert "downstream of retrieval" in said["downstream"]


def test_moving_from_40_to_the_choice_is_read_as_a_whole(
    figures: Any, known: Known, answers: Answers
) -> None:
    """From 5 to 40: precision down, recall up, answers down: noise outweighs the evidence."""
    settings = SweepSettings(objective="recall", margin=0.0, resamples=500, baseline=Cell(40, 5))
    report = sweep_lists(known[0], {40: known[1]}, figures["depths"], settings, extra=answers).report
    texts = {finding["code"]: finding["text"] for finding in report.diagnosis}
    assert report.chosen["context_k"] == 40
    assert "From 5 to 40: precision down, recall up, answers down" in texts["noise_outweighs_evidence"]


@pytest.mark.parametrize(
    ("moves", "code"),
    [
        (Moves("down", "up", "up"), "evidence_worth_noise"),
        (Moves("down", "flat", "down"), "pure_distraction"),
        (Moves("flat", "flat", "flat", cost="up"), "evidence_repeated"),
        (Moves("up", "flat", "flat"), "beyond_the_answers"),
        (Moves("down", "up", "flat", faithfulness="down"), "conflicting_context"),
        (Moves("down", "up", "down"), "noise_outweighs_evidence"),
        (Moves("up", "up", "up"), None),
        (Moves("down", "up"), None),
    ],
)
def test_outcome_patterns(moves: Moves, code: str | None) -> None:
    """Each known pattern by its code; without answers, no pattern."""
    found = pattern_of(moves)
    assert (found.code if found else None) == code


def test_the_line_through_the_known_times(figures: Any) -> None:
    """7,286 to 7,893 tokens a second, a fixed part of 1.3 to 1.6 s, no row off by more than 0.05 s."""
    stated = figures["latency"]
    tokens = [figures["mean_prompt_tokens"][k] for k in figures["latency_p95_s"]]
    line = fit_line(tokens, list(figures["latency_p95_s"].values()), stated["largest_residual_s"])
    low, high = stated["tokens_per_s_bounds"]
    assert low <= 1 / line.slope <= high
    assert stated["fixed_s_bounds"][0] <= line.fixed <= stated["fixed_s_bounds"][1]
    assert line.largest_residual <= stated["largest_residual_s"]
    assert line.knee is None


def test_a_p95_of_1_9_s_needs_a_fixed_part_near_1_4(figures: Any) -> None:
    """At 4,096 tokens and the stated rates, 1.9 s leaves 1.34 to 1.38 s: the low side, as corrected."""
    low, high = figures["corrections"]["fixed_s_if_p95_at_8_is_1.9"]
    for rate in figures["latency"]["tokens_per_s_bounds"]:
        assert low <= figures["latency_p95_s"]["8"] - 4096 / rate <= high


def test_the_reranker_is_priced_by_the_candidate(figures: Any) -> None:
    """2 ms and 1.86 ms a candidate: 95 ms at 50, and the quotient is largest at the smallest depth."""
    rerank = figures["rerank"]
    depths = [20, 50, 100, 200]
    times = [rerank["fixed_ms"] + rerank["per_candidate_ms"] * depth for depth in depths]
    line = fit_line(depths, times, 0.01)
    assert line.fixed + 50 * line.slope == pytest.approx(rerank["p50_ms_at_50"])
    low, high = rerank["per_candidate_bounds"]
    assert low <= line.slope <= high
    quotients = [time / depth for time, depth in zip(times, depths, strict=True)]
    assert max(quotients) == quotients[0]


def test_a_knee_is_found_where_the_slope_changes() -> None:
    """Flat to the third row, then steep: the third row."""
    assert fit_line([1, 2, 3, 4, 5, 6], [1, 1, 1, 2, 3, 4], 0.05).knee == 2


def test_a_jagged_curve_has_no_knee() -> None:
    """Two lines fit it no better than one."""
    assert fit_line([1, 2, 3, 4, 5, 6], [1, 2, 1, 2, 1, 2], 0.05).knee is None


def test_one_row_is_no_line() -> None:
    """Two different depths are the least there must be."""
    with pytest.raises(UsageError, match="two rows"):
        fit_line([1], [1], 0.1)


def test_cost_follows_tokens_exactly(figures: Any, known: Known) -> None:
    """Exact costs at every depth; ratios from tokens (1.6, 0.6), not from what is printed (1.5, 0.625)."""
    settings = SweepSettings(resamples=500, usd_per_million_tokens=figures["usd_per_million_tokens"])
    report = sweep_lists(known[0], {40: known[1]}, figures["depths"], settings).report
    costs = {str(point["context_k"]): point["cost_usd"] for point in report.points}
    tokens = {str(point["context_k"]): point["prompt_tokens"] for point in report.points}
    assert tokens == figures["mean_prompt_tokens"]
    for k, cost in figures["cost_usd_exact"].items():
        assert costs[k] == pytest.approx(cost, abs=1e-12)
        assert round(costs[k], 3) == figures["cost_usd_printed"][k]
    corrections = figures["corrections"]
    assert tokens["8"] / tokens["5"] == figures["token_ratio_8_over_5"]
    assert round(costs["8"], 3) / round(costs["5"], 3) == figures["printed_cost_ratio_8_over_5"]
    assert tokens["3"] / tokens["5"] == corrections["token_ratio_3_over_5"]
    assert round(costs["3"], 3) / round(costs["5"], 3) == corrections["printed_cost_ratio_3_over_5"]
    assert costs["8"] - 0.012 == pytest.approx(corrections["cost_usd_at_8_minus_printed"], abs=1e-5)


def test_unjudged_passages_are_said_to_move_the_result() -> None:
    """One of two judged at k = 2: recall 1 could come out as 1/2, were the unjudged one beyond relevant."""
    cases = [Case(case_id=f"c{i}", judgments={"a": 1.0, "no": 0.0}) for i in range(12)]
    lists = {case.case_id: RankedList(["a", "u1", "u2"]) for case in cases}
    settings = SweepSettings(objective="recall", resamples=500)
    (text,) = (
        finding["text"]
        for finding in sweep_lists(cases, {3: lists}, [2], settings).report.diagnosis
        if finding["code"] == "unjudged"
    )
    assert "50.0 % of the passages were ever judged" in text
    assert "recall 1.000; judged, they could move it to between 0.500 and 1.000" in text


def test_copies_and_duplicates_are_counted() -> None:
    """The same text at ranks 2 and 4 under two ids: one duplicate a list, and a copy among ranks 2 to 4."""
    cases = [Case(case_id=f"c{i}", judgments={"a": 1.0}) for i in range(12)]
    ranked = RankedList(["a", "b", "c", "b2"], text_hashes=["ta", "tb", "tc", "tb"])
    report = sweep_lists(cases, {4: {case.case_id: ranked for case in cases}}, [1, 4]).report
    texts = {finding["code"]: finding["text"] for finding in report.diagnosis}
    assert "12 passages came again in the same list, in 12 of 12 cases" in texts["duplicates"]
    assert "Among ranks 2 to 4, 12 of 36 passages (33.3 %)" in texts["copies"]


def test_the_deepest_depth_alone_asks_for_a_deeper_sweep() -> None:
    """All evidence at rank 5, swept to 5 of 9: the best may lie beyond."""
    cases = [Case(case_id=f"c{i}", judgments={"p5": 1.0}) for i in range(30)]
    lists = {case.case_id: RankedList([f"p{i}" for i in range(1, 10)]) for case in cases}
    codes = [f["code"] for f in sweep_lists(cases, {9: lists}, [3, 5]).report.diagnosis]
    assert "at_the_edge" in codes
