"""The plan of an hour: how much of the daily budget it may use, and the rates that follow from its counts.

A day's budget is spread over its hours. What an hour may use (`shares`) is fixed when its first plan is
published, from the plans before it; its rates follow from the counts of its own events, so they fall while
the hour's traffic exceeds the forecast, never because of what was drawn. Where nothing is expected of the
rest of the day, an hour may use half of what is left: a new pipeline has cases to review at once, and what is
rare is not missed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import msgspec

from resweep.domain.sampling import HOUR, Plan
from resweep.domain.snapshot import STRATA
from resweep.label.settings import LabelSettings

DAY = 86_400
HISTORY = 24  # hours of traffic that a forecast is made from
COLD = 0.5  # of what is left of the day an hour may use where nothing else is expected
STEP = 2**0.25  # counts are rounded up to a power of it, so that a growing hour has few plans


def hour_of(ts: float) -> float:
    """Return the beginning of the hour (UTC) of a unix time."""
    return ts - ts % HOUR


def opened(pipeline: str, since: float, plans: Iterable[Plan], settings: LabelSettings) -> Plan:
    """Return the first plan of an hour: its shares and its forecast, no counts yet.

    `plans` are the other plans of the pipeline, those of the last day at least.
    """
    others = [plan for plan in plans if plan.since != since]
    today = [plan for plan in others if plan.since // DAY == since // DAY]
    before = sorted((plan for plan in others if plan.since < since), key=lambda plan: plan.since)[-HISTORY:]
    left = {s: max(0.0, settings.daily.get(s, 0.0) - spent(today, s)) for s in STRATA}
    hours = DAY // HOUR - int(since % DAY) // HOUR
    forecast = {s: _mean(before, s) for s in STRATA}
    return Plan(
        pipeline=pipeline,
        seed=settings.seed,
        since=since,
        until=since + HOUR,
        shares={s: share(left[s], forecast[s], hours) for s in STRATA},
        forecast=forecast,
    )


def share(left: float, forecast: float, hours: int) -> float:
    """Return what an hour may use of the budget that is left of a day of so many hours.

    An even part; more, up to half, where the hours to come are not expected to need it: what is rare is not
    missed for the sake of hours that bring none.
    """
    if hours <= 1:
        return left
    return max(left / hours, min(left * COLD, left - forecast * (hours - 1)))


def counted(plan: Plan, counts: Mapping[str, float]) -> Plan:
    """Return an hour's plan with the rates that its counts allow.

    A rate is share / max(count rounded up, forecast): it never rises as counts grow.
    """
    rates = {s: rate(plan.shares.get(s, 0.0), counts.get(s, 0.0), plan.forecast.get(s, 0.0)) for s in STRATA}
    return msgspec.structs.replace(plan, counts=dict(counts), rates=rates)


def rate(share: float, count: float, forecast: float) -> float:
    """Return the rate at which `share` of so many events are taken; at most 1."""
    expected = max(rounded_up(count), forecast)
    return min(1.0, share / expected) if expected > share else 1.0 if share > 0 else 0.0


def rounded_up(count: float) -> float:
    """Return the least power of `STEP` that is not below a count."""
    size = 1.0
    while size < count:
        size *= STEP
    return size if count > 0 else 0.0


def spent(plans: Sequence[Plan], stratum: str) -> float:
    """Return the expected number of events that plans draw for a stratum."""
    return sum(plan.rates.get(stratum, 0.0) * plan.counts.get(stratum, 0.0) for plan in plans)


def _mean(plans: Sequence[Plan], stratum: str) -> float:
    return sum(plan.counts.get(stratum, 0.0) for plan in plans) / len(plans) if plans else 0.0
