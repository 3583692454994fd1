"""OTLP in JSON to spans, as lenient as senders are careless: one bad span is refused, not its batch.

Ids come in hex (OTLP/JSON) or base64 (plain protobuf JSON), 64-bit numbers as text or number.
"""

from __future__ import annotations

import base64
import binascii
import json
import math
from collections.abc import Iterator
from typing import Any

from resweep.domain.errors import InputError
from resweep.ingest.otlp.hits import from_attributes
from resweep.ingest.otlp.names import FIELDS
from resweep.ingest.otlp.span import Span

NANO = 1e-9
ERROR_CODES = (2, "2", "STATUS_CODE_ERROR")


def spans(body: bytes, *, content: bool) -> Iterator[Span | InputError]:
    """Yield the spans of a request, an InputError for each that cannot be used.

    Raises InputError for a body that is none.
    """
    try:
        request = json.loads(body)
    except (ValueError, RecursionError) as error:
        raise InputError(f"expected an OTLP trace request in JSON; {error}") from None
    if not isinstance(request, dict):
        raise InputError(f"expected an OTLP trace request, an object; got {type(request).__name__}")
    for resource in _list(request, "resourceSpans", "resource_spans"):
        service = _service(resource)
        for scope in _list(resource, "scopeSpans", "scope_spans"):
            for raw in _list(scope, "spans"):
                yield _guarded(raw, service, content=content)


def _guarded(raw: object, service: str, *, content: bool) -> Span | InputError:
    try:
        return _span(raw, service, content=content)
    except InputError as error:
        return error


def _list(raw: object, *names: str) -> list[Any]:
    if not isinstance(raw, dict):
        return []
    found = next((raw[name] for name in names if name in raw), None)
    return found if isinstance(found, list) else []


def _get(raw: dict[str, Any], camel: str, snake: str) -> Any:
    return raw.get(camel, raw.get(snake))


def _service(resource: object) -> str:
    inner = resource.get("resource") if isinstance(resource, dict) else None
    for attribute in _list(inner, "attributes"):
        if isinstance(attribute, dict) and attribute.get("key") == "service.name":
            return str(value(attribute.get("value")) or "")
    return ""


def _span(raw: object, service: str, *, content: bool) -> Span:
    if not isinstance(raw, dict):
        raise InputError(f"expected a span to be an object; got {type(raw).__name__}")
    status = raw.get("status")
    span = Span(
        hex_id(_get(raw, "traceId", "trace_id"), 16, "traceId"),
        hex_id(_get(raw, "spanId", "span_id"), 8, "spanId"),
        hex_id(_get(raw, "parentSpanId", "parent_span_id") or "", 8, "parentSpanId"),
        str(raw.get("name") or ""),
        _integer(_get(raw, "startTimeUnixNano", "start_time_unix_nano")) * NANO,
        _integer(_get(raw, "endTimeUnixNano", "end_time_unix_nano")) * NANO,
        service,
        _integer(_get(raw, "droppedAttributesCount", "dropped_attributes_count")),
        isinstance(status, dict) and status.get("code") in ERROR_CODES,
    )
    attributes = dict(_attributes(raw))
    _fields(span, attributes)
    span.listed = from_attributes(attributes, content=content)
    for event in _list(raw, "events"):
        if isinstance(event, dict) and event.get("name") == "exception":
            _fields(span, dict(_attributes(event)))
    return span


def _attributes(raw: object) -> Iterator[tuple[str, object]]:
    for attribute in _list(raw, "attributes"):
        key = attribute.get("key") if isinstance(attribute, dict) else None
        if isinstance(key, str):
            yield key, value(attribute.get("value"))


def _fields(span: Span, attributes: dict[str, object]) -> None:
    for key, name in FIELDS.items():
        if key in attributes:
            span.fields[name] = attributes[key]


def hex_id(raw: object, size: int, name: str) -> str:
    """Return an id of `size` bytes in lower-case hex, from hex or base64; empty stays empty."""
    text = raw if isinstance(raw, str) else ""
    if not text and name == "parentSpanId":
        return ""
    if len(text) == 2 * size:
        try:
            return bytes.fromhex(text).hex()
        except ValueError:
            pass
    try:
        decoded = base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        decoded = b""
    if len(decoded) != size:
        raise InputError(f"expected {name} of {size} bytes in hex or base64; got {text[:40]!r}")
    return decoded.hex()


def _integer(raw: object) -> int:
    if raw is None:
        return 0
    try:
        return int(raw)  # type: ignore[call-overload,no-any-return]
    except (TypeError, ValueError, OverflowError):
        raise InputError(f"expected a whole number, as text or number; got {raw!r:.40}") from None


def value(raw: object) -> object:
    """Return an AnyValue as plain data; None for one that is empty or none."""
    if not isinstance(raw, dict):
        return None
    for kind, inner in raw.items():
        reader = _READERS.get(kind)
        if reader is not None:
            return reader(inner)
    return None


def _whole(inner: object) -> object:
    try:
        return int(inner)  # type: ignore[call-overload]
    except (TypeError, ValueError, OverflowError):
        return None


def _double(inner: object) -> object:
    try:
        return float(inner)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return math.nan


def _mapping(inner: object) -> dict[str, object]:
    pairs = (kv for kv in _list(inner, "values") if isinstance(kv, dict))
    return {str(kv.get("key")): value(kv.get("value")) for kv in pairs}


_READERS: dict[str, Any] = {
    "stringValue": lambda inner: inner if isinstance(inner, str) else None,
    "string_value": lambda inner: inner if isinstance(inner, str) else None,
    "intValue": _whole,
    "int_value": _whole,
    "doubleValue": _double,
    "double_value": _double,
    "boolValue": bool,
    "bool_value": bool,
    "arrayValue": lambda inner: [value(v) for v in _list(inner, "values")],
    "array_value": lambda inner: [value(v) for v in _list(inner, "values")],
    "kvlistValue": lambda inner: _mapping(inner),
    "kvlist_value": lambda inner: _mapping(inner),
}
