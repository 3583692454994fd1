"""Listed documents of a span into hits."""

from __future__ import annotations

import ast
import json
from collections.abc import Mapping
from functools import lru_cache

from resweep.domain.event import Hit
from resweep.domain.values import ID_LONGEST, clean, identity, number, text_hash
from resweep.ingest.otlp.names import listed, place_of
from resweep.ingest.otlp.wire import decoded

SOURCES = ("source", "file_name", "file_path", "url", "document", "title")
SOURCE_LONGEST = 256
TOKENS = ("tokens", "token_count", "n_tokens")
METADATA_REMEMBERED = 512  # characters
METADATA_LONGEST = 100_000  # characters; a longer one is not taken apart
LARGE = 1e9


class Listed:
    """The documents that a span's flat attributes list.

    `hits` in the order of their indices; `first` the first index, None without any; `candidates` counts the
    documents that went into a stage; `malformed` the names of a list that say no index.
    """

    __slots__ = ("candidates", "first", "hits", "malformed")

    def __init__(self) -> None:
        self.hits: list[Hit] = []
        self.first: int | None = None
        self.candidates = 0
        self.malformed = 0


def from_attributes(attributes: Mapping[str, object], *, content: bool) -> Listed:
    """Return what attributes list: in any order, with gaps, of every list; malformed names are counted."""
    listing = Listed()
    found: dict[int, dict[int, object]] = {}
    candidates: set[int] = set()
    for key in filter(listed, attributes):
        place = place_of(key)
        if place is None:
            listing.malformed += 1
            continue
        name, index, which = place
        if name == "candidates":
            candidates.add(index)
        else:
            found.setdefault(index, {})[which] = attributes[key]
    order = sorted(found)
    gaps = bool(order) and order[-1] >= len(order)
    for i in order:
        part = found[i].get
        rank = i + 1 if gaps else None
        listing.hits.append(hit(part(0), part(1), part(2), part(3), rank, content=content))
    listing.first = order[0] if order else None
    listing.candidates = len(candidates)
    return listing


def from_list(raw: object, *, content: bool) -> tuple[Hit, ...] | None:
    """Return the hits of a structured list of documents, or of its JSON; None where it is none."""
    found = _listed(raw)
    return None if found is None else tuple(hit(*_document(d), None, content=content) for d in found)


def hit(
    raw_id: object, raw_score: object, metadata: object, raw_text: object, rank: int | None, *, content: bool
) -> Hit:
    """Return one hit of parts that may be undecoded; without `content`, text only stands in for an id."""
    raw_id = decoded(raw_id)
    id_ = raw_id if type(raw_id) is str and len(raw_id) <= ID_LONGEST else identity(raw_id)
    hash_ = text = None
    if content or not id_:
        text = _text(raw_text)
        hash_ = text_hash(text) if text is not None else None
    score, state = number(decoded(raw_score))
    source, tokens = facts_of(metadata)
    kept = clean(text) if content and text is not None else None
    return Hit(id_ or hash_ or text_hash(""), score, None, None, source, tokens, hash_, state, kept, rank)


def _text(content: object) -> str | None:
    text = decoded(content)
    return text if isinstance(text, str) else None


Facts = tuple[str | None, int | None]  # source, tokens
NO_FACTS: Facts = (None, None)


def facts_of(metadata: object) -> Facts:
    """Return source and tokens of a passage; those of short texts are remembered, since passages repeat."""
    if metadata is None:
        return NO_FACTS
    if isinstance(metadata, str | bytes):
        if len(metadata) <= METADATA_REMEMBERED:
            return _remembered(metadata)
        metadata = _unpacked(metadata) if len(metadata) <= METADATA_LONGEST else None
    return _stated(metadata) if isinstance(metadata, dict) else NO_FACTS


@lru_cache(maxsize=8192)
def _remembered(metadata: str | bytes) -> Facts:
    loaded = _unpacked(metadata)
    return _stated(loaded) if isinstance(loaded, dict) else NO_FACTS


def _unpacked(metadata: str | bytes) -> object:
    plain = decoded(metadata)
    return _loaded(plain) if isinstance(plain, str) and plain else plain


def _stated(metadata: Mapping[str, object]) -> Facts:
    found = (identity(metadata.get(name)) for name in SOURCES)
    counts = (_count(metadata.get(name)) for name in TOKENS)
    source = next((one for one in found if one), None)
    tokens = next((one for one in counts if one is not None), None)
    return (clean(source, SOURCE_LONGEST) if source else None, tokens)


def _listed(raw: object) -> list[object] | None:
    """Return a list of documents from a structured value or its JSON; None where it is none."""
    if isinstance(raw, str):
        raw = _loaded(raw)
    if isinstance(raw, dict):
        raw = next((raw[k] for k in ("documents", "results", "matches", "output") if k in raw), None)
    return raw if isinstance(raw, list) else None


def _loaded(text: str) -> object:
    """Return what JSON, or a Python literal sent in its place, says; None for neither."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        pass
    if len(text) > METADATA_LONGEST:
        return None
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return None


def _document(raw: object) -> tuple[object, object, object, object]:
    if not isinstance(raw, dict):
        return (None, None, None, raw if isinstance(raw, str) else None)
    inner = raw.get("document")
    raw = {**raw, **inner} if isinstance(inner, dict) else raw
    text = next((raw[k] for k in ("content", "text", "page_content") if isinstance(raw.get(k), str)), None)
    score = next((raw[k] for k in ("score", "relevance_score", "distance") if k in raw), None)
    return (raw.get("id"), score, raw.get("metadata"), text)


def _count(raw: object) -> int | None:
    value, _ = number(raw)
    return int(value) if value is not None and value >= 0 else None
