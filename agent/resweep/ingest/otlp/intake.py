"""An OTLP trace request as one batch, and the answer its sender expects."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Literal

from google.rpc.status_pb2 import Status  # type: ignore[import-untyped]
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceResponse

from resweep.domain.batch import Batch
from resweep.domain.errors import InputError
from resweep.domain.fold import fold
from resweep.domain.window import MINUTE, Window
from resweep.ingest.otlp import jsonbody, protobuf
from resweep.ingest.otlp.mapping import Fact, Mapped, mapped
from resweep.ingest.otlp.span import Span

Encoding = Literal["protobuf", "json"]
AHEAD_S = 86_400.0
REASONS_MAX = 3  # that an answer gives
NAMES_MAX = 1000  # counts of one window: names come from outside
MEDIA_TYPES: Mapping[str, Encoding] = {"application/x-protobuf": "protobuf", "application/json": "json"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Traces:
    """What a request came to: its batch, what was mapped, and the spans that were refused with reasons."""

    batch: Batch
    mapped: Mapped
    refused: int
    why: tuple[str, ...]


def read_traces(
    body: bytes, encoding: Encoding, configs: Mapping[str, str], now: float, *, content: bool = False
) -> Traces:
    """Return the retrievals of a request received at `now` (unix s).

    `configs` names the config id in force by pipeline. A body that comes again makes the same batch, which
    is applied once. Raises InputError for a body that is no trace request at all.
    """
    refused: Counter[str] = Counter()
    spans = _usable(_decoded(body, encoding, content=content), refused, now)
    result = mapped(spans, configs, content=content)
    batch = Batch(writer=f"otlp-{hashlib.sha256(body).hexdigest()[:40]}", seq=0, ts=now)
    windows: dict[tuple[str, str, int], Window] = {}
    for event in result.events:
        key = (event.pipeline, event.config, int((event.ts or now) // MINUTE))
        window = windows.get(key)
        if window is None:
            window = windows[key] = Window(*key)
        fold(window, event)
    retrieving = {*configs, *(event.pipeline for event in result.events)}
    for fact in result.facts:
        if fact.pipeline in retrieving:  # a service that only generates is none of ours
            key = (fact.pipeline, fact.config, int((fact.ts or now) // MINUTE))
            _note(windows.setdefault(key, Window(*key)), fact)
    batch.windows = list(windows.values())
    return Traces(batch=batch, mapped=result, refused=refused.total(), why=tuple(refused)[:REASONS_MAX])


def _note(window: Window, fact: Fact) -> None:
    """Add what a generation says, in the counts that `resweep.note` makes."""
    if fact.prompt_tokens is not None:
        window.add("prompt_tokens_n")
        window.add("prompt_tokens_sum", fact.prompt_tokens)
    for name in ("response_model", "system_fingerprint"):
        value = getattr(fact, name)
        if value is not None and (len(window.counts) < NAMES_MAX or f"fact:{name}:{value}" in window.counts):
            window.add(f"fact:{name}:{value}")


def _decoded(body: bytes, encoding: Encoding, *, content: bool) -> Iterable[Span | InputError]:
    read = protobuf.spans if encoding == "protobuf" else jsonbody.spans
    return read(body, content=content)


def _usable(spans: Iterable[Span | InputError], refused: Counter[str], now: float) -> Iterator[Span]:
    for span in spans:
        why = str(span) if isinstance(span, InputError) else _mistimed(span, now)
        if why or isinstance(span, InputError):
            refused[why if len(refused) < REASONS_MAX else ""] += 1
        else:
            yield span


def _mistimed(span: Span, now: float) -> str:
    """Return why a span's time cannot be used; empty where it can."""
    if -AHEAD_S <= span.start <= now + AHEAD_S and -AHEAD_S <= span.end <= now + AHEAD_S:
        return ""
    return "expected times in unix nanoseconds, at most a day ahead: check the sender's clock"


def reply(traces: Traces, encoding: Encoding) -> bytes:
    """Return the answer in the request's own encoding, with a partial success where spans were refused."""
    rejected, why = traces.refused, "; ".join(traces.why)
    if encoding == "json":
        if not rejected:
            return b"{}"
        told = {"partialSuccess": {"rejectedSpans": str(rejected), "errorMessage": why}}
        return json.dumps(told).encode()
    response = ExportTraceServiceResponse()
    if rejected:
        response.partial_success.rejected_spans = rejected
        response.partial_success.error_message = why
    return bytes(response.SerializeToString())


def refusal(code: int, message: str, encoding: Encoding) -> bytes:
    """Return a `google.rpc.Status` in the request's own encoding, as OTLP asks of answers from 400 up."""
    if encoding == "json":
        return json.dumps({"code": code, "message": message}).encode()
    status = Status(code=code, message=message)
    return bytes(status.SerializeToString())
