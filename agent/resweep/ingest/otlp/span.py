"""A span as the mapping reads it, whatever encoding it came in."""

from __future__ import annotations

from dataclasses import dataclass, field

from resweep.ingest.otlp.hits import Listed


@dataclass(slots=True)
class Span:
    """One span that may be a retrieval. Ids are lower-case hex, times unix seconds.

    `fields` holds what `names.FIELDS` knows; `dropped` counts attributes that the sender's limits ate.
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
    listed: Listed = field(default_factory=Listed)
