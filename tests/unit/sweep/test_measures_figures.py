"""The measures give the figures that are known, to the last digit stated."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from resweep.domain.errors import UsageError
from resweep.domain.measures import measure, measure_case, rank_table
from resweep.sweep.lists import Case, RankedList

Known = tuple[list[Case], dict[str, RankedList]]


def _means(known: Known, depths: list[int]) -> dict[int, dict[str, float]]:
    cases, lists = known
    table = rank_table([lists[c.case_id].ids for c in cases], [c.judgments for c in cases])
    values = measure(table, depths).values
    return {k: {n: float(v[:, i].mean()) for n, v in values.items()} for i, k in enumerate(depths)}


def test_every_expected_mean_of_the_400_cases(figures: Any, known: Known) -> None:
    """Six measures at seven depths, each within 1e-9 of its stated mean."""
    means = _means(known, figures["depths"])
    for k, expected in figures["expected"].items():
        for name, value in expected.items():
            assert means[int(k)][name] == pytest.approx(value, abs=1e-9), (k, name)


def test_the_stated_recall_and_all_evidence(figures: Any, known: Known) -> None:
    """Recall 0.72, 0.79, 0.89, 0.93 at 5, 8, 20, 40, and all evidence 0.48 at 5."""
    means = _means(known, figures["depths"])
    for name in ("recall", "all_evidence"):
        for k, value in figures["stated"][name].items():
            assert means[int(k)][name] == pytest.approx(value, abs=0.005)


def test_mean_recall_times_cases_is_evidence_worth(figures: Any, known: Known) -> None:
    """0.72 of 400 is 288 queries' worth of evidence, 0.89 is 356."""
    means = _means(known, figures["depths"])
    for k, worth in figures["stated"]["evidence_worth"].items():
        assert 400 * means[int(k)]["recall"] == pytest.approx(worth)


def test_partial_credit_is_a_third_of_the_headline(figures: Any, known: Known) -> None:
    """0.24 absolute is 33.3 % of 0.72, not just under a quarter of it."""
    at5 = _means(known, [5])[5]
    credit = at5["recall"] - at5["all_evidence"]
    assert credit == pytest.approx(figures["partial_credit_at_5"]["absolute"])
    assert credit / at5["recall"] == pytest.approx(
        figures["corrections"]["partial_credit_of_recall_at_5"], abs=1e-6
    )


def test_rank_aware_precision_tells_orders_apart(figures: Any) -> None:
    """ABXY 1.0, XAYB 0.5, AXYB 0.75, XYAB 0.4167, all with precision 0.5; and the asserted prefixes."""
    for vector in figures["rank_aware"]:
        found = measure_case(vector["ranking"], vector["relevant"], vector["k"])
        for name in ("context_precision", "precision", "recall"):
            if name in vector:
                assert found[name] == pytest.approx(vector[name], abs=1e-9)


def test_two_runs_with_equal_recall(figures: Any) -> None:
    """Recall@3 is 4/6 for both runs, MRR 17/36 and 4/6, and each query's own values are as stated."""
    gold = figures["two_runs"]["gold"]
    for name, run in figures["two_runs"]["runs"].items():
        expected = figures["two_runs"]["expected"][name]
        each = {q: measure_case(run[q], [gold[q]], 3) for q in gold}
        assert np.mean([m["recall"] for m in each.values()]) == pytest.approx(expected["recall@3"])
        assert np.mean([m["mrr"] for m in each.values()]) == pytest.approx(expected["mrr"])
        for q, values in expected["per_query"].items():
            assert each[q]["recall"] == values["recall@3"]
            assert each[q]["mrr"] == pytest.approx(values["rr"])


def test_a_depth_below_one_is_refused() -> None:
    """k = 0 raises and says what to give."""
    with pytest.raises(UsageError, match="depths k of at least 1"):
        measure_case(["a"], ["a"], 0)


def test_a_case_without_relevant_passages_is_refused() -> None:
    """One case with R = 0 raises and names the place where it belongs."""
    with pytest.raises(UsageError, match="unanswerable"):
        measure_case(["a"], [], 3)
