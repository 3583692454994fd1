"""The passages of one answer in one pass, for counting alone: what `fold` would count, without the hits.

Almost all passages of an answer look like the one before: the same keys in the same order, one level of
metadata. Where that holds each field is one look-up; where it does not, `read` is asked. A test holds this
against `Hits` and `domain.fold`: both must count the same.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from resweep.domain.values import SCORE_LARGEST, identity, number, text_hash
from resweep.record.hits import OVERHEAD_BYTES, Hits, source_name
from resweep.record.reading import Place, Reading, places, read


class Totals(NamedTuple):
    """What one answer comes to. `first` and `last` are the first and the last valid score."""

    tokens: int | None
    known_sources: int
    distinct_sources: int
    distinct_passages: int
    valid: int
    invalid: int
    top: float | None
    first: float | None
    last: float | None


class Shape(NamedTuple):
    """How the last passage looked, and where its fields stand: in the metadata (True) or beside it.

    `score_alone`: where the score is None there is no other key that may hold one.
    """

    kind: type
    keys: tuple[Any, ...]
    inner: str | None
    inner_keys: tuple[Any, ...]
    text: str | None
    score: Place
    source: Place
    score_alone: bool


class Lean:
    """Counts answers. Shares what `hits` remembers of texts."""

    def __init__(self, hits: Hits) -> None:
        self._hits = hits
        self._shape = _NO_SHAPE

    def totals(self, passages: Sequence[Any]) -> Totals:
        """Return what the passages of one answer come to."""
        hits = self._hits
        hits.held_bytes += OVERHEAD_BYTES
        kind, keys, inner_name, inner_keys, text_key, scored, sourced, score_alone = self._shape
        (score_in, score_key), (source_in, source_key) = scored, sourced
        is_dict, remembered = kind is dict, hits.remembered
        tokens, counted, invalid = 0, False, 0
        sources: list[str] = []
        distinct: list[str] = []
        scores: list[float] = []
        text: Any = None
        score: Any
        state: str
        outer: Any
        inner: Any
        for passage in passages:
            if type(passage) is kind:
                outer = passage if is_dict else passage.__dict__
                inner = outer.get(inner_name, _NONE)
                text = outer.get(text_key)
                fact = remembered.get(hash(text)) if type(text) is str else None
                if type(inner) is not dict:
                    inner = _NONE
                score = (inner if score_in else outer).get(score_key)
                source = (inner if source_in else outer).get(source_key)
                if (
                    fact is not None
                    and tuple(outer) == keys
                    and tuple(inner) == inner_keys
                    and (score is not None or score_alone)
                    and (type(source) is str or source_key is None)
                ):
                    distinct.append(fact[0])
                    tokens += fact[1]
                    counted = True
                    if source:
                        sources.append(source)
                    if type(score) is float and -SCORE_LARGEST <= score <= SCORE_LARGEST:
                        scores.append(score)
                        continue
                    score, state = number(score)
                    invalid += state == "invalid"
                    scores.append(score)
                    continue
            name, stated, score, state, source = self._look(passage)
            distinct.append(name)
            if stated is not None:
                tokens += stated
                counted = True
            if source:
                sources.append(source)
            invalid += state == "invalid"
            scores.append(score)
        if type(text) is str and id(text) not in hits.seen:
            hits.weigh(text, len(passages))
        valid = [score for score in scores if score is not None]
        return Totals(
            tokens if counted else None,
            len(sources),
            len(set(sources)),
            len(set(distinct)),
            len(valid),
            invalid,
            scores[0],
            valid[0] if valid else None,
            valid[-1] if valid else None,
        )

    def _look(self, passage: Any) -> tuple[str, int | None, float | None, str, str | None]:
        """Read one passage with care, and remember how it looks if that is simple.

        Returns what tells it from others, its tokens, score, the score's state, and its source.
        """
        reading = read(passage)
        self._shape = _shape_of(passage, reading) or _NO_SHAPE
        stated = reading.tokens if type(reading.tokens) is int and reading.tokens >= 0 else None
        name = None
        if reading.text is not None or reading.id is None:
            fact = self._hits.derive(reading.text)
            name = fact.text_hash
            stated = fact.tokens if stated is None else stated
        score, state = number(reading.score)
        source = None if reading.source is None else source_name(reading.source)
        return name or identity(reading.id) or _EMPTY, stated, score, state, source


_NONE: dict[Any, Any] = {}
_EMPTY = text_hash("")


_NOWHERE: Place = (False, None)
_NO_SHAPE = Shape(Shape, (), None, (), None, _NOWHERE, _NOWHERE, False)


def _at(outer: Mapping[Any, Any], inner: Mapping[Any, Any], place: Place) -> Any:
    return inner.get(place[1]) if place[0] else outer.get(place[1])


def _shape_of(passage: Any, reading: Reading) -> Shape | None:
    """The shape of a passage, None where its fields are not where one look finds them."""
    kind = type(passage)
    outer = passage if kind is dict else getattr(passage, "__dict__", None)
    if type(outer) is not dict or reading.tokens is not None or type(reading.text) is not str:
        return None
    found = places(outer)
    if found is None:
        return None
    inner_name, text, scores, sources = found
    inner = outer[inner_name] if inner_name is not None else _NONE
    score = scores[0] if scores else _NOWHERE
    source = sources[0] if sources else _NOWHERE
    if outer.get(text) is not reading.text or _at(outer, inner, score) is not reading.score:
        return None
    if _at(outer, inner, source) is not reading.source:
        return None
    return Shape(kind, tuple(outer), inner_name, tuple(inner), text, score, source, len(scores) <= 1)
