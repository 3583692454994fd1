"""What a call asked: the question, its identity, and the filters it carried."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from hashlib import blake2b
from typing import Any

from resweep.domain.sample import query_key
from resweep.domain.values import clean, label

FILTERS = frozenset(
    (
        "filter",
        "filters",
        "where",
        "query_filter",
        "search_filter",
        "metadata_filter",
        "metadata_filters",
        "filter_expression",
        "expr",
        "pre_filter",
    )
)
QUERY_LONGEST = 8192
_NESTING = ("conditions", "must", "should", "must_not", "filter")
_KEYS_MAX = 8
_DEEPEST = 6


def question(query: Any) -> str | None:
    """Return the text of a question; None for a vector or anything else without a text."""
    if isinstance(query, str):
        return clean(query)
    if isinstance(query, Mapping):
        return next((clean(v) for name in _TEXTS if isinstance(v := query.get(name), str)), None)
    text = getattr(query, "query_str", None) or getattr(query, "text", None)
    return clean(text) if isinstance(text, str) else None


_TEXTS = ("query", "question", "input", "text", "q")


def key_of(query: Any, filters: Mapping[str, object] | None, salt: bytes) -> int | None:
    """Return the salted identity of a question under its filters; None without text or vector."""
    text = question(query)
    if text is None:
        text = _vector(query)
    return None if text is None else query_key(text, filters, salt)


def _vector(query: Any) -> str | None:
    """A text that stands for a query vector, equal for equal vectors."""
    try:
        if hasattr(query, "tobytes"):
            data = query.tobytes()
        elif isinstance(query, list | tuple) and query and isinstance(query[0], float | int):
            data = repr(query).encode()
        else:
            return None
    except Exception:  # noqa: BLE001 - whatever it is, it is no vector
        return None
    return blake2b(data, digest_size=16).hexdigest()


def filters_of(kwargs: Mapping[str, Any], static: Mapping[str, object] | None) -> dict[str, object] | None:
    """Return the filters of a call by key, None without any; values are brought to text and numbers."""
    found: dict[str, object] = {}
    for name in kwargs:
        if name in FILTERS and kwargs[name]:
            found |= dict(_conditions(kwargs[name], name, 0))
    if static and not found:
        found = dict(static)
    return dict(list(found.items())[:_KEYS_MAX]) or None


def conditions(filters: Any) -> dict[str, object]:
    """Return the keys and values of a filter in whatever form a client takes it."""
    return dict(_conditions(filters, "filter", 0)) if filters else {}


def _conditions(filters: Any, name: str, depth: int) -> Iterator[tuple[str, object]]:
    if depth > _DEEPEST:
        return
    if isinstance(filters, Mapping):
        yield from _mapping(filters, name, depth)
    elif isinstance(filters, list | tuple):
        for part in filters:
            yield from _conditions(part, name, depth + 1)
    elif isinstance(key := getattr(filters, "key", None), str):  # a condition of Qdrant or LlamaIndex
        yield label(key), _value(getattr(filters, "value", None) or getattr(filters, "match", None))
    else:
        parts = [getattr(filters, part, None) for part in ("must", "should", "must_not", "filters")]
        if any(parts):
            yield from _conditions([part for part in parts if part], name, depth + 1)
        else:
            yield name, _value(filters)


def _mapping(filters: Mapping[Any, Any], name: str, depth: int) -> Iterator[tuple[str, object]]:
    field = filters.get("field")
    if isinstance(field, str) and "value" in filters:  # a condition of Haystack
        yield label(field), _value(filters["value"])
        return
    for key, value in filters.items():
        if (
            not isinstance(key, str)
            or key.startswith("$")
            or key in ("conditions", "must", "should", "filter")
        ):
            yield from _conditions(value, name, depth + 1)
        elif key != "operator":
            yield label(key), _value(value)


def _value(value: Any) -> object:
    """A filter's value as what it identifies; an object as its type, never its address."""
    if isinstance(value, str):
        return clean(value, 256)
    if isinstance(value, bool | int | float | None):
        return value if value == value and abs(value or 0) < 2**53 else str(value)
    if isinstance(value, list | tuple | set | frozenset):
        return clean(",".join(sorted(str(_value(item)) for item in list(value)[:64])), 256)
    if isinstance(value, Mapping):
        return clean(",".join(f"{key}={_value(item)}" for key, item in list(value.items())[:16]), 256)
    inner = getattr(value, "value", None)
    return _value(inner) if isinstance(inner, str | int | float) else type(value).__qualname__


def veiled(filters: Mapping[str, object], salt: bytes) -> dict[str, object]:
    """Return filters with each value replaced by a salted hash: what is kept where content is off."""
    return {
        key: blake2b(repr(value).encode("utf-8", "replace"), digest_size=4, key=salt).hexdigest()
        for key, value in filters.items()
    }
