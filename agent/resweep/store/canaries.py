"""Canaries: the questions, what each system remembers of them, the runs, and the epochs they tell apart."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec
from sqlalchemy import Connection, delete, insert, select, update

from resweep.domain.errors import InputError
from resweep.store.names import label, plain
from resweep.store.part import Part, chunks
from resweep.store.schema import canaries, canary_runs, epochs, events, systems

DOCUMENT_MAX = 64 * 1024  # bytes of one question with its arguments
_encoder = msgspec.json.Encoder(order="sorted")


class CanaryQuery(msgspec.Struct, frozen=True, kw_only=True):
    """One question that retrieval canaries ask.

    `kwargs` are the arguments it needs beside it; `relevant` the ids of the passages that answer it, by
    grade, where somebody judged it. `origin` is file, event or case (of the
    labelled set; those are not kept here).
    """

    id: str
    query: str
    origin: str = "file"
    event_id: str | None = None
    kwargs: Mapping[str, object] = {}
    relevant: Mapping[str, int] = {}


class CanaryRun(msgspec.Struct, frozen=True, kw_only=True):
    """One run on record. `shown` holds its numbers, as plain data."""

    pipeline: str
    basis: str
    config: str
    kind: str
    ts: float
    shown: Mapping[str, object]


class Epoch(msgspec.Struct, frozen=True, kw_only=True):
    """The embedder that an epoch of a basis was seen with, by its canary digest."""

    pipeline: str
    basis: str
    epoch: int
    digest: str
    present: bool


_query_decoder = msgspec.json.Decoder(CanaryQuery)


class CanariesPart(Part):
    """Remembering canaries."""

    def canaries(self, pipeline: str) -> Sequence[CanaryQuery]:
        """Return the questions of a pipeline's retrieval canaries, by id."""
        query = select(canaries.c.document).where(canaries.c.pipeline == label(pipeline))
        with self._db.read() as connection:
            return [
                _query_decoder.decode(d) for d in connection.execute(query.order_by(canaries.c.id)).scalars()
            ]

    def set_canaries(self, pipeline: str, origin: str, questions: Iterable[CanaryQuery]) -> None:
        """Put questions in place of all of the same origin; one known under another origin stays as it is."""
        name, now = label(pipeline), self._clock.now()
        rows = {q.id: _row(name, origin, q, now) for q in questions}
        mine = canaries.c.pipeline == name
        with self._db.write() as connection:
            connection.execute(delete(canaries).where(mine, canaries.c.origin == origin))
            known = set(connection.execute(select(canaries.c.id).where(mine)).scalars())
            fresh = [row for id_, row in rows.items() if id_ not in known]
            if fresh:
                connection.execute(insert(canaries), fresh)

    def system(self, pipeline: str, basis: str) -> bytes | None:
        """Return what the canaries of a system remember."""
        mine = (systems.c.pipeline == label(pipeline)) & (systems.c.basis == basis)
        with self._db.read() as connection:
            return connection.execute(select(systems.c.payload).where(mine)).scalar()

    def systems(self) -> Sequence[tuple[str, str]]:
        """Return (pipeline, basis) of every system that canaries remember something of."""
        with self._db.read() as connection:
            rows = connection.execute(select(systems.c.pipeline, systems.c.basis)).all()
        return [(row.pipeline, row.basis) for row in rows]

    def save_system(self, pipeline: str, basis: str, payload: bytes, run: CanaryRun | None = None) -> None:
        """Save what the canaries of a system remember, with the run that they learnt it from."""
        name, now = label(pipeline), self._clock.now()
        mine = (systems.c.pipeline == name) & (systems.c.basis == basis)
        with self._db.write() as connection:
            connection.execute(delete(systems).where(mine))
            connection.execute(
                insert(systems).values(
                    pipeline=name, basis=plain("a basis id", basis, 80), payload=payload, saved_at=now
                )
            )
            if run is not None:
                connection.execute(insert(canary_runs).values(_run_row(run)))

    def canary_runs(self, pipeline: str, limit: int = 200) -> Sequence[CanaryRun]:
        """Return the last runs of a pipeline's canaries, oldest first."""
        query = select(canary_runs).where(canary_runs.c.pipeline == label(pipeline))
        newest = query.order_by(canary_runs.c.ts.desc(), canary_runs.c.id.desc()).limit(limit)
        with self._db.read() as connection:
            rows = connection.execute(newest).mappings().all()
        names = ("pipeline", "basis", "config", "kind", "ts")
        return [
            CanaryRun(**{n: row[n] for n in names}, shown=msgspec.json.decode(row["document"]))
            for row in reversed(rows)
        ]

    def epochs(self) -> Sequence[Epoch]:
        """Return which embedder each epoch was seen with, by pipeline, basis and epoch."""
        query = select(epochs).order_by(epochs.c.pipeline, epochs.c.basis, epochs.c.epoch)
        with self._db.read() as connection:
            rows = connection.execute(query).mappings().all()
        return [Epoch(**{name: row[name] for name in Epoch.__struct_fields__}) for row in rows]

    def note_epoch(self, pipeline: str, basis: str, epoch: int, digest: str) -> None:
        """Note which embedder an epoch was tuned with, and that this is the one that runs now."""
        name = label(pipeline)
        mine = (epochs.c.pipeline == name) & (epochs.c.basis == basis)
        with self._db.write() as connection:
            connection.execute(delete(epochs).where(mine, epochs.c.epoch == epoch))
            row = {"basis": basis, "epoch": epoch, "digest": digest[:64], "noted_at": self._clock.now()}
            connection.execute(insert(epochs).values(pipeline=name, present=False, **row))
            _present(connection, name, basis, epoch)

    def present_epoch(self, pipeline: str, basis: str, digest: str | None) -> int | None:
        """Say which embedder runs now; return the newest epoch that was tuned with it, None for none."""
        name = label(pipeline)
        mine = (epochs.c.pipeline == name) & (epochs.c.basis == basis) & (epochs.c.digest == digest)
        with self._db.write() as connection:
            found = connection.execute(
                select(epochs.c.epoch).where(mine).order_by(epochs.c.epoch.desc()).limit(1)
            ).scalar()
            _present(connection, name, basis, found)
        return found


def _present(connection: Connection, pipeline: str, basis: str, epoch: int | None) -> None:
    mine = (epochs.c.pipeline == pipeline) & (epochs.c.basis == basis)
    connection.execute(update(epochs).where(mine).values(present=False))
    if epoch is not None:
        connection.execute(update(epochs).where(mine, epochs.c.epoch == epoch).values(present=True))


def forget_questions(connection: Connection, event_ids: Sequence[str]) -> None:
    """Remove the questions that came from some events."""
    for some in chunks(event_ids):
        connection.execute(delete(canaries).where(canaries.c.event_id.in_(some)))


def drop_orphans(connection: Connection) -> None:
    """Remove the questions whose events are gone."""
    there = select(events.c.id).where(events.c.id == canaries.c.event_id)
    connection.execute(delete(canaries).where(canaries.c.event_id.is_not(None), ~there.exists()))


def drop_runs(connection: Connection, before: float) -> int:
    """Remove runs older than a time; return how many."""
    return connection.execute(delete(canary_runs).where(canary_runs.c.ts < before)).rowcount


def _row(pipeline: str, origin: str, question: CanaryQuery, now: float) -> dict[str, Any]:
    document = _encoder.encode(msgspec.structs.replace(question, origin=origin)).decode()
    if len(document) > DOCUMENT_MAX:
        raise InputError(f"canary {question.id}: expected at most {DOCUMENT_MAX} bytes; got {len(document)}")
    return {
        "pipeline": pipeline,
        "id": plain("a canary id", question.id, 64),
        "origin": origin,
        "event_id": question.event_id,
        "created": now,
        "document": document,
    }


def _run_row(run: CanaryRun) -> dict[str, Any]:
    row = {name: getattr(run, name) for name in ("basis", "config", "kind", "ts")}
    return {**row, "pipeline": label(run.pipeline), "document": _encoder.encode(run.shown).decode()}
