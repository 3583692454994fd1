"""The HTTP handlers of the labelled set."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Protocol

import msgspec
from starlette.concurrency import iterate_in_threadpool, run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from resweep.serve import casefiles, cases

if TYPE_CHECKING:
    from resweep.serve.agent import Desks

# Path, method, handler; the fixed paths come before the one with an id.
ROUTES: Mapping[str, Mapping[str, str]] = {
    "/v1/cases": {"GET": "case_page"},
    "/v1/cases/progress": {"GET": "case_progress"},
    "/v1/cases/lines": {"GET": "case_lines"},
    "/v1/cases/repairs": {"GET": "case_repairs"},
    "/v1/cases/export": {"GET": "case_export"},
    "/v1/cases/import": {"POST": "case_import"},
    "/v1/cases/next": {"POST": "case_next"},
    "/v1/cases/undo": {"POST": "case_undo"},
    "/v1/cases/{id:str}": {"GET": "case"},
    "/v1/cases/{id:str}/{action:str}": {"POST": "case_act"},
    "/v1/forget": {"POST": "forget"},
    "/v1/audit": {"GET": "audit"},
}
PLAIN = "text/plain; charset=utf-8"
TYPES = {"csv": "text/csv; charset=utf-8", "trec": PLAIN, "run": PLAIN}
LINES = "application/x-ndjson"


class _Api(Protocol):
    def _desks(self) -> Desks: ...

    async def _json(self, request: Request, empty: object = None) -> object: ...

    async def _body(self, request: Request) -> bytes: ...


def _answer(value: object) -> Response:
    return Response(msgspec.json.encode(value), media_type="application/json")


class CaseHandlers:
    """Handlers to mix into an API that has desks and reads bodies."""

    async def case_page(self: _Api, request: Request) -> Response:
        """Show a page of the queue."""
        return _answer(await run_in_threadpool(cases.page, self._desks(), dict(request.query_params)))

    async def case_progress(self: _Api, request: Request) -> Response:
        """Show how far the labelled sets are."""
        pipeline = request.query_params.get("pipeline") or None
        return _answer(await run_in_threadpool(cases.progress_object, self._desks(), pipeline))

    async def case_lines(self: _Api, request: Request) -> Response:
        """Show a page of whole cases, as files are made of."""
        return _answer(await run_in_threadpool(cases.lines_page, self._desks(), dict(request.query_params)))

    async def case_repairs(self: _Api, request: Request) -> Response:
        """Show the judgments that wait for repair."""
        pipeline = request.query_params.get("pipeline") or None
        return _answer(await run_in_threadpool(cases.repairs, self._desks(), pipeline))

    async def audit(self: _Api, request: Request) -> Response:
        """Show who did what."""
        limit = request.query_params.get("limit", "")
        return _answer(await run_in_threadpool(cases.audit, self._desks(), limit))

    async def case_export(self: _Api, request: Request) -> Response:
        """Send the set as a file: `?format=` jsonl, csv, trec (qrels), run or ragas."""
        desks, form = self._desks(), request.query_params.get("format", "jsonl")
        of = cases.wanted(dict(request.query_params)).filter
        some = cases.with_lists(desks, of, hits=form in ("run", "ragas"))
        parts = casefiles.checked_text(form, some)
        await run_in_threadpool(
            desks.store.record_audit, "api", "cases.export", of.pipeline or "", {"format": form}
        )
        headers = {"content-disposition": f'attachment; filename="cases.{form}"'}
        return StreamingResponse(
            iterate_in_threadpool(parts), media_type=TYPES.get(form, LINES), headers=headers
        )

    async def case_import(self: _Api, request: Request) -> Response:
        """Take cases in."""
        body = await self._body(request)
        return _answer(await run_in_threadpool(cases.take, self._desks(), body))

    async def case_next(self: _Api, request: Request) -> Response:
        """Hand the next case out."""
        asked = await self._json(request)
        return _answer(await run_in_threadpool(cases.claim, self._desks(), asked))

    async def case_undo(self: _Api, request: Request) -> Response:
        """Take a person's last step back."""
        asked = await self._json(request)
        return _answer(await run_in_threadpool(cases.undo, self._desks(), asked))

    async def case(self: _Api, request: Request) -> Response:
        """Show a case; with `?by=` what that reviewer may see."""
        by = request.query_params.get("by", "")
        return _answer(await run_in_threadpool(cases.one, self._desks(), request.path_params["id"], by))

    async def case_act(self: _Api, request: Request) -> Response:
        """Judge, finish, settle, keep, open, release or delete a case."""
        asked, at = await self._json(request), request.path_params
        return _answer(await run_in_threadpool(cases.act, self._desks(), at["id"], at["action"], asked))

    async def forget(self: _Api, request: Request) -> Response:
        """Delete events, by id or by user, and what was made of them."""
        asked = await self._json(request)
        return _answer(await run_in_threadpool(cases.forget, self._desks(), asked))
