"""An OTLP trace request as one batch, and the answer its sender expects."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Literal

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceResponse

from resweep.domain.batch import Batch
from resweep.domain.errors import InputError
from resweep.domain.fold import fold
from resweep.domain.window import MINUTE, Window
from resweep.ingest.otlp import jsonbody, protobuf
from resweep.ingest.otlp.mapping import Mapped, mapped
from resweep.ingest.otlp.span import Span

Encoding = Literal["protobuf", "json"]
MEDIA_TYPES: Mapping[str, Encoding] = {"application/x-protobuf": "protobuf", "application/json": "json"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Traces:
    """What a request came to: its batch, what was mapped, and the spans that were refused."""

    batch: Batch
    mapped: Mapped
    spans: int
    refused: tuple[str, ...]


def read_traces(
    body: bytes, encoding: Encoding, configs: Mapping[str, str], now: float, *, content: bool = False
) -> Traces:
    """Return the retrievals of a request received at `now` (unix s).

    `configs` names the config id in force by pipeline. A body that comes again makes the same batch, which
    is applied once. Raises InputError for a body that is no trace request at all.
    """
    refused: list[str] = []
    spans = list(_usable(_decoded(body, encoding, content=content), refused))
    result = mapped(spans, configs, content=content)
    batch = Batch(writer=f"otlp-{hashlib.sha256(body).hexdigest()[:40]}", seq=0, ts=now)
    windows: dict[tuple[str, str, int], Window] = {}
    for event in result.events:
        key = (event.pipeline, event.config, int((event.ts or now) // MINUTE))
        window = windows.get(key)
        if window is None:
            window = windows[key] = Window(*key)
        fold(window, event)
    batch.windows = list(windows.values())
    return Traces(batch=batch, mapped=result, spans=len(spans), refused=tuple(refused))


def _decoded(body: bytes, encoding: Encoding, *, content: bool) -> Iterable[Span | InputError]:
    read = protobuf.spans if encoding == "protobuf" else jsonbody.spans
    return read(body, content=content)


def _usable(spans: Iterable[Span | InputError], refused: list[str]) -> Iterator[Span]:
    for span in spans:
        if isinstance(span, InputError):
            refused.append(str(span))
        else:
            yield span


def reply(traces: Traces, encoding: Encoding) -> bytes:
    """Return the answer in the request's own encoding, with a partial success where spans were refused."""
    rejected, why = len(traces.refused), "; ".join(traces.refused[:3])
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
