"""The passages of one answer in one pass, for counting alone: what `fold` would count, without the hits.

Almost all passages of an answer look like the one before: the same keys in the same order, one level of
metadata. Where that holds each field is one look-up; where it does not, `read` is asked. A test holds this
against `Hits` and `domain.fold`: both must count the same.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from resweep.domain.values import SCORE_LARGEST, identity, number, text_hash
from resweep.record.hits import OVERHEAD_BYTES, Hits, source_name
from resweep.record.reading import read
from resweep.record.shape import NO_SHAPE, NOTHING, shape_of


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


class Lean:
    """Counts answers. Shares what `hits` remembers of texts."""

    def __init__(self, hits: Hits) -> None:
        self._hits = hits
        self._shape = NO_SHAPE

    def totals(self, passages: Sequence[Any]) -> Totals:
        """Return what the passages of one answer come to."""
        hits = self._hits
        hits.held_bytes += OVERHEAD_BYTES
        shape = self._shape
        kind, keys, inner_name, inner_keys, text_key = (
            shape.kind,
            shape.keys,
            shape.inner,
            shape.inner_keys,
            shape.text,
        )
        scored, sourced, score_alone = shape.score, shape.source, shape.score_alone
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
                inner = outer.get(inner_name, NOTHING)
                text = outer.get(text_key)
                fact = remembered.get(hash(text)) if type(text) is str else None
                if type(inner) is not dict:
                    inner = NOTHING
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
        self._shape = shape_of(passage, reading) or NO_SHAPE
        stated = reading.tokens if type(reading.tokens) is int and reading.tokens >= 0 else None
        name = None
        if reading.text is not None or reading.id is None:
            fact = self._hits.derive(reading.text)
            name = fact.text_hash
            stated = fact.tokens if stated is None else stated
        score, state = number(reading.score)
        source = None if reading.source is None else source_name(reading.source)
        return name or identity(reading.id) or _EMPTY, stated, score, state, source


_EMPTY = text_hash("")
