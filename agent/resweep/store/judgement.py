"""What the judge says: flags, verdicts and its own state, written together; and the calls to make of it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import msgspec
from sqlalchemy import Connection, RowMapping, delete, insert, select, update

from resweep.domain.verdict import Flag, Verdict
from resweep.store.names import label
from resweep.store.part import Part
from resweep.store.rows import Ack, Action, Change, Delivery
from resweep.store.schema import acks, flags, outbox, states, verdicts

JUDGE = "judge"
KEPT_FLAGS = 1000  # of the cleared ones, the newest that one call returns
_encoder = msgspec.json.Encoder(order="sorted")
_flag_decoder = msgspec.json.Decoder(Flag)
_verdict_decoder = msgspec.json.Decoder(Verdict)


class JudgementPart(Part):
    """Flags, verdicts, acknowledgements and the outbox of webhook calls."""

    def flags(self, pipeline: str | None = None, *, open_only: bool = True) -> Sequence[Flag]:
        """Return flags, oldest first; of cleared ones the last 1,000."""
        query = select(flags.c.document)
        if pipeline is not None:
            query = query.where(flags.c.pipeline == label(pipeline))
        if open_only:
            query = query.where(flags.c.cleared_ts.is_(None))
        newest = query.order_by(flags.c.opened_ts.desc(), flags.c.id.desc())
        with self._db.read() as connection:
            some = newest if open_only else newest.limit(KEPT_FLAGS)
            documents = connection.execute(some).scalars().all()
        return [_flag_decoder.decode(document) for document in reversed(documents)]

    def save_judgement(self, flags: Iterable[Flag], verdicts: Iterable[Verdict], state: bytes) -> None:
        """Write what the judge concluded and its own state in one transaction.

        `flags` are those that opened, sharpened or cleared, in that order; `verdicts` all of now.
        An opening or clearing puts one call for each receiver into the outbox.
        """
        now = self._clock.now()
        with self._db.write() as connection:
            for flag in flags:
                change = _save_flag(connection, flag)
                if change is not None:
                    self._post(connection, flag, change, now)
            _save_verdicts(connection, verdicts)
            save_state(connection, JUDGE, state, now)

    def judge_state(self) -> bytes | None:
        """Return the judge's saved state."""
        return self.state(JUDGE)

    def verdicts(self, pipeline: str | None = None) -> Sequence[Verdict]:
        """Return the last verdict of each (pipeline, basis)."""
        query = select(verdicts.c.document)
        if pipeline is not None:
            query = query.where(verdicts.c.pipeline == label(pipeline))
        with self._db.read() as connection:
            documents = connection.execute(query.order_by(verdicts.c.pipeline, verdicts.c.basis)).scalars()
            return [_verdict_decoder.decode(document) for document in documents]

    def state(self, name: str) -> bytes | None:
        """Return a saved state by its name."""
        with self._db.read() as connection:
            return connection.execute(select(states.c.value).where(states.c.name == name)).scalar()

    def save_state(self, name: str, value: bytes) -> None:
        """Save the state of a part that has to survive a restart, in place of what was saved before."""
        with self._db.write() as connection:
            save_state(connection, name, value, self._clock.now())

    def ack_flag(self, flag: Flag, who: str, because: str = "", *, action: Action = "ack") -> None:
        """Note that somebody has seen a flag, or says that its cause is gone (`resolve`)."""
        row = {"action": action, "who": who[:200], "because": because, "ts": self._clock.now()}
        with self._db.write() as connection:
            connection.execute(
                insert(acks).values(
                    pipeline=label(flag.pipeline), key=flag.key, opened_ts=flag.opened_ts, **row
                )
            )

    def acks(self, pipeline: str | None = None) -> Sequence[Ack]:
        """Return what people said of flags, oldest first."""
        query = select(acks)
        if pipeline is not None:
            query = query.where(acks.c.pipeline == label(pipeline))
        with self._db.read() as connection:
            rows = connection.execute(query.order_by(acks.c.ts, acks.c.id)).mappings()
            return [Ack(**{name: row[name] for name in Ack.__slots__}) for row in rows]

    def due_deliveries(self, limit: int = 100) -> Sequence[Delivery]:
        """Return the calls to make now, in the order in which the flags opened and cleared."""
        query = select(outbox).where(outbox.c.delivered.is_(None), outbox.c.next_try <= self._clock.now())
        with self._db.read() as connection:
            rows = connection.execute(query.order_by(outbox.c.id).limit(limit)).mappings()
            return [_delivery(row) for row in rows]

    def delivered(self, delivery_id: int) -> None:
        """Note that a call was taken."""
        with self._db.write() as connection:
            connection.execute(
                update(outbox)
                .where(outbox.c.id == delivery_id)
                .values(delivered=self._clock.now(), attempts=outbox.c.attempts + 1, error=None)
            )

    def delivery_failed(self, delivery_id: int, error: str, next_try: float) -> None:
        """Note that a call was not taken and when to try again (unix seconds)."""
        with self._db.write() as connection:
            connection.execute(
                update(outbox)
                .where(outbox.c.id == delivery_id)
                .values(next_try=next_try, attempts=outbox.c.attempts + 1, error=error[:500])
            )

    def _post(self, connection: Connection, flag: Flag, change: Change, now: float) -> None:
        call = {
            "change": change,
            "pipeline": label(flag.pipeline),
            "key": flag.key,
            "opened_ts": flag.opened_ts,
        }
        same = [outbox.c[name] == value for name, value in call.items()]
        posted = set(connection.execute(select(outbox.c.target).where(*same)).scalars())
        for target in self._settings.webhook_targets:
            if target not in posted:
                document = _encoder.encode(flag).decode()
                times = {"created": now, "next_try": now}
                connection.execute(
                    insert(outbox).values(target=target, document=document, attempts=0, **call, **times)
                )


def save_state(connection: Connection, name: str, value: bytes, now: float) -> None:
    """Save a state in place of what was saved before."""
    connection.execute(delete(states).where(states.c.name == name))
    connection.execute(insert(states).values(name=name, value=value, saved_at=now))


def drop_delivered(connection: Connection, before: float) -> int:
    """Remove calls that were taken before a time; return how many."""
    return connection.execute(delete(outbox).where(outbox.c.delivered < before)).rowcount


def _save_flag(connection: Connection, flag: Flag) -> Change | None:
    """Write a flag; the open one of its key, or the one that opened at the same time, is that flag."""
    mine = (flags.c.pipeline == label(flag.pipeline)) & (flags.c.key == flag.key)
    rows = connection.execute(select(flags.c.id, flags.c.opened_ts, flags.c.cleared_ts).where(mine)).all()
    known = next((r for r in rows if r.cleared_ts is None), None)
    known = known or next((r for r in rows if r.opened_ts == flag.opened_ts), None)
    row = _flag_row(flag)
    if known is None:
        connection.execute(insert(flags).values(row))
        return "opened" if flag.cleared_ts is None else None
    connection.execute(update(flags).where(flags.c.id == known.id).values(row))
    return "cleared" if known.cleared_ts is None and flag.cleared_ts is not None else None


def _flag_row(flag: Flag) -> dict[str, Any]:
    return {
        "pipeline": label(flag.pipeline),
        "key": flag.key,
        "config": flag.config,
        "basis": flag.basis,
        "reason": flag.reason,
        "severity": flag.severity,
        "opened_ts": flag.opened_ts,
        "cleared_ts": flag.cleared_ts,
        "document": _encoder.encode(flag).decode(),
    }


def _save_verdicts(connection: Connection, current: Iterable[Verdict]) -> None:
    connection.execute(update(verdicts).values(in_force=False))
    for verdict in current:
        pipeline = label(verdict.pipeline)
        mine = (verdicts.c.pipeline == pipeline) & (verdicts.c.basis == verdict.basis)
        connection.execute(delete(verdicts).where(mine))
        connection.execute(
            insert(verdicts).values(
                pipeline=pipeline,
                basis=verdict.basis,
                config=verdict.config,
                state=verdict.state,
                since=verdict.since,
                in_force=True,
                document=_encoder.encode(verdict).decode(),
            )
        )


def _delivery(row: RowMapping) -> Delivery:
    return Delivery(
        id=row["id"],
        target=row["target"],
        change=row["change"],
        flag=_flag_decoder.decode(row["document"]),
        created=row["created"],
        attempts=row["attempts"],
        next_try=row["next_try"],
        delivered=row["delivered"],
        error=row["error"],
    )
