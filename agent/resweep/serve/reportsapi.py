"""Reports of sweeps over HTTP: handed over by the sweep, read by people and pages."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Protocol

import msgspec
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response

from resweep.domain.errors import InputError
from resweep.serve.body import RequestError

if TYPE_CHECKING:
    from resweep.serve.agent import Desks
    from resweep.store.sql import SqlStore

ROUTES: Mapping[str, Mapping[str, str]] = {
    "/v1/reports": {"GET": "reports", "POST": "report_in"},
    "/v1/reports/{id:str}": {"GET": "report"},
    "/v1/sweeps": {"GET": "sweeps", "POST": "sweep"},
}
REPORTS_SCHEMA = "resweep.reports/1"
SWEEPS_SCHEMA = "resweep.sweeps/1"


class HandedOver(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """A report, and the packed lists behind it (base64) where they are not too many to send."""

    report: dict[str, Any]
    cases: str | None = None


class Asked(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """A person's wish for a sweep by the agent."""

    by: str = ""


class _Api(Protocol):
    def _desks(self) -> Desks: ...

    async def _json(self, request: Request, empty: object = None) -> object: ...


def take(store: SqlStore, raw: object) -> dict[str, object]:
    """Remember a report that was handed over. Raises InputError for what is none."""
    try:
        handed = msgspec.convert(raw, HandedOver)
        cases = None if handed.cases is None else base64.b64decode(handed.cases, validate=True)
    except (msgspec.ValidationError, binascii.Error, ValueError) as error:
        raise InputError(f'expected {{"report": resweep.report/1, "cases": base64}}; {error}') from None
    new = store.record_report(handed.report, cases)
    return {"report_id": handed.report["report_id"], "new": new}


def listed(store: SqlStore, pipeline: str | None) -> dict[str, object]:
    """Return `resweep.reports/1`: the last reports in brief, the newest first."""
    return {"schema": REPORTS_SCHEMA, "reports": list(store.reports(pipeline))}


def swept(desks: Desks) -> dict[str, object]:
    """Return `resweep.sweeps/1`: the last sweeps by the agent itself, the newest first."""
    return {"schema": SWEEPS_SCHEMA, "sweeps": msgspec.to_builtins(desks.sweeps.runs())}


def ask(desks: Desks, raw: object) -> object:
    """Start a sweep by the agent. Raises InputError for a body that is none, UsageError where none can be."""
    try:
        who = msgspec.convert(raw, Asked).by[:200] or "somebody"
    except msgspec.ValidationError as error:
        raise InputError(f'expected {{"by": name}}; {error}') from None
    run = desks.sweeps.ask(who)
    desks.store.record_audit(who, "sweep", run.pipeline, {"config": run.config})
    return msgspec.to_builtins(run)


class ReportHandlers:
    """Handlers to mix into an API that has desks and reads bodies."""

    async def reports(self: _Api, request: Request) -> Response:
        """Show the last reports in brief; with `?pipeline=` those of one."""
        pipeline = request.query_params.get("pipeline") or None
        told = await run_in_threadpool(listed, self._desks().store, pipeline)
        return Response(msgspec.json.encode(told), media_type="application/json")

    async def report(self: _Api, request: Request) -> Response:
        """Show one report: as JSON, or with `?format=html` as the page that `sweep --html` writes."""
        store, report_id = self._desks().store, request.path_params["id"]
        found = await run_in_threadpool(store.report, report_id)
        if found is None:
            raise RequestError(
                HTTPStatus.NOT_FOUND, f"no report has the id {report_id!r:.100}", do="see GET /v1/reports"
            )
        if request.query_params.get("format") != "html":
            return Response(msgspec.json.encode(found), media_type="application/json")
        from resweep.serve.report.page import render

        return Response(await run_in_threadpool(render, found), media_type="text/html; charset=utf-8")

    async def report_in(self: _Api, request: Request) -> Response:
        """Take a report in, once."""
        raw = await self._json(request)
        told = await run_in_threadpool(take, self._desks().store, raw)
        return Response(msgspec.json.encode(told), media_type="application/json")

    async def sweeps(self: _Api, request: Request) -> Response:
        """Show the sweeps that the agent ran itself."""
        told = await run_in_threadpool(swept, self._desks())
        return Response(msgspec.json.encode(told), media_type="application/json")

    async def sweep(self: _Api, request: Request) -> Response:
        """Start a sweep by the agent itself."""
        wish = await self._json(request, empty={})
        told = await run_in_threadpool(ask, self._desks(), wish)
        return Response(msgspec.json.encode(told), HTTPStatus.ACCEPTED, media_type="application/json")
