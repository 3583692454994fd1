"""The passive layers in a live agent: minutes from every recorder, closed in order, told to the engines.

Windows bring the counts of a minute and panels its sampled answers; both come in batches, from any number of
writers, in any order. A minute is closed once nothing has come for it for a while, and never before the one
that precedes it.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterable, Mapping

from resweep.detect.passive.changes import LayerState
from resweep.detect.passive.engine import PassiveEngine
from resweep.detect.passive.pinned import Distance
from resweep.detect.passive.settings import PassiveSettings
from resweep.detect.passive.summary import Summary
from resweep.domain.batch import Batch, ConfigRecord
from resweep.domain.clock import Clock
from resweep.domain.errors import InputError
from resweep.domain.event import Feedback, parse_event_id
from resweep.domain.sample import SAMPLE_SIZE
from resweep.domain.verdict import FlagChange, TunedK
from resweep.domain.window import MINUTE, Window
from resweep.schedule.due import Due
from resweep.store.names import label
from resweep.store.sql import SqlStore

log = logging.getLogger("resweep.schedule")

GRACE_S = 20.0  # without an arrival after which a minute that has ended is closed
SAVE_EVERY_S = 60.0
STATE = "passive:"
EVIDENCE = "resweep_drift_evidence"
DISTANCE = "resweep_reference_distance"
# a summary's count, from the counts of a window
COUNTS: Mapping[str, tuple[str, ...]] = {
    "events": ("retrievals",),
    "ok": ("ok",),
    "empty": ("empty_zero", "empty_none"),
    "short": ("short",),
    "errors": ("errors",),
    "partial": ("partial", "truncated"),
}


class _Minute:
    """What has come for one minute of one pipeline, and when the last of it came (unix s)."""

    def __init__(self) -> None:
        self.summaries: dict[str, Summary] = {}
        self.arrived = 0.0

    def summary(self, config: str, minute: int) -> Summary:
        found = self.summaries.get(config)
        if found is None:
            found = self.summaries[config] = Summary(config, float(minute * MINUTE), SAMPLE_SIZE)
        return found


class PassiveDesk:
    """One engine a pipeline. All methods may be called from any thread.

    `late` counts minutes that came after theirs was closed and could not be judged any more.
    """

    def __init__(self, store: SqlStore, clock: Clock, settings: PassiveSettings | None = None) -> None:
        self._store = store
        self._settings = settings or PassiveSettings()
        self._clock = clock
        self._lock = threading.RLock()
        self._engines: dict[str, PassiveEngine] = {}
        self._bases: dict[str, str] = {}
        self._minutes: dict[str, dict[int, _Minute]] = {}
        self._closed: dict[str, int] = {}
        self._tuned_at: dict[tuple[str, str], float] = {}
        self._saved_at = 0.0
        self._dirty: set[str] = set()
        self.late = 0

    def open(self) -> None:
        """Take up the saved states; one that cannot be read is learnt anew."""
        with self._lock:
            self._tuned_at = {(t.pipeline, t.basis): t.tuned_at for t in self._store.tuned()}
            for pipeline in self._store.pipelines():
                self._learn(self._store.configs(pipeline))
                saved = self._store.state(STATE + pipeline)
                if saved is None:
                    continue
                try:
                    self._engine(pipeline).restore(saved)
                except InputError as error:
                    log.warning("what was learnt of %s is learnt anew: %s", pipeline, error)

    def heard(self, batch: Batch) -> None:
        """Take the windows, panels and feedback of a batch that was applied."""
        with self._lock:
            now = self._clock.now()
            self._learn(batch.configs)
            for window in batch.windows:
                self._window(window, now)
            for panel in batch.panels:
                minute = self._minute(label(panel.pipeline), panel.minute, now)
                if minute is not None:
                    sample = minute.summary(panel.config, panel.minute).sample
                    for record in panel.records:
                        sample.add(record)
            for feedback in batch.feedback:
                self._feedback(feedback, now)

    def sit(self, run: Due | None = None) -> list[FlagChange]:
        """Close what can be closed; return what opened, sharpened or cleared."""
        with self._lock:
            now = self._clock.now()
            self._accepted(self._store.tuned())
            changes: list[FlagChange] = []
            for pipeline in sorted(self._minutes):
                self._close(pipeline, now)
            for engine in self._engines.values():
                changes += engine.drain()
            if now - self._saved_at >= SAVE_EVERY_S:
                self.save()
            return changes

    def save(self) -> None:
        """Save what was learnt, and show how close to an alarm each layer is."""
        with self._lock:
            self._saved_at = self._clock.now()
            for pipeline in sorted(self._dirty):
                self._store.save_state(STATE + pipeline, self._engines[pipeline].dump())
            self._dirty.clear()
            gauges: dict[tuple[str, ...], float] = {
                (pipeline, state.config, state.layer): state.evidence
                for pipeline, states in self.layers().items()
                for state in states
            }
            if gauges:
                self._store.set_gauges(EVIDENCE, gauges)
            far: dict[tuple[str, ...], float] = {}
            for pipeline, found in self.distances().items():
                for config, distance in found.items():
                    far[pipeline, config, "levels"], far[pipeline, config, "mix"] = distance.sd, distance.mix
            if far:
                self._store.set_gauges(DISTANCE, far)

    def layers(self) -> dict[str, list[LayerState]]:
        """Return the state of every layer, by pipeline."""
        with self._lock:
            return {name: engine.status() for name, engine in sorted(self._engines.items())}

    def distances(self) -> dict[str, dict[str, Distance]]:
        """Return how far each config has come since its depth was chosen, by pipeline and config."""
        with self._lock:
            return {name: engine.distances() for name, engine in sorted(self._engines.items())}

    def _learn(self, configs: Iterable[ConfigRecord]) -> None:
        for record in configs:
            self._bases[record.config] = record.basis

    def _window(self, window: Window, now: float) -> None:
        minute = self._minute(label(window.pipeline), window.minute, now)
        if minute is None:
            return
        summary = minute.summary(window.config, window.minute)
        for name, sources in COUNTS.items():
            amount = sum(window.get(source) for source in sources)
            if amount:
                summary.count(name, amount)

    def _feedback(self, feedback: Feedback, now: float) -> None:
        """Count feedback where it arrives: it may be days late, and is news all the same."""
        parts = parse_event_id(feedback.event_id)
        if parts is None or parts.config not in self._bases:
            return
        for pipeline, engine in self._engines.items():
            if parts.config not in engine.monitors:
                continue
            number = max(int(now // MINUTE), self._closed.get(pipeline, -1) + 1)
            minute = self._minute(pipeline, number, now)
            if minute is not None:
                summary = minute.summary(parts.config, number)
                summary.count("feedback")
                summary.count("negative", feedback.kind != "positive")

    def _minute(self, pipeline: str, number: int, now: float) -> _Minute | None:
        if number <= self._closed.get(pipeline, -1):
            self.late += 1
            return None
        minute = self._minutes.setdefault(pipeline, {}).setdefault(number, _Minute())
        minute.arrived = now
        return minute

    def _close(self, pipeline: str, now: float) -> None:
        waiting = self._minutes[pipeline]
        for number in sorted(waiting):
            minute = waiting[number]
            if (number + 1) * MINUTE > now or now - minute.arrived < GRACE_S:
                return
            del waiting[number]
            self._closed[pipeline] = number
            self._dirty.add(pipeline)
            self._engine(pipeline).absorb(minute.summaries.values())
            self._engine(pipeline).advance(float((number + 1) * MINUTE))

    def _accepted(self, tuned: Iterable[TunedK]) -> None:
        """Close a config's flags where a depth was accepted since: its present system is the right one."""
        for record in tuned:
            key = (record.pipeline, record.basis)
            before = self._tuned_at.get(key, 0.0)
            self._tuned_at[key] = record.tuned_at
            engine = self._engines.get(record.pipeline)
            if record.tuned_at <= before or engine is None:
                continue
            for config, monitor in engine.monitors.items():
                if self._bases.get(config) == record.basis and monitor.book.open:
                    engine.accept(config)
                    self._dirty.add(record.pipeline)

    def _engine(self, pipeline: str) -> PassiveEngine:
        found = self._engines.get(pipeline)
        if found is None:
            found = PassiveEngine(
                pipeline, self._settings, basis_of=lambda config: self._bases.get(config, config)
            )
            self._engines[pipeline] = found
        return found
