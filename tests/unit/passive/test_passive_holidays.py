"""A calendar of holidays: such a day is a Sunday to the layers, and what levels see on it is a notice."""

from __future__ import annotations

from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from resweep.detect.passive.engine import PassiveEngine
from resweep.detect.passive.features import INDEX, STREAMS, Block
from resweep.detect.passive.levels import Levels
from resweep.detect.passive.outcome import Outcome
from resweep.detect.passive.season import design, weekday
from resweep.detect.passive.settings import DAY, HOUR, with_holidays
from resweep.domain.errors import UsageError
from resweep.serve.settings_sources import load

MONDAY = 1_795_996_800.0
THURSDAY = MONDAY + 31 * DAY  # in the fifth week
CALENDAR = with_holidays([datetime.fromtimestamp(THURSDAY, UTC).date()])


def days(holiday: bool) -> list[Block]:
    """Five weeks by the hour with weekends 0.6 SD lower; the last Thursday looks like one where asked to."""
    rng, out = np.random.default_rng(1), []
    for i in range(32 * 24):
        ts = MONDAY + i * HOUR
        resting = i // 24 % 7 >= 5 or (holiday and ts >= THURSDAY)
        mean = np.full(len(STREAMS), np.nan)
        mean[INDEX["top"]] = rng.normal(0, 0.05) - 0.6 * resting
        out.append(Block(ts, ts + HOUR, i, i, 400, mean, np.ones(len(STREAMS))))
    return out


@pytest.mark.parametrize(("holidays", "alarms"), [((), True), (CALENDAR.holidays, False)])
def test_a_holiday_is_a_change_unless_the_calendar_knows_it(holidays: tuple[int, ...], alarms: bool) -> None:
    """The same traffic, with and without the date."""
    levels = Levels(720.0, holidays)
    found = [levels.add(block) for block in days(holiday=True)]
    assert any(f is not None for f in found[31 * 24 :]) is alarms


def test_a_holiday_is_a_sunday_in_the_season() -> None:
    """Same row of the design, whatever the weekday."""
    noon = np.array([THURSDAY + DAY / 2, MONDAY + 6.5 * DAY])
    assert list(weekday(noon)) == [3, 6]
    on, sunday = design(noon, 2, CALENDAR.holidays)
    assert np.allclose(on, sunday)


def test_the_outcome_of_a_holiday_is_judged_by_weekends() -> None:
    """Weekends 6 % empty, weekdays 1 %: a holiday at 6 % is no news."""
    alarms = {}
    for name, settings in (("without", with_holidays(None)), ("with", CALENDAR)):
        outcome, alarms[name] = Outcome(settings), 0
        for hour in range(32 * 24):
            resting = hour // 24 % 7 >= 5 or hour >= 31 * 24
            counts = {"events": 100, "ok": 100, "empty": 6 if resting else 1}
            alarms[name] += outcome.add(MONDAY + hour * HOUR, -1, counts) is not None
    assert alarms == {"without": 1, "with": 0}


@pytest.mark.parametrize("on", [True, False])
def test_levels_speak_in_notices_on_a_holiday(lab: Any, on: bool) -> None:
    """Ten days, no question recorded, then another embedder on a day that is a holiday or not."""
    start = MONDAY + 5 * HOUR
    after = start + 10 * DAY
    settings = with_holidays([datetime.fromtimestamp(after, UTC).date()] if on else None)
    engine = PassiveEngine("p", settings, salt=lab.salt)
    lab.feed(engine, lab.traffic(lab.world(), 14_400, rate=60, start=start, keyed=False))
    end = lab.feed(
        engine, lab.traffic(lab.world(seed=5), 300, rate=60, start=after, first=14_400, keyed=False)
    )
    engine.advance(end + 60)
    (flag,) = [f for f in lab.flags(engine) if f.reason == "silent_change"]
    assert (flag.severity, flag.moves) == (("notice", None) if on else ("warning", "suspect"))


def test_a_saved_state_takes_up_the_calendar_of_the_day(lab: Any) -> None:
    """A date that is added to the settings counts from the next start on."""
    old, new = PassiveEngine("p", salt=lab.salt), PassiveEngine("p", CALENDAR, salt=lab.salt)
    lab.feed(old, lab.traffic(lab.world(), 200))
    old.finish()
    new.restore(old.dump())
    (monitor,) = new.monitors.values()
    assert monitor.levels.holidays == monitor.outcome.holidays == CALENDAR.holidays


def test_holidays_are_dates_in_a_list_or_parted_by_commas(tmp_path: Path) -> None:
    """TOML's own dates, words, or a variable; anything else is refused in words."""
    file, christmas, year = tmp_path / "resweep.toml", date(2026, 12, 25), date(2027, 1, 1)
    for text in ('["2026-12-25", "2027-01-01"]', "[2026-12-25, 2027-01-01]"):
        file.write_text(f"[detect]\nholidays = {text}\n")
        assert load(file, {}).settings.detect.holidays == (christmas, year)
    told = load(None, {"RESWEEP_DETECT_HOLIDAYS": "2026-12-25, 2027-01-01"}, folder=tmp_path / "x")
    assert told.settings.detect.holidays == (christmas, year)
    with pytest.raises(UsageError, match="expected a list of dates"):
        load(None, {"RESWEEP_DETECT_HOLIDAYS": "christmas"}, folder=tmp_path / "x")
