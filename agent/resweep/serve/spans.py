"""What became of the spans that senders sent: counts for the metrics, words for whoever looks at health."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterator

from resweep.domain.snapshot import Sample

OUTCOMES = ("retrieval", "truncated", "own", "other", "refused")
PIPELINES_MAX = 50  # named in words


class SpanTally:
    """Counts spans by what became of them, for as long as an agent lives. Any thread may use it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._counts: Counter[str] = Counter()
        self._truncated: Counter[str] = Counter()
        self._malformed = 0

    def add(self, counts: Counter[str], truncated: Counter[str], malformed: int) -> None:
        """Add the counts of one request by outcome, its truncated spans by pipeline, malformed attributes."""
        with self._lock:
            self._counts += counts
            self._malformed += malformed
            for pipeline, n in truncated.items():
                if pipeline in self._truncated or len(self._truncated) < PIPELINES_MAX:
                    self._truncated[pipeline] += n

    def samples(self) -> Iterator[Sample]:
        """Yield the counts, each present from 0."""
        for outcome in OUTCOMES:
            yield Sample("resweep_otlp_spans_total", (outcome,), float(self._counts[outcome]))

    def notes(self) -> Iterator[str]:
        """Yield what a person should know of the spans that came."""
        with self._lock:
            truncated, malformed = dict(self._truncated), self._malformed
        for pipeline, n in sorted(truncated.items()):
            yield (
                f"{n} spans of {pipeline} came without part of their answer, and count as no answer: raise "
                "OTEL_SPAN_ATTRIBUTE_COUNT_LIMIT where they are made, or let the instrumentation send content"
            )
        if malformed:
            yield f"{malformed} attributes of spans list a document without an index, and were passed over"
