"""Spans to retrieval events: which spans are retrievals, and what each says.

A span whose sender dropped attributes, or whose documents do not begin at index 0, lost part of its answer:
it is marked truncated and never counted as an answer of what is left.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from resweep.domain.event import ErrorInfo, Hit, RetrievalEvent
from resweep.domain.faults import classify
from resweep.domain.values import as_text, clean, label, number
from resweep.ingest.otlp.hits import from_list
from resweep.ingest.otlp.names import GENERATION_KINDS, RERANK_KINDS, RETRIEVAL_KINDS, SPAN_NAMES
from resweep.ingest.otlp.span import Span

UNDECLARED = "unknown"
DEPTH_MAX = 1_000_000
TOKENS_MAX = 100_000_000  # of one prompt
LATENCY_MAX_S = 86_400.0  # a span that takes longer has a broken clock
_CONFIG = re.compile("[0-9a-f]{12}")


class Fact(NamedTuple):
    """What the span of a generation says of the answer's side: who answered, and how long its prompt was."""

    pipeline: str
    config: str
    ts: float
    response_model: str | None
    system_fingerprint: str | None
    prompt_tokens: int | None


@dataclass(slots=True)
class Mapped:
    """What a request came to: its events, and what was odd about it."""

    events: list[RetrievalEvent] = field(default_factory=list)
    facts: list[Fact] = field(default_factory=list)
    spans: int = 0
    malformed: int = 0
    truncated: int = 0
    own: int = 0  # spans of our own recorder: counted there already


def mapped(spans: Iterable[Span], configs: Mapping[str, str], *, content: bool) -> Mapped:
    """Return the retrieval events among some spans.

    `configs` names the config id in force by pipeline, for spans that do not say it. With `content` off, no
    text is kept.
    """
    result = Mapped()
    rerankers, retrievals = _sorted(spans, result, configs)
    for span in retrievals:
        result.malformed += span.listed.malformed
        if "event_id" in span.fields:
            result.own += 1
            continue
        event = _event(span, rerankers.get(span.parent_id), configs, content=content)
        result.truncated += event.truncated
        result.events.append(event)
    return result


def _sorted(
    spans: Iterable[Span], result: Mapped, configs: Mapping[str, str]
) -> tuple[Mapping[str, Span], Sequence[Span]]:
    """Return the rerankers by the span they work for, and the retrievals; note what generations say."""
    rerankers: dict[str, Span] = {}
    retrievals = []
    for span in spans:
        result.spans += 1
        if _is_retrieval(span):
            retrievals.append(span)
        elif _is(span, GENERATION_KINDS):
            result.facts.append(_fact(span, configs))
        elif span.parent_id and _is(span, RERANK_KINDS):
            rerankers[span.parent_id] = span
    return rerankers, retrievals


def _is(span: Span, kinds: tuple[str, ...]) -> bool:
    """Whether kind or operation of a span is one of some: one of them may say less."""
    said = (span.fields.get("kind"), span.fields.get("operation"))
    return any(isinstance(one, str) and one.casefold() in kinds for one in said)


def _is_retrieval(span: Span) -> bool:
    if _is(span, RETRIEVAL_KINDS):
        return True
    named = "kind" in span.fields or "operation" in span.fields
    return not named and (bool(span.listed.hits) or span.name in SPAN_NAMES)


def _whose(span: Span, configs: Mapping[str, str]) -> tuple[str, str]:
    """Return pipeline and config of a span: what it says itself, else its service and the config in force."""
    pipeline = label(as_text(span.fields.get("pipeline")) or span.service or None)
    said = as_text(span.fields.get("config"))
    config = said if _CONFIG.fullmatch(said) else configs.get(pipeline)
    return pipeline, config or UNDECLARED


def _fact(span: Span, configs: Mapping[str, str]) -> Fact:
    names = (span.fields.get("response_model"), span.fields.get("system_fingerprint"))
    model, fingerprint = (label(name) if isinstance(name, str) and name else None for name in names)
    tokens = _count(span.fields.get("prompt_tokens"), TOKENS_MAX)
    return Fact(*_whose(span, configs), span.end or span.start, model, fingerprint, tokens)


def _event(span: Span, reranker: Span | None, configs: Mapping[str, str], *, content: bool) -> RetrievalEvent:
    fields = span.fields
    pipeline, config = _whose(span, configs)
    hits, known = _hits(span, content=content)
    truncated = span.dropped > 0 or bool(span.listed.first)
    asked = _count(fields.get("asked", fields.get("asked_old")))
    returned = _count(fields.get("returned", fields.get("count")))
    failed = span.failed or "error" in fields
    query = fields.get("query")
    return RetrievalEvent(
        id=f"{span.trace_id}:{span.span_id}",  # the same span delivered twice is the same event
        ts=span.end or span.start,
        pipeline=pipeline,
        config=config,
        asked=asked,
        returned=len(hits) if returned is None else returned,
        hits=hits,
        query=clean(as_text(query)) if content and query else None,
        candidates=_count(fields.get("candidates")) or (span.listed.candidates or None),
        reranked=_count(fields.get("reranked")) or (reranker.listed.candidates if reranker else None),
        latency_s=_seconds(span) if span.end and span.start else None,
        stages={} if reranker is None or (took := _seconds(reranker)) is None else {"rerank_s": took},
        error=_error(fields, content=content) if failed else None,
        trace_id=span.trace_id or None,
        truncated=truncated or (not known and not failed),
    )


def _seconds(span: Span) -> float | None:
    took = max(0.0, span.end - span.start)
    return took if took <= LATENCY_MAX_S else None


def _error(fields: Mapping[str, object], *, content: bool) -> ErrorInfo:
    name = as_text(fields.get("error")) or "Error"
    return ErrorInfo(classify(name.rpartition(".")[2], None).name, name if content else None)


def _hits(span: Span, *, content: bool) -> tuple[tuple[Hit, ...], bool]:
    """Return the hits of a span, and whether it says anything of what was returned."""
    if span.listed.hits:
        return tuple(span.listed.hits), True
    for name in ("documents", "output"):
        found = from_list(span.fields.get(name), content=content)
        if found is not None:
            return found, True
    return (), "count" in span.fields or "returned" in span.fields or _empty_said(span)


def _empty_said(span: Span) -> bool:
    """Whether the absence of documents means an empty answer: the flat forms write none for none."""
    kind = span.fields.get("kind")
    return isinstance(kind, str) and kind.casefold() == "retriever"


def _count(raw: object, most: int = DEPTH_MAX) -> int | None:
    if raw is None:
        return None
    value, _ = number(raw)
    return int(value) if value is not None and 0 <= value <= most else None
