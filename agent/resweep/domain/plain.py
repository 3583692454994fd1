"""Python values brought to plain data, one step at a time.

What becomes what: an enum its value; a path its POSIX text; a date or time its ISO 8601 text (UTC as `Z`); a
duration its seconds; a UUID its text; a decimal or fraction its number where a double can spell it, else its
text; a named tuple, dataclass, pydantic model, attrs or msgspec object a mapping of its fields; a NumPy
scalar or small array its numbers; any other sequence a list. Types outside the standard library are known by
what their class offers, never imported; an instance is never asked for an attribute its class does not have.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from enum import Enum
from fractions import Fraction
from itertools import islice
from math import prod
from pathlib import PurePath
from types import BuiltinFunctionType, FunctionType, MethodType
from typing import Any
from uuid import UUID

from resweep.domain.canonical import MAX_INTEGER

MAX_VALUES = 500_000  # values in one config; beyond it, it is data and no config
MAX_ARRAY = 4096  # numbers in one array
PLAIN_TYPES = frozenset({str, bool, int, float, dict, list, tuple, set, frozenset, type(None)})

_DTYPES = re.compile(r"(?:numpy\.(?:dtypes\.\w+|dtype(?:\[.*\])?)|torch\.(?:dtype|device))")
_NAMED = (type, FunctionType, BuiltinFunctionType, MethodType)
_ADDRESS = re.compile(r"0x[0-9A-Fa-f]+")
# A class that offers one of these does work; its fields are not all it is.
_WORK = ("embed_query", "embed_documents", "get_text_embedding", "encode", "invoke", "ainvoke", "retrieve",
         "aretrieve", "rerank", "compress_documents", "split_text", "split_documents", "similarity_search",
         "get_relevant_documents", "as_retriever", "generate", "predict", "search", "__call__")  # fmt: skip


class NoIdentityError(Exception):
    """Says why a value has no plain form; the reader adds where it stands."""


def qualified_name(value: object) -> str:
    """Return `module.Qualname` of a value's type, or of a function, method or class itself."""
    named = value if isinstance(value, _NAMED) else type(value)
    name = getattr(named, "__qualname__", None) or type(value).__qualname__
    module = getattr(named, "__module__", None)
    whole = f"{module}.{name}" if isinstance(module, str) and module != "builtins" else str(name)
    return _ADDRESS.sub("", whole)


def _has(value: object, *names: str) -> bool:
    """Say whether a value's class, none of its metaclass, defines all these names."""
    known = [vars(base) for base in type(value).__mro__]
    return all(any(name in base for base in known) for name in names)


def is_secret_holder(value: object) -> bool:
    """Say whether a value is a wrapper made to hide what it holds, as pydantic's `SecretStr`."""
    return _has(value, "get_secret_value")


def simpler(value: object) -> object:
    """Return a value as one of `PLAIN_TYPES`. Raises `NoIdentityError` where it has no such form."""
    for _ in range(4):
        value = _one_step(value)
        if type(value) in PLAIN_TYPES:
            return value
    raise NoIdentityError(_no_identity(value))


def _one_step(value: object) -> object:
    for fits, step in _STEPS:
        if fits(value):
            return step(value)
    raise NoIdentityError(_no_identity(value))


def _no_identity(value: object) -> str:
    return (
        f"object of type {qualified_name(type(value))} has no stable identity; "
        "give its name and parameters as data, or leave it out"
    )


def _offers(*names: str) -> Callable[[object], bool]:
    return lambda value: not isinstance(value, type) and _has(value, *names)


def _is(*types: type) -> Callable[[object], bool]:
    return lambda value: isinstance(value, types)


def works(value: object) -> bool:
    """Say whether an object does work (embeds, retrieves, splits) beyond holding fields."""
    return any(_has(value, name) for name in _WORK)


def is_record(value: object) -> bool:
    """Say whether a value is an object with declared fields."""
    return not isinstance(value, type) and any(fits(value) for fits, _ in _RECORDS)


def fields(value: object) -> dict[str, object]:
    """Return the declared fields of a record that does no work."""
    if works(value):
        raise NoIdentityError(_no_identity(value))
    return next(step(value) for fits, step in _RECORDS if fits(value))


def _attributes(value: object, names: Iterator[str]) -> dict[str, object]:
    return {name: getattr(value, name) for name in names if hasattr(value, name)}


_RECORDS: tuple[tuple[Callable[[object], bool], Callable[[Any], dict[str, object]]], ...] = (
    (_offers("model_dump"), lambda model: dict(model.model_dump())),
    (_offers("__fields__", "dict"), lambda model: dict(model.dict())),
    (
        dataclasses.is_dataclass,
        lambda record: _attributes(record, (f.name for f in dataclasses.fields(record))),
    ),
    (_offers("__struct_fields__"), lambda record: _attributes(record, iter(record.__struct_fields__))),
    (
        _offers("__attrs_attrs__"),
        lambda record: _attributes(record, (a.name for a in record.__attrs_attrs__)),
    ),
)


def _decimal(value: Decimal) -> object:
    if not value.is_finite():
        raise NoIdentityError("a finite number was expected, NaN or an infinity came")
    if value == value.to_integral_value() and abs(value) <= MAX_INTEGER:
        return int(value)
    near = repr(float(value))
    return float(near) if Decimal(near) == value else str(value.normalize())


def _fraction(value: Fraction) -> object:
    near = float(value)
    return near if Fraction(near) == value else str(value)


def _moment(value: datetime | time) -> str:
    return re.sub(r"\+00:00\Z", "Z", value.isoformat())


def _array(value: Any) -> object:
    size = prod(value.shape)
    if size > MAX_ARRAY:
        raise NoIdentityError(
            f"an array of {size} numbers is data and no setting (at most {MAX_ARRAY}); give a digest of it"
        )
    return value.tolist()


def _bytes(_: object) -> object:
    raise NoIdentityError("bytes have no text of their own; decode them, or give a digest")


def _refuse_class(kind: type) -> object:
    raise NoIdentityError(f"class {qualified_name(kind)} has no stable identity; give its name as text")


def _items(value: Mapping[object, object]) -> dict[object, object]:
    return dict(_bounded(value.items()))


def _bounded(values: Any) -> list[Any]:
    found = list(islice(values, MAX_VALUES + 1))
    if len(found) > MAX_VALUES:
        raise NoIdentityError(f"more than {MAX_VALUES} values are data and no config; give a digest of them")
    return found


_STEPS: tuple[tuple[Callable[[object], bool], Callable[[Any], object]], ...] = (
    (_is(type), _refuse_class),
    (_is(Enum), lambda member: member.value),
    (_is(str), str.__str__),
    (_is(int), int.__int__),
    (_is(float), float.__float__),
    (_is(PurePath), PurePath.as_posix),
    (_is(datetime, time), _moment),
    (_is(date), date.isoformat),
    (_is(timedelta), timedelta.total_seconds),
    (_is(UUID), str),
    (_is(Decimal), _decimal),
    (_is(Fraction), _fraction),
    (lambda value: isinstance(value, tuple) and hasattr(type(value), "_fields"), lambda row: row._asdict()),
    (is_record, fields),
    (_offers("dtype", "shape", "tolist"), _array),
    (_offers("unicode_string"), lambda url: url.unicode_string()),
    (lambda value: _DTYPES.fullmatch(qualified_name(type(value))) is not None, str),
    (_is(bytes, bytearray, memoryview), _bytes),
    (_is(Mapping), _items),
    (_is(Set), lambda members: frozenset(_bounded(members))),
    (_is(Sequence), _bounded),
)
