"""Ranked lists out of recorded retrievals: what the live system answered, probes included."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from resweep.domain.case import scope_of
from resweep.domain.errors import UsageError
from resweep.domain.event import RetrievalEvent
from resweep.domain.sample import normalised
from resweep.sweep.lists import Case, RankedList


def lists_from_events(
    events: Iterable[RetrievalEvent],
    cases: Sequence[Case],
    *,
    pipeline: str | None = None,
    config: str | None = None,
) -> dict[str, RankedList]:
    """Return the recorded list of each case that was asked, by case id.

    A case is joined to the event it came from, and to events with its query (as normalised for identity) or
    with its case id as event id; the deepest list wins, then the latest. One pipeline and one config are
    read: `config` (12 hex), else that of the latest event. Failed and half-read retrievals say nothing of
    depth and are passed over. Raises UsageError where the events are of several pipelines and none is named.
    """
    kept = [event for event in events if _usable(event) and pipeline in (None, event.pipeline)]
    pipelines = sorted({event.pipeline for event in kept})
    if len(pipelines) > 1:
        raise UsageError(
            f"expected events of one pipeline, got {', '.join(pipelines)}; name one with --pipeline"
        )
    current = config or (max(kept, key=lambda event: event.ts).config if kept else None)
    found = _Index([event for event in kept if event.config == current])
    lists = {case.case_id: found.of(case) for case in cases}
    return {case_id: as_list(event) for case_id, event in lists.items() if event is not None}


def _usable(event: RetrievalEvent) -> bool:
    return event.error is None and not event.partial


_ANY = "any"  # scope: under whatever filters


class _Index:
    """The deepest event by id, and by query with its filters: under others, other passages answer."""

    def __init__(self, events: Sequence[RetrievalEvent]) -> None:
        self.by_id: dict[str, RetrievalEvent] = {}
        self.by_query: dict[tuple[str, str], RetrievalEvent] = {}
        for event in events:
            self.by_id[event.id] = _deeper(self.by_id.get(event.id), event)
            if event.query:
                words = normalised(event.query)
                for scope in (scope_of(event.filters), _ANY):
                    self.by_query[words, scope] = _deeper(self.by_query.get((words, scope)), event)

    def of(self, case: Case) -> RetrievalEvent | None:
        """Return the event of a case; one without filters is joined to one without, else to any."""
        found = [self.by_id.get(case.event_id or case.case_id)]
        if case.query:
            words, scope = normalised(case.query), scope_of(case.filters)
            alike = self.by_query.get((words, scope))
            found.append(alike if alike or scope else self.by_query.get((words, _ANY)))
        events = [event for event in found if event is not None]
        return max(events, key=_depth_then_time, default=None)


def _depth_then_time(event: RetrievalEvent) -> tuple[int, float]:
    return len(event.hits), event.ts


def _deeper(kept: RetrievalEvent | None, event: RetrievalEvent) -> RetrievalEvent:
    return event if kept is None else max(kept, event, key=_depth_then_time)


def as_list(event: RetrievalEvent) -> RankedList:
    """Return the ranked list of an event, probe material included.

    It is complete where the probe or an unfilled request shows that the retriever had no more to give, or
    where nobody recorded what was asked for.
    """
    hits = event.hits
    cut = event.asked is not None and event.returned >= event.asked and len(hits) <= event.returned
    return RankedList(
        ids=[hit.id for hit in hits],
        scores=[hit.score for hit in hits],
        sources=[hit.source for hit in hits],
        tokens=[hit.tokens for hit in hits],
        text_hashes=[hit.text_hash for hit in hits] if any(hit.text_hash for hit in hits) else (),
        complete=not cut,
        query=event.query,
        candidates=event.candidates,
    )
