"""OTLP in protobuf to spans. The hot loop of the intake: one dictionary look-up an attribute.

Values are only fetched for attributes that the mapping knows, since fetching is what costs.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from google.protobuf.message import DecodeError
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from resweep.domain.errors import InputError
from resweep.ingest.otlp.names import CONTENT, FIELDS, SCORE, SLOTS, listed, slot
from resweep.ingest.otlp.span import Span

NANO = 1e-9
STATUS_ERROR = 2


def spans(body: bytes) -> Iterator[Span]:
    """Yield the spans of a request. Raises InputError for a body that is none."""
    try:
        request = ExportTraceServiceRequest.FromString(body)
    except DecodeError as error:
        raise InputError(f"expected an OTLP trace request in protobuf; {error}") from None
    for resource in request.resource_spans:
        service = _service(resource.resource.attributes)
        for scope in resource.scope_spans:
            for raw in scope.spans:
                yield _span(raw, service)


def _service(attributes: Any) -> str:
    return next((str(value(a.value)) for a in attributes if a.key == "service.name"), "")


def _span(raw: Any, service: str) -> Span:
    span = Span(
        raw.trace_id.hex(),
        raw.span_id.hex(),
        raw.parent_span_id.hex(),
        raw.name,
        raw.start_time_unix_nano * NANO,
        raw.end_time_unix_nano * NANO,
        service,
        raw.dropped_attributes_count,
        raw.status.code == STATUS_ERROR,
    )
    _attributes(span, raw.attributes)
    for event in raw.events:
        if event.name == "exception":
            _attributes(span, event.attributes)
    return span


def _attributes(span: Span, attributes: Any) -> None:
    hits, candidates, fields = span.hits, span.candidates, span.fields
    for attribute in attributes:
        key = attribute.key
        place = SLOTS.get(key)
        if place is None:
            name = FIELDS.get(key)
            if name is not None:
                fields[name] = value(attribute.value)
                continue
            if not listed(key):
                continue
            place = slot(key)
            if place is None:
                span.malformed += 1
                continue
        which, index, part = place
        documents = hits if which == "hits" else candidates
        document = documents.get(index)
        if document is None:
            document = documents[index] = [None, None, None, None]
        if part == CONTENT:
            document[part] = attribute.value  # decoded only where it is wanted: it is most of a span
        else:
            document[part] = _score(attribute.value) if part == SCORE else value(attribute.value)


def _score(raw: Any) -> object:
    return raw.double_value or value(raw)


def value(raw: Any) -> object:
    """Return an AnyValue as plain data; None for one that is empty."""
    text = raw.string_value
    if text:
        return text
    which = raw.WhichOneof("value")
    if which is None:
        return None
    if which == "array_value":
        return [value(v) for v in raw.array_value.values]
    if which == "kvlist_value":
        return {kv.key: value(kv.value) for kv in raw.kvlist_value.values}
    return getattr(raw, which)
