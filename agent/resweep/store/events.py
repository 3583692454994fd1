"""Sampled events: a narrow row to find one by, and the event itself as it came."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec
from sqlalchemy import ColumnElement, Connection, delete, func, insert, select

from resweep.domain.errors import InputError
from resweep.domain.event import RetrievalEvent
from resweep.store.canaries import drop_orphans, forget_questions
from resweep.store.configs import Key, Ref
from resweep.store.forgetting import drawn_for, forget_draws
from resweep.store.names import label
from resweep.store.part import Part, chunks
from resweep.store.probes import forget_probes
from resweep.store.schema import configs, draws, events, feedback, pipelines

EVENT_MAX = 1 << 20  # bytes of one event as stored
_encoder = msgspec.msgpack.Encoder()
_decoder = msgspec.msgpack.Decoder(RetrievalEvent)


def keep(connection: Connection, new: Iterable[RetrievalEvent], refs: Mapping[Key, Ref]) -> list[str]:
    """Insert the events that are not there yet; return their ids."""
    by_id = {event.id: event for event in new}
    for some in chunks(list(by_id)):
        for known in connection.execute(select(events.c.id).where(events.c.id.in_(some))).scalars():
            by_id.pop(known, None)
    rows = [_row(event, refs[label(event.pipeline), event.config].id) for event in by_id.values()]
    if rows:
        connection.execute(insert(events), rows)
    return list(by_id)


def trim(connection: Connection, before: float, most: int) -> int:
    """Remove the events older than a time, and the oldest beyond a number; return how many."""
    removed = connection.execute(delete(events).where(events.c.ts < before)).rowcount
    surplus = (connection.execute(select(func.count()).select_from(events)).scalar() or 0) - most
    if surplus > 0:
        oldest = select(events.c.id).order_by(events.c.ts, events.c.id).limit(surplus)
        removed += connection.execute(delete(events).where(events.c.id.in_(oldest))).rowcount
    if removed:
        drop_orphans(connection)
    return removed


def _delete(connection: Connection, event_ids: Sequence[str]) -> int:
    removed = 0
    forget_draws(connection, event_ids)
    forget_questions(connection, event_ids)
    forget_probes(connection, event_ids)
    for some in chunks(event_ids):
        connection.execute(delete(feedback).where(feedback.c.event_id.in_(some)))
        removed += connection.execute(delete(events).where(events.c.id.in_(some))).rowcount
    return removed


def _row(event: RetrievalEvent, config_id: int) -> dict[str, Any]:
    try:
        payload = _encoder.encode(event)
    except (TypeError, ValueError, OverflowError, RecursionError) as error:
        raise InputError(f"event {event.id!r}: expected plain data; got {error}") from None
    if len(payload) > EVENT_MAX:
        raise InputError(f"event {event.id!r}: expected at most {EVENT_MAX} bytes; got {len(payload)}")
    return {
        "id": event.id,
        "config_id": config_id,
        "ts": event.ts,
        "query_key": _signed(event.query_key),
        "trace_id": event.trace_id or None,
        "user_key": event.user_key or None,
        "payload": payload,
    }


def _signed(key: int | None) -> int | None:
    """Bring an unsigned 64-bit key into the range of a column."""
    return None if key is None else (key + 2**63) % 2**64 - 2**63


class EventsPart(Part):
    """Reading sampled events, and removing them on request."""

    def events(self, pipeline: str, since_ts: float, until_ts: float) -> Sequence[RetrievalEvent]:
        """Return the sampled events still kept with a time in [since, until), in time order."""
        of = (pipelines.c.name == label(pipeline)) & (events.c.ts >= since_ts) & (events.c.ts < until_ts)
        return self._events(of)

    def event(self, event_id: str) -> RetrievalEvent | None:
        """Return one sampled event, None where it is not kept."""
        return next(iter(self._events(events.c.id == event_id)), None)

    def events_of_trace(self, trace_id: str) -> Sequence[RetrievalEvent]:
        """Return the sampled events of a trace, in time order."""
        return self._events(events.c.trace_id == trace_id)

    def events_of_query(self, pipeline: str, query_key: int) -> Sequence[RetrievalEvent]:
        """Return the sampled events of one normalised query, in time order."""
        of = (pipelines.c.name == label(pipeline)) & (events.c.query_key == _signed(query_key))
        return self._events(of)

    def delete_events(self, event_ids: Sequence[str]) -> int:
        """Remove events, what was said of them, and the cases made of them alone; counts stay.

        A case that a reviewer keeps stays. Return how many events went.
        """
        with self._db.write() as connection:
            removed = _delete(connection, event_ids)
        self._db.forget()
        return removed

    def delete_user(self, user_key: str) -> int:
        """Remove the events of one user and all made of them, as `delete_events`, and what that user said.

        Return how many events went.
        """
        query = select(events.c.id).where(events.c.user_key == user_key)
        with self._db.write() as connection:
            ids = {*connection.execute(query).scalars(), *drawn_for(connection, user_key)}
            removed = _delete(connection, sorted(ids))
            connection.execute(delete(feedback).where(feedback.c.rater == user_key))
        self._db.forget()
        return removed

    def delete_older(self, before: float) -> int:
        """Remove the events before a time (unix s) and all made of them, as `delete_events`.

        Cases of traffic last asked before then go, too, with whatever was judged, unless a reviewer keeps
        them. Return how many events went.
        """
        old = select(draws.c.event_id).where(draws.c.ts < before)
        with self._db.write() as connection:
            ids = set(connection.execute(select(events.c.id).where(events.c.ts < before)).scalars())
            removed = _delete(connection, sorted(ids | set(connection.execute(old).scalars())))
        self._db.forget()
        return removed

    def delete_rater(self, rater: str) -> int:
        """Remove everything one rater said; counts stay. Return how many words went."""
        with self._db.write() as connection:
            removed = connection.execute(delete(feedback).where(feedback.c.rater == rater)).rowcount
        self._db.forget()
        return removed

    def _events(self, condition: ColumnElement[bool]) -> Sequence[RetrievalEvent]:
        query = (
            select(events.c.payload)
            .join(configs, events.c.config_id == configs.c.id)
            .join(pipelines, configs.c.pipeline_id == pipelines.c.id)
            .where(condition)
            .order_by(events.c.ts, events.c.id)
        )
        with self._db.read() as connection:
            payloads = connection.execute(query).scalars().all()
        return [_decoder.decode(payload) for payload in payloads]
