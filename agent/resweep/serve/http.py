"""The HTTP API: numbers out, batches, events and feedback in, and the words between people and judge.

Bad input is answered with 4xx and one object that says what went wrong, what was expected and what to do.
"""

from __future__ import annotations

import gzip
import logging
from collections.abc import Mapping
from http import HTTPStatus
from typing import Any

import msgspec
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from resweep.domain.errors import NewerFormatError, ResweepError, StoreError
from resweep.serve import calls, traces, views, working
from resweep.serve.agent import Agent, Desks, NotLeadingError
from resweep.serve.body import RequestError, read_body
from resweep.serve.casesapi import ROUTES as CASE_ROUTES
from resweep.serve.casesapi import CaseHandlers
from resweep.serve.guard import Guard, RateLimit, refusal_object
from resweep.serve.pages.door import tokens_of
from resweep.serve.pages.routes import Pages, is_page
from resweep.serve.reportsapi import ROUTES as REPORT_ROUTES
from resweep.serve.reportsapi import ReportHandlers

log = logging.getLogger("resweep.serve")

# Path, method, handler; docs/api.md describes each.
ROUTES: Mapping[str, Mapping[str, str]] = {
    "/metrics": {"GET": "metrics"},
    "/healthz": {"GET": "health"},
    "/healthz/live": {"GET": "live"},
    "/healthz/ready": {"GET": "ready"},
    "/v1/status": {"GET": "status"},
    "/v1/configs": {"GET": "configs"},
    "/v1/flags": {"GET": "flags"},
    "/v1/flags/{key:path}/{action:str}": {"POST": "flag"},
    "/v1/feedback": {"POST": "feedback"},
    "/v1/batches": {"POST": "batches"},
    "/v1/events": {"POST": "events"},
    traces.PATH: {"POST": "traces"},
    "/v1/accept": {"GET": "accepted", "POST": "accept"},
    "/v1/tuned": {"GET": "accepted", "POST": "push"},
    "/v1/work": {"GET": "work"},
    "/v1/work/{id:str}": {"POST": "worked"},
    "/v1/canaries": {"GET": "canaries"},
    "/v1/maintenance": {"GET": "maintenances", "POST": "maintain"},
    **CASE_ROUTES,
    **REPORT_ROUTES,
}
GZIP_FROM = 1024  # bytes; smaller answers are not worth packing


def app(agent: Agent, token: str) -> Guard:
    """Return the ASGI application of an agent."""
    api = Api(agent)
    routes = [
        Route(path, getattr(api, name), methods=[method])
        for path, calls_of in ROUTES.items()
        for method, name in calls_of.items()
    ]
    routes += Pages(agent, token).routes()
    handlers: dict[Any, Any] = {HTTPException: _http_error, Exception: _error}
    for kind in (RequestError, ResweepError):
        handlers[kind] = _error
    limit = RateLimit(agent.settings.limits.requests_per_second)
    site = Starlette(routes=routes, exception_handlers=handlers)
    others = tokens_of(agent.settings.web, token)
    return Guard(site, token=token, limit=limit, lets_in=is_page, others=others)


def answer(value: object, status: int = HTTPStatus.OK) -> Response:
    """Return a JSON answer."""
    return Response(msgspec.json.encode(value), status, media_type="application/json")


class Api(CaseHandlers, ReportHandlers):
    """The handlers. What touches the store runs in a thread, so that /healthz answers meanwhile."""

    def __init__(self, agent: Agent) -> None:
        self.agent = agent
        self.spans = traces.TraceIntake(agent)

    async def health(self, request: Request) -> Response:
        """Say whether the agent lives and is ready."""
        health = self.agent.health()
        ok = health.live and health.ready
        return answer(msgspec.to_builtins(health), HTTPStatus.OK if ok else HTTPStatus.SERVICE_UNAVAILABLE)

    async def live(self, request: Request) -> Response:
        """Say whether the agent lives: where not, restart it."""
        health = self.agent.health()
        status = HTTPStatus.OK if health.live else HTTPStatus.SERVICE_UNAVAILABLE
        return answer({"live": health.live, "state": health.state}, status)

    async def ready(self, request: Request) -> Response:
        """Say whether the agent does its work: its jobs succeed, or it stands by."""
        health = self.agent.health()
        status = HTTPStatus.OK if health.ready else HTTPStatus.SERVICE_UNAVAILABLE
        told = msgspec.to_builtins(health)
        return answer(told, status)

    async def metrics(self, request: Request) -> Response:
        """Show the numbers, in the format that the scraper prefers, packed where it takes that."""
        body, kind = await run_in_threadpool(self._page, request.headers.get("accept", ""))
        headers = {"content-type": kind, "vary": "accept, accept-encoding"}
        if len(body) >= GZIP_FROM and "gzip" in request.headers.get("accept-encoding", ""):
            body = gzip.compress(body, compresslevel=5)
            headers["content-encoding"] = "gzip"
        return Response(body, headers=headers)

    def _page(self, accept: str) -> tuple[bytes, str]:
        from resweep_exporters import prometheus

        return prometheus.text(self.agent.snapshot(), accept)

    async def status(self, request: Request) -> Response:
        """Show the agent and every pipeline."""
        return answer(await run_in_threadpool(views.status, self.agent, self._desks()))

    async def configs(self, request: Request) -> Response:
        """Show every config ever seen."""
        desks = self._desks()
        return answer(await run_in_threadpool(views.configs_object, desks.store, self.agent.clock.now()))

    async def flags(self, request: Request) -> Response:
        """Show the open flags; with `?all=1` the cleared ones too, with `?pipeline=` those of one."""
        desks = self._desks()
        every = request.query_params.get("all", "") not in ("", "0", "false")
        pipeline = request.query_params.get("pipeline")
        return answer(await run_in_threadpool(calls.flags, desks, pipeline, every, self.agent.clock.now()))

    async def flag(self, request: Request) -> Response:
        """Note what a person says of a flag: `ack` or `resolve`."""
        action = request.path_params["action"]
        if action not in ("ack", "resolve"):
            raise HTTPException(HTTPStatus.NOT_FOUND)
        said = await self._json(request, empty={})
        return answer(
            await run_in_threadpool(
                calls.say_of_flag, self._desks(), request.path_params["key"], action, said
            )
        )

    async def feedback(self, request: Request) -> Response:
        """Take feedback: one object, a list, or lines of them."""
        body = await self._body(request)
        result, status = await run_in_threadpool(
            calls.take_feedback, self._desks(), body, self.agent.clock.now()
        )
        return answer(result, status)

    async def batches(self, request: Request) -> Response:
        """Take one batch of a recorder, once."""
        body = await self._body(request)
        return answer(await run_in_threadpool(calls.take_batch, self._desks(), body))

    async def events(self, request: Request) -> Response:
        """Take `resweep.event/1` lines; a body that comes again changes nothing."""
        body = await self._body(request)
        result, status = await run_in_threadpool(
            calls.take_events, self._desks(), body, self.agent.rules, self.agent.clock.now()
        )
        return answer(result, status)

    async def traces(self, request: Request) -> Response:
        """Take the spans of existing instrumentation, as OTLP; a body that comes again changes nothing."""
        return await self.spans.take(request)

    async def accepted(self, request: Request) -> Response:
        """Show the tuned depths in force."""
        desks = self._desks()
        return answer(await run_in_threadpool(calls.tuned, desks, self.agent.clock.now()))

    async def accept(self, request: Request) -> Response:
        """Take a depth as tuned for a pipeline's config."""
        wish = await self._json(request)
        rules, now = self.agent.rules, self.agent.clock.now()
        return answer(await run_in_threadpool(calls.accept, self._desks(), wish, rules, now))

    async def push(self, request: Request) -> Response:
        """Take tuned depths as they stand in a reviewed lock file."""
        records = await self._json(request)
        return answer(await run_in_threadpool(calls.push, self._desks(), records))

    async def maintenances(self, request: Request) -> Response:
        """Show announced work."""
        return answer(await run_in_threadpool(calls.maintenances, self._desks(), self.agent.clock.now()))

    async def maintain(self, request: Request) -> Response:
        """Announce work on a pipeline, or its end."""
        wish = await self._json(request)
        return answer(await run_in_threadpool(calls.maintain, self._desks(), wish, self.agent.clock.now()))

    async def work(self, request: Request) -> Response:
        """Lease what is to be done to a recorder that says in `offer` what it can do."""
        desks, offer = self._desks(), request.query_params.get("offer", "")
        return answer(await run_in_threadpool(working.lease, desks.work, offer))

    async def worked(self, request: Request) -> Response:
        """Take the answer to one piece of work."""
        body = await self._body(request)
        done = await run_in_threadpool(working.take, self._desks().work, request.path_params["id"], body)
        return answer(done, HTTPStatus.OK if done["taken"] else HTTPStatus.CONFLICT)

    async def canaries(self, request: Request) -> Response:
        """Show what canaries remember and found, and which recorders can run them."""
        desks, now = self._desks(), self.agent.clock.now()
        return answer(await run_in_threadpool(working.canaries_object, desks.store, desks.work, now))

    def _desks(self) -> Desks:
        return self.agent.desks()

    async def _body(self, request: Request) -> bytes:
        self._desks()  # one that stands by says so before it reads anything
        return await read_body(request, self.agent.settings.limits.body_bytes)

    async def _json(self, request: Request, empty: object = None) -> object:
        body = await self._body(request)
        if not body.strip() and empty is not None:
            return empty
        return calls.decoded(body)


async def _http_error(request: Request, error: Exception) -> Response:
    """Answer for a path or method that is not there."""
    assert isinstance(error, HTTPException)
    missing = error.status_code == HTTPStatus.NOT_FOUND
    told = RequestError(
        error.status_code,
        f"there is no {request.url.path}" if missing else str(error.detail),
        expected="a path of docs/api.md" if missing else "",
        do="GET /v1/status shows what is monitored" if missing else "see docs/api.md for its methods",
    )
    return answer(refusal_object(told), error.status_code)


async def _error(request: Request, error: Exception) -> Response:
    """Answer for an error: the sender's fault is 4xx, a store that refuses 503, the rest is ours."""
    refusal = _refusal(error)
    otlp = request.url.path == traces.PATH
    response = traces.refused(request, refusal) if otlp else answer(refusal_object(refusal), refusal.status)
    if refusal.status == HTTPStatus.SERVICE_UNAVAILABLE:
        response.headers["retry-after"] = "1"
    return response


def _refusal(error: Exception) -> RequestError:
    if isinstance(error, RequestError):
        return error
    if isinstance(error, NotLeadingError):
        return RequestError(HTTPStatus.SERVICE_UNAVAILABLE, str(error), do="ask the one that leads")
    if isinstance(error, StoreError):
        return RequestError(
            HTTPStatus.SERVICE_UNAVAILABLE, str(error), do="try again; keep what was to be sent"
        )
    if isinstance(error, NewerFormatError):
        return RequestError(HTTPStatus.BAD_REQUEST, str(error), do="update the agent")
    if isinstance(error, ResweepError):
        return RequestError(HTTPStatus.BAD_REQUEST, str(error))
    log.error("a request failed", exc_info=error)
    return RequestError(HTTPStatus.INTERNAL_SERVER_ERROR, "internal error; the agent's log says more")
