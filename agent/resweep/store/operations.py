"""What the agent and its people do: jobs, announced work, measured gauges, and who did what."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
from sqlalchemy import ColumnElement, Connection, delete, insert, or_, select, update

from resweep.domain.errors import UsageError
from resweep.store.names import label
from resweep.store.part import Part
from resweep.store.rows import AuditEntry, JobRow, Maintenance
from resweep.store.schema import audit, gauges, jobs, maintenance

# Gauges that jobs measure and the store only carries, with their labels.
GAUGES: Mapping[str, tuple[str, ...]] = {
    "resweep_drift_evidence": ("pipeline", "config", "layer"),
    "resweep_reference_distance": ("pipeline", "config", "of"),
    "resweep_canary_recall_ratio": ("pipeline", "config", "k"),
    "resweep_labelled_cases": ("pipeline", "state", "split"),
    "resweep_review_queue_oldest_seconds": ("pipeline",),
    "resweep_last_sweep_timestamp_seconds": ("pipeline",),
}


class OperationsPart(Part):
    """Jobs, maintenance, gauges and the audit log."""

    def jobs(self) -> Sequence[JobRow]:
        """Return what is known of every job, by name."""
        with self._db.read() as connection:
            return [
                JobRow(**row) for row in connection.execute(select(jobs).order_by(jobs.c.name)).mappings()
            ]

    def save_job(self, row: JobRow) -> None:
        """Put the state of one job on record."""
        values = {name: getattr(row, name) for name in JobRow.__slots__}
        with self._db.write() as connection:
            connection.execute(delete(jobs).where(jobs.c.name == row.name))
            connection.execute(insert(jobs).values(values))

    def start_maintenance(
        self, pipeline: str, who: str, because: str = "", until: float | None = None
    ) -> Maintenance:
        """Announce work on a pipeline from now, at the latest until a unix time; it replaces what lasts."""
        now, name = self._clock.now(), label(pipeline)
        row: dict[str, Any] = {
            "pipeline": name,
            "started": now,
            "until": until,
            "ended": None,
            "who": who[:200],
            "because": because,
        }
        with self._db.write() as connection:
            connection.execute(update(maintenance).where(_lasting(name, now)).values(ended=now))
            made = connection.execute(insert(maintenance).values(row)).inserted_primary_key
        return Maintenance(id=int((made or (0,))[0]), **row)

    def end_maintenance(self, pipeline: str) -> bool:
        """End announced work now; False where none lasts."""
        now = self._clock.now()
        with self._db.write() as connection:
            lasting = _lasting(label(pipeline), now)
            return connection.execute(update(maintenance).where(lasting).values(ended=now)).rowcount > 0

    def in_maintenance(self, now: float) -> set[str]:
        """Return the pipelines under announced work at a unix time."""
        with self._db.read() as connection:
            return set(
                connection.execute(select(maintenance.c.pipeline).where(_lasting(None, now))).scalars()
            )

    def maintenances(self, pipeline: str | None = None) -> Sequence[Maintenance]:
        """Return all announced work, oldest first."""
        query = select(maintenance).order_by(maintenance.c.started, maintenance.c.id)
        if pipeline is not None:
            query = query.where(maintenance.c.pipeline == label(pipeline))
        with self._db.read() as connection:
            return [Maintenance(**row) for row in connection.execute(query).mappings()]

    def set_gauges(
        self, metric: str, values: Mapping[tuple[str, ...], float], *, replace: bool = False
    ) -> None:
        """Note measured values of a gauge by its label values; `replace` ends the series not given.

        Raises UsageError for another metric than those in `GAUGES`, or other labels than its own.
        """
        with self._db.write() as connection:
            write_gauges(connection, metric, values, self._clock.now(), replace=replace)

    def record_audit(
        self, who: str, action: str, subject: str = "", details: Mapping[str, object] | None = None
    ) -> None:
        """Write down who did what to what, now."""
        with self._db.write() as connection:
            connection.execute(
                insert(audit).values(
                    ts=self._clock.now(),
                    who=who[:200],
                    action=action[:64],
                    subject=subject[:400],
                    details=msgspec.json.encode(details or {}).decode(),
                )
            )

    def audit_log(self, limit: int = 200) -> Sequence[AuditEntry]:
        """Return the last things done, the newest first."""
        query = select(audit).order_by(audit.c.id.desc()).limit(limit)
        with self._db.read() as connection:
            rows = connection.execute(query).mappings().all()
        return [
            AuditEntry(
                ts=row["ts"],
                who=row["who"],
                action=row["action"],
                subject=row["subject"],
                details=msgspec.json.decode(row["details"]),
            )
            for row in rows
        ]


def write_gauges(
    connection: Connection,
    metric: str,
    values: Mapping[tuple[str, ...], float],
    now: float,
    *,
    replace: bool = False,
) -> None:
    """Write measured values of a gauge, as `set_gauges` does, within a transaction."""
    names = GAUGES.get(metric)
    if names is None:
        raise UsageError(f"expected one of {', '.join(GAUGES)}; got {metric!r}")
    rows = [_gauge(metric, names, labels, value) for labels, value in values.items()]
    if replace:
        connection.execute(delete(gauges).where(gauges.c.metric == metric))
    for row in rows:
        at = (gauges.c.metric == metric) & (gauges.c.labels == row["labels"])
        connection.execute(delete(gauges).where(at))
        connection.execute(insert(gauges).values(**row, measured_at=now))


def _gauge(metric: str, names: tuple[str, ...], labels: tuple[str, ...], value: float) -> dict[str, object]:
    if len(labels) != len(names) or not math.isfinite(value):
        raise UsageError(f"{metric}: expected a finite number by {names}; got {value} by {labels}")
    cleaned = [label(one) for one in labels]
    return {"metric": metric, "labels": msgspec.json.encode(cleaned).decode(), "value": value}


def _lasting(pipeline: str | None, now: float) -> ColumnElement[bool]:
    condition = (
        (maintenance.c.started <= now)
        & maintenance.c.ended.is_(None)
        & or_(maintenance.c.until.is_(None), maintenance.c.until > now)
    )
    return condition if pipeline is None else condition & (maintenance.c.pipeline == pipeline)
