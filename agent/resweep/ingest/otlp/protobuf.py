"""OTLP in protobuf to spans."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from google.protobuf.message import DecodeError

from resweep.domain.errors import InputError
from resweep.ingest.otlp.hits import from_attributes
from resweep.ingest.otlp.names import FIELDS
from resweep.ingest.otlp.span import Span
from resweep.ingest.otlp.wire import Request, value

NANO = 1e-9
STATUS_ERROR = 2
FIELD_KEYS = frozenset(FIELDS)


def spans(body: bytes, *, content: bool) -> Iterator[Span]:
    """Yield the spans of a request. Raises InputError for a body that is none."""
    try:
        request = Request.FromString(body)
    except DecodeError as error:
        raise InputError(f"expected an OTLP trace request in protobuf; {error}") from None
    for resource in request.resource_spans:
        service = str(value(resource.resource.attributes.get("service.name", b"")) or "")
        for scope in resource.scope_spans:
            for raw in scope.spans:
                yield _span(raw, service, content=content)


def _span(raw: Any, service: str, *, content: bool) -> Span:
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
    attributes = raw.attributes
    keys = set(attributes)
    _fields(span, keys, attributes)
    span.listed = from_attributes(keys, attributes.get, content=content)
    for event in raw.events:
        if event.name == "exception":
            _fields(span, set(event.attributes), event.attributes)
    return span


def _fields(span: Span, keys: set[str], attributes: Any) -> None:
    for key in keys & FIELD_KEYS:
        span.fields[FIELDS[key]] = value(attributes[key])
