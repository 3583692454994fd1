"""The set of depths that cannot be told from the best."""

from __future__ import annotations

from statistics import NormalDist

import numpy as np
import pytest

from resweep.domain.errors import UsageError
from resweep.domain.measures import FloatArray
from resweep.domain.resample import best_set, resampled_deviations, smallest_within

DEPTHS = np.array([3, 5, 8, 10, 15, 20, 40])
ACCURACY = np.array([0.685, 0.71, 0.735, 0.73, 0.70, 0.67, 0.615])
PEAK = 2


def draw(cases: int, rng: np.random.Generator, reach: float = 3.0) -> FloatArray:
    """Right and wrong answers on the known curve; neighbours in log k answer alike (Gaussian copula)."""
    steps = np.abs(np.log(DEPTHS)[:, None] - np.log(DEPTHS)[None, :])
    root = np.linalg.cholesky(np.exp(-steps / reach))
    limits = np.array([NormalDist().inv_cdf(share) for share in ACCURACY])
    return (rng.standard_normal((cases, len(DEPTHS))) @ root.T < limits).astype(np.float64)


def coverage(runs: int, cases: int, resamples: int) -> tuple[float, float]:
    """Return how often the true peak is in the set, and the mean size of the set."""
    rng = np.random.default_rng(2026)
    covered = size = 0
    for seed in range(runs):
        found = best_set(draw(cases, rng), resamples=resamples, seed=seed)
        covered += bool(found.kept[PEAK])
        size += int(found.kept.sum())
    return covered / runs, size / runs


def test_the_true_peak_is_in_the_set_and_the_set_says_something() -> None:
    """Over 100 draws of 400 cases, coverage is 0.95 - 2 SE at least, and the set has 4.3 of 7 at most."""
    share, size = coverage(100, 400, 500)
    assert share >= 0.95 - 2 * (0.95 * 0.05 / 100) ** 0.5
    assert size <= 4.3


@pytest.mark.long
def test_coverage_over_500_draws() -> None:
    """The same over 500 draws with 10,000 resamples each."""
    share, size = coverage(500, 400, 10_000)
    assert share >= 0.95 - 2 * (0.95 * 0.05 / 500) ** 0.5
    assert size <= 4.3


def test_equal_input_gives_equal_output() -> None:
    """One seed, one result; another seed moves the critical values and little else."""
    values = draw(400, np.random.default_rng(0))
    first, second, other = (best_set(values, seed=seed) for seed in (1, 1, 2))
    assert np.array_equal(first.critical, second.critical)
    assert not np.array_equal(first.critical, other.critical)
    assert np.allclose(first.critical[1:], other.critical[1:], atol=0.1)


def test_a_clearly_worse_depth_leaves() -> None:
    """0.9 against 0.5 on 100 independent cases: only the better stays."""
    rng = np.random.default_rng(4)
    values = np.column_stack([rng.random(100) < 0.5, rng.random(100) < 0.9]).astype(np.float64)
    assert best_set(values).kept.tolist() == [False, True]


def test_equal_depths_stay_together() -> None:
    """Identical columns are never told apart."""
    column = np.random.default_rng(5).random(50)
    found = best_set(np.column_stack([column, column, column]))
    assert found.kept.all()
    assert found.best == 0


def test_a_constant_lead_beyond_the_margin_is_a_lead() -> None:
    """Every case better by 0.1: out at margin 0.05, in at margin 0.1."""
    column = np.random.default_rng(6).random(50) * 0.5
    values = np.column_stack([column, column + 0.1])
    assert best_set(values, margin=0.05).kept.tolist() == [False, True]
    assert best_set(values, margin=0.1).kept.tolist() == [True, True]


def test_few_cases_leave_nothing_out() -> None:
    """Nine cases that all say the same are still nine cases."""
    found = best_set(np.column_stack([np.zeros(9), np.ones(9)]))
    assert found.too_few
    assert found.kept.all()


def test_weights_move_the_best() -> None:
    """Two kinds of cases that disagree: the heavier kind decides."""
    values = np.repeat([[1.0, 0.0], [0.0, 1.0]], 60, axis=0)
    weights = np.repeat([9.0, 1.0], 60)
    assert best_set(values, weights).kept.tolist() == [True, False]
    assert best_set(values, weights[::-1].copy()).kept.tolist() == [False, True]


def test_the_normal_limit_has_the_covariance_of_the_draws() -> None:
    """Beyond the most draws allowed the limit takes over: the same spread and correlation within 10 %."""
    values, weights = draw(300, np.random.default_rng(7)), np.repeat([1.0, 3.0], 150)
    centred = values - np.average(values, axis=0, weights=weights)
    drawn, limit = (
        resampled_deviations(centred, weights, 4000, np.random.default_rng(8), most_draws=most)
        for most in (10_000_000, 0)
    )
    scale = drawn.var(axis=0).mean()
    assert np.abs(np.cov(drawn.T) - np.cov(limit.T)).max() < 0.1 * scale


def test_cases_not_observed_are_refused() -> None:
    """NaN is no value: leave the case out, or the pairs do not belong together."""
    with pytest.raises(UsageError, match="leave those cases out"):
        best_set(np.array([[1.0, np.nan]]))


def test_a_negative_margin_is_refused() -> None:
    """The message gives the numbers that came."""
    with pytest.raises(UsageError, match=r"got margin -0\.1"):
        best_set(np.ones((3, 2)), margin=-0.1)


def test_the_smallest_kept_depth_that_meets() -> None:
    """Depths in any order: the smallest kept one that meets is found, and no further one is asked."""
    asked: list[int] = []

    def meets(i: int) -> bool:
        asked.append(i)
        return i != 2

    assert smallest_within([40, 8, 5, 3], [True, True, True, False], meets) == 1
    assert asked == [2, 1]
    assert smallest_within([3], [True], lambda _: False) is None
