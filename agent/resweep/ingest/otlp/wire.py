"""A view of the OTLP trace request that costs a quarter to read.

Attributes are declared as `repeated bytes`: the parser then hands over each `KeyValue` undecoded, in one step
for all of them, and only the values that are wanted are ever decoded. Field numbers are those of
opentelemetry/proto/trace/v1/trace.proto; a test reads what the official classes wrote.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Any

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from google.protobuf.message import DecodeError
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, KeyValue

from resweep.domain.errors import InputError

_F = descriptor_pb2.FieldDescriptorProto
_PACKAGE = "resweep_otlp"
AT = 4  # where a value begins beyond its key's length: two tags, two lengths of one byte
KEY, VALUE = 0x0A, 0x12  # tags of KeyValue.key and KeyValue.value
_STRING, DOUBLE = 0x0A, 0x21  # tags of AnyValue.string_value and AnyValue.double_value
double = struct.Struct("<d").unpack_from


def _field(message: Any, name: str, number: int, kind: int, *, of: str = "") -> None:
    label = _F.LABEL_REPEATED if of.startswith("*") else _F.LABEL_OPTIONAL
    declared = message.field.add(name=name, number=number, type=kind, label=label)
    if of:
        declared.type_name = f".{_PACKAGE}.{of.removeprefix('*')}"


def _attributes(message: Any, number: int) -> None:
    message.field.add(name="attributes", number=number, type=_F.TYPE_BYTES, label=_F.LABEL_REPEATED)


def _declared() -> Any:
    file = descriptor_pb2.FileDescriptorProto(name="resweep_otlp.proto", package=_PACKAGE, syntax="proto3")
    names = ("Request", "ResourceSpans", "Resource", "ScopeSpans", "Span", "Event", "Status")
    request, spans, resource, scope, span, event, status = (file.message_type.add(name=n) for n in names)
    _field(request, "resource_spans", 1, _F.TYPE_MESSAGE, of="*ResourceSpans")
    _field(spans, "resource", 1, _F.TYPE_MESSAGE, of="Resource")
    _field(spans, "scope_spans", 2, _F.TYPE_MESSAGE, of="*ScopeSpans")
    _attributes(resource, 1)
    _field(scope, "spans", 2, _F.TYPE_MESSAGE, of="*Span")
    _field(span, "trace_id", 1, _F.TYPE_BYTES)
    _field(span, "span_id", 2, _F.TYPE_BYTES)
    _field(span, "parent_span_id", 4, _F.TYPE_BYTES)
    _field(span, "name", 5, _F.TYPE_STRING)
    _field(span, "start_time_unix_nano", 7, _F.TYPE_FIXED64)
    _field(span, "end_time_unix_nano", 8, _F.TYPE_FIXED64)
    _attributes(span, 9)
    _field(span, "dropped_attributes_count", 10, _F.TYPE_UINT32)
    _field(span, "events", 11, _F.TYPE_MESSAGE, of="*Event")
    _field(span, "status", 15, _F.TYPE_MESSAGE, of="Status")
    _field(event, "name", 2, _F.TYPE_STRING)
    _attributes(event, 3)
    _field(status, "code", 3, _F.TYPE_INT32)
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName(f"{_PACKAGE}.Request"))


Request = _declared()


def named(raws: Sequence[bytes]) -> dict[bytes, bytes]:
    """Return undecoded KeyValues by their keys.

    A key of 128 bytes or more names nothing that is read, and makes a name that nothing has. Raises
    InputError where one is no KeyValue at all.
    """
    try:
        found = {raw[2 : 2 + raw[1]]: raw for raw in raws if raw[0] == KEY}
    except IndexError:
        found = {}
    if len(found) == len(raws):
        return found
    return dict(map(_in_order, raws))


def _in_order(raw: bytes) -> tuple[bytes, bytes]:
    """Return key and KeyValue of one that may have its fields in another order, or be empty."""
    try:
        pair = KeyValue.FromString(raw)
    except DecodeError as error:
        raise InputError(f"expected an attribute in protobuf; {error}") from None
    key = pair.key.encode("utf-8", "replace")
    return key, KeyValue(key=pair.key, value=pair.value).SerializeToString(deterministic=True)


def value_at(raw: bytes, at: int) -> bytes:
    """Return the undecoded value of a KeyValue; `at` is where it begins if its length takes one byte."""
    length = raw[at - 1 : at + 9]  # a key without a value has none
    more = next((i for i, byte in enumerate(length) if byte < 0x80), len(raw))
    return raw[at + more :]


def value(raw: bytes) -> object:
    """Return an undecoded AnyValue as plain data; None for one that is empty or broken."""
    if not raw:
        return None
    if raw[0] == DOUBLE and len(raw) == 9:
        number: float = double(raw, 1)[0]
        return number
    if raw[0] == _STRING and raw[1] < 0x80 and len(raw) == raw[1] + 2:
        return raw[2:].decode("utf-8", "replace")
    try:
        return plain(AnyValue.FromString(raw))
    except DecodeError:
        return None


def decoded(raw: object) -> object:
    """Return a value that may still be undecoded as plain data."""
    return value(raw) if type(raw) is bytes else raw


def plain(raw: AnyValue) -> object:
    """Return an AnyValue as plain data; None for one that is empty."""
    which = raw.WhichOneof("value")
    if which is None:
        return None
    if which == "array_value":
        return [plain(v) for v in raw.array_value.values]
    if which == "kvlist_value":
        return {kv.key: plain(kv.value) for kv in raw.kvlist_value.values}
    return getattr(raw, which)
