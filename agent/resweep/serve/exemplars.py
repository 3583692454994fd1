"""A trace behind the numbers: the last sampled retrieval of each config that says its trace.

Exemplars come from the sampled events that recorders hand over, and from spans; windows hold none, so that
they merge exactly.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator

from resweep.domain.event import RetrievalEvent
from resweep.domain.snapshot import Exemplar, Sample

DURATION = "resweep_retrieval_duration_seconds"
CONFIGS_MAX = 1000


class Exemplars:
    """The newest exemplar by (pipeline, config). Any thread may use it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._newest: dict[tuple[str, str], Exemplar] = {}

    def heard(self, events: Iterable[RetrievalEvent]) -> None:
        """Take note of the events that name a trace; one without an answer has no duration that counts."""
        with self._lock:
            for event in events:
                if event.trace_id and event.latency_s is not None and not _uncounted(event):
                    self._take(event, event.trace_id, event.latency_s)

    def _take(self, event: RetrievalEvent, trace_id: str, latency_s: float) -> None:
        key = (event.pipeline, event.config)
        known = self._newest.get(key)
        if known is not None and (known.ts or 0.0) > event.ts:
            return
        if known is not None or len(self._newest) < CONFIGS_MAX:
            self._newest[key] = Exemplar((("trace_id", trace_id),), latency_s, event.ts)

    def beside(self, samples: Iterable[Sample]) -> Iterator[Sample]:
        """Yield samples, the histograms of whole durations with their exemplars."""
        with self._lock:
            newest = dict(self._newest)
        for sample in samples:
            if sample.metric == DURATION and sample.labels[2] == "total":
                sample = sample._replace(exemplar=newest.get((sample.labels[0], sample.labels[1])))
            yield sample


def _uncounted(event: RetrievalEvent) -> bool:
    return event.error is not None or event.partial or event.truncated or event.probe
