"""A span for each retrieval, made on the folding thread: on the request only the surrounding span is noted.

Names are those of OpenTelemetry's GenAI conventions for retrieval, with `resweep.*` beside them, at most
`ATTRIBUTES_MAX` at any depth: documents are one attribute, so no limit of an SDK can lose the best ones.
Nothing is attached to the context, so nothing has to be detached in another task or thread.
"""

from __future__ import annotations

import json
import logging
import threading
from collections import deque
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from time import monotonic
from typing import Any

from opentelemetry import trace
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import ReadableSpan, SpanProcessor, TracerProvider
from opentelemetry.trace import Link, NonRecordingSpan, SpanContext, SpanKind, StatusCode

from resweep.domain.event import Hit, RetrievalEvent

ATTRIBUTES_MAX = 24
QUEUE_MAX = 2048  # spans that wait for the collector
BATCH_MAX = 256
TIMEOUT_S = 1.5
EXIT_S = 1.5
WARN_S = 60.0
_NAME = "retrieval"
_EXPORTER_LOGS = "opentelemetry.exporter.otlp.proto.http"
_log = logging.getLogger("resweep")


class Spans:
    """Makes spans of events.

    `target` is True for the process's own provider, a TracerProvider, or the URL of an OTLP/HTTP traces
    intake. Spans to a URL wait in a bounded queue, never on a request; what is not taken is counted in
    `undelivered`.
    """

    def __init__(self, target: Any) -> None:
        self._sender = _Sender(target) if isinstance(target, str) else None
        if self._sender is not None:
            own = TracerProvider(resource=Resource.create(), shutdown_on_exit=False)
            own.add_span_processor(self._sender)
            target = own
        provider = target if hasattr(target, "get_tracer") else trace.get_tracer_provider()
        self._tracer = provider.get_tracer("resweep")

    @property
    def undelivered(self) -> int:
        """Spans that were given up so far."""
        return 0 if self._sender is None else self._sender.undelivered

    def surrounding(self) -> SpanContext | None:
        """Return the span that the request is in, None outside of one."""
        context = trace.get_current_span().get_span_context()
        return context if context.is_valid else None

    def emit(self, event: RetrievalEvent, around: Any, observed: Mapping[str, object]) -> None:
        """Make the span of one event; `around` is what `surrounding` returned when it began."""
        parent = trace.set_span_in_context(NonRecordingSpan(around)) if around is not None else None
        began = int(event.ts * 1e9)
        span = self._tracer.start_span(
            _NAME,
            context=parent,
            kind=SpanKind.INTERNAL,
            attributes=attributes(event, observed),
            links=[Link(around)] if around is not None else None,
            start_time=began,
        )
        if event.error is not None:
            span.set_status(StatusCode.ERROR)
        span.end(began + int((event.latency_s or 0.0) * 1e9))

    def flush(self, timeout: float) -> None:
        """Hand over what waits; what is left after `timeout` seconds is given up and counted."""
        if self._sender is not None:
            self._sender.leave(timeout)

    def after_fork(self) -> None:
        """Begin anew in a forked child: what waits is the parent's."""
        if self._sender is not None:
            self._sender.restart()


def attributes(event: RetrievalEvent, observed: Mapping[str, object]) -> dict[str, Any]:
    """Return the attributes of an event's span; those that are not known are left out."""
    hits = event.hits[: event.returned]
    tokens = [hit.tokens for hit in hits if hit.tokens is not None]
    sources = [hit.source for hit in hits if hit.source is not None]
    top = hits[0] if hits else None
    found: dict[str, Any] = {
        "gen_ai.operation.name": "retrieval",
        "openinference.span.kind": "RETRIEVER",
        "gen_ai.retrieval.top_k": event.asked,
        "gen_ai.retrieval.query.text": event.query,
        "gen_ai.retrieval.documents": _documents(hits) if hits else None,
        "gen_ai.data_source.id": observed.get("collection"),
        "gen_ai.request.model": observed.get("model"),
        "error.type": event.error.error_class if event.error else None,
        "resweep.pipeline": event.pipeline,
        "resweep.config": event.config,
        "resweep.event_id": event.id,
        "resweep.returned": event.returned,
        "resweep.returned_none": event.returned_none or None,
        "resweep.partial": event.partial or None,
        "resweep.candidates": event.candidates,
        "resweep.reranked": event.reranked,
        "resweep.rerank_seconds": event.stages.get("rerank_s"),
        "resweep.context_tokens": sum(tokens) if tokens else None,
        "resweep.tokens_estimated": event.tokens_estimated or None,
        "resweep.distinct_sources": len(set(sources)) if sources else None,
        "resweep.top_score": top.score if top else None,
        "resweep.score_kind": top.kind if top else None,
        "resweep.stop": event.stop,
    }
    assert len(found) <= ATTRIBUTES_MAX
    return {name: value for name, value in found.items() if value is not None}


def _documents(hits: tuple[Hit, ...]) -> str:
    """Ids and scores in rank order, as one attribute."""
    rows = [{"id": hit.id} if hit.score is None else {"id": hit.id, "score": hit.score} for hit in hits]
    return json.dumps(rows, separators=(",", ":"))


class _Sender(SpanProcessor):
    """A bounded queue in front of a collector that may be away, slow or silent."""

    def __init__(self, endpoint: str) -> None:
        self.undelivered = 0
        self._endpoint = endpoint
        self._warned_at = -WARN_S
        self.restart()

    def restart(self) -> None:
        """Begin with an empty queue and no thread."""
        self._queue: deque[ReadableSpan] = deque()
        self._wake = threading.Event()
        self._idle = threading.Event()
        self._idle.set()
        self._thread: threading.Thread | None = None
        self._counting = threading.Lock()
        self._under_way = 0
        self._left = False  # too late for more

    def on_end(self, span: ReadableSpan) -> None:
        """Take a finished span, or count it where there is no room."""
        with self._counting:
            if self._left or len(self._queue) >= QUEUE_MAX:
                self.undelivered += 1
                return
            self._queue.append(span)
            self._idle.clear()
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name="resweep-spans", daemon=True)
            self._thread.start()
        if len(self._queue) >= BATCH_MAX:
            self._wake.set()

    def force_flush(self, timeout_millis: int = 2000) -> bool:
        """Wait until the queue is empty, at most so long."""
        self._wake.set()
        return self._idle.wait(timeout_millis / 1000)

    def shutdown(self) -> None:
        """Hand over what waits; what is left then is counted."""
        self.leave(EXIT_S)

    def leave(self, timeout: float) -> None:
        """Hand over what waits, within `timeout` seconds; count what is left, also what is under way."""
        self.force_flush(int(timeout * 1000))
        with self._counting:
            self._left = True
            self.undelivered += len(self._queue) + self._under_way
            self._under_way = 0
            self._queue.clear()

    def _run(self) -> None:
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter

        exporter = OTLPSpanExporter(endpoint=self._endpoint, timeout=TIMEOUT_S)
        while True:
            self._wake.wait(1.0)
            self._wake.clear()
            while self._queue:
                with self._counting:
                    batch = [self._queue.popleft() for _ in range(min(BATCH_MAX, len(self._queue)))]
                    self._under_way = len(batch)
                self._send(exporter, batch)
            with self._counting:
                if not self._queue:
                    self._idle.set()

    def _send(self, exporter: Any, batch: list[ReadableSpan]) -> None:
        try:
            with _quietly():
                taken = exporter.export(batch).name == "SUCCESS"
        except Exception as error:  # noqa: BLE001 - a client may raise anything; the service goes on
            _log.debug("spans: %s", type(error).__name__)
            taken = False
        with self._counting:
            lost, self._under_way = (0 if taken else self._under_way), 0  # 0 where it was given up meanwhile
            self.undelivered += lost
        if taken:
            return
        if monotonic() - self._warned_at >= WARN_S:
            self._warned_at = monotonic()
            _log.warning("spans: the collector took none; %d were given up so far", self.undelivered)


@contextmanager
def _quietly() -> Iterator[None]:
    """Keep the client's own lines of this thread out of the log: one a minute is said here."""
    log, mine = logging.getLogger(_EXPORTER_LOGS), threading.get_ident()

    def others(record: logging.LogRecord) -> bool:
        return record.thread != mine

    loggers = [log, logging.getLogger(f"{_EXPORTER_LOGS}.trace_exporter")]
    for one in loggers:
        one.addFilter(others)
    try:
        yield
    finally:
        for one in loggers:
            one.removeFilter(others)
