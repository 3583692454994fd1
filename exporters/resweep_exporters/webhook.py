"""Signed webhooks: one call per flag that opens and one per flag that clears.

The exporter remembers nothing. Whoever keeps the outbox calls `deliver`, and calls it again after
`retry_after` seconds where the outcome is "retry": the delivery id stays the same, so a receiver that has
seen it may ignore the second one.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from types import TracebackType
from typing import Literal

import httpx

from resweep.domain.clock import Clock, SystemClock
from resweep.domain.errors import UsageError
from resweep.domain.verdict import Flag
from resweep_exporters.addresses import Resolve, is_public, resolve
from resweep_exporters.webhook_body import SIGNATURE_HEADER, Call, Format, Kind, compose, delivery_id, sign

BACKOFF = 15.0  # seconds after the first attempt, doubled with each
BACKOFF_MAX = 3600.0
ADDRESSES = 3  # of a host, tried one after the other
TOO_MANY = 429
FORMATS: tuple[Format, ...] = ("generic", "github", "gitlab")

Outcome = Literal["delivered", "retry", "refused"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Delivery:
    """What came of one attempt.

    `status` is the HTTP status, None where no answer came. `retry_after` is seconds until the next attempt,
    set for the outcome "retry" alone. "refused" is final: trying again would change nothing.
    """

    outcome: Outcome
    status: int | None = None
    retry_after: float | None = None
    why: str = ""


class WebhookExporter:
    """Tells one address of flags.

    `secret` signs every call. `format` is "generic" (the object `resweep.flag/1`), "github"
    (repository_dispatch) or "gitlab" (pipeline trigger, on `ref`); the last two need a `token`. Addresses in
    private networks are refused unless `allow_private`; redirects are never followed. One step of a call
    (connect, send, answer) may take `timeout` seconds. A `transport` takes the place of httpx's own, e.g.
    one with a proxy. Raises UsageError for settings that cannot be meant.
    """

    def __init__(
        self,
        url: str,
        secret: str,
        *,
        format: Format = "generic",  # noqa: A002 - the name of the setting
        token: str = "",
        ref: str = "main",
        allow_private: bool = False,
        timeout: float = 5.0,
        clock: Clock | None = None,
        resolve: Resolve = resolve,
        transport: httpx.BaseTransport | None = None,
    ) -> None:
        self._url = _checked(url, secret, format, token)
        self._host = self._url.raw_host.decode("ascii")
        self._secret = secret
        self._format: Format = format
        self._token = token
        self._ref = ref
        self._allow_private = allow_private
        self._clock = clock or SystemClock()
        self._resolve = resolve
        self._client = httpx.Client(
            timeout=timeout, follow_redirects=False, trust_env=False, transport=transport
        )

    def deliver(self, flag: Flag, kind: Kind, attempt: int = 0) -> Delivery:
        """Tell that a flag opened or cleared; `attempt` counts from 0. Never raises for what the net does."""
        ident = delivery_id(flag, kind)
        wait = backoff(ident, attempt)
        try:
            addresses = self._addresses()
            if not all(self._allow_private or is_public(address) for address in addresses):
                return Delivery(outcome="refused", why=_private(self._host))
            call = compose(flag, kind, self._format, self._token, self._ref)
            status, headers = self._post(addresses, call, ident, kind)
        except (OSError, UnicodeError, httpx.HTTPError) as error:
            return Delivery(outcome="retry", retry_after=wait, why=f"{type(error).__name__}: {error}")
        return self._judge(status, headers, wait)

    def close(self) -> None:
        """Let go of connections."""
        self._client.close()

    def __enter__(self) -> WebhookExporter:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _addresses(self) -> list[str]:
        # The call goes to one of the addresses that were looked at, not to the name: a name that answers
        # differently the second time gains nothing.
        found = self._resolve(self._host, self._url.port or (443 if self._url.scheme == "https" else 80))
        if not found:
            raise OSError(f"no address for {self._host!r}")
        return found[:ADDRESSES]

    def _post(
        self, addresses: list[str], call: Call, ident: str, kind: Kind
    ) -> tuple[int, Mapping[str, str]]:
        headers = {
            **call.headers,
            "Host": self._url.netloc.decode("ascii"),
            "User-Agent": "resweep-webhook",
            "Idempotency-Key": ident,
            "X-Resweep-Event": kind,
            SIGNATURE_HEADER: sign(self._secret, int(self._clock.now()), call.body),
        }
        for address in addresses[:-1]:
            try:
                return self._post_to(address, call.body, headers)
            except (httpx.ConnectError, httpx.ConnectTimeout):
                continue  # nothing was sent: the next address may be reachable
        return self._post_to(addresses[-1], call.body, headers)

    def _post_to(
        self, address: str, body: bytes, headers: Mapping[str, str]
    ) -> tuple[int, Mapping[str, str]]:
        at = self._url.copy_with(host=address.partition("%")[0])
        certified = {"sni_hostname": self._host}
        with self._client.stream("POST", at, content=body, headers=headers, extensions=certified) as got:
            return got.status_code, got.headers  # the answer's body is nobody's business

    def _judge(self, status: int, headers: Mapping[str, str], wait: float) -> Delivery:
        if 200 <= status < 300:
            return Delivery(outcome="delivered", status=status)
        if status >= 500 or status == TOO_MANY:
            asked = retry_after(headers.get("retry-after"), self._clock.now())
            wait = min(max(wait, asked), BACKOFF_MAX)
            return Delivery(outcome="retry", status=status, retry_after=wait, why=f"answered {status}")
        return Delivery(
            outcome="refused", status=status, why=f"answered {status}; it will not be asked again"
        )


def backoff(ident: str, attempt: int) -> float:
    """Return seconds to wait after an attempt: 15, 30, 60, … up to an hour, less up to half of it.

    The part taken off comes from the delivery's id, so that many deliveries do not return together.
    """
    longest = min(BACKOFF * 2.0 ** min(attempt, 20), BACKOFF_MAX)
    spread = int(hashlib.sha256(f"{ident}:{attempt}".encode()).hexdigest()[:8], 16) / 2**32
    return longest * (1 - spread / 2)


def retry_after(value: str | None, now: float) -> float:
    """Return the seconds of a Retry-After header, a number or a date; 0 for none and for nonsense."""
    if not value:
        return 0.0
    if value.strip().isascii() and value.strip().isdigit():
        return float(value)
    try:
        at: datetime = parsedate_to_datetime(value)
    except ValueError:
        return 0.0
    return max(at.replace(tzinfo=at.tzinfo or UTC).timestamp() - now, 0.0)


def _checked(url: str, secret: str, form: str, token: str) -> httpx.URL:
    if form not in FORMATS:
        raise UsageError(f"expected a webhook format of {', '.join(FORMATS)}; got {form!r}: set one of them")
    if not secret:
        raise UsageError(
            "expected a webhook secret; got an empty one: set a random text that the receiver knows"
        )
    if form != "generic" and not token:
        raise UsageError(f"expected a token for the webhook format {form!r}; got none: set it")
    try:
        parsed = httpx.URL(url)
    except (httpx.InvalidURL, TypeError) as error:
        raise UsageError(f"expected a webhook address; got one that cannot be read: {error}") from None
    if parsed.scheme not in {"http", "https"} or not parsed.host:
        raise UsageError(
            f"expected a webhook address such as 'https://ci.example.com/hook'; got scheme {parsed.scheme!r} "
            f"and host {parsed.host!r}: give both"
        )
    return parsed


def _private(host: str) -> str:
    return (
        f"expected {host!r} to be on the public internet; it has a private, local or reserved address: "
        "allow private addresses for this webhook where that is meant"
    )
