"""A span as the mapping reads it, whatever encoding it came in."""

from __future__ import annotations

from dataclasses import dataclass, field

Document = list[object]  # [id, score, metadata, content], None where absent; content may be undecoded


@dataclass(slots=True)
class Span:
    """One span that may be a retrieval. Ids are lower-case hex, times unix seconds.

    `fields` holds what `names.FIELDS` knows; `hits` and `candidates` documents by index as sent;
    `malformed` counts attributes of a list that say no index; `dropped` those the sender's limits ate.
    """

    trace_id: str
    span_id: str
    parent_id: str
    name: str
    start: float
    end: float
    service: str = ""
    dropped: int = 0
    failed: bool = False
    fields: dict[str, object] = field(default_factory=dict)
    hits: dict[int, Document] = field(default_factory=dict)
    candidates: dict[int, Document] = field(default_factory=dict)
    malformed: int = 0
