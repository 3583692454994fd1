"""Weighted means with intervals, quantiles and shares."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from resweep.domain.errors import UsageError
from resweep.domain.estimate import (
    Estimate,
    effective_size,
    estimate,
    t_quantile,
    weighted_quantiles,
)


def test_the_mean_is_weighted_back_to_traffic() -> None:
    """A case of weight 3 with value 1 among one of weight 1 with 0: 0.75, and 0.5 without weights."""
    found = estimate(np.array([1.0, 0.0]), np.array([3.0, 1.0]))
    assert (found.mean, found.unweighted) == (0.75, 0.5)


def test_equal_weights_change_nothing() -> None:
    """Any constant weight gives the plain estimate, whatever its size."""
    values = np.random.default_rng(1).random(50)
    assert estimate(values, np.full(50, 7.0)).mean == pytest.approx(estimate(values).mean)
    assert estimate(values, np.full(50, 7.0)).low == pytest.approx(estimate(values).low)


def test_the_effective_size_is_kishs() -> None:
    """(1 + 3)^2 / (1 + 9) = 1.6; n equal weights are n cases."""
    assert effective_size(np.array([1.0, 3.0])) == pytest.approx(1.6)
    assert effective_size(np.full(400, 0.5)) == 400.0


def test_the_interval_of_a_share_is_wilsons() -> None:
    """288 of 400: 0.674 to 0.762, within a thousandth of Wilson's score interval."""
    found = estimate(np.repeat([1.0, 0.0], [288, 112]))
    wilson = stats.binomtest(288, 400).proportion_ci(method="wilson")
    assert (found.low, found.high) == pytest.approx((wilson.low, wilson.high), abs=1e-3)


def test_the_interval_does_not_collapse_where_all_agree() -> None:
    """20 of 20 does not prove 1: the lower end stays at 0.83."""
    found = estimate(np.ones(20))
    assert (found.mean, found.high) == (1.0, 1.0)
    assert found.low == pytest.approx(0.824, abs=0.005)


def test_equal_values_leave_room_for_the_unseen() -> None:
    """Forty cases at 0.5: none of another kind was drawn, so a share of 0.093 at most is another kind."""
    found = estimate(np.full(40, 0.5))
    assert (found.low, found.high) == pytest.approx((0.454, 0.546), abs=0.001)


def test_one_case_says_nothing_of_the_mean() -> None:
    """A single case has the whole range as its interval."""
    found = estimate(np.array([0.4]))
    assert (found.mean, found.low, found.high) == (0.4, 0.0, 1.0)


def test_no_case_is_no_data() -> None:
    """Nothing observed gives null numbers and n = 0, never a zero mean."""
    assert estimate(np.array([])) == Estimate()
    assert estimate(np.array([np.nan])).mean is None


def test_unobserved_cases_are_left_out_and_not_counted() -> None:
    """NaN is not 0: the mean of 1 and NaN is 1, over n = 1."""
    found = estimate(np.array([1.0, np.nan]))
    assert (found.mean, found.n) == (1.0, 1)


def test_quantiles_and_share_above() -> None:
    """Of 1..10 tenths: median 0.55, lower quantiles 0.15 and 0.3, and 3 of 10 at or above 0.8."""
    found = estimate(np.arange(1, 11) / 10)
    assert (found.median, found.q10, found.q25) == pytest.approx((0.55, 0.15, 0.3))
    assert found.share_above == pytest.approx(0.3)


def test_weighted_quantiles_are_those_of_repeated_cases() -> None:
    """A whole weight is as good as that many copies of the case."""
    values, weights = np.array([0.1, 0.5, 0.9]), np.array([2.0, 1.0, 3.0])
    repeated = np.repeat(values, weights.astype(int))
    shares = (0.1, 0.25, 0.5, 0.75)
    expected = np.quantile(repeated, shares, method="averaged_inverted_cdf")
    assert weighted_quantiles(values, weights, shares) == pytest.approx(expected.tolist())


@pytest.mark.parametrize("df", [1, 2, 3, 5, 9.5, 30, 400])
@pytest.mark.parametrize("probability", [0.9, 0.95, 0.975, 0.995])
def test_the_t_quantile(df: float, probability: float) -> None:
    """Within 0.3 % of the exact quantile (6 % at 3 degrees in the far tail)."""
    exact = stats.t.ppf(probability, df)
    assert t_quantile(probability, df) == pytest.approx(exact, rel=0.06 if df == 3 else 0.003)


@pytest.mark.parametrize("bad", [0.0, -1.0, np.nan, np.inf])
def test_weights_must_be_above_zero(bad: float) -> None:
    """A weight of zero, below, or no number is refused with its meaning."""
    with pytest.raises(UsageError, match="1 / inclusion probability"):
        estimate(np.ones(2), np.array([1.0, bad]))


def test_the_interval_covers_under_unequal_weights() -> None:
    """Over 400 weighted samples of 80, the 95 % interval holds the true mean at least 92 % of the time."""
    rng = np.random.default_rng(3)
    covered = 0
    for _ in range(400):
        hard = rng.random(80) < 0.5
        values = (rng.random(80) < np.where(hard, 0.4, 0.9)).astype(float)
        found = estimate(values, np.where(hard, 1.0, 4.0))
        covered += found.low is not None and found.high is not None and found.low <= 0.8 <= found.high
    assert covered / 400 >= 0.92
