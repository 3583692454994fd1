"""Spans to retrieval events: which spans are retrievals, and what each says.

A span whose sender dropped attributes, or whose documents do not begin at index 0, lost part of its answer:
it is marked truncated and never counted as an answer of what is left.
"""

from __future__ import annotations

import ast
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from resweep.domain.event import ErrorInfo, Hit, RetrievalEvent, event_id
from resweep.domain.faults import classify
from resweep.domain.values import as_text, clean, identity, label, number, text_hash
from resweep.ingest.otlp.names import CONTENT, ID, METADATA, RERANK_KINDS, RETRIEVAL_KINDS, SCORE, SPAN_NAMES
from resweep.ingest.otlp.span import Document, Span

SOURCES = ("source", "file_name", "file_path", "url", "document", "title")
SOURCE_LONGEST = 256
TOKENS = ("tokens", "token_count", "n_tokens")
METADATA_LONGEST = 100_000  # characters; a longer one is not taken apart
UNDECLARED = "unknown"


@dataclass(slots=True)
class Mapped:
    """What a request came to: its events, and what was odd about it."""

    events: list[RetrievalEvent] = field(default_factory=list)
    facts: list[Mapping[str, object]] = field(default_factory=list)
    malformed: int = 0
    truncated: int = 0
    own: int = 0  # spans of our own recorder: counted there already


def mapped(spans: Iterable[Span], configs: Mapping[str, str], *, content: bool) -> Mapped:
    """Return the retrieval events among some spans.

    `configs` names the config id in force by pipeline, for spans that do not say it. With `content` off, no
    text is kept.
    """
    result = Mapped()
    kept = [span for span in spans if _interesting(span)]
    rerankers = {span.parent_id: span for span in kept if _is(span, RERANK_KINDS) and span.parent_id}
    for span in kept:
        result.malformed += span.malformed
        if not _is_retrieval(span):
            continue
        if "event_id" in span.fields:
            result.own += 1
            continue
        event = _event(span, rerankers.get(span.parent_id), configs, content=content)
        result.truncated += event.truncated
        result.events.append(event)
    return result


def _interesting(span: Span) -> bool:
    return _is_retrieval(span) or _is(span, RERANK_KINDS)


def _is(span: Span, kinds: tuple[str, ...]) -> bool:
    kind = span.fields.get("kind") or span.fields.get("operation")
    return isinstance(kind, str) and kind.casefold() in kinds


def _is_retrieval(span: Span) -> bool:
    if _is(span, RETRIEVAL_KINDS):
        return True
    named = "kind" in span.fields or "operation" in span.fields
    return not named and (bool(span.hits) or span.name in SPAN_NAMES)


def _event(span: Span, reranker: Span | None, configs: Mapping[str, str], *, content: bool) -> RetrievalEvent:
    fields = span.fields
    pipeline = label(fields.get("pipeline") or span.service or None)
    config = str(fields.get("config") or configs.get(pipeline) or UNDECLARED)[:12]
    hits, known = _hits(span, content=content)
    truncated = span.dropped > 0 or (bool(span.hits) and 0 not in span.hits)
    asked = _count(fields.get("asked", fields.get("asked_old")))
    returned = _count(fields.get("returned", fields.get("count")))
    failed = span.failed or "error" in fields
    query = fields.get("query")
    return RetrievalEvent(
        id=_id(span, config),
        ts=span.end or span.start,
        pipeline=pipeline,
        config=config,
        asked=asked,
        returned=len(hits) if returned is None else returned,
        hits=hits,
        query=clean(as_text(query)) if content and query else None,
        candidates=_count(fields.get("candidates")) or (len(span.candidates) or None),
        reranked=_count(fields.get("reranked")) or (len(reranker.candidates) if reranker else None),
        latency_s=max(0.0, span.end - span.start) if span.end and span.start else None,
        stages={"rerank_s": max(0.0, reranker.end - reranker.start)} if reranker else {},
        error=_error(fields, content=content) if failed else None,
        trace_id=span.trace_id or None,
        truncated=truncated or (not known and not failed),
    )


def _id(span: Span, config: str) -> str:
    """Name an event by its span: the same span delivered twice is the same event."""
    entropy = int(span.trace_id[-12:] + span.span_id, 16) & ((1 << 80) - 1) if span.span_id else 0
    return event_id(round((span.end or span.start) * 1000), entropy, config)


def _error(fields: Mapping[str, object], *, content: bool) -> ErrorInfo:
    name = as_text(fields.get("error")) or "Error"
    return ErrorInfo(classify(name.rpartition(".")[2], None).name, name if content else None)


def _hits(span: Span, *, content: bool) -> tuple[tuple[Hit, ...], bool]:
    """Return the hits of a span, and whether it says anything of what was returned."""
    if span.hits:
        gaps = sorted(span.hits) != list(range(len(span.hits)))
        hits = (
            _hit(span.hits[index], index + 1 if gaps else None, content=content)
            for index in sorted(span.hits)
        )
        return tuple(hits), True
    for name in ("documents", "output"):
        listed = _listed(span.fields.get(name))
        if listed is not None:
            return tuple(_hit(_document(d), None, content=content) for d in listed), True
    return (), "count" in span.fields or "returned" in span.fields or _empty_said(span)


def _empty_said(span: Span) -> bool:
    """Whether the absence of documents means an empty answer: the flat forms write none for none."""
    kind = span.fields.get("kind")
    return isinstance(kind, str) and kind.casefold() == "retriever"


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


def _document(raw: object) -> Document:
    if not isinstance(raw, dict):
        return [None, None, None, raw if isinstance(raw, str) else None]
    inner = raw.get("document")
    raw = {**raw, **inner} if isinstance(inner, dict) else raw
    text = next((raw[k] for k in ("content", "text", "page_content") if isinstance(raw.get(k), str)), None)
    score = next((raw[k] for k in ("score", "relevance_score", "distance") if k in raw), None)
    return [raw.get("id"), score, raw.get("metadata"), text]


def _hit(document: Document, rank: int | None, *, content: bool) -> Hit:
    id_ = identity(document[ID])
    hash_ = None
    text = None
    if id_ is None or content:
        text = _text(document[CONTENT])
        hash_ = text_hash(text) if text is not None else None
    metadata = _metadata(document[METADATA])
    score, state = number(document[SCORE])
    return Hit(
        id=id_ or hash_ or text_hash(""),
        score=score,
        source=_source(metadata),
        tokens=next((n for k in TOKENS if (n := _count(metadata.get(k))) is not None), None),
        text_hash=hash_,
        score_state=state,
        text=clean(text) if content and text is not None else None,
        rank=rank,
    )


def _text(content: object) -> str | None:
    if content is None or isinstance(content, str):
        return content
    text = getattr(content, "string_value", None)  # a protobuf value, decoded only now
    return text if isinstance(text, str) else None


def _metadata(raw: object) -> Mapping[str, object]:
    if isinstance(raw, str) and raw:
        raw = _loaded(raw) if len(raw) <= METADATA_LONGEST else None
    return raw if isinstance(raw, dict) else {}


def _source(metadata: Mapping[str, object]) -> str | None:
    for name in SOURCES:
        found = identity(metadata.get(name))
        if found:
            return clean(found, SOURCE_LONGEST)
    return None


def _count(raw: object) -> int | None:
    value, _ = number(raw)
    return int(value) if value is not None and value >= 0 else None
