"""The passive engine of one pipeline: events or merged summaries in, flag changes and layer states out."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from resweep.detect.passive import state
from resweep.detect.passive.attribution import Cause
from resweep.detect.passive.changes import FlagChange, LayerState
from resweep.detect.passive.monitor import Monitor
from resweep.detect.passive.pinned import Distance
from resweep.detect.passive.settings import PassiveSettings
from resweep.detect.passive.summary import Summary
from resweep.detect.passive.traces import TwinTraces
from resweep.domain.event import Feedback, RetrievalEvent, parse_event_id
from resweep.domain.sample import Hashes

MINUTE = 60


class PassiveEngine:
    """Feed it one pipeline's events in time order (`observe`), or its merged minutes (`absorb`).

    `salt` is the pipeline's own (at most 64 bytes); query keys must be made with the same one. `basis_of`
    gives the basis of a config. Minutes close when a later one begins, or by `advance`.
    """

    def __init__(
        self,
        pipeline: str,
        settings: PassiveSettings | None = None,
        *,
        salt: bytes = b"resweep",
        basis_of: Callable[[str], str] = str,
    ) -> None:
        self.pipeline = pipeline
        self.settings = settings or PassiveSettings()
        self.monitors: dict[str, Monitor] = {}
        self._basis_of = basis_of
        self._salt = salt
        self._hashes = Hashes()
        self._minute = -1
        self._open: dict[str, Summary] = {}

    def observe(self, n: int, event: RetrievalEvent) -> None:
        """Take event number `n` (-1 in a live agent)."""
        minute = int(event.ts // MINUTE)
        if minute > self._minute:
            self._close()
            self._minute = minute
        summary = self._open.get(event.config)
        if summary is None:
            summary = self._summary(event.config)
        summary.add(event, n, self._salt, self._hashes)

    def feedback(self, feedback: Feedback, config: str | None = None) -> None:
        """Count one piece of feedback for the config its event id names, or for `config`."""
        parts = parse_event_id(feedback.event_id)
        of = config or (parts.config if parts is not None else None)
        if of is None:
            return
        summary = self._open.get(of) or self._summary(of)
        summary.count("feedback")
        if feedback.kind != "positive":
            summary.count("negative")

    def absorb(self, summaries: Iterable[Summary]) -> None:
        """Take the summaries of one closed period, from any number of replicas in any order."""
        merged: dict[str, Summary] = {}
        for summary in summaries:
            mine = merged.get(summary.config)
            if mine is None:
                mine = merged[summary.config] = Summary(summary.config, summary.start, summary.sample.size)
            mine.merge(summary)
        for config in sorted(merged):
            self._monitor(config).consume(merged[config])

    def advance(self, ts: float) -> None:
        """Close every minute and block that has ended by unix time `ts`."""
        if int(ts // MINUTE) > self._minute:
            self._close()
        for monitor in self.monitors.values():
            monitor.advance(ts)

    def finish(self) -> None:
        """End a recording: close the open minute and judge what it completed."""
        self._close()
        for monitor in self.monitors.values():
            monitor.finish()

    def drain(self) -> list[FlagChange]:
        """Return what opened, sharpened or cleared since the last call."""
        changes: list[FlagChange] = []
        for monitor in self.monitors.values():
            changes += monitor.book.changes
            monitor.book.changes = []
        return changes

    def status(self) -> list[LayerState]:
        """Return the state of every layer of every config."""
        return [state for monitor in self.monitors.values() for state in monitor.states()]

    def distances(self) -> dict[str, Distance]:
        """Return how far each config has come from what it was when its depth was chosen, where known."""
        found = {config: monitor.pinned.distance() for config, monitor in self.monitors.items()}
        return {config: distance for config, distance in found.items() if distance is not None}

    def before_after(self, config: str) -> tuple[TwinTraces, Cause] | None:
        """Return what the declared change to `config` did to repeated questions; None before 25 of them."""
        monitor = self.monitors.get(config)
        return None if monitor is None else monitor.before_after()

    def accept(self, config: str) -> None:
        """The present system of a config is the right one (after a sweep): close its flags, learn anew."""
        if config in self.monitors:
            self.monitors[config].settle()

    def dump(self) -> bytes:
        """Return the state as bytes; the minute that is still open stays out."""
        return state.dump(self.monitors)

    def restore(self, data: bytes) -> None:
        """Take up a state that `dump` wrote; raise `InputError` for anything else."""
        self.monitors = state.load(data)
        for monitor in self.monitors.values():
            monitor.take_calendar(self.settings)

    def _summary(self, config: str) -> Summary:
        start = float(max(0, self._minute) * MINUTE)
        self._open[config] = summary = Summary(config, start, self.settings.sample_size)
        return summary

    def _monitor(self, config: str) -> Monitor:
        found = self.monitors.get(config)
        if found is None:
            found = Monitor(self.pipeline, config, self._basis_of(config), self.settings)
            found.parent = max(self.monitors.values(), key=lambda m: m.ts, default=None)
            found.parent_config = "" if found.parent is None else found.parent.book.config
            self.monitors[config] = found
        return found

    def _close(self) -> None:
        if self._open:
            closing, self._open = self._open, {}
            for config in sorted(closing):
                self._monitor(config).consume(closing[config])
