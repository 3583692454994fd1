"""The smallest change of each kind that the passive layers would see in time, from what they have learnt.

A change of a size is set against the learnt null as the layer itself would set it, on the part of its traffic
that may vote, with luck against it: nine of ten such changes are seen. Nothing is simulated.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from math import ceil, log, sqrt
from typing import NamedTuple

import numpy as np

from resweep.detect.passive.compare import Outcome as Comparison
from resweep.detect.passive.evidence import LEAST_HITS, Null, Rise, log_ratio
from resweep.detect.passive.features import INDEX
from resweep.detect.passive.levels import WINDOWS, Levels, Reference, dead_zone, log_e, stream_count
from resweep.detect.passive.monitor import Monitor
from resweep.detect.passive.outcome import LEAST_CALLS, Measure, Track
from resweep.detect.passive.settings import DAY, PassiveSettings

QUARTER_DAYS = 91.3
AGAINST = 1.2816  # SD of bad luck that one change in ten exceeds
HORIZONS = (1, 3)  # days
STEP = 0.01
LEVELS = {"top": "top score", "tokens": "tokens per passage", "count": "passages returned"}
OUTCOMES: Mapping[Measure, str] = {
    "empty": "empty answers",
    "short": "short answers",
    "errors": "errors",
    "negative": "negative feedback",
}


class Volume(NamedTuple):
    """Votes that a stretch of traffic brings: questions repeated after 12 hours, questions that count for
    novelty, calls, and pieces of feedback."""

    repeated: float
    asked: float
    calls: float
    feedback: float


class Reach(NamedTuple):
    """One kind of change: the smallest size seen within 1 and 3 days, None where none is.

    `usual` is what holds without a change, in the same unit; for levels 0.
    """

    layer: str
    what: str
    unit: str
    usual: float
    within: Mapping[int, float | None]
    why: str = ""  # where nothing is seen within a day


def bound_per_quarter(settings: PassiveSettings) -> float:
    """Return how many false warnings and pages a quarter the budgets of the layers allow together."""
    budgets = (settings.budget_twins_days, settings.budget_levels_days, settings.budget_outcome_days)
    return sum(QUARTER_DAYS / days for days in budgets)


def reaches(monitor: Monitor, volumes: Mapping[int, Volume]) -> Iterator[Reach]:
    """Yield every kind of change with its smallest size; `volumes` holds the votes of each horizon."""
    yield _twins(monitor, volumes)
    yield from _levels(monitor.levels)
    yield _novelty(monitor, volumes)
    for measure, what in OUTCOMES.items():
        track = monitor.outcome.tracks[measure]
        if track.pooled.votes >= LEAST_CALLS or measure != "negative":
            yield _outcome(track, measure, what, volumes)


def least_share(rise: Rise, null: Null, votes: float, gap_s: float) -> float | None:
    """Return the smallest share that `votes` votes tell from the null in nine of ten cases, or None.

    `gap_s` is the time between possible onsets: each has that part of the budget.
    """
    threshold = log(rise.budget_days * DAY / max(gap_s, 1.0))
    least = max(rise.least, rise.relative * null.mean)
    n = int(votes)
    for step in range(ceil((null.mean + least / 2) / STEP), round(1 / STEP) + 1):
        share = step * STEP
        hits = int(n * share - AGAINST * sqrt(n * share * (1 - share)))
        if hits >= LEAST_HITS and log_ratio(n, hits, null, 1.0, least, rise.steps) >= threshold:
            return round(share, 2)
    return None


def _twins(monitor: Monitor, volumes: Mapping[int, Volume]) -> Reach:
    twins = monitor.twins
    rise, null = twins.rises[Comparison.CHANGED], twins.churn[Comparison.CHANGED].null()
    votes = {days: volume.repeated for days, volume in volumes.items()}
    within = {
        d: least_share(rise, null, n, _gap(rise, n / d)) if twins.armed_from else None
        for d, n in votes.items()
    }
    why = "" if within[1] else f"{votes[1]:.0f} questions a day are repeated after 12 hours"
    return Reach("twins", "share of repeated questions whose answer changes", "share", null.mean, within, why)


def _gap(rise: Rise, a_day: float) -> float:
    """Seconds between two possible onsets at so many votes a day."""
    return min(DAY, DAY * rise.every / max(a_day, 1.0))


def _novelty(monitor: Monitor, volumes: Mapping[int, Volume]) -> Reach:
    rise, null = monitor.twins.rise_novelty, monitor.twins.novelty.null()
    votes = {days: volume.asked for days, volume in volumes.items()}
    known = bool(monitor.twins.novelty.past)
    within = {d: least_share(rise, null, n, _gap(rise, n / d)) if known else None for d, n in votes.items()}
    why = "" if within[1] else "too few recorded questions, or nearly all of them are new already"
    return Reach("twins", "share of questions never asked before", "share", null.mean, within, why)


def _outcome(track: Track, measure: Measure, what: str, volumes: Mapping[int, Volume]) -> Reach:
    null = track.pooled.null()
    votes = {d: v.feedback if measure == "negative" else v.calls for d, v in volumes.items()}
    ready = track.pooled.votes >= LEAST_CALLS
    within = {d: least_share(track.rise, null, n, 900.0) if ready else None for d, n in votes.items()}
    why = "" if within[1] else f"{votes[1]:.0f} calls a day, {track.pooled.votes} learnt from"
    return Reach("outcome", f"share of {what}", "share", null.mean, within, why)


def _levels(levels: Levels) -> Iterator[Reach]:
    reference, blocks = levels.reference or levels.frozen, levels.blocks[-96:]
    if reference is None or len(blocks) < 2:
        within = dict.fromkeys(HORIZONS)
        why = f"{len(blocks)} blocks of questions so far; 12 and a day are needed"
        yield Reach("levels", "shift of the top score", "SD", 0.0, within, why)
        return
    duration = (blocks[-1].ts - blocks[0].ts) / (len(blocks) - 1)
    n = float(np.mean([block.n for block in blocks]))
    for name, what in LEVELS.items():
        if reference.shown[INDEX[name]]:
            yield _shift(f"shift of the {what}", name, "SD", reference, levels, (duration, n))
    if reference.stage == 2:
        shares = reference.beta[0, INDEX["group_0"] :]
        largest = f"group_{int(np.argmax(shares))}"
        yield _shift(
            "share of the largest group of questions", largest, "share", reference, levels, (duration, n)
        )


def _shift(
    what: str, name: str, unit: str, reference: Reference, levels: Levels, pace: tuple[float, float]
) -> Reach:
    column = INDEX[name]
    scale = 1.0 if unit == "share" else 1 / sqrt(float(reference.within[column]))
    usual = float(reference.beta[0, column]) if unit == "share" else 0.0
    within: dict[int, float | None] = {}
    for days in HORIZONS:
        least = least_shift(reference, column, levels, pace, days * DAY)
        within[days] = None if least is None else round(usual + least * scale, 3)
    why = (
        ""
        if within[1]
        else (f"blocks of {pace[1]:.0f} questions take {pace[0] / 3600:.1f} hours each: too few in a day")
    )
    return Reach("levels", what, unit, usual, within, why)


def least_shift(
    reference: Reference, column: int, levels: Levels, pace: tuple[float, float], horizon_s: float
) -> float | None:
    """Return the smallest lasting shift of one stream found within a time in nine of ten cases, or None.

    In the stream's own unit. `pace`: seconds a block, queries a block.
    """
    duration, n = pace
    weight = 1 / float(reference.between[column] + reference.within[column] / n)
    dead = float(dead_zone(reference)[column])
    grid = np.geomspace(0.5, 1000.0, 500)
    found: list[float] = []
    for i, length in enumerate(WINDOWS):
        # A change falls into the middle of a block: one more must pass.
        if length < 2 or (length + 1) * duration > horizon_s:
            continue
        onsets = length - WINDOWS[i - 1]
        threshold = log(levels.budget_days * DAY / (onsets * duration)) + log(stream_count(levels))
        freedom = float(reference.freedom[i])
        over = np.flatnonzero(log_e(grid, np.array(freedom)) >= threshold)
        if len(over):
            t = float(grid[over[0]]) * sqrt(1 + 1 / freedom) + AGAINST
            found.append(dead + t * sqrt(float(reference.spread[i, column]) / (length * weight)))
    return min(found, default=None)
