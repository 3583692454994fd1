"""The way in: a token given once, or a reverse proxy that signs people in; and what every form must carry."""

from __future__ import annotations

import hmac
import ipaddress
from collections.abc import Iterator, Mapping
from http import HTTPStatus
from urllib.parse import parse_qsl, urlsplit

from starlette.requests import Request

from resweep.domain.errors import UsageError
from resweep.serve.body import RequestError, read_body
from resweep.serve.guard import RateLimit
from resweep.serve.pages.session import COOKIE, NAME_MAX, Sessions, Visitor
from resweep.serve.roles import RANK, Role
from resweep.settings import WebSection

FORM = "application/x-www-form-urlencoded"
FORM_BYTES = 256 * 1024
FORM_FIELDS = 200
TRIES_PER_SECOND = 0.5  # wrong tokens from one address, on average


def tokens_of(web: WebSection, token: str) -> dict[Role, str]:
    """Return the token of each role that has one; `token` is the agent's own, which makes an admin."""
    given: dict[Role, str | None] = {
        "admin": token,
        "reviewer": web.reviewer_token,
        "viewer": web.viewer_token,
    }
    return {role: right for role, right in given.items() if right}


class Door:
    """Knows who is there. `token` is the agent's own, which makes an admin."""

    def __init__(self, web: WebSection, token: str, sessions: Sessions) -> None:
        self.web = web
        self.sessions = sessions
        self._tokens = tokens_of(web, token)
        self._believed = tuple(_networks(web.proxy_addresses))
        self._tries = RateLimit(TRIES_PER_SECOND)

    def visitor(self, request: Request) -> Visitor | None:
        """Return who sends a request; None for a stranger."""
        by_proxy = self._by_proxy(request)
        if by_proxy is not None:
            return by_proxy
        cookie = request.cookies.get(COOKIE)
        return None if cookie is None else self.sessions.read(cookie, self._tokens)

    def _by_proxy(self, request: Request) -> Visitor | None:
        header = self.web.proxy_user_header
        if header is None or not self._is_proxy(request):
            return None
        name = request.headers.get(header, "").strip()[:NAME_MAX]
        role = self._proxy_role(request)
        if not name or role is None:
            return None
        return Visitor(role=role, name=name, csrf=self.sessions.csrf_of(name), signed_in=False)

    def _proxy_role(self, request: Request) -> Role | None:
        header = self.web.proxy_role_header
        said = (request.headers.get(header, "") if header else "").strip().lower() or self.web.proxy_role
        return next((role for role in RANK if role == said), None)

    def _is_proxy(self, request: Request) -> bool:
        try:
            address = ipaddress.ip_address(request.client.host if request.client else "")
        except ValueError:
            return False
        return any(address in network for network in self._believed)

    def sign_in(self, request: Request, token: str, name: str) -> str:
        """Return the cookie for a token; raises RequestError for a wrong one, or for too many wrong ones."""
        address = request.client.host if request.client else ""
        given = token.strip().encode()
        role = next(
            (r for r, right in self._tokens.items() if hmac.compare_digest(given, right.encode())), None
        )
        if role is not None and not name:
            raise RequestError(HTTPStatus.BAD_REQUEST, "a name is needed: what you do is kept under it")
        if role is not None:
            return self.sessions.give(role, name[:NAME_MAX], self._tokens[role])
        if not self._tries.take(address):
            raise RequestError(HTTPStatus.TOO_MANY_REQUESTS, "too many wrong tokens; wait a few seconds")
        raise RequestError(HTTPStatus.FORBIDDEN, "this token opens nothing here")

    def is_secure(self, request: Request) -> bool:
        """Whether the browser speaks TLS, with us or with a proxy we believe."""
        forwarded = request.headers.get("x-forwarded-proto", "") if self._is_proxy(request) else ""
        return "https" in (request.url.scheme, forwarded)


async def read_form(request: Request, at_most: int = FORM_BYTES) -> dict[str, str]:
    """Return the fields of a form, the last of each name. Raises RequestError for what is none."""
    body = await read_body(request, at_most, (FORM,))
    try:
        fields = parse_qsl(body.decode(), keep_blank_values=True, max_num_fields=FORM_FIELDS)
    except ValueError as error:
        raise RequestError(HTTPStatus.BAD_REQUEST, f"the form cannot be read: {error}") from None
    return dict(fields)


def check_same_site(request: Request) -> None:
    """Raise RequestError for a form that another site sent."""
    site = request.headers.get("sec-fetch-site", "same-origin")
    origin = request.headers.get("origin")
    elsewhere = origin is not None and urlsplit(origin).netloc != request.headers.get("host", "")
    if site not in ("same-origin", "none") or (elsewhere and "sec-fetch-site" not in request.headers):
        raise RequestError(HTTPStatus.FORBIDDEN, "this form came from another site and was not heeded")


def check_csrf(visitor: Visitor, fields: Mapping[str, str]) -> None:
    """Raise RequestError for a form that does not carry its visitor's token."""
    if not hmac.compare_digest(fields.get("csrf", "").encode(), visitor.csrf.encode()):
        raise RequestError(
            HTTPStatus.FORBIDDEN, "this form is of another session", do="go back, reload the page, send again"
        )


def _networks(given: str) -> Iterator[ipaddress.IPv4Network | ipaddress.IPv6Network]:
    for one in filter(None, (part.strip() for part in given.split(","))):
        try:
            yield ipaddress.ip_network(one, strict=False)
        except ValueError:
            raise UsageError(f"web.proxy_addresses: expected an address or a network; got {one!r}") from None
