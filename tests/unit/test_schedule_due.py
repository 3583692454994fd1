"""What is due, and what it covers."""

from __future__ import annotations

from datetime import UTC, date, datetime, time
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from resweep.schedule.due import Daily, Due, Every, Timetable, due

HOUR = 3600.0


def runs(timetable: Timetable, start: float, end: float, step: float) -> list[Due]:
    """Return the runs of a job that is looked at every `step` seconds."""
    found: list[Due] = []
    now = start
    while now <= end:
        last = found[-1] if found else None
        run = due(last.tick if last else None, last.end if last else None, timetable, now)
        found += [run] if run else []
        now += step
    return found


def test_a_job_never_run_is_due_at_once_and_covers_one_interval() -> None:
    """The first run covers the interval that ends at the latest tick, and is not late."""
    assert due(None, None, Every(60), 600.5) == Due(tick=600, start=540, end=600, late_s=0, skipped=0)


def test_a_tick_that_was_started_is_not_due_again() -> None:
    """Between two ticks there is nothing to do."""
    assert due(600, 600, Every(60), 659.9) is None


def test_a_run_1_8_seconds_late_still_runs_and_says_so() -> None:
    """APScheduler's default grace of a second would have dropped it."""
    run = due(0, 0, Every(3 * 86400), 3 * 86400 + 1.8)
    assert run is not None
    assert run.late_s == pytest.approx(1.8)


def test_a_run_five_minutes_late_still_runs_and_says_so() -> None:
    """However late, a tick is served."""
    run = due(0, 0, Every(3 * 86400), 3 * 86400 + 300)
    assert run is not None
    assert run.late_s == 300


def test_six_hours_away_make_one_run_that_covers_six_hours() -> None:
    """No traffic is left out, and nothing runs six times."""
    run = due(10 * HOUR, 10 * HOUR, Every(HOUR), 16 * HOUR + 7)
    assert run == Due(tick=16 * HOUR, start=10 * HOUR, end=16 * HOUR, late_s=7, skipped=5)


def test_after_a_failed_run_the_next_covers_its_time_too() -> None:
    """`covered` stays where the last success ended."""
    run = due(11 * HOUR, 10 * HOUR, Every(HOUR), 12 * HOUR)
    assert run == Due(tick=12 * HOUR, start=10 * HOUR, end=12 * HOUR, late_s=0, skipped=0)


def test_a_clock_set_back_does_not_stop_a_job_until_it_catches_up() -> None:
    """The run covers nothing, and the new time counts from there."""
    assert due(100 * HOUR, 100 * HOUR, Every(60), 50 * HOUR) == Due(
        tick=50 * HOUR, start=50 * HOUR, end=50 * HOUR, late_s=0, skipped=0
    )


@given(st.floats(0.5, 86400), st.lists(st.floats(0.01, 200_000), min_size=1, max_size=40), st.floats(0, 2e9))
def test_runs_cover_time_without_gap_or_overlap(seconds: float, pauses: list[float], start: float) -> None:
    """Whatever the pauses between two looks, each run begins where the last one ended."""
    last: Due | None = None
    now = start
    for pause in pauses:
        now += pause
        run = due(last.tick if last else None, last.end if last else None, Every(seconds), now)
        if last and run:
            assert run.start == last.end
            assert run.tick > last.tick
        last = run or last


@pytest.mark.parametrize(
    ("zone", "at", "first", "days"),
    [
        ("America/Los_Angeles", time(0, 0), date(2026, 3, 7), 5),
        ("America/Los_Angeles", time(2, 30), date(2026, 3, 7), 5),
        ("Europe/Berlin", time(2, 30), date(2026, 10, 23), 5),
        ("Europe/Berlin", time(0, 0), date(2026, 10, 23), 5),
        ("UTC", time(3, 0), date(2026, 10, 23), 5),
    ],
)
def test_a_daily_job_runs_once_on_each_calendar_day(zone: str, at: time, first: date, days: int) -> None:
    """Neither the lost hour of March nor the doubled one of October skips or repeats a day."""
    daily = Daily(at, ZoneInfo(zone))
    start = daily.tick(first)
    found = runs(daily, start, start + days * 86400 - 7200, 600)
    ran_on = [datetime.fromtimestamp(run.tick, UTC).astimezone(ZoneInfo(zone)).date().day for run in found]
    assert ran_on == [first.day + n for n in range(days)]


def test_the_day_of_25_hours_is_covered_whole() -> None:
    """Windows are cut in UTC: on that day the run covers 25 hours."""
    daily = Daily(time(0, 0), ZoneInfo("Europe/Berlin"))
    yesterday = daily.tick(date(2026, 10, 25))
    run = due(yesterday, yesterday, daily, daily.tick(date(2026, 10, 26)))
    assert run is not None
    assert (run.end - run.start) / HOUR == 25


def test_days_missed_become_one_run() -> None:
    """Three days away make one run over three days."""
    daily = Daily()
    run = due(0, 0, daily, 3 * 86400 + 60)
    assert run == Due(tick=3 * 86400, start=0, end=3 * 86400, late_s=60, skipped=2)
