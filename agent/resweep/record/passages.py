"""From whatever a retriever returned to a flat list of passages, still as the objects they were."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping, Sequence, Set, ValuesView
from itertools import islice
from typing import Any, NamedTuple

from resweep.record.failure import spare_the_interrupt

HITS_MAX = 1000  # passages of one answer that are looked at; more are counted only
# Where containers of passages are found, in this order, as keys of a mapping or attributes of an object.
_CONTAINERS = (
    "documents",
    "points",
    "matches",
    "hits",
    "results",
    "source_nodes",
    "nodes",
    "docs",
    "passages",
    "chunks",
    "contexts",
    "context",
    "objects",
    "items",
    "data",
)
_PASSAGE_KEYS = frozenset(("text", "page_content", "content", "id", "score", "distance"))


class Found(NamedTuple):
    """The passages of one answer: at most `HITS_MAX` of `total`. `none` tells None from an empty list.

    `opaque` where the answer could not be looked into: it stands as one passage, and says nothing of depth.
    `facts` holds what the answer says of itself (`candidates`, `reranked`, `returned`, `stages`).
    """

    passages: Sequence[object]
    total: int
    none: bool = False
    facts: Mapping[str, object] = {}
    opaque: bool = False


_NOTHING = Found((), 0)


def find(result: object) -> Found:
    """Return the passages in a result. What cannot be understood is one opaque passage, never an error."""
    if type(result) is list:
        return _sequence(result)
    if result is None:
        return Found((), 0, none=True)
    try:
        return _find(result)
    except BaseException as error:  # noqa: BLE001 - a result may do anything when looked at
        spare_the_interrupt(error)
        return Found((result,), 1, opaque=True)


def _sequence(items: Sequence[object]) -> Found:
    return Found(items if len(items) <= HITS_MAX else items[:HITS_MAX], len(items))


def _find(result: Any) -> Found:
    if isinstance(result, str | bytes):
        return Found((result,), 1) if result else _NOTHING
    if isinstance(result, tuple):
        return _tuple(result)
    if isinstance(result, Mapping):
        return _mapping(result)
    for name in ("to_pylist", "to_dicts"):  # a table of Arrow, a data frame of Polars
        if hasattr(result, name):
            return _sequence(getattr(result, name)())
    if hasattr(result, "columns") and hasattr(result, "to_dict"):  # a data frame of pandas
        return _sequence(result.to_dict("records"))
    if isinstance(result, Sequence):
        return _sequence(result)
    return _object(result)


def _tuple(result: Any) -> Found:
    """A tuple of passages; or passages and their scores; or passages and something else."""
    if len(result) == 2 and isinstance(result[0], list):
        first, second = result
        if isinstance(second, list) and len(first) == len(second) and all(map(_is_number, second)):
            return _sequence(list(zip(first, second, strict=True)))
        return find(first)
    if hasattr(result, "_fields"):  # a named tuple is an object
        return _mapping(result._asdict())
    return _sequence(result)


def _is_number(value: object) -> bool:
    return value is None or isinstance(value, int | float)


def _mapping(result: Mapping[Any, Any]) -> Found:
    if _columnar(result):
        return _columns(result)
    for name in _CONTAINERS:
        inner = result.get(name)
        if isinstance(inner, list | tuple | Mapping) or hasattr(inner, "points"):
            found = find(inner)
            return found._replace(facts={k: v for k, v in result.items() if k != name})
    if not result:
        return _NOTHING
    if not _PASSAGE_KEYS & result.keys():
        values = list(result.values())
        if all(isinstance(value, list | None) for value in values):  # lists by query, or by part
            return _sequence([item for value in values for item in value or ()])
        if all(isinstance(value, Mapping) for value in values):  # passages by their ids
            return _sequence(values)
    return Found((result,), 1)


def _columnar(result: Mapping[Any, Any]) -> bool:
    """Whether this is one list per field, as Chroma answers: ids, documents, distances, metadatas."""
    ids = result.get("ids")
    return isinstance(ids, list) and ("distances" in result or "metadatas" in result)


def _columns(result: Mapping[Any, Any]) -> Found:
    ids = _first_row(result["ids"])
    columns = {name: _first_row(result.get(name)) for name in ("documents", "distances", "metadatas")}
    rows: list[object] = []
    for at, id_ in enumerate(ids):
        row = {"id": id_}
        for name, key in (("documents", "text"), ("distances", "distance"), ("metadatas", "metadata")):
            column = columns[name]
            if at < len(column):
                row[key] = column[at]
        rows.append(row)
    return _sequence(rows)


def _first_row(column: Any) -> list[Any]:
    """A column of one query: `[[…]]` when several could have been asked, `[…]` when not."""
    if not isinstance(column, list):
        return []
    return column[0] if column and isinstance(column[0], list) else column


def _object(result: Any) -> Found:
    own = getattr(result, "__dict__", None) or {}
    if not (_PASSAGE_KEYS & own.keys()):
        for name in _CONTAINERS:
            inner = getattr(result, name, None)
            if isinstance(inner, list | tuple):
                return find(inner)
    if hasattr(result, "tolist") and hasattr(result, "ndim"):  # an array of row numbers
        return find(result.tolist())
    if isinstance(result, Set | deque | ValuesView):
        return _sequence(list(islice(result, HITS_MAX)))._replace(total=len(result))
    # Anything else is not walked through: that might ask a database, or use an iterator up.
    if isinstance(result, Iterable) and not (_PASSAGE_KEYS & own.keys()) and not hasattr(result, "node"):
        return Found((result,), 1, opaque=True)
    return Found((result,), 1)
