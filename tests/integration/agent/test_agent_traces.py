"""Spans of existing instrumentation over OTLP/HTTP, against a running agent and with a real exporter."""

from __future__ import annotations

import gzip
import json
import threading
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from google.protobuf.json_format import MessageToJson
from google.rpc.status_pb2 import Status  # type: ignore[import-untyped]
from opentelemetry.exporter.otlp.proto.http import Compression
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import SpanLimits, TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExportResult

PROTOBUF, JSON = "application/x-protobuf", "application/json"
START = 1_697_982_593_201_336_000
Agents = Callable[..., Any]


def request(service: str, spans: int = 10) -> ExportTraceServiceRequest:
    message = ExportTraceServiceRequest()
    resource = message.resource_spans.add()
    resource.resource.attributes.add(key="service.name").value.string_value = service
    scope = resource.scope_spans.add()
    for number in range(spans):
        span = scope.spans.add(name="retrieve", start_time_unix_nano=START)
        span.end_time_unix_nano = START + 40_000_000
        span.trace_id, span.span_id = bytes([number + 1]) * 16, bytes([number + 1]) * 8
        span.attributes.add(key="openinference.span.kind").value.string_value = "RETRIEVER"
        for at in range(3):
            stem = f"retrieval.documents.{at}.document"
            span.attributes.add(key=f"{stem}.id").value.string_value = f"p{at}"
            span.attributes.add(key=f"{stem}.score").value.double_value = 0.9 - at / 10
    return message


def packed(message: ExportTraceServiceRequest, kind: str) -> bytes:
    return message.SerializeToString() if kind == PROTOBUF else MessageToJson(message).encode()


def send(agent: Any, body: bytes, kind: str = PROTOBUF, **headers: str) -> tuple[int, Any]:
    status, answer = agent.call("/v1/traces", body, content_type=kind, **headers)
    return int(status), answer


def page_of(agent: Any, pipeline: str) -> list[str]:
    """Return the lines of the metrics page about a pipeline, without its name."""
    page: bytes = agent.get("/metrics")
    lines = [line for line in page.decode().splitlines() if f'pipeline="{pipeline}"' in line]
    return [line.replace(pipeline, "") for line in lines]


def test_the_same_spans_come_in_four_ways(agent: Any) -> None:
    """JSON or protobuf, plain or gzip: the same retrievals, and an answer in the request's own format."""
    pages = []
    for number, (kind, zipped) in enumerate([(PROTOBUF, 0), (PROTOBUF, 1), (JSON, 0), (JSON, 1)]):
        body = packed(request(f"four{number}"), kind)
        encoding = {"content_encoding": "gzip"} if zipped else {}
        status, answer = send(agent, gzip.compress(body) if zipped else body, kind, **encoding)
        assert (status, answer) == (200, {} if kind == JSON else b"")
        pages.append(page_of(agent, f"four{number}"))
    assert any("resweep_retrievals_total" in line and line.endswith(" 10.0") for line in pages[0])
    assert pages[0] == pages[1] == pages[2] == pages[3]


def test_a_body_that_comes_again_changes_nothing(agent: Any) -> None:
    """The sender lost the answer and repeats."""
    body = packed(request("again"), PROTOBUF)
    assert [send(agent, body)[0] for _ in range(3)] == [200, 200, 200]
    assert agent.metric('resweep_retrievals_total{config="unknown",pipeline="again"}') == [10]


@pytest.mark.parametrize(
    ("body", "headers", "status", "said"),
    [
        (b"no gzip", {"content_encoding": "gzip"}, 400, "gzip"),
        (gzip.compress(b"x" * 999)[:-9], {"content_encoding": "gzip"}, 400, "breaks off"),
        (packed(request("cut"), PROTOBUF)[:-3], {}, 400, "protobuf"),
        (b"x", {"content_encoding": "br"}, 415, "'br'"),
        (b"x" * 20_001, {}, 413, "too large"),
        (gzip.compress(bytes(20_001)), {"content_encoding": "gzip"}, 413, "too large"),
    ],
)
def test_what_cannot_be_taken_is_refused_with_a_reason(
    agent: Any, body: bytes, headers: dict[str, str], status: int, said: str
) -> None:
    """In the request's own format, and never as a fault of ours that would make the sender repeat it."""
    got, answer = send(agent, body, **headers)
    reason = Status.FromString(answer).message
    assert (got, said in reason, len(reason) < 300) == (status, True, True)
    got, answer = send(agent, body, JSON, **headers)
    assert (got, len(answer["message"]) < 300) == (status, True)


def test_an_unknown_type_is_refused_in_json(agent: Any) -> None:
    """There is no format of its own to answer in."""
    status, answer = send(agent, b"spans", "text/plain")
    assert (status, "text/plain" in answer["message"]) == (415, True)


def test_a_bomb_costs_no_memory(agents: Agents) -> None:
    """A small body that unpacks to 1 GiB is refused long before."""
    agent = agents().started()
    send(agent, packed(request("warm"), PROTOBUF))
    idle = memory(agent.process.pid, "VmRSS")
    packer = zlib.compressobj(9, wbits=31)
    bomb = b"".join([*(packer.compress(bytes(1 << 20)) for _ in range(1024)), packer.flush()])
    assert send(agent, bomb, content_encoding="gzip")[0] == 413
    assert memory(agent.process.pid, "VmHWM") - idle < 100 << 20


def memory(pid: int, name: str) -> int:
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(name)) * 1024


def test_one_bad_span_costs_itself_alone(agent: Any) -> None:
    """The answer says how many were refused, and why."""
    raw = json.loads(MessageToJson(request("partial", spans=3)))
    raw["resourceSpans"][0]["scopeSpans"][0]["spans"][1]["traceId"] = "zz"
    status, answer = send(agent, json.dumps(raw).encode(), JSON)
    assert (status, answer["partialSuccess"]["rejectedSpans"]) == (200, "1")
    assert agent.metric('resweep_retrievals_total{config="unknown",pipeline="partial"}') == [2]


def test_a_config_declared_before_is_what_spans_count_for(agent: Any, traffic: Any) -> None:
    """Spans name a service, not a config: the one that answered last in that pipeline is meant."""
    record = traffic.config("declared")
    traffic.send(agent, traffic.batch(1, record, calls=5, writer="declared"))
    found = []
    for number in range(60):  # the agent looks at configs every few seconds
        message = request("declared", spans=1)
        message.resource_spans[0].scope_spans[0].spans[0].end_time_unix_nano += number
        send(agent, packed(message, PROTOBUF))
        found = agent.metric(f'resweep_retrievals_total{{config="{record.config}",pipeline="declared"}}')
        if found != [5]:
            break
        threading.Event().wait(0.2)
    assert found[0] > 5


@pytest.mark.parametrize("compression", list(Compression))
def test_a_real_exporter_is_served(agent: Any, compression: Any) -> None:
    """Headers and compression as people set them; truncated spans are told apart, in words and in numbers."""
    service = f"exporter-{compression.name.lower()}"
    exporter = OTLPSpanExporter(
        f"{agent.url}/v1/traces",
        headers={"authorization": f"Bearer {agent.token}"},
        compression=compression,
        timeout=10,
    )
    provider = TracerProvider(
        resource=Resource({"service.name": service}),
        span_limits=SpanLimits(max_attributes=128),
        shutdown_on_exit=False,
    )
    provider.add_span_processor(BatchSpanProcessor(exporter))
    tracer = provider.get_tracer("test")
    for depth in (3, 50):
        with tracer.start_as_current_span("retrieve") as one:
            one.set_attribute("openinference.span.kind", "RETRIEVER")
            for at in range(depth):
                stem = f"retrieval.documents.{at}.document"
                one.set_attributes({f"{stem}.id": f"d{at}", f"{stem}.score": 0.5, f"{stem}.content": "t"})
    assert provider.force_flush()
    provider.shutdown()
    assert agent.metric(f'resweep_retrievals_total{{config="unknown",pipeline="{service}"}}') == [2]
    assert agent.metric('resweep_otlp_spans_total{outcome="truncated"}')[0] >= 1
    assert any(f"1 spans of {service} came without" in note for note in agent.get("/healthz")["notes"])


def test_a_refused_token_is_told_to_the_exporter(agent: Any) -> None:
    """Without a token nothing is taken, and the exporter does not try for ever."""
    exporter = OTLPSpanExporter(f"{agent.url}/v1/traces", timeout=5)
    assert exporter.export([]) is SpanExportResult.FAILURE
    status, _ = agent.call("/v1/traces", b"", token="wrong", content_type=PROTOBUF)
    assert status == 401


def test_an_empty_request_is_taken(agent: Any) -> None:
    """An exporter that probes sends one."""
    assert send(agent, b"") == (200, b"")
    assert ExportTraceServiceResponse.FromString(b"").partial_success.rejected_spans == 0


def test_durations_lead_to_a_trace(agent: Any) -> None:
    """The page in OpenMetrics shows the trace of a retrieval beside the bucket that it fell into."""
    send(agent, packed(request("exemplar", spans=1), PROTOBUF))
    status, page = agent.call("/metrics", accept="application/openmetrics-text;version=1.0.0")
    lines = [line for line in page.decode().splitlines() if 'pipeline="exemplar"' in line and "# {" in line]
    assert (status, len(lines)) == (200, 1)
    assert 'le="0.05"' in lines[0]
    assert f'# {{trace_id="{"01" * 16}"}}' in lines[0]
