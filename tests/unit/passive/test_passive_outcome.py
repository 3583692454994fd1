"""Outcome: empties, shorts, errors and complaints that rise are told; a weekend is not a rise."""

from __future__ import annotations

import random

import pytest

from resweep.detect.passive.outcome import Outcome, OutcomeAlarm
from resweep.detect.passive.settings import DAY, HOUR, PassiveSettings

MONDAY = 1_795_996_800.0


def day(outcome: Outcome, at: int, n: int, share: float, rng: random.Random) -> list[OutcomeAlarm]:
    """One day of `n` calls of which `share` come back empty, by the hour; return alarms."""
    found = []
    for hour in range(24):
        ok = n // 24
        empty = sum(rng.random() < share for _ in range(ok))
        counts = {"events": ok, "ok": ok, "empty": empty}
        alarm = outcome.add(MONDAY + at * DAY + hour * HOUR, -1, counts)
        if alarm is not None:
            found.append(alarm)
    return found


BAD = {"events": 100, "ok": 60, "errors": 40, "feedback": 10, "negative": 1}


@pytest.mark.parametrize("seed", range(40))
def test_an_ordinary_saturday_is_quiet_and_a_bad_one_is_told_the_same_day(seed: int) -> None:
    """Weekdays 1,000 calls with 2 % empty, weekends 250 with 6 %; then one more Saturday with 20 %."""
    outcome, rng = Outcome(PassiveSettings()), random.Random(seed)
    alarms = []
    for at in range(28 + 5):
        weekend = at % 7 >= 5
        alarms += day(outcome, at, 250 if weekend else 1000, 0.06 if weekend else 0.02, rng)
    assert alarms == []
    (alarm,) = day(outcome, 33, 250, 0.20, rng)
    assert alarm.measure == "empty"
    assert alarm.hits / alarm.n > 0.1


def test_a_few_calls_never_alarm() -> None:
    """One empty in ten is compatible with 2 % to 40 %."""
    outcome, rng = Outcome(PassiveSettings()), random.Random(1)
    assert [a for at in range(10) for a in day(outcome, at, 24, 0.02, rng)] == []
    assert outcome.add(MONDAY + 11 * DAY, -1, {"events": 10, "ok": 10, "empty": 3}) is None


def test_errors_and_complaints_have_their_own_denominators() -> None:
    """Errors are a share of all calls, complaints of all feedback."""
    outcome = Outcome(PassiveSettings())
    for hour in range(24 * 5):
        counts = {"events": 100, "ok": 100, "feedback": 10, "negative": 1}
        assert outcome.add(MONDAY + hour * HOUR, -1, counts) is None
    alarm = None
    for hour in range(120, 126):
        alarm = alarm or outcome.add(
            MONDAY + (hour - 120) * HOUR + 7 * DAY,
            -1,
            {"events": 100, "ok": 60, "errors": 40, "feedback": 10, "negative": 1},
        )
    assert alarm is not None
    assert alarm.measure == "errors"
    assert alarm.hits / alarm.n == pytest.approx(0.4, abs=0.05)


def test_a_drop_that_is_over_clears() -> None:
    """Calls at the usual share bring calm back."""
    outcome, rng = Outcome(PassiveSettings()), random.Random(3)
    for at in range(5):
        assert day(outcome, at, 1000, 0.02, rng) == []
    assert len(day(outcome, 7, 1000, 0.5, rng)) == 1
    assert not outcome.recovered
    day(outcome, 8, 1000, 0.02, rng)
    assert outcome.recovered
