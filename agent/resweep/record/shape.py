"""Passages that look like the one before: the same keys in the same order, one level of metadata.

Almost all passages of a retriever do. Where the shape fits, each field is one look-up.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from types import GetSetDescriptorType
from typing import Any, NamedTuple

from resweep.domain.event import ScoreKind
from resweep.record.attributes import class_attribute
from resweep.record.reading import Place, Reading, places, read


class Shape(NamedTuple):
    """How a passage looked, and where its fields stand: in the metadata (True) or beside it.

    `id_alone` and `score_alone`: where that field is None there is no other key that may hold one.
    """

    kind: type
    keys: tuple[Any, ...]
    inner: str | None
    inner_keys: tuple[Any, ...]
    text: str | None
    id: Place
    score: Place
    source: Place
    id_alone: bool
    score_alone: bool
    score_kind: ScoreKind | None


NOTHING: dict[Any, Any] = {}
NOWHERE: Place = (False, None)
NO_SHAPE = Shape(Shape, (), None, (), None, NOWHERE, NOWHERE, NOWHERE, False, False, None)


def at(outer: Mapping[Any, Any], inner: Mapping[Any, Any], place: Place) -> Any:
    """Return what stands at a place, None where nothing does."""
    return inner.get(place[1]) if place[0] else outer.get(place[1])


@lru_cache(maxsize=512)
def _keeps_attributes_in_dict(kind: type) -> bool:
    """Whether objects of a class have a real `__dict__`, as almost all do; some compute one."""
    return isinstance(class_attribute(kind, "__dict__"), GetSetDescriptorType)


def shape_of(passage: Any, reading: Reading) -> Shape | None:
    """Return the shape of a passage, None where its fields are not where one look finds them."""
    kind = type(passage)
    if kind is not dict and not _keeps_attributes_in_dict(kind):  # type: ignore[arg-type]
        return None
    outer = passage if kind is dict else passage.__dict__
    if type(outer) is not dict or reading.tokens is not None or type(reading.text) is not str:
        return None
    found = places(outer)
    if found is None:
        return None
    inner_name, text, ids, scores, sources = found
    inner = outer[inner_name] if inner_name is not None else NOTHING
    id_, score, source = (each[0] if each else NOWHERE for each in (ids, scores, sources))
    seen = (outer.get(text), at(outer, inner, id_), at(outer, inner, score), at(outer, inner, source))
    read_ = (reading.text, reading.id, reading.score, reading.source)
    if any(a is not b for a, b in zip(seen, read_, strict=True)):
        return None
    keys = (tuple(outer), inner_name, tuple(inner))
    return Shape(kind, *keys, text, id_, score, source, len(ids) <= 1, len(scores) <= 1, reading.kind)


class Glance:
    """Reads passages, at a glance where one looks like the one before."""

    def __init__(self) -> None:
        self._shape = NO_SHAPE

    def __call__(self, passage: Any) -> Reading:
        """Return what `read` returns."""
        shape = self._shape
        if type(passage) is shape.kind:
            outer: Any = passage if shape.kind is dict else passage.__dict__
            inner: Any = outer.get(shape.inner, NOTHING)
            if type(inner) is not dict:
                inner = NOTHING
            if tuple(outer) == shape.keys and tuple(inner) == shape.inner_keys:
                reading = _fields(shape, outer, inner)
                if reading is not None:
                    return reading
        reading = read(passage)
        self._shape = shape_of(passage, reading) or NO_SHAPE
        return reading


def _fields(shape: Shape, outer: Mapping[Any, Any], inner: Mapping[Any, Any]) -> Reading | None:
    text = outer.get(shape.text)
    id_ = at(outer, inner, shape.id)
    score = at(outer, inner, shape.score)
    source = at(outer, inner, shape.source)
    if (
        type(text) is not str
        or (id_ is None and not shape.id_alone)
        or (score is None and not shape.score_alone)
        or (type(source) is not str and shape.source is not NOWHERE)
    ):
        return None
    return Reading(id_, text, score, None if score is None else shape.score_kind, None, source)
