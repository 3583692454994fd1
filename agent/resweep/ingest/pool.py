"""Which events of a body are kept whole: the pool that labelling draws from.

An even sample, decided by a hash of the event's id, at a rate that follows from how many events of the body
fall into one minute of a config. The rate goes with the event, so that whatever is drawn from the pool later
has a known probability.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from resweep.domain.event import RetrievalEvent
from resweep.domain.sampling import chance
from resweep.domain.window import MINUTE

PER_MINUTE = 1000  # events of one config in one minute that a body may leave in the pool
SEED = "pool"
ID_LONGEST = 200
HITS_MAX = 100
TEXT_MAX = 4_000  # characters of one passage that are kept


def kept(events: Iterable[RetrievalEvent]) -> Iterator[RetrievalEvent]:
    """Yield the events to keep, each with its probability; what no store could hold is left out."""
    groups: dict[tuple[str, str, int], list[RetrievalEvent]] = {}
    for event in events:
        if _fits(event):
            key = (event.pipeline, event.config, int(event.ts // MINUTE))
            groups.setdefault(key, []).append(event)
    for group in groups.values():
        rate = min(1.0, PER_MINUTE / len(group))
        for event in group:
            if chance(event.id, SEED) < rate:
                yield _trimmed(event)._replace(p=event.p * rate)


def _fits(event: RetrievalEvent) -> bool:
    return 0 < len(event.id) <= ID_LONGEST and event.id.isprintable() and not event.probe


def _trimmed(event: RetrievalEvent) -> RetrievalEvent:
    """Return the event with what a case needs: no more passages than are judged, no book of a passage."""
    hits = tuple(
        hit if hit.text is None or len(hit.text) <= TEXT_MAX else hit._replace(text=hit.text[:TEXT_MAX])
        for hit in event.hits[:HITS_MAX]
    )
    return event._replace(
        hits=hits, trace_id=_name(event.trace_id), user_key=_name(event.user_key), stages=dict(event.stages)
    )


def _name(text: str | None) -> str | None:
    return text if text and len(text) <= ID_LONGEST and text.isprintable() else None
