"""Tuned depths: one record in force for each (pipeline, basis, epoch), and those it replaced."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import msgspec
from sqlalchemy import Connection, case, insert, select, update

from resweep.domain.errors import InputError
from resweep.domain.verdict import TunedK
from resweep.store.names import label, plain
from resweep.store.part import Part
from resweep.store.schema import epochs, tuned

_encoder = msgspec.json.Encoder(order="sorted")
_decoder = msgspec.json.Decoder(TunedK)


class TunedPart(Part):
    """Remembering what sweeps chose and people accepted."""

    def tuned(self, pipeline: str | None = None) -> Sequence[TunedK]:
        """Return the tuned depths in force, by pipeline and basis.

        Of a basis the epoch whose embedder runs now comes last, where canaries know; else the newest.
        """
        with self._db.read() as connection:
            return read_tuned(connection, pipeline)

    def record_tuned(self, tuned: TunedK) -> None:
        """Remember a chosen depth; an equal (pipeline, basis, epoch) is replaced, its history kept."""
        self.record_all_tuned([tuned])

    def record_all_tuned(self, records: Sequence[TunedK]) -> None:
        """Remember several chosen depths, all or none."""
        now = self._clock.now()
        with self._db.write() as connection:
            for record in records:
                _record(connection, record, now)

    def tuned_history(self, pipeline: str, basis: str) -> Sequence[TunedK]:
        """Return every record ever made for a basis, the oldest first."""
        query = select(tuned.c.document).where(tuned.c.pipeline == label(pipeline), tuned.c.basis == basis)
        with self._db.read() as connection:
            return [_decoder.decode(d) for d in connection.execute(query.order_by(tuned.c.id)).scalars()]

    def retract_tuned(self, pipeline: str, basis: str, epoch: int) -> bool:
        """Take a record out of force, keeping it as history; False where there is none."""
        now = self._clock.now()
        with self._db.write() as connection:
            return _replace(connection, label(pipeline), basis, epoch, now) > 0


def read_tuned(connection: Connection, pipeline: str | None = None) -> list[TunedK]:
    """Return the tuned depths in force, by pipeline, basis and epoch, the epoch that runs now last."""
    same = (
        (epochs.c.pipeline == tuned.c.pipeline)
        & (epochs.c.basis == tuned.c.basis)
        & (epochs.c.epoch == tuned.c.epoch)
    )
    runs = case((epochs.c.present.is_(True), 1), else_=0)
    query = select(tuned.c.document).outerjoin(epochs, same).where(tuned.c.replaced_at.is_(None))
    if pipeline is not None:
        query = query.where(tuned.c.pipeline == label(pipeline))
    documents = connection.execute(
        query.order_by(tuned.c.pipeline, tuned.c.basis, runs, tuned.c.epoch)
    ).scalars()
    return [_decoder.decode(document) for document in documents]


def _record(connection: Connection, record: TunedK, now: float) -> None:
    record = replace(record, pipeline=label(record.pipeline))
    _replace(connection, record.pipeline, plain("a basis id", record.basis, 80), record.epoch, now)
    connection.execute(
        insert(tuned).values(
            pipeline=record.pipeline,
            basis=record.basis,
            epoch=record.epoch,
            recorded_at=now,
            document=_encode(record),
        )
    )


def _replace(connection: Connection, pipeline: str, basis: str, epoch: int, now: float) -> int:
    in_force = (
        (tuned.c.pipeline == pipeline)
        & (tuned.c.basis == basis)
        & (tuned.c.epoch == epoch)
        & tuned.c.replaced_at.is_(None)
    )
    return connection.execute(update(tuned).where(in_force).values(replaced_at=now)).rowcount


def _encode(record: TunedK) -> str:
    try:
        return _encoder.encode(record).decode()
    except (TypeError, ValueError, OverflowError) as error:
        raise InputError(f"tuned k of {record.pipeline!r}: expected plain data; got {error}") from None
