"""`POST /v1/traces`: OTLP over HTTP as any exporter sends it, answered in the request's own format."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Mapping
from http import HTTPStatus

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response

from resweep.domain.errors import InputError
from resweep.ingest.otlp.intake import MEDIA_TYPES, Encoding, Traces, read_traces, refusal, reply
from resweep.serve.agent import Agent, Desks
from resweep.serve.body import RequestError, media_type, read_body
from resweep.store.sql import SqlStore

PATH = "/v1/traces"
TYPES = tuple(MEDIA_TYPES)
LOOK_S = 5.0  # between looks at which config is in charge
# google.rpc.Code, by status: what an exporter is told beside the words
_CODES = {HTTPStatus.SERVICE_UNAVAILABLE: 14, HTTPStatus.UNAUTHORIZED: 16, HTTPStatus.TOO_MANY_REQUESTS: 8}
_INVALID_ARGUMENT = 3


class TraceIntake:
    """Takes the spans of existing instrumentation. A body that comes again changes nothing."""

    def __init__(self, agent: Agent) -> None:
        self._agent = agent
        self._charge = Charge()

    async def take(self, request: Request) -> Response:
        """Take one trace request.

        Raises RequestError, InputError, NotLeadingError or StoreError, to be answered by `refused`.
        """
        desks = self._agent.desks()
        body = await read_body(request, self._agent.settings.limits.body_bytes, TYPES)
        kind = media_type(request, TYPES[0])
        told = await run_in_threadpool(self._apply, desks, body, MEDIA_TYPES[kind])
        return Response(told, media_type=kind)

    def _apply(self, desks: Desks, body: bytes, encoding: Encoding) -> bytes:
        try:
            traces = read_traces(body, encoding, self._charge.of(desks.store), self._agent.clock.now())
        except InputError:
            desks.intake.refuse()
            raise
        if not traces.batch.windows or desks.intake.take(traces.batch):
            self._agent.spans.add(*_counts(traces))
            self._agent.exemplars.heard(traces.mapped.events)
        return reply(traces, encoding)


class Charge:
    """Which declared config is in charge of each pipeline: the one that answered last."""

    def __init__(self) -> None:
        self._found: dict[str, str] = {}
        self._looked = -LOOK_S

    def of(self, store: SqlStore) -> Mapping[str, str]:
        """Return the id of the config in charge by pipeline, at most some seconds old."""
        if time.monotonic() - self._looked >= LOOK_S:
            declared = [seen for seen in store.configs_seen() if seen.declared]
            declared.sort(key=lambda seen: seen.last_seen)
            self._found = {seen.record.pipeline: seen.record.config for seen in declared}
            self._looked = time.monotonic()
        return self._found


def _counts(traces: Traces) -> tuple[Counter[str], Counter[str], int]:
    mapped = traces.mapped
    truncated = Counter(event.pipeline for event in mapped.events if event.truncated)
    whole = len(mapped.events) - mapped.truncated
    counts = {
        "retrieval": whole,
        "truncated": mapped.truncated,
        "own": mapped.own,
        "other": mapped.spans - len(mapped.events) - mapped.own,
        "refused": traces.refused,
    }
    return Counter(counts), truncated, mapped.malformed


def refused(request: Request, error: RequestError) -> Response:
    """Return the answer to a request that was not taken, in its own format; in JSON for an unknown one."""
    kind = media_type(request, TYPES[0])
    encodings: Mapping[str, Encoding] = MEDIA_TYPES
    if kind not in encodings:
        kind = "application/json"
    code = _CODES.get(HTTPStatus(error.status), _INVALID_ARGUMENT)
    parts = (error.error, error.expected and f"expected {error.expected}", error.do)
    body = refusal(code, "; ".join(part for part in parts if part), encodings[kind])
    return Response(body, error.status, media_type=kind)
