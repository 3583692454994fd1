"""A user's own recorded traffic, replayed for `resweep doctor --traffic`: how close its ordinary days come to
an alarm, how often a false one is to be expected, and the smallest change that would be seen."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from statistics import median
from typing import NamedTuple

from scipy import stats

from resweep.detect.passive.changes import LayerState
from resweep.detect.passive.engine import PassiveEngine
from resweep.detect.passive.reach import HORIZONS, QUARTER_DAYS, Reach, Volume, bound_per_quarter, reaches
from resweep.detect.passive.settings import DAY, HOUR, PassiveSettings
from resweep.detect.settings import DetectSettings
from resweep.domain.event import Feedback, RetrievalEvent, parse_event_id
from resweep.domain.invalidation import InvalidationRules
from resweep.domain.verdict import Flag
from resweep.ingest.jsonlines import EventLine, Item
from resweep.serve.replay import ReplayResult, replay

TRAFFIC_SCHEMA = "resweep.traffic/1"
PASSIVE = ("twins", "levels", "outcome")
SURE = 0.95


class Tally:
    """What one config's traffic brings by the day: questions repeated, questions asked, calls, feedback."""

    def __init__(self) -> None:
        self.first, self.last = 0.0, 0.0
        self.calls: Counter[int] = Counter()
        self.feedback: Counter[int] = Counter()
        self.asked: Counter[int] = Counter()
        self.repeated: dict[int, Counter[int]] = {days: Counter() for days in HORIZONS}
        self._seen: dict[int, float] = {}
        self._voted: dict[int, dict[int, int]] = {days: {} for days in HORIZONS}
        self._hour: tuple[int, set[int]] = (-1, set())

    def add(self, event: RetrievalEvent) -> None:
        """Count one event; probes are not traffic."""
        if event.probe:
            return
        self.first = self.first or event.ts
        self.last = max(self.last, event.ts)
        self.calls[self._day(event.ts)] += 1
        if event.query_key is not None and event.error is None:
            self._question(event.query_key, event.ts)

    def _day(self, ts: float) -> int:
        """Days are counted from the first event on, so that the first one is a whole one."""
        return int((ts - self.first) // DAY)

    def _question(self, key: int, ts: float) -> None:
        """A question votes once an hour, on repeats once a horizon, as the layers count."""
        if int(ts // HOUR) != self._hour[0]:
            self._hour = (int(ts // HOUR), set())
        if key in self._hour[1]:
            return
        self._hour[1].add(key)
        first = self._seen.setdefault(key, ts)
        old = first <= ts - DAY / 2
        if old or first == ts:
            self.asked[self._day(ts)] += 1
        for days, voted in self._voted.items():
            span = self._day(ts) // days
            if old and voted.get(key) != span:
                voted[key] = span
                self.repeated[days][span] += 1

    @property
    def days(self) -> float:
        """Length of the recording in days."""
        return (self.last - self.first) / DAY

    def volumes(self) -> dict[int, Volume]:
        """Return the votes of each horizon on a middling stretch of this traffic."""
        whole = int(self.days)
        found = {}
        for days in HORIZONS:
            repeated = _middling(self.repeated[days], whole // days)
            asked, calls, feedback = (
                days * _middling(counts, whole) for counts in (self.asked, self.calls, self.feedback)
            )
            found[days] = Volume(repeated, asked, calls, feedback)
        return found


def _middling(counts: Counter[int], stretches: int) -> float:
    """The median of whole stretches, the first left out where another is there: nothing repeats in it yet."""
    values = [counts[i] for i in range(min(1, max(0, stretches - 1)), stretches)]
    return float(median(values)) if values else float(sum(counts.values()))


class System(NamedTuple):
    """One config's traffic: its size, its layers, what they would see, what they said."""

    pipeline: str
    config: str
    events: int
    days: float
    repeats: float  # share of calls whose question is asked again after 12 hours
    layers: list[LayerState]
    reaches: list[Reach]
    flags: list[Flag]


class Traffic(NamedTuple):
    """What a recording says of itself."""

    events: int
    bad_lines: int
    systems: list[System]
    bound: float  # false warnings and pages a quarter that the budgets allow

    def to_json(self) -> dict[str, object]:
        """Return the `resweep.traffic/1` object."""
        return {
            "schema": TRAFFIC_SCHEMA,
            "events": self.events,
            "bad_lines": self.bad_lines,
            "false_alarms_allowed_per_quarter": round(self.bound, 2),
            "systems": [_system_object(system) for system in self.systems],
        }


def _system_object(system: System) -> dict[str, object]:
    warned = len(loud(system.flags))
    return {
        "pipeline": system.pipeline,
        "config": system.config,
        "events": system.events,
        "days": round(system.days, 2),
        "repeated_share": round(system.repeats, 3),
        "alarms": {"warned": warned, "per_quarter_at_most": at_most_per_quarter(warned, system.days)},
        "layers": [
            {
                "layer": state.layer,
                "state": state.state,
                "peak": None if state.peak < -90 else state.peak,
                "threshold": 0.0,
                "note": state.note,
            }
            for state in system.layers
        ],
        "smallest": [_reach_object(one) for one in system.reaches],
        "flags": [
            {"reason": f.reason, "severity": f.severity, "opened_ts": f.opened_ts, "message": f.message}
            for f in system.flags
        ],
    }


def _reach_object(one: Reach) -> dict[str, object]:
    within = {f"{days}d": size for days, size in one.within.items()}
    told = {"layer": one.layer, "what": one.what, "unit": one.unit, "usual": round(one.usual, 4)}
    return {**told, "within": within, "why": one.why}


def loud(flags: Iterable[Flag]) -> list[Flag]:
    """Return the flags that warn or page."""
    return [flag for flag in flags if flag.severity != "notice"]


def at_most_per_quarter(count: int, days: float) -> float | None:
    """Return the rate a quarter that `count` alarms in `days` exclude being exceeded, with 95 %.

    Poisson, one-sided; None for a recording of no length.
    """
    if days <= 0:
        return None
    return round(float(stats.chi2.ppf(SURE, 2 * count + 2)) / 2 * QUARTER_DAYS / days, 2)


def traffic(
    paths: Iterable[Path],
    *,
    settings: DetectSettings,
    rules: InvalidationRules,
    passive: PassiveSettings | None = None,
) -> Traffic:
    """Replay files of `resweep.event/1` and say what the passive layers make of them.

    Raises InputError for a file that cannot be opened, and when not one line could be used.
    """
    tallies: dict[tuple[str, str], Tally] = {}
    engines: dict[str, PassiveEngine] = {}

    def hear(item: Item) -> None:
        if isinstance(item, EventLine):
            key = (item.event.pipeline, item.event.config)
            tallies.setdefault(key, Tally()).add(item.event)
        elif isinstance(item, Feedback):
            _feedback(tallies, item)

    result = replay(paths, settings=settings, rules=rules, hear=hear, engines=engines)
    bound = bound_per_quarter(passive or PassiveSettings())
    systems = list(_systems(tallies, engines, result))
    return Traffic(result.events, result.bad_lines, systems, bound)


def _feedback(tallies: Mapping[tuple[str, str], Tally], item: Feedback) -> None:
    parts = parse_event_id(item.event_id)
    for (_, config), tally in tallies.items():
        if parts is not None and parts.config == config:
            tally.feedback[int((tally.last - tally.first) // DAY)] += 1


def _systems(
    tallies: Mapping[tuple[str, str], Tally], engines: Mapping[str, PassiveEngine], result: ReplayResult
) -> Iterator[System]:
    for (pipeline, config), tally in sorted(tallies.items()):
        engine = engines[pipeline]
        monitor = engine.monitors.get(config)
        states = [state for state in engine.status() if state.config == config]
        calls = sum(tally.calls.values())
        yield System(
            pipeline,
            config,
            calls,
            tally.days,
            sum(tally.repeated[1].values()) / max(1, calls),
            states,
            [] if monitor is None else list(reaches(monitor, tally.volumes())),
            [f for f in result.flags if (f.pipeline, f.config) == (pipeline, config) and f.layer in PASSIVE],
        )
