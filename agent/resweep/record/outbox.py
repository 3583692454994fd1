"""From pending windows, samples and feedback to numbered batches, and from those into the sink.

At most one set of batches is under way. Until it is taken, new windows merge into the pending ones, so that
an agent that is away costs one window a minute and config, not a queue.
"""

from __future__ import annotations

import logging
import uuid
from collections import Counter
from collections.abc import Iterable
from time import monotonic

from resweep.domain.batch import Batch, ConfigRecord, Panel
from resweep.domain.event import Feedback, RetrievalEvent
from resweep.domain.ports import Sink
from resweep.domain.window import Window

WINDOWS_MAX = 1024  # pending windows; beyond it the oldest go
SAMPLES_MAX = 500  # pending sampled events
PANELS_MAX = 64  # pending minutes of answers to compare
FEEDBACK_MAX = 10_000
BATCH_EVENTS = 50  # sampled events of one batch: below an intake's limit even with texts
ANNOUNCE_S = 600.0  # after which configs are said again, in case the batch that said them was given up
WARN_S = 60.0
_BACKOFF_S = (1.0, 2.0, 5.0, 15.0, 30.0)
_log = logging.getLogger("resweep")

WindowKey = tuple[str, str, int]
Loss = tuple[str, str, str, int]  # pipeline, config, reason, records


class Outbox:
    """What waits for one sink. One thread at a time may use it; `up` is whether the last write was taken."""

    def __init__(self, sink: Sink) -> None:
        self.sink = sink
        self.writer = uuid.uuid4().hex
        self.up = True
        self.windows: dict[WindowKey, Window] = {}
        self.samples: list[RetrievalEvent] = []
        self.panels: list[Panel] = []
        self.feedback: list[Feedback] = []
        self._seq = 0
        self._under_way: list[Batch] = []
        self._announced_at = -ANNOUNCE_S
        self._failures = 0
        self._rest_until = 0.0
        self._warned_at = -WARN_S

    def add(
        self, windows: Iterable[Window], samples: Iterable[RetrievalEvent], panels: Iterable[Panel] = ()
    ) -> list[Loss]:
        """Take windows, samples and panels; return what had to go for want of room."""
        for window in windows:
            key = (window.pipeline, window.config, window.minute)
            if key in self.windows:
                self.windows[key].merge(window)
            else:
                self.windows[key] = window
        self.samples.extend(samples)
        self.panels.extend(panels)
        del self.panels[:-PANELS_MAX]  # answers to compare are a sample: fewer of them are a weaker one
        return [*self._windows_beyond(), *self._samples_beyond()]

    def _windows_beyond(self) -> Iterable[Loss]:
        for key in sorted(self.windows, key=lambda key: key[2])[: len(self.windows) - WINDOWS_MAX or None]:
            if len(self.windows) <= WINDOWS_MAX:
                return
            lost = self.windows.pop(key)
            yield lost.pipeline, lost.config, "sink_failed", lost.get("retrievals")

    def _samples_beyond(self) -> Iterable[Loss]:
        beyond = self.samples[: max(0, len(self.samples) - SAMPLES_MAX)]
        del self.samples[: len(beyond)]
        for event in beyond:
            yield event.pipeline, event.config, "sink_failed", 1

    def deliver(self, configs: Iterable[ConfigRecord], now: float, *, at_once: bool = False) -> list[Loss]:
        """Hand over what waits; return what was given up. `now` is unix seconds; `at_once` skips a rest."""
        if not at_once and monotonic() < self._rest_until:
            return []
        lost: list[Loss] = []
        while True:
            if not self._under_way and not self._close(configs, now):
                return lost
            batch = self._under_way[0]
            try:
                self.sink.write(batch)
            except OSError as error:
                self._refused(error)
                return lost
            except Exception as error:  # noqa: BLE001 - a batch that no sink will take must not stop the others
                self._warn("a batch was given up: the sink raised %s", type(error).__name__)
                lost.extend(_all_of(batch))
            del self._under_way[0]
            self.up, self._failures = True, 0

    def pending(self) -> bool:
        """Whether anything waits."""
        return bool(self._under_way or self.windows or self.samples or self.panels or self.feedback)

    def hold_configs(self) -> None:
        """See to it that the next batch says all configs."""
        self._announced_at = -ANNOUNCE_S

    def _close(self, configs: Iterable[ConfigRecord], now: float) -> bool:
        """Number what is pending; False where nothing is."""
        announce = monotonic() - self._announced_at >= ANNOUNCE_S
        said = list(configs) if announce else []
        if not (said or self.windows or self.samples or self.panels or self.feedback):
            return False
        if said or self.windows or self.feedback:
            batch = Batch(writer=self.writer, seq=self._next(), ts=now, configs=said)
            batch.windows, self.windows = list(self.windows.values()), {}
            batch.feedback, self.feedback = self.feedback, []
            self._under_way.append(batch)
        if said:
            self._announced_at = monotonic()
        if self.panels:
            panels, self.panels = self.panels, []
            self._under_way.append(
                Batch(writer=self.writer, seq=self._next(), ts=now, kind="samples", panels=panels)
            )
        samples, self.samples = self.samples, []
        for at in range(0, len(samples), BATCH_EVENTS):
            part = samples[at : at + BATCH_EVENTS]
            self._under_way.append(
                Batch(writer=self.writer, seq=self._next(), ts=now, kind="samples", events=part)
            )
        return True

    def _next(self) -> int:
        self._seq += 1
        return self._seq

    def _refused(self, error: OSError) -> None:
        self.up = False
        self._rest_until = monotonic() + _BACKOFF_S[min(self._failures, len(_BACKOFF_S) - 1)]
        self._failures += 1
        self._warn("records wait: the sink refused them (%s); retrying", error.strerror or error)

    def _warn(self, message: str, *args: object) -> None:
        if monotonic() - self._warned_at >= WARN_S:
            self._warned_at = monotonic()
            _log.warning(message, *args)


def _all_of(batch: Batch) -> Iterable[Loss]:
    counts: Counter[tuple[str, str]] = Counter()
    for window in batch.windows:
        counts[window.pipeline, window.config] += window.get("retrievals")
    for event in batch.events:
        counts[event.pipeline, event.config] += 1
    for (pipeline, config), n in counts.items():
        yield pipeline, config, "sink_failed", n
