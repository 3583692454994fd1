"""Reports of sweeps, by pipeline and basis: the trend, and what any figure can be followed to."""

from __future__ import annotations

import zlib
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
from sqlalchemy import Connection, delete, func, insert, select

from resweep.domain.errors import InputError
from resweep.store.names import label, plain
from resweep.store.operations import write_gauges
from resweep.store.part import Part
from resweep.store.schema import reports

REPORT_SCHEMA = "resweep.report/1"
DOCUMENT_MAX = 64 << 20  # bytes of a report as JSON
CASES_MAX = 64 << 20  # bytes of its packed cases
LAST_SWEEP = "resweep_last_sweep_timestamp_seconds"
_decode = msgspec.json.Decoder(dict[str, Any]).decode


class ReportsPart(Part):
    """Remembering what sweeps found."""

    def record_report(self, report: Mapping[str, Any], cases: bytes | None = None) -> bool:
        """Remember a report for its pipeline; False where this very one is there already.

        `cases` are the packed ranked lists behind it. Its time is that of the sweep, else now, and moves
        the gauge of the last sweep. Raises InputError for what is no report, or names no pipeline or id.
        """
        pipeline, report_id = report.get("pipeline"), report.get("report_id")
        if report.get("schema") != REPORT_SCHEMA or not pipeline or not report_id:
            raise InputError(f"expected a {REPORT_SCHEMA} with pipeline and report_id; got {report!r:.100}")
        body = _packed(report)
        if cases is not None and len(cases) > CASES_MAX:
            raise InputError(f"expected at most {CASES_MAX} bytes of cases; got {len(cases)}")
        name, made = label(str(pipeline)), _moment(report, self._clock.now())
        row = {
            "pipeline": name,
            "id": plain("a report id", str(report_id), 64),
            "basis": plain("a basis id", str(report.get("basis_hash") or ""), 80),
            "made_at": made,
            "brief": msgspec.json.encode(_brief(report, made)).decode(),
            "document": body,
            "cases": cases,
        }
        mine = (reports.c.pipeline == name) & (reports.c.id == row["id"])
        with self._db.write() as connection:
            if connection.execute(select(reports.c.id).where(mine)).first() is not None:
                return False
            connection.execute(insert(reports).values(row))
            last = connection.execute(
                select(func.max(reports.c.made_at)).where(reports.c.pipeline == name)
            ).scalar()
            write_gauges(connection, LAST_SWEEP, {(name,): float(last or made)}, self._clock.now())
        return True

    def reports(self, pipeline: str | None = None, limit: int = 200) -> Sequence[Mapping[str, Any]]:
        """Return the last reports in brief, the newest first."""
        query = select(reports.c.brief).order_by(reports.c.made_at.desc(), reports.c.id).limit(limit)
        if pipeline is not None:
            query = query.where(reports.c.pipeline == label(pipeline))
        with self._db.read() as connection:
            return [_decode(brief) for brief in connection.execute(query).scalars()]

    def report(self, report_id: str) -> Mapping[str, Any] | None:
        """Return a report, None for one that is not there."""
        query = select(reports.c.document).where(reports.c.id == report_id).order_by(reports.c.made_at.desc())
        with self._db.read() as connection:
            body = connection.execute(query.limit(1)).scalar()
        return None if body is None else _decode(zlib.decompress(body))

    def report_cases(self, report_id: str) -> bytes | None:
        """Return the packed ranked lists behind a report, None where they were not kept."""
        with self._db.read() as connection:
            query = select(reports.c.cases).where(reports.c.id == report_id)
            found: bytes | None = connection.execute(query.limit(1)).scalar()
        return found


def drop_reports(connection: Connection, before: float) -> int:
    """Remove reports older than a time; return how many."""
    return connection.execute(delete(reports).where(reports.c.made_at < before)).rowcount


def _packed(report: Mapping[str, Any]) -> bytes:
    try:
        body = msgspec.json.encode(report)
    except (TypeError, ValueError, OverflowError) as error:
        raise InputError(f"expected a report of plain data; {error}") from None
    if len(body) > DOCUMENT_MAX:
        raise InputError(f"expected a report of at most {DOCUMENT_MAX} bytes; got {len(body)}")
    return zlib.compress(body)


def _moment(report: Mapping[str, Any], now: float) -> float:
    made = report.get("made_at")
    usable = isinstance(made, int | float) and not isinstance(made, bool) and 0 < made <= now + 86_400
    return float(made) if usable and made is not None else now


def _brief(report: Mapping[str, Any], made: float) -> dict[str, Any]:
    """Return what a list of reports shows. Raises InputError where the report lacks it."""
    try:
        chosen, objective = report["chosen"], report["objective"]
        return {
            "report_id": report["report_id"],
            "pipeline": report["pipeline"],
            "basis_hash": report["basis_hash"],
            "made_at": made,
            "n_cases": report["n_cases"],
            "n_effective": report["n_effective"],
            "objective": objective,
            "best_set": report["best_set"],
            "context_k": chosen["context_k"],
            "candidate_k": chosen["candidate_k"],
            "value": _value(report, chosen, objective),
        }
    except (KeyError, TypeError, AttributeError) as error:
        raise InputError(f"expected a whole {REPORT_SCHEMA}; {type(error).__name__}: {error}") from None


def _value(report: Mapping[str, Any], chosen: Mapping[str, Any], objective: str) -> Mapping[str, Any] | None:
    """Return mean and interval of the objective at the chosen depth."""
    for point in report["points"]:
        if (point["context_k"], point["candidate_k"]) == (chosen["context_k"], chosen["candidate_k"]):
            found = point["measures"][objective]
            return {name: found[name] for name in ("mean", "low", "high")}
    return None
