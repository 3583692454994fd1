"""Duplicates, empty lists, missing runs, unjudged passages: each counted once, under its own name."""

from __future__ import annotations

import math

import numpy as np
import pytest

from resweep.domain.errors import UsageError
from resweep.domain.measures import (
    MEASURES,
    duplicate_source_rate,
    evidence_coverage,
    measure,
    measure_at,
    measure_case,
    rank_table,
)


def test_a_duplicate_counts_once_at_its_first_place() -> None:
    """[a, a, a, b, c] with a and b relevant: recall 0.5, 0.5, 0.5, 1, 1; nDCG@3 0.6131, nDCG@4 0.8772."""
    table = rank_table([["a", "a", "a", "b", "c"]], [{"a": 1, "b": 1}])
    values = measure(table, [1, 2, 3, 4, 5]).values
    assert values["recall"][0].tolist() == [0.5, 0.5, 0.5, 1.0, 1.0]
    assert values["ndcg"][0, 2:4].round(4).tolist() == [0.6131, 0.8772]
    assert table.duplicates.tolist() == [2]


def test_answerable_unanswerable_and_unjudged_are_three_kinds() -> None:
    """Recall@3 is 0.75 over the 2 answerable; 2 without relevant passages and 1 unjudged stay apart."""
    table = rank_table(
        [["a", "b", "c"], ["a", "x", "y"], ["x"], [], ["z"]],
        [{"a": 1}, {"a": 1, "b": 1}, {}, {"q": 0}, None],
    )
    assert measure(table, [3]).values["recall"].mean() == 0.75
    assert (table.kept.tolist(), table.no_relevant.tolist(), table.unjudged.tolist()) == ([0, 1], [2, 3], [4])


def test_a_judged_case_missing_from_the_run_scores_nothing_and_is_listed() -> None:
    """None for a ranking is a missing case: every measure 0, and `missing` holds its position."""
    table = rank_table([["a"], None], [{"a": 1}, {"a": 1}])
    values = measure(table, [1], MEASURES).values
    assert table.missing.tolist() == [1]
    assert all(values[name][1, 0] == 0 for name in MEASURES if name != "judged")
    assert math.isnan(values["judged"][1, 0])


def test_precision_divides_by_k_and_precision_returned_by_what_came() -> None:
    """One hit of two returned at k = 4: 0.25 and 0.5."""
    found = measure_case(["a", "x"], ["a"], 4)
    assert (found["precision"], found["precision_returned"]) == (0.25, 0.5)


def test_an_empty_list_scores_zero_and_is_not_observed_as_judged() -> None:
    """Nothing returned: precision_returned is 0 and never 0/0; judged is NaN."""
    found = measure_case([], ["a"], 3)
    assert found["precision_returned"] == 0.0
    assert math.isnan(found["judged"])


def test_judged_is_the_share_of_positions_that_anyone_judged() -> None:
    """A judged irrelevant passage counts as judged, a repeated one at each place, the rest do not."""
    assert measure_case(["a", "n", "x", "y"], {"a": 1, "n": 0}, 4)["judged"] == 0.5
    assert measure_case(["n", "n", "x", "a"], {"a": 1, "n": 0}, 3)["judged"] == pytest.approx(2 / 3)


def test_context_precision_and_ap_differ_in_what_they_divide_by() -> None:
    """One of three relevant at rank 1, k = 2: 1/min(3, 2) and 1/3."""
    found = measure_case(["a", "x"], ["a", "b", "c"], 2)
    assert found["context_precision"] == 0.5
    assert found["ap"] == pytest.approx(1 / 3)


def test_ndcg_has_linear_gain_and_its_ideal_within_k() -> None:
    """Grades 1 then 3 at k = 2: (1 + 3/log2 3) / (3 + 1/log2 3)."""
    found = measure_case(["low", "high"], {"low": 1, "high": 3, "none": 0}, 2)
    log3 = math.log2(3)
    assert found["ndcg"] == pytest.approx((1 + 3 / log3) / (3 + 1 / log3))


def test_grades_below_one_are_not_relevant() -> None:
    """Grades 0 and -1 are judged and not relevant."""
    found = measure_case(["junk", "no", "a"], {"junk": -1, "no": 0, "a": 1}, 3)
    assert (found["recall"], found["judged"]) == (1.0, 1.0)
    assert found["mrr"] == pytest.approx(1 / 3)


def test_measures_at_a_depth_of_their_own() -> None:
    """Each case is measured at its own depth; a depth of 0 gives 0, whatever the list holds."""
    table = rank_table([["a", "b"], ["x", "a"], ["a"]], [{"a": 1}] * 3)
    values = measure_at(table, np.array([1, 2, 0]), ("recall", "precision"))
    assert values["recall"].tolist() == [1.0, 1.0, 0.0]
    assert values["precision"].tolist() == [1.0, 0.5, 0.0]


def test_blocks_do_not_show() -> None:
    """More cases than one block holds give the same values as each case alone."""
    rankings = [[f"p{(i + j) % 7}" for j in range(7)] for i in range(30_000)]
    table = rank_table(rankings, [{"p0": 1, "p3": 2}] * len(rankings))
    values = measure(table, [2, 5]).values
    for i in (0, 6, 18_724, 18_725, 29_999):
        alone = measure(rank_table([rankings[i]], [{"p0": 1, "p3": 2}]), [2, 5]).values
        assert all(np.array_equal(values[name][i], alone[name][0]) for name in values)


def test_no_case_at_all_gives_empty_columns() -> None:
    """Without a judged case there are no values, and no error."""
    assert measure(rank_table([["a"]], [None]), [1, 2]).values["recall"].shape == (0, 2)


def test_an_unknown_measure_is_refused() -> None:
    """The message names what there is."""
    with pytest.raises(UsageError, match="got hitrate"):
        measure(rank_table([], []), [1], ["hitrate"])


def test_repeated_sources_are_a_share_of_known_ones() -> None:
    """s, s, unknown, t: 0, 1/2, 1/2, 1/3; unknown is not a source; no known source is not observed."""
    rates = duplicate_source_rate([["s", "s", None, "t"], [None]], [1, 2, 3, 4])
    assert rates[0] == pytest.approx([0, 1 / 2, 1 / 2, 1 / 3])
    assert np.isnan(rates[1]).all()


def test_five_passages_of_one_source_do_not_cover_two_facts() -> None:
    """Two required facts, one stated by two passages: 0.5 until the other fact arrives."""
    facts = [frozenset({"a1", "a2"}), frozenset({"b"})]
    covered = evidence_coverage([["a1", "a2", "x", "b"], ["x"]], [facts, []], [2, 4])
    assert covered[0].tolist() == [0.5, 1.0]
    assert np.isnan(covered[1]).all()
