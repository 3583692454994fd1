"""Spans: the GenAI names, few attributes at any depth, no content unless wanted, nobody waits."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from typing import Any

import pytest
from opentelemetry import trace
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

import resweep
from resweep.record.options import reset
from resweep.testing import MemorySink

Made = tuple[MemorySink, InMemorySpanExporter, Any]


@pytest.fixture
def made() -> Iterator[Made]:
    provider, exporter = TracerProvider(), InMemorySpanExporter()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    resweep.configure(spans=provider)
    with resweep.testing.capture() as sink:
        yield sink, exporter, provider.get_tracer("test")
    reset()


def spans(made: Made) -> list[ReadableSpan]:
    made[0].flush()
    return list(made[1].get_finished_spans())


def attributes(span: ReadableSpan) -> dict[str, Any]:
    return dict(span.attributes or {})


def deep(query: str, k: int) -> list[dict[str, object]]:
    return [
        {"id": f"p{i}", "text": "some words", "score": 1 / (i + 1), "source": f"{i % 7}.md"} for i in range(k)
    ]


@pytest.mark.parametrize("k", [1, 50, 1000])
def test_no_depth_loses_a_document(made: Made, k: int) -> None:
    """All ids and scores in rank order in one attribute, none dropped, at most 24 attributes."""
    resweep.watch(deep, sink=made[0], config={"context_k": 8})("q", k)
    (span,) = spans(made)
    found = attributes(span)
    assert len(found) <= 24
    assert span.dropped_attributes == 0
    documents = json.loads(found["gen_ai.retrieval.documents"])
    assert [document["id"] for document in documents] == [f"p{i}" for i in range(k)]
    assert documents[0]["score"] == 1.0
    assert (found["gen_ai.operation.name"], found["gen_ai.retrieval.top_k"]) == ("retrieval", k)
    assert (found["resweep.returned"], found["resweep.distinct_sources"]) == (k, min(k, 7))


def test_a_span_belongs_to_what_it_happened_in(made: Made) -> None:
    """Same trace, child of and linked to the surrounding span; the event carries the trace id."""
    retrieve = resweep.watch(deep, sink=made[0])
    with made[2].start_as_current_span("request") as request:
        retrieve("q", 2)
        assert trace.get_current_span() is request
    span = next(one for one in spans(made) if one.name == "retrieval")
    around = request.get_span_context()
    assert span.context is not None
    assert span.parent is not None
    assert (span.context.trace_id, span.parent.span_id) == (around.trace_id, around.span_id)
    assert [link.context.span_id for link in span.links] == [around.span_id]
    assert [event.trace_id for event in made[0].events] == [format(around.trace_id, "032x")]


async def test_tasks_keep_their_own_traces(made: Made) -> None:
    """Ten requests at once, ten traces."""

    async def find(query: str) -> list[str]:
        await asyncio.sleep(0)
        return [query]

    retrieve = resweep.watch(find, sink=made[0])

    async def request(number: int) -> int:
        with made[2].start_as_current_span(f"request {number}") as around:
            await retrieve(f"q{number}")
            return int(around.get_span_context().trace_id)

    asked = await asyncio.gather(*(request(number) for number in range(10)))
    retrievals = [one for one in spans(made) if one.name == "retrieval"]
    assert sorted(one.context.trace_id for one in retrievals if one.context) == sorted(asked)


def test_content_is_off_by_default(made: Made) -> None:
    """Neither question nor passage nor the text of an exception."""
    secret = "tango-7351-planted"

    def retrieve(query: str) -> list[str]:
        if "fail" in query:
            raise ValueError(secret)
        return [secret]

    watched = resweep.watch(retrieve, sink=made[0])
    watched(secret)
    with pytest.raises(ValueError, match=secret):
        watched(f"{secret} fail")
    both = spans(made)
    assert secret not in "".join(span.to_json() for span in both)
    assert attributes(both[1])["error.type"] == "value"


def test_the_question_is_there_where_it_is_wanted(made: Made) -> None:
    """capture="text" sends it, through the redaction hook."""
    redact = str.upper
    resweep.watch(deep, sink=made[0], capture="text", redact=redact)("refunds", 2)
    (span,) = spans(made)
    assert attributes(span)["gen_ai.retrieval.query.text"] == "REFUNDS"


def test_durations_carry_an_exemplar() -> None:
    """A page in OpenMetrics leads from the histogram to a trace."""
    from prometheus_client import CollectorRegistry
    from prometheus_client.openmetrics.exposition import generate_latest

    provider, registry = TracerProvider(), CollectorRegistry()
    resweep.configure(spans=provider)
    retrieve = resweep.watch(deep, sink="none", registry=registry)
    with provider.get_tracer("test").start_as_current_span("request") as around:
        retrieve("q", 2)
    page: str = generate_latest(registry).decode()  # type: ignore[no-untyped-call]
    reset()
    resweep.shutdown()
    assert f'trace_id="{around.get_span_context().trace_id:032x}"' in page


def test_a_collector_that_is_away_is_counted_and_waited_for_by_nobody() -> None:
    """Calls return, one warning at most, the spans given up are counted."""
    resweep.configure(spans="http://127.0.0.1:9/v1/traces")
    with resweep.testing.capture() as sink:
        retrieve = resweep.watch(deep, sink=sink)
        for _ in range(30):
            retrieve("q", 2)
        sink.flush()
        from resweep.record.process import recorders

        (recorder,) = [one for one in recorders().values() if one.sink is sink]
        assert recorder.spans is not None
        recorder.spans.flush(10.0)
        assert recorder.spans.undelivered == 30
        dropped = [s.value for s in recorder.snapshot().samples if s.labels == ("sink_failed",)]
        assert dropped == [30]
    reset()
