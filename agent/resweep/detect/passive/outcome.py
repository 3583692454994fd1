"""Outcome: did retrieval come to nothing more often than it used to?

Empties, shorts, errors and negative feedback as shares of calls. Weekdays and weekends have their own past
once a fortnight is known; before that a weekend never seen is not judged. Evidence: `evidence.Rise`.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

import msgspec

from resweep.detect.passive.evidence import DAY, Onset, Rise, Shares
from resweep.detect.passive.settings import PassiveSettings

Measure = Literal["empty", "short", "errors", "negative"]
MEASURES: tuple[Measure, ...] = ("empty", "short", "errors", "negative")
LEAST = {"empty": 0.03, "short": 0.10, "errors": 0.03, "negative": 0.10}
STEPS = (
    0.03,
    0.06,
    0.09,
    0.14,
    0.25,
    0.5,
    0.9,
)  # of the way from the null's mean to 1
LEAST_CALLS = 200  # past calls before anything is judged


class OutcomeAlarm(NamedTuple):
    """A measure that rose: calls and hits since the onset, the share expected, log evidence."""

    measure: Measure
    onset_ts: float
    onset_number: int
    n: int
    hits: int
    expected: float
    log_evidence: float


class Track(msgspec.Struct):
    """One measure: its running evidence, and its past on weekdays, weekends and together."""

    rise: Rise
    weekday: Shares
    weekend: Shares
    pooled: Shares
    on_weekend: bool = False


class Outcome:
    """The outcome layer of one (pipeline, config)."""

    def __init__(self, settings: PassiveSettings) -> None:
        self.started: float | None = None
        self.holidays = settings.holidays
        self.calm: dict[Measure, float] = {}  # calls at the usual share since an alarm, less hits beyond it
        self.tracks = {m: _track(settings, m) for m in MEASURES}

    def add(self, ts: float, number: int, counts: dict[str, int]) -> OutcomeAlarm | None:
        """Count one period's calls; return an alarm where it completes one."""
        if self.started is None:
            self.started = ts
        alarm = None
        for measure, track in self.tracks.items():
            n = counts.get(
                "feedback" if measure == "negative" else "events" if measure == "errors" else "ok", 0
            )
            if n:
                alarm = self._add(measure, track, ts, number, n, counts.get(measure, 0)) or alarm
        return alarm

    def _add(
        self, measure: Measure, track: Track, ts: float, number: int, n: int, hits: int
    ) -> OutcomeAlarm | None:
        assert self.started is not None
        weekend = (int(ts // DAY) + 3) % 7 >= 5 or int(ts // DAY) in self.holidays
        fortnight = ts - self.started >= 14 * DAY
        own = track.weekend if weekend else track.weekday
        shares = own if fortnight and own.votes >= LEAST_CALLS else track.pooled
        if measure in self.calm:
            self._note_calm(measure, n, hits, shares.null().mean)
            return None
        ready = ts - self.started >= DAY and shares.votes >= LEAST_CALLS and (fortnight or not weekend)
        if weekend != track.on_weekend:  # another past: evidence starts afresh, with a day's budget to spend
            track.rise.reset()
            track.rise.since = ts - DAY
            track.on_weekend = weekend
        if ready:
            track.rise.count(ts, number, n, hits)
            null = shares.null()
            if hits and track.rise.weigh(null) >= 0:
                best = track.rise.best(null)
                assert best is not None
                return self._alarm(measure, track, best, null.mean)
        for past in (own, track.pooled):
            past.count(ts, n, hits)
        return None

    def _note_calm(self, measure: Measure, n: int, hits: int, usual: float) -> None:
        """Calls count towards calm while the share is under twice the usual; each hit beyond sets it back."""
        allowed = max(0.02, 2 * usual)
        self.calm[measure] = max(0.0, self.calm[measure] + n - hits / allowed)

    def _alarm(self, measure: Measure, track: Track, best: Onset, expected: float) -> OutcomeAlarm:
        found = OutcomeAlarm(measure, best.ts, best.number, best.n, best.hits, expected, track.rise.log_m)
        self.calm[measure] = 0.0
        track.rise.reset()
        for past in (track.weekday, track.weekend, track.pooled):
            past.forget()
        return found

    @property
    def ready(self) -> bool:
        """Whether anything is judged yet."""
        return any(track.pooled.votes >= LEAST_CALLS for track in self.tracks.values())

    @property
    def log_m(self) -> float:
        """The highest log evidence over threshold of any measure."""
        return max(track.rise.log_m for track in self.tracks.values())

    @property
    def peak(self) -> float:
        """Its highest value of the last 28 days."""
        return max((p for track in self.tracks.values() for p in track.rise.peaks.values()), default=-99.0)

    @property
    def recovered(self) -> bool:
        """Whether every measure that had risen is back at what it was."""
        return all(calm > LEAST_CALLS for calm in self.calm.values()) and bool(self.calm)

    def settle(self) -> None:
        """The drop is over or accepted."""
        self.calm.clear()


def _track(settings: PassiveSettings, measure: Measure) -> Track:
    budget = settings.budget_outcome_days * len(MEASURES)  # one budget, shared evenly
    rise = Rise(budget, LEAST[measure], steps=STEPS, every=1, relative=1.0)
    # Of 112 periods of mere chance the widest lies 2 ln 112 = 9.4 sampling variances out, and a little more.
    # A spread that chance explains is none: a weekend of 250 calls has no power to lose.
    weekday, weekend, pooled = (
        Shares(prior=0.02, spread=0.2, floor=0.002, noise=11.0, sure=1.0) for _ in range(3)
    )
    return Track(rise, weekday, weekend, pooled)
