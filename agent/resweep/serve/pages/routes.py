"""The pages' paths and what is common to them: who may see one, forms checked, errors said as pages."""

from __future__ import annotations

import functools
import logging
from collections.abc import Awaitable, Callable, Sequence
from http import HTTPStatus
from typing import Any

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from resweep.domain.case import OPEN_STATES, Cell
from resweep.domain.errors import ResweepError, StoreError
from resweep.serve import calls
from resweep.serve.agent import Agent, Desks, NotLeadingError
from resweep.serve.body import RequestError
from resweep.serve.pages import board, render
from resweep.serve.pages.door import Door, check_csrf, check_same_site, read_form
from resweep.serve.pages.session import COOKIE, Sessions, Visitor, key_of
from resweep.serve.roles import Role

log = logging.getLogger("resweep.serve")
Handler = Callable[[Request, Visitor], Awaitable[Response]]
PREFIXES = ("/static/", "/p/", "/flags/", "/review/", "/case/")
PATHS = ("/", "/login", "/logout", "/flags", "/review")


def is_page(path: str) -> bool:
    """Whether a path is one of the pages, which let people in themselves."""
    return path in PATHS or path.startswith(PREFIXES)


class Pages:
    """The pages of an agent. `token` is the agent's own."""

    def __init__(self, agent: Agent, token: str) -> None:
        web = agent.settings.web
        self.agent = agent
        self.door = Door(web, token, Sessions(key_of(agent.where.home), web.session_hours * 3600))

    def routes(self) -> Sequence[Route]:
        """Return the routes."""
        from resweep.serve.pages.review import Review

        get, post = self.shown, self.sent
        return [
            Route("/static/{name:str}", render.static_file, methods=["GET"]),
            Route("/login", self.login, methods=["GET"]),
            Route("/login", self.signed, methods=["POST"]),
            Route("/logout", post("viewer", self.logout), methods=["POST"]),
            Route("/", get("viewer", self.overview), methods=["GET"]),
            Route("/p/{name:path}", get("viewer", self.pipeline), methods=["GET"]),
            Route("/flags", get("viewer", self.flags), methods=["GET"]),
            Route("/flags/ack", post("reviewer", self.ack), methods=["POST"]),
            Route("/flags/resolve", post("admin", self.resolve), methods=["POST"]),
            *Review(self).routes(),
        ]

    def shown(self, role: Role, handler: Handler) -> Callable[[Request], Awaitable[Response]]:
        """Return a handler that strangers are sent to the login from, and others need a role for."""

        @functools.wraps(handler)
        async def handle(request: Request) -> Response:
            visitor = self.door.visitor(request)
            if visitor is None and request.headers.get("hx-request") == "true":
                return render.page("_failed.html", HTTPStatus.UNAUTHORIZED, error="you are signed out", do="")
            if visitor is None:
                path = request.url.path
                aim = f"?next={path}" if request.method == "GET" and path != "/" else ""
                return RedirectResponse(f"/login{aim}", HTTPStatus.SEE_OTHER)
            try:
                check_role(visitor, role)
                return await handler(request, visitor)
            except (RequestError, ResweepError) as error:
                return self.failed(error, visitor, request)

        return handle

    def sent(
        self, role: Role, handler: Callable[[Request, Visitor, dict[str, str]], Awaitable[Response]]
    ) -> Callable[[Request], Awaitable[Response]]:
        """Return a handler of a form: of this site, with the visitor's own token in it."""

        async def handle(request: Request, visitor: Visitor) -> Response:
            check_same_site(request)
            fields = await read_form(request)
            check_csrf(visitor, fields)
            return await handler(request, visitor, fields)

        return self.shown(role, handle)

    def failed(self, error: Exception, visitor: Visitor | None, request: Request) -> Response:
        """Return the page of an error: what failed, what to do."""
        status, do = HTTPStatus.BAD_REQUEST, ""
        if isinstance(error, RequestError):
            status, do = HTTPStatus(error.status), error.do or error.expected
        elif isinstance(error, (NotLeadingError, StoreError)):
            status, do = HTTPStatus.SERVICE_UNAVAILABLE, "What is stored stays. Try again in a moment."
        part = request.headers.get("hx-request") == "true"
        name = "_failed.html" if part else "failed.html"
        return render.page(name, status, **self.frame(visitor), error=str(error), do=do)

    def frame(
        self, visitor: Visitor | None, tab: str = "", cells: Sequence[Cell] | None = None
    ) -> dict[str, Any]:
        """Return what every page needs: who looks, which tab is open, the time, counts beside tabs."""
        now = self.agent.clock.now()
        counts = {"flags": 0, "review": 0}
        if visitor is not None and self.agent.leading:
            store = self.agent.desks().store
            counts["flags"] = len(store.flags())
            if visitor.may("reviewer"):
                counts["review"] = waiting(store.case_cells() if cells is None else cells)
        return {"visitor": visitor, "tab": tab, "now": now, "counts": counts}

    def desks(self) -> Desks:
        """Return what a leading agent works with."""
        return self.agent.desks()

    async def login(self, request: Request) -> Response:
        """Show the login."""
        aim = safe_path(request.query_params.get("next", "/"))
        return render.page("login.html", **self.frame(None), error="", aim=aim, name="")

    async def signed(self, request: Request) -> Response:
        """Take a token and a name, and give a cookie."""
        fields: dict[str, str] = {}
        try:
            check_same_site(request)
            fields = await read_form(request)
            name = " ".join(fields.get("name", "").split())
            cookie = self.door.sign_in(request, fields.get("token", ""), name)
        except RequestError as error:
            aim = safe_path(fields.get("next", "/"))
            known = fields.get("name", "")
            return render.page(
                "login.html", error.status, **self.frame(None), error=error.error, aim=aim, name=known
            )
        answer = RedirectResponse(safe_path(fields.get("next", "/")), HTTPStatus.SEE_OTHER)
        answer.set_cookie(
            COOKIE,
            cookie,
            max_age=int(self.agent.settings.web.session_hours * 3600),
            httponly=True,
            samesite="strict",
            secure=self.door.is_secure(request),
        )
        return answer

    async def logout(self, request: Request, visitor: Visitor, fields: dict[str, str]) -> Response:
        """End a session in this browser."""
        answer = RedirectResponse("/login", HTTPStatus.SEE_OTHER)
        answer.delete_cookie(COOKIE, httponly=True, samesite="strict")
        return answer

    async def overview(self, request: Request, visitor: Visitor) -> Response:
        """Show every pipeline, and the worst one's story."""

        def made() -> Response:
            shown = board.board(self.desks(), self.agent.rules, self.agent.clock.now())
            return render.page("overview.html", **self.frame(visitor, "overview"), board=shown)

        return await run_in_threadpool(made)

    async def pipeline(self, request: Request, visitor: Visitor) -> Response:
        """Show one pipeline."""

        def made() -> Response:
            desks, now, name = self.desks(), self.agent.clock.now(), request.path_params["name"]
            row = board.find_row(desks, name, now)
            if row is None:
                raise RequestError(HTTPStatus.NOT_FOUND, f"no pipeline is called {name!r:.80}")
            shown = board.story(desks.store, row, self.agent.rules, now)
            entries = board.timeline(desks.store, name, self.agent.rules, shown.change)
            return render.page(
                "pipeline.html", **self.frame(visitor, "overview"), story=shown, entries=entries
            )

        return await run_in_threadpool(made)

    async def flags(self, request: Request, visitor: Visitor) -> Response:
        """Show the flags: the open ones, with `?all=1` those that cleared, too."""

        def made() -> Response:
            store, every = self.desks().store, request.query_params.get("all") == "1"
            rows = board.flag_rows(store, store.flags(open_only=not every))
            return render.page("flags.html", **self.frame(visitor, "flags"), rows=rows[:300], every=every)

        return await run_in_threadpool(made)

    async def ack(self, request: Request, visitor: Visitor, fields: dict[str, str]) -> Response:
        """Note that a person has seen a flag."""
        return await self._say("ack", visitor, fields)

    async def resolve(self, request: Request, visitor: Visitor, fields: dict[str, str]) -> Response:
        """Note that a flag's cause is gone."""
        return await self._say("resolve", visitor, fields)

    async def _say(self, action: str, visitor: Visitor, fields: dict[str, str]) -> Response:
        said = {"by": visitor.name, "because": fields.get("because", "")[:1000]}
        await run_in_threadpool(calls.say_of_flag, self.desks(), fields.get("key", ""), action, said)
        return RedirectResponse(safe_path(fields.get("next", "/flags")), HTTPStatus.SEE_OTHER)


def check_role(visitor: Visitor, role: Role) -> None:
    """Raise RequestError for somebody who may not."""
    if not visitor.may(role):
        raise RequestError(
            HTTPStatus.FORBIDDEN,
            f"this needs the role {role}; you are signed in as {visitor.role}",
            do="sign in with a token of that role",
        )


def safe_path(given: str) -> str:
    """Return a path of this site, whatever was given."""
    fine = given.startswith("/") and not given.startswith(("//", "/\\")) and given.isprintable()
    return given if fine and len(given) < 500 else "/"


def waiting(cells: Sequence[Cell]) -> int:
    """Return how many cases wait for a reviewer."""
    return sum(cell.n for cell in cells if cell.state in OPEN_STATES)
