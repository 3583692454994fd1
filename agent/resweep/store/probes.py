"""Probes: what a live query found when it was asked again, deeper than its answer."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
from sqlalchemy import Connection, delete, insert, select

from resweep.domain.errors import InputError
from resweep.domain.event import Hit
from resweep.store.names import label, plain
from resweep.store.part import Part, chunks
from resweep.store.schema import probes

PROBE_MAX = 1 << 20  # bytes
_encoder = msgspec.msgpack.Encoder()


class Probe(msgspec.Struct, frozen=True, kw_only=True):
    """The hits of one probe in rank order. `k` is the depth it asked for, `ts` unix seconds."""

    event_id: str
    pipeline: str
    config: str
    ts: float
    k: int
    hits: tuple[Hit, ...]


_hits = msgspec.msgpack.Decoder(tuple[Hit, ...])


class ProbesPart(Part):
    """Remembering probes, beside the sampled events they belong to."""

    def keep_probe(self, probe: Probe) -> None:
        """Remember a probe in place of an earlier one of the same event. Raises InputError for a huge one."""
        payload = _encoder.encode(probe.hits)
        if len(payload) > PROBE_MAX:
            raise InputError(f"probe of {probe.event_id!r}: expected at most {PROBE_MAX} bytes")
        row = {name: getattr(probe, name) for name in ("config", "ts", "k")}
        with self._db.write() as connection:
            connection.execute(delete(probes).where(probes.c.event_id == probe.event_id))
            connection.execute(
                insert(probes).values(
                    event_id=plain("an event id", probe.event_id),
                    pipeline=label(probe.pipeline),
                    payload=payload,
                    **row,
                )
            )

    def probe(self, event_id: str) -> Probe | None:
        """Return the probe of an event, None where there is none."""
        query = select(probes).where(probes.c.event_id == event_id)
        with self._db.read() as connection:
            row = connection.execute(query).mappings().one_or_none()
        if row is None:
            return None
        names = ("event_id", "pipeline", "config", "ts", "k")
        return Probe(**{n: row[n] for n in names}, hits=_hits.decode(row["payload"]))


def forget_probes(connection: Connection, event_ids: Sequence[str]) -> None:
    """Remove the probes of some events."""
    for some in chunks(event_ids):
        connection.execute(delete(probes).where(probes.c.event_id.in_(some)))


def drop_probes(connection: Connection, before: float) -> int:
    """Remove probes older than a time; return how many."""
    return connection.execute(delete(probes).where(probes.c.ts < before)).rowcount
