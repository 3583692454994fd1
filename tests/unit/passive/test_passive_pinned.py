"""The pinned week: how far slow drift has come, where a rolling reference follows it."""

from __future__ import annotations

import numpy as np
import pytest

from resweep.detect.passive.features import INDEX, STREAMS, Block
from resweep.detect.passive.pinned import Pinned

DAY = 86_400.0
MONDAY = 1_795_996_800.0
_GROUP_0 = INDEX["group_0"]


def feed(
    pinned: Pinned,
    days: range,
    *,
    drift: float = 0.0,
    shares: tuple[float, float] = (0.5, 0.5),
    seed: int = 1,
) -> None:
    """Give 24 blocks a day of 40 questions: `top` moves by `drift` SD a day, on a daily season of 1 SD."""
    rng = np.random.default_rng(seed)
    for day in days:
        for hour in range(24):
            ts = MONDAY + day * DAY + hour * 3600.0
            mean = np.full(len(STREAMS), np.nan)
            mean[INDEX["top"]] = drift * day + np.sin(hour / 24 * 2 * np.pi) + rng.normal(0, 40**-0.5)
            mean[_GROUP_0:] = 0.0
            mean[_GROUP_0 : _GROUP_0 + 2] = rng.binomial(40, shares[0]) / 40
            mean[_GROUP_0 + 1] = 1 - mean[_GROUP_0]
            pinned.add(Block(ts, ts + 3600, 0, 0, 40, mean, np.ones(len(STREAMS))))


def test_a_distance_needs_two_whole_weeks_after_the_first_day() -> None:
    """Until the fifteenth day is over there is none."""
    pinned = Pinned()
    feed(pinned, range(15))
    assert pinned.distance() is None
    feed(pinned, range(15, 16))
    found = pinned.distance()
    assert found is not None
    assert found.since == MONDAY + DAY


def test_traffic_without_drift_is_near() -> None:
    """Neither hours nor weekdays nor chance count as distance."""
    pinned = Pinned()
    feed(pinned, range(40))
    found = pinned.distance()
    assert found is not None
    assert (found.sd < 0.05, found.mix < 0.02) == (True, True)


def test_slow_drift_adds_up_and_is_named() -> None:
    """0.02 SD a day over 60 days: what a 28-day reference sees little of is 1.04 SD here."""
    pinned = Pinned()
    feed(pinned, range(60), drift=0.02)
    found = pinned.distance()
    assert found is not None
    assert found.stream == "top"
    assert found.sd == pytest.approx(
        0.02 * 51, abs=0.05
    )  # the middle of days 52 to 58 against that of 1 to 7


def test_another_mix_of_questions_is_a_share_that_moved() -> None:
    """From halves to 80 and 20: three in ten asked something else."""
    pinned = Pinned()
    feed(pinned, range(9))
    feed(pinned, range(9, 20), shares=(0.8, 0.2))
    found = pinned.distance()
    assert found is not None
    assert found.mix == pytest.approx(0.3, abs=0.04)


def test_an_acceptance_pins_anew() -> None:
    """What runs now is what the depth was chosen for."""
    pinned = Pinned()
    feed(pinned, range(30), drift=0.1)
    pinned.restart()
    assert pinned.distance() is None
    feed(pinned, range(30, 50))
    found = pinned.distance()
    assert found is not None
    assert found.sd < 0.05


def test_too_few_questions_give_no_distance() -> None:
    """A hundred votes in each week are the least."""
    pinned = Pinned()
    mean = np.zeros(len(STREAMS))
    for day in range(30):
        ts = MONDAY + day * DAY
        pinned.add(Block(ts, ts, 0, 0, 5, mean, np.ones(len(STREAMS))))
    assert pinned.distance() is None
