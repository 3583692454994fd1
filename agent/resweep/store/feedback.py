"""Feedback: late, doubled, reversed, or for a retrieval nobody knows yet.

It counts where and when the retrieval was, which the event id says by itself. Counters take each (event,
kind, rater) once and never fall. Windows hold what stands: of `positive` and `negative` the last word of a
rater. History is kept either way.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from sqlalchemy import ColumnElement, Connection, RowMapping, and_, delete, func, insert, select, update

from resweep.domain.event import Feedback, parse_event_id
from resweep.domain.window import MINUTE
from resweep.store.configs import Ref
from resweep.store.intake import AHEAD_S, check_feedback
from resweep.store.names import label
from resweep.store.part import Part, chunks
from resweep.store.rows import FeedbackRow
from resweep.store.schema import configs, events, feedback, pipelines, tallies, windows
from resweep.store.tally import HOUR, Tally

VOTES = ("positive", "negative")  # of these a rater's last word stands
EXPIRED = "feedback_expired"


class Place(NamedTuple):
    """The retrieval's config and minute."""

    ref: Ref
    minute: int


def take(connection: Connection, new: Iterable[Feedback], tally: Tally, now: float) -> int:
    """Keep feedback and count what is new; return how many were new."""
    return sum(_take_one(connection, one, tally, now) for one in new)


def attach(
    connection: Connection, event_ids: Sequence[str], config_ids: Iterable[str], tally: Tally, now: float
) -> None:
    """Count feedback that was kept aside until one of these events or configs came."""
    waiting = [*_aside(connection, feedback.c.event_id, event_ids)]
    waiting += _aside(connection, feedback.c.config_hint, sorted(set(config_ids)))
    for row in {(r["event_id"], r["kind"], r["rater"]): r for r in waiting}.values():
        place = _locate(connection, row["event_id"], now)
        if place is not None:
            connection.execute(
                update(feedback).where(_same(row)).values(config_id=place.ref.id, minute=place.minute)
            )
            _count(connection, row["event_id"], row["kind"], row["rater"], place, tally)


def expire(connection: Connection, before: float) -> int:
    """Give up feedback that was kept aside since before a time; count and return how many."""
    late = feedback.c.config_id.is_(None) & (feedback.c.received_at < before)
    gone = connection.execute(delete(feedback).where(late)).rowcount
    if gone:
        at = tallies.c.name == EXPIRED
        if not connection.execute(update(tallies).where(at).values(value=tallies.c.value + gone)).rowcount:
            connection.execute(insert(tallies).values(name=EXPIRED, value=gone))
    return gone


def age(connection: Connection, before: float) -> int:
    """Remove what was said before a time; it stays counted. Return how many words went."""
    old = feedback.c.config_id.is_not(None) & (feedback.c.received_at < before)
    return connection.execute(delete(feedback).where(old)).rowcount


def _take_one(connection: Connection, one: Feedback, tally: Tally, now: float) -> bool:
    rater = one.rater or ""
    key = {"event_id": one.event_id, "kind": one.kind, "rater": rater}
    at = _at(**key)
    known = connection.execute(select(feedback).where(at)).mappings().first()
    if known is not None:
        if one.ts > known["last_ts"]:  # said again later, so perhaps changed back
            connection.execute(update(feedback).where(at).values(last_ts=one.ts))
            _vote(connection, one.event_id, rater, tally)
        return False
    place = _locate(connection, one.event_id, now)
    parts = parse_event_id(one.event_id)
    connection.execute(
        insert(feedback).values(
            **key,
            id=one.id,
            ts=one.ts,
            last_ts=one.ts,
            received_at=now,
            config_hint=parts.config if parts else None,
            config_id=place.ref.id if place else None,
            minute=place.minute if place else None,
            voted=False,
        )
    )
    if place is not None:
        _count(connection, one.event_id, one.kind, rater, place, tally)
    return True


def _count(connection: Connection, event_id: str, kind: str, rater: str, place: Place, tally: Tally) -> None:
    tally.first_feedback(place.ref, kind)
    _vote(connection, event_id, rater, tally)


def _vote(connection: Connection, event_id: str, rater: str, tally: Tally) -> None:
    """Let a rater's last word stand, and every kind that is no vote."""
    rows = (
        connection.execute(
            select(feedback).where(
                feedback.c.event_id == event_id, feedback.c.rater == rater, feedback.c.minute.is_not(None)
            )
        )
        .mappings()
        .all()
    )
    votes = [row for row in rows if row["kind"] in VOTES]
    last = max(votes, key=lambda row: (row["last_ts"], row["kind"] == "negative"), default=None)
    for row in rows:
        stands = row["kind"] not in VOTES or row is last
        if stands != row["voted"]:
            connection.execute(update(feedback).where(_same(row)).values(voted=stands))
            tally.feedback_stands(row["config_id"], row["minute"], row["kind"], 1 if stands else -1)


def _same(row: RowMapping) -> ColumnElement[bool]:
    return _at(row["event_id"], row["kind"], row["rater"])


def _at(event_id: str, kind: str, rater: str) -> ColumnElement[bool]:
    return and_(feedback.c.event_id == event_id, feedback.c.kind == kind, feedback.c.rater == rater)


def _aside(
    connection: Connection, column: ColumnElement[str | None], values: Sequence[str]
) -> Iterable[RowMapping]:
    for some in chunks(values):
        query = select(feedback).where(feedback.c.config_id.is_(None), column.in_(some))
        yield from connection.execute(query).mappings().all()


def _locate(connection: Connection, event_id: str, now: float) -> Place | None:
    """Find the retrieval by its row, or by what its id says; None for one not known (yet)."""
    row = connection.execute(select(events.c.config_id, events.c.ts).where(events.c.id == event_id)).first()
    if row is not None:
        return Place(_ref(connection, configs.c.id == row.config_id), int(row.ts // MINUTE))
    parts = parse_event_id(event_id)
    if parts is None or parts.ts > now + AHEAD_S:
        return None
    minute = int(parts.ts // MINUTE)
    config_id = _owner(connection, parts.config, minute)
    return None if config_id is None else Place(_ref(connection, configs.c.id == config_id), minute)


def _owner(connection: Connection, config: str, minute: int) -> int | None:
    """Return the row of a config; where pipelines share it, that of the busiest in the event's hour."""
    traffic = (windows.c.config_id == configs.c.id) & (windows.c.span == HOUR)
    traffic &= windows.c.start == minute - minute % HOUR
    query = (
        select(configs.c.id)
        .select_from(configs.outerjoin(windows, traffic))
        .where(configs.c.config == config)
        .order_by(func.coalesce(windows.c.retrievals, 0).desc(), configs.c.id)
        .limit(1)
    )
    return connection.execute(query).scalar()


def _ref(connection: Connection, at: ColumnElement[bool]) -> Ref:
    row = connection.execute(
        select(configs.c.id, configs.c.pipeline_id, configs.c.config, configs.c.slot).where(at)
    ).one()
    return Ref(row.id, row.pipeline_id, row.config, row.slot)


class FeedbackPart(Part):
    """Taking feedback one by one, and reading it back."""

    def add_feedback(self, feedback: Iterable[Feedback]) -> int:
        """Count feedback once per (event, kind, rater); return how many were new.

        Feedback for an unknown retrieval is kept aside until it arrives, and counted as new here.
        Raises InputError for feedback that cannot be kept; then none of it is.
        """
        now = self._clock.now()
        some = list(feedback)
        check_feedback(some, now)
        with self._db.write() as connection:
            tally = Tally(now, self._settings)
            taken = take(connection, some, tally, now)
            tally.write(connection)
        return taken

    def feedback(self, pipeline: str, since_minute: int, until_minute: int) -> Sequence[FeedbackRow]:
        """Return all feedback on retrievals of [since, until) unix minutes, overruled or not, by time."""
        of = (
            (pipelines.c.name == label(pipeline))
            & (feedback.c.minute >= since_minute)
            & (feedback.c.minute < until_minute)
        )
        return self._feedback(of)

    def feedback_of(self, event_id: str) -> Sequence[FeedbackRow]:
        """Return what was said of one retrieval, in time order."""
        return self._feedback(feedback.c.event_id == event_id)

    def tallies(self) -> dict[str, int]:
        """Return what was counted and forgotten: `feedback_expired`."""
        with self._db.read() as connection:
            rows = connection.execute(select(tallies.c.name, tallies.c.value)).all()
        return {EXPIRED: 0} | {row.name: row.value for row in rows}

    def _feedback(self, condition: ColumnElement[bool]) -> Sequence[FeedbackRow]:
        query = (
            select(feedback, configs.c.config, pipelines.c.name.label("pipeline"))
            .select_from(feedback.outerjoin(configs, feedback.c.config_id == configs.c.id))
            .outerjoin(pipelines, configs.c.pipeline_id == pipelines.c.id)
            .where(condition)
            .order_by(feedback.c.ts, feedback.c.id)
        )
        with self._db.read() as connection:
            return [_read(row) for row in connection.execute(query).mappings()]


def _read(row: RowMapping) -> FeedbackRow:
    return FeedbackRow(
        event_id=row["event_id"],
        kind=row["kind"],
        rater=row["rater"] or None,
        id=row["id"],
        ts=row["ts"],
        pipeline=row["pipeline"],
        config=row["config"],
        minute=row["minute"],
        stands=row["voted"],
    )
