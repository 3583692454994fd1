"""What one passage says of itself, whatever it is: id, text, scores, source, tokens.

Which key means what is decided once per shape (the tuple of keys), then read by that plan.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any, NamedTuple

from resweep.domain.event import ScoreKind
from resweep.record.failure import spare_the_interrupt

_IDS = ("id", "_id", "id_", "node_id", "chunk_id", "passage_id", "point_id", "uuid", "uid", "pk", "key")
_DOCUMENT_IDS = ("doc_id", "document_id", "docid", "ref_doc_id", "parent_id")
_TEXTS = ("page_content", "text", "content", "passage", "chunk_text", "chunk", "body", "snippet", "contents")
_RERANK = (
    "relevance_score",
    "rerank_score",
    "reranker_score",
    "rerank_relevance_score",
    "cross_encoder_score",
)
_SCORES: Mapping[str, ScoreKind | None] = {
    "score": None,
    "_score": None,
    "similarity": "similarity",
    "similarity_score": "similarity",
    "cosine_similarity": "similarity",
    "_similarity": "similarity",
    "_relevance_score": "similarity",
    "distance": "distance",
    "_distance": "distance",
    "dist": "distance",
    "vector_distance": "distance",
    "cosine_distance": "distance",
    "l2_distance": "distance",
}
_SOURCES = (
    "source",
    "source_url",
    "url",
    "uri",
    "file_path",
    "file_name",
    "filename",
    "path",
    "file",
    "source_id",
    *_DOCUMENT_IDS,
    "title",
)
_TOKENS = ("tokens", "n_tokens", "token_count", "num_tokens")
_METADATA = ("metadata", "meta", "payload", "properties", "extra_info", "_source", "entity", "fields")
_NODES = ("node", "document", "doc")
_ATTRIBUTES = (*_IDS, *_DOCUMENT_IDS, *_TEXTS, *_RERANK, *_SCORES, *_SOURCES, *_TOKENS, *_METADATA, *_NODES)
_DEEPEST = 3


class Reading(NamedTuple):
    """What was read, as it was: values are cleaned later. `base` is the score of an earlier stage."""

    id: object = None
    text: object = None
    score: object = None
    kind: ScoreKind | None = None
    base: object = None
    source: object = None
    tokens: object = None


class Plan(NamedTuple):
    """Which keys of one shape hold what, best first."""

    ids: tuple[str, ...]
    texts: tuple[str, ...]
    rerank: tuple[str, ...]
    scores: tuple[str, ...]
    sources: tuple[str, ...]
    tokens: tuple[str, ...]
    inner: tuple[str, ...]


_BLANK = Reading()


def read(passage: object) -> Reading:
    """Return what a passage says of itself; nothing is raised for one that says nothing."""
    try:
        return _read(passage, 0)
    except BaseException as error:  # noqa: BLE001 - a passage may do anything when looked at
        spare_the_interrupt(error)
        return _BLANK


def _read(passage: Any, depth: int) -> Reading:
    kind = passage.__class__
    if kind is dict:
        return _from_mapping(passage, depth)
    if kind is str or kind is bytes:
        return Reading(text=passage)
    if kind is tuple or kind is list:
        return _from_row(passage, depth)
    if isinstance(passage, Mapping):
        return _from_mapping(passage, depth)
    if isinstance(passage, int):
        return Reading(id=passage)
    return _from_object(passage, depth)


@lru_cache(maxsize=512)
def _plan(shape: tuple[object, ...], top: bool) -> Plan:
    has = frozenset(name for name in shape if isinstance(name, str))
    return Plan(
        ids=tuple(n for n in ((*_IDS, *_DOCUMENT_IDS) if top else _IDS) if n in has),
        texts=tuple(n for n in (*_TEXTS, "document") if n in has),
        rerank=tuple(n for n in _RERANK if n in has),
        scores=tuple(n for n in _SCORES if n in has),
        sources=tuple(n for n in _SOURCES if n in has),
        tokens=tuple(n for n in _TOKENS if n in has),
        inner=tuple(n for n in (*_METADATA, *_NODES) if n in has),
    )


def _from_mapping(at: Mapping[str, Any], depth: int) -> Reading:
    plan = _plan(tuple(at), depth == 0)
    id_ = text = source = tokens = None
    for name in plan.ids:
        if (id_ := at[name]) is not None:
            break
    for name in plan.texts:
        if isinstance(value := at[name], str | bytes):
            text = value
            break
    for name in plan.sources:
        if isinstance(value := at[name], str | int) or hasattr(value, "__fspath__"):
            source = value
            break
    for name in plan.tokens:
        tokens = at[name]
    score, kind, base = _scores(at, plan)
    own = Reading(id_, text, score, kind, base, source, tokens)
    if plan.inner and depth < _DEEPEST:
        for name in plan.inner:
            own = _with_inner(own, at[name], depth + 1)
    return own


def _scores(at: Mapping[str, Any], plan: Plan) -> tuple[object, ScoreKind | None, object]:
    """The score the passages are ranked by, its kind, and the score of the stage before."""
    score: object = None
    kind: ScoreKind | None = None
    for name in plan.scores:
        if (score := at[name]) is not None:
            kind = _SCORES[name]
            break
    for name in plan.rerank:
        if at[name] is not None:
            return at[name], "rerank", score
    return score, kind, None


def _with_inner(own: Reading, inner: Any, depth: int) -> Reading:
    """Fill what is missing from what is nested: the metadata, or the passage that a score was put beside."""
    if not inner or isinstance(inner, str | bytes | list | tuple):
        return own
    nested = _read(inner, depth)
    score, kind, base = own.score, own.kind, own.base
    if score is None:
        score, kind, base = nested.score, nested.kind, nested.base
    elif nested.kind == "rerank" and kind is None:
        score, kind, base = nested.score, "rerank", score
    return Reading(
        own.id if own.id is not None else nested.id,
        own.text if own.text is not None else nested.text,
        score,
        kind,
        base,
        own.source if own.source is not None else nested.source,
        own.tokens if own.tokens is not None else nested.tokens,
    )


def _from_row(row: Any, depth: int) -> Reading:
    """`(passage, score)`, or a database row: the first value names it, the last float scores it."""
    if hasattr(row, "_asdict"):
        return _from_mapping(row._asdict(), depth)
    if len(row) == 2 and not isinstance(row[0], int | float):
        inner, score = row
        if isinstance(inner, str) and len(inner) <= 128 and not any(c.isspace() for c in inner):
            return Reading(id=inner, score=score)
        return _read(inner, depth + 1)._replace(score=score) if depth < _DEEPEST else _BLANK
    if row and not isinstance(row[0], str | bytes | int | float | None) and depth < _DEEPEST:
        scored = next((value for value in row[1:] if isinstance(value, int | float)), None)
        return _read(row[0], depth + 1)._replace(score=scored)
    texts = [value for value in row if isinstance(value, str)]
    floats = [value for value in row if isinstance(value, float)]
    metadata = next((value for value in row if isinstance(value, Mapping)), None)
    own = Reading(
        id=row[0] if row and isinstance(row[0], str | int) else None,
        text=max(texts, key=len, default=None) if len(texts) > 1 or not isinstance(row[0], str) else None,
        score=floats[-1] if floats else None,
    )
    return _with_inner(own, metadata, depth + 1)


def _from_object(passage: Any, depth: int) -> Reading:
    held = getattr(passage, "__dict__", None)
    if held:
        reading = _from_mapping(held, depth)
        if reading != _BLANK:
            return reading
    if hasattr(passage, "_mapping"):  # a row of SQLAlchemy; a mapped object may be one of its columns
        columns = dict(passage._mapping)
        own = _from_mapping(columns, depth)
        for value in columns.values():
            if hasattr(value, "__mapper__"):
                own = _with_inner(own, value, depth + 1)
        return own
    if hasattr(passage, "to_dict") and hasattr(passage, "index"):  # a row of pandas
        return _from_mapping(passage.to_dict(), depth)
    found = {name: value for name in _ATTRIBUTES if (value := getattr(passage, name, None)) is not None}
    return _from_mapping({k: v for k, v in found.items() if not callable(v)}, depth)


Place = tuple[bool, str | None]  # whether a field stands in the metadata, and its key
Places = tuple[str | None, str, tuple[Place, ...], tuple[Place, ...], tuple[Place, ...]]


def places(outer: Mapping[str, Any]) -> Places | None:
    """Return where the fields of a simple passage may stand: metadata and text; ids, scores, sources.

    None for one that is not simple: more than one thing nested, or nested deeper.
    """
    plan = _plan(tuple(outer), True)
    if len(plan.inner) > 1 or not plan.texts or plan.rerank or plan.tokens:
        return None
    name = plan.inner[0] if plan.inner else None
    inner = outer[name] if name is not None else {}
    if type(inner) is not dict:
        return None
    nested = _plan(tuple(inner), False)
    if nested.inner or nested.rerank or nested.tokens:
        return None
    return (
        name,
        plan.texts[0],
        _all(plan.ids, nested.ids),
        _all(plan.scores, nested.scores),
        _all(plan.sources, nested.sources),
    )


def _all(outer: tuple[str, ...], inner: tuple[str, ...]) -> tuple[Place, ...]:
    return (*((False, name) for name in outer), *((True, name) for name in inner))
