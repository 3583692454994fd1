"""OTLP in protobuf to spans."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from google.protobuf.message import DecodeError

from resweep.domain.errors import InputError
from resweep.ingest.otlp.hits import Listed, from_attributes
from resweep.ingest.otlp.names import CONTENT, FIELDS
from resweep.ingest.otlp.span import Span
from resweep.ingest.otlp.usual import Usual
from resweep.ingest.otlp.wire import AT, Request, named, value, value_at

NANO = 1e-9
STATUS_ERROR = 2
_FIELDS = {name.encode(): (field, len(name) + AT) for name, field in FIELDS.items()}
_FIELD_NAMES = _FIELDS.keys()
_SERVICE = b"service.name"
_usual = Usual()


def spans(body: bytes, *, content: bool) -> Iterator[Span | InputError]:
    """Yield the spans of a request, an InputError for each that cannot be used.

    Raises InputError for a body that is none.
    """
    try:
        request = Request.FromString(body)
    except DecodeError as error:
        raise InputError(f"expected an OTLP trace request in protobuf; {error}") from None
    for resource in request.resource_spans:
        service = _service(resource)
        for scope in resource.scope_spans:
            for raw in scope.spans:
                yield _guarded(raw, service, content=content)


def _service(resource: Any) -> str:
    try:
        found = named(resource.resource.attributes).get(_SERVICE)
    except InputError:
        return ""
    return str(value(value_at(found, len(_SERVICE) + AT)) or "") if found else ""


def _guarded(raw: Any, service: str, *, content: bool) -> Span | InputError:
    try:
        return _span(raw, service, content=content)
    except InputError as error:
        return error


def _span(raw: Any, service: str, *, content: bool) -> Span:
    raws = list(raw.attributes)
    usual = None if content else _usual.read(raws)
    fields, listed = _careful(raws, content=content) if usual is None else usual
    for event in raw.events:
        if event.name == "exception":
            fields |= _fields(named(event.attributes), content=content)
    return Span(
        raw.trace_id.hex(),
        raw.span_id.hex(),
        raw.parent_span_id.hex(),
        raw.name,
        raw.start_time_unix_nano * NANO,
        raw.end_time_unix_nano * NANO,
        service,
        raw.dropped_attributes_count,
        raw.status.code == STATUS_ERROR,
        fields,
        listed,
    )


def _careful(raws: Sequence[bytes], *, content: bool) -> tuple[dict[str, object], Listed]:
    """Return fields and documents of attributes in any form."""
    attributes = named(raws)
    return _fields(attributes, content=content), from_attributes(_values(attributes), content=content)


def _fields(attributes: Mapping[bytes, bytes], *, content: bool) -> dict[str, object]:
    found: dict[str, object] = {}
    for name in attributes.keys() & _FIELD_NAMES:
        field, at = _FIELDS[name]
        if content or field not in CONTENT:
            found[field] = value(value_at(attributes[name], at))
    return found


def _values(attributes: Mapping[bytes, bytes]) -> dict[str, object]:
    """Return the undecoded values of attributes by name."""
    return {
        name.decode("utf-8", "replace"): value_at(raw, len(name) + AT) for name, raw in attributes.items()
    }
