"""Two systems on the same cases: the change of the mean, and who lost."""

from __future__ import annotations

import numpy as np
import pytest

from resweep.domain.measures import FloatArray
from resweep.domain.resample import compare


def _null_pair(cases: int, rng: np.random.Generator) -> tuple[FloatArray, FloatArray]:
    """Two runs of one system: a fifth of the cases are answered afresh."""
    first = (rng.random(cases) < 0.7).astype(np.float64)
    again = np.where(rng.random(cases) < 0.2, rng.random(cases) < 0.7, first).astype(np.float64)
    return first, again


def test_lost_and_gained_are_listed_whatever_the_mean_does() -> None:
    """One lost for one gained: the mean stays, and both cases are named."""
    found = compare(np.array([1.0, 0.0, 1.0]), np.array([0.0, 1.0, 1.0]))
    assert found.difference == 0
    assert (found.lost, found.gained, found.same) == ((0,), (1,), 1)


def test_the_largest_loss_comes_first() -> None:
    """Losses of 0.2 and 0.7 are listed with the larger first."""
    found = compare(np.array([0.5, 1.0, 0.3]), np.array([0.3, 0.3, 0.3]))
    assert found.lost == (1, 0)


def test_a_real_fall_is_shown() -> None:
    """50 of 200 cases lost and none gained: worse, and worse by more than 0.1, but not than 0.24."""
    before, after = np.ones(200), np.repeat([0.0, 1.0], [50, 150])
    found = compare(before, after)
    assert found.difference == -0.25
    assert found.shown_worse()
    assert found.shown_worse(0.1)
    assert not found.shown_worse(0.24)
    assert found.high < 0


def test_a_rise_is_no_fall() -> None:
    """Better is never shown as worse."""
    assert not compare(np.zeros(100), np.ones(100)).shown_worse()


def test_nothing_changed() -> None:
    """Equal values: no difference, no width, no fall."""
    found = compare(np.ones(50), np.ones(50))
    assert (found.difference, found.low, found.high) == (0.0, 0.0, 0.0)
    assert not found.shown_worse()


def test_few_cases_show_no_fall() -> None:
    """Nine of nine lost is listed, and the gate holds still."""
    found = compare(np.ones(9), np.zeros(9))
    assert len(found.lost) == 9
    assert not found.shown_worse()


def test_weights_count_in_the_difference() -> None:
    """A lost case of weight 9 against a gained one of weight 1: -0.8."""
    found = compare(np.array([1.0, 0.0]), np.array([0.0, 1.0]), np.array([9.0, 1.0]))
    assert found.difference == pytest.approx(-0.8)


@pytest.mark.parametrize("cases", [60, 400])
def test_a_null_pair_passes_the_gate_at_the_nominal_rate(cases: int) -> None:
    """Of 400 pairs of equal systems at most 5 % + 2 SE are called worse, and as few intervals miss 0."""
    rng = np.random.default_rng(8)
    worse = missed = 0
    for seed in range(400):
        found = compare(*_null_pair(cases, rng), resamples=300, seed=seed)
        worse += found.shown_worse()
        missed += not found.low <= 0 <= found.high
    limit = 0.05 + 2 * (0.05 * 0.95 / 400) ** 0.5
    assert worse / 400 <= limit
    assert missed / 400 <= limit


def test_the_gate_is_not_asleep() -> None:
    """A true fall of 8 points on 400 cases is shown more than nine times in ten."""
    rng = np.random.default_rng(9)
    shown = 0
    for seed in range(100):
        before = (rng.random(400) < 0.8).astype(np.float64)
        after = np.where(rng.random(400) < 0.1, 0.0, before)
        shown += compare(before, after, resamples=500, seed=seed).shown_worse()
    assert shown > 90
