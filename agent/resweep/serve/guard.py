"""What every request passes: rate limit, token, security headers. Plain ASGI, so that nothing is copied."""

from __future__ import annotations

import hmac
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping
from http import HTTPStatus

import msgspec
from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from resweep.serve.body import RequestError
from resweep.serve.roles import RANK, Role, may, needed

OPEN_PATHS = ("/healthz", "/healthz/live", "/healthz/ready")
ADDRESSES_MAX = 4096  # buckets kept; the one unused for longest goes first
_SECURITY = (
    ("x-content-type-options", "nosniff"),
    ("x-frame-options", "DENY"),
    ("referrer-policy", "no-referrer"),
    ("content-security-policy", "default-src 'none'; frame-ancestors 'none'"),
    ("cache-control", "no-store"),
)


class RateLimit:
    """A bucket of requests per address, refilled at `per_second`, holding twice as many."""

    def __init__(self, per_second: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._rate = per_second
        self._clock = clock
        self._buckets: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def take(self, address: str) -> bool:
        """Take one request out of an address's bucket; False where it is empty."""
        now = self._clock()
        left, since = self._buckets.pop(address, (2 * self._rate, now))
        left = min(2 * self._rate, left + (now - since) * self._rate)
        allowed = left >= 1
        self._buckets[address] = (left - 1 if allowed else left, now)
        if len(self._buckets) > ADDRESSES_MAX:
            self._buckets.popitem(last=False)
        return allowed


class Guard:
    """Lets requests through that keep to the rate and whose token's role may; answers the others itself.

    `token` makes an admin, `others` are the tokens of the lesser roles. Paths that `lets_in` tells of let
    people in themselves, and are held to the rate alone.
    """

    def __init__(
        self,
        app: ASGIApp,
        *,
        token: str,
        limit: RateLimit,
        lets_in: Callable[[str], bool] | None = None,
        others: Mapping[Role, str] | None = None,
    ) -> None:
        self.app = app
        tokens: dict[Role, str] = {**(others or {}), "admin": token}
        self._tokens = {role: right.encode() for role, right in tokens.items() if right}
        self._limit = limit
        self._lets_in = lets_in or (lambda path: False)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one connection."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        send = _secured(send)
        refusal = self._refusal(scope)
        if refusal is None:
            await self.app(scope, receive, send)
        else:
            await _answer(refusal, send)

    def _refusal(self, scope: Scope) -> RequestError | None:
        client = scope.get("client")
        if not self._limit.take(client[0] if client else ""):
            return RequestError(
                HTTPStatus.TOO_MANY_REQUESTS,
                "too many requests from this address",
                expected="no more than limits.requests_per_second on average",
                do="wait a second and try again",
            )
        path = scope["path"]
        if path.rstrip("/") in OPEN_PATHS or self._lets_in(path):
            return None
        role, wanted = self._role(Headers(scope=scope)), needed(scope.get("method", "GET"), path)
        if role is not None and may(role, wanted):
            return None
        if role is not None:
            return RequestError(
                HTTPStatus.FORBIDDEN, f"this needs the role {wanted}", expected=f"the token of a {wanted}"
            )
        return RequestError(
            HTTPStatus.UNAUTHORIZED,
            "a token is needed here",
            expected="the header `Authorization: Bearer TOKEN`",
            do="use RESWEEP_TOKEN as it was given to the agent, or the `token` file of its home folder",
        )

    def _role(self, headers: Headers) -> Role | None:
        """Return the role of the token that is carried; every token is compared, whichever fits."""
        scheme, _, given = headers.get("authorization", "").partition(" ")
        token = given.strip().encode("latin-1", "replace") if scheme.lower() == "bearer" else b""
        fits = [role for role, right in self._tokens.items() if hmac.compare_digest(token, right)]
        return max(fits, key=RANK.__getitem__, default=None)


def _secured(send: Send) -> Send:
    async def with_headers(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = MutableHeaders(scope=message)
            for name, value in _SECURITY:
                headers.setdefault(name, value)
        await send(message)

    return with_headers


def refusal_object(refusal: RequestError) -> dict[str, str]:
    """Return the body of an error: what went wrong, what was expected, what to do."""
    parts = {"error": refusal.error, "expected": refusal.expected, "do": refusal.do}
    return {name: text for name, text in parts.items() if text}


async def _answer(refusal: RequestError, send: Send) -> None:
    body = msgspec.json.encode(refusal_object(refusal))
    headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
    if refusal.status == HTTPStatus.UNAUTHORIZED:
        headers.append((b"www-authenticate", b'Bearer realm="resweep"'))
    if refusal.status == HTTPStatus.TOO_MANY_REQUESTS:
        headers.append((b"retry-after", b"1"))
    await send({"type": "http.response.start", "status": int(refusal.status), "headers": headers})
    await send({"type": "http.response.body", "body": body})
