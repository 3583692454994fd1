"""Webhooks: what is sent, how it is signed, when it is tried again, and where it never goes."""

from __future__ import annotations

import hashlib
import json
import re
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from urllib.parse import parse_qs

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from resweep.domain.clock import VirtualClock
from resweep.domain.errors import UsageError
from resweep.domain.verdict import Flag
from resweep_exporters.addresses import is_public
from resweep_exporters.webhook import Delivery, WebhookExporter, backoff, retry_after
from resweep_exporters.webhook_body import BODY_MAX, Format, Kind, delivery_id, payload, sign, verify

ROOT = Path(__file__).resolve().parents[2]
FLAG = Flag(
    key="support-bot:config_changed:51aa0c9e77d2",
    pipeline="support-bot",
    config="9f2c0a417be1",
    basis="51aa0c9e77d2",
    reason="config_changed",
    layer="declared",
    components=("embedder",),
    severity="warning",
    message="the embedder changed: the tuned k of support-bot has expired",
    opened_ts=1796250000.0,
    evidence={"changed": ["embedder.model"]},
    next_command="resweep sweep support-bot",
)
CLEARED = replace(FLAG, cleared_ts=1796260000.0)
Handler = Callable[[httpx.Request], httpx.Response]


def answer(status: int, headers: Mapping[str, str] | None = None) -> Handler:
    """Return a receiver that always answers the same."""
    return lambda _: httpx.Response(status, headers=headers)


def exporter(
    handler: Handler,
    url: str = "https://ci.example.com/hook",
    addresses: tuple[str, ...] = ("93.184.215.14",),
    *,
    allow_private: bool = False,
    format_: Format = "generic",
    token: str = "",
) -> WebhookExporter:
    """Return an exporter whose net is a function."""
    return WebhookExporter(
        url,
        "s3cret",
        format=format_,
        token=token,
        allow_private=allow_private,
        clock=VirtualClock(1796250001.5),
        resolve=lambda host, port: list(addresses),
        transport=httpx.MockTransport(handler),
    )


def sent(
    kind: Kind = "opened", flag: Flag = FLAG, format_: Format = "generic", token: str = ""
) -> httpx.Request:
    """Return the one request that a delivery makes."""
    got: list[httpx.Request] = []

    def keep(request: httpx.Request) -> httpx.Response:
        got.append(request)
        return httpx.Response(204)

    exporter(keep, format_=format_, token=token).deliver(flag, kind)
    (request,) = got
    return request


def test_the_body_is_the_documented_object() -> None:
    """docs/webhooks.md shows the very object that is sent for this flag, but for its id."""
    (block,) = re.findall(r"```json\n(.*?)```", (ROOT / "docs" / "webhooks.md").read_text(), re.DOTALL)
    assert json.loads(sent().content) == json.loads(block) | {"id": delivery_id(FLAG, "opened")}


def test_a_clearing_says_when() -> None:
    """Event and time are those of the clearing, the key is that of the opening."""
    body = json.loads(sent("cleared", CLEARED).content)
    assert (body["event"], body["ts"], body["flag"]["key"]) == ("cleared", 1796260000.0, FLAG.key)


def test_a_call_is_signed_over_time_and_body() -> None:
    """The receiver can check the signature with the secret."""
    request = sent()
    signature = request.headers["X-Resweep-Signature"]
    assert re.fullmatch(r"t=1796250001,v1=[0-9a-f]{64}", signature)
    assert verify("s3cret", signature, request.content, now=1796250002.0)


def test_the_signature_is_an_hmac() -> None:
    """HMAC-SHA256 of `timestamp.body`, as RFC 2104 defines it."""
    assert sign("k", 1, b"{}") == f"t=1,v1={hmac_of('k', b'1.{}')}"


def hmac_of(key: str, message: bytes) -> str:
    """Return HMAC-SHA256 from its definition."""
    block = key.encode().ljust(64, b"\0")
    inner = hashlib.sha256(bytes(byte ^ 0x36 for byte in block) + message).digest()
    return hashlib.sha256(bytes(byte ^ 0x5C for byte in block) + inner).hexdigest()


@pytest.mark.parametrize(
    ("secret", "body", "now"),
    [("other", b"{}", 100.0), ("k", b"{} ", 100.0), ("k", b"{}", 401.0), ("k", b"{}", -201.0)],
    ids=["secret", "body", "old", "future"],
)
def test_a_wrong_signature_is_refused(secret: str, body: bytes, now: float) -> None:
    """Another secret, another body, or more than five minutes."""
    assert verify("k", sign("k", 100, b"{}"), b"{}", now=100.0)
    assert not verify(secret, sign("k", 100, b"{}"), body, now)


@given(st.text())
def test_any_header_is_read_without_an_error(header: str) -> None:
    """A receiver may be sent anything."""
    assert not verify("k", header, b"{}", now=0.0)


def test_the_documented_snippet_agrees() -> None:
    """The function on the page accepts a good signature and refuses a bad one."""
    (block,) = re.findall(r"```python\n(.*?)```", (ROOT / "docs" / "webhooks.md").read_text(), re.DOTALL)
    names: dict[str, Callable[[str, str, bytes], bool]] = {}
    exec(block, names)
    check = names["is_from_resweep"]
    signature = sign("k", int(time.time()), b"{}")
    assert check("k", signature, b"{}")
    assert not check("k", signature, b"[]")
    assert not check("k", "nonsense", b"{}")


def test_each_attempt_has_the_same_id_and_body() -> None:
    """A second attempt can be told from a second event."""
    first, second = sent(), sent()
    assert (
        first.headers["Idempotency-Key"] == second.headers["Idempotency-Key"] == delivery_id(FLAG, "opened")
    )
    assert first.content == second.content


def test_opening_clearing_and_opening_again_have_ids_of_their_own() -> None:
    """Three events, three ids."""
    again = replace(FLAG, opened_ts=1796270000.0)
    ids = {delivery_id(FLAG, "opened"), delivery_id(CLEARED, "cleared"), delivery_id(again, "opened")}
    assert len(ids) == 3


def test_evidence_too_large_is_left_out_and_told() -> None:
    """The call stays within what receivers take."""
    body = sent(flag=replace(FLAG, evidence={"lost": ["x" * 100] * 1000})).content
    assert len(body) < BODY_MAX
    assert json.loads(body)["flag"]["evidence"] == {"omitted": "more than 48000 bytes: see the agent"}


def test_odd_evidence_is_still_json() -> None:
    """NaN becomes null, a path its text."""
    odd = replace(FLAG, evidence={"ratio": float("nan"), "file": Path("a")})
    assert json.loads(sent(flag=odd).content)["flag"]["evidence"] == {"ratio": None, "file": "a"}


def test_github_gets_a_repository_dispatch() -> None:
    """Event type, one key of client payload, and the token."""
    request = sent(format_="github", token="gh")
    body = json.loads(request.content)
    assert body["event_type"] == "resweep_flag_opened"
    assert body["client_payload"] == {"resweep": json.loads(json.dumps(payload(FLAG, "opened")))}
    assert request.headers["Authorization"] == "Bearer gh"
    assert request.headers["Accept"] == "application/vnd.github+json"


def test_gitlab_gets_a_pipeline_trigger() -> None:
    """Token, ref and variables in a form."""
    form = parse_qs(sent(format_="gitlab", token="gl").content.decode())
    assert (form["token"], form["ref"]) == (["gl"], ["main"])
    assert form["variables[RESWEEP_COMPONENTS]"] == ["embedder"]
    assert form["variables[RESWEEP_NEXT_COMMAND]"] == ["resweep sweep support-bot"]
    assert json.loads(form["variables[RESWEEP_FLAG]"][0])["schema"] == "resweep.flag/1"


@pytest.mark.parametrize("status", [200, 201, 202, 204])
def test_2xx_is_delivered(status: int) -> None:
    """Whatever success is called."""
    assert exporter(answer(status)).deliver(FLAG, "opened") == Delivery(outcome="delivered", status=status)


@pytest.mark.parametrize("status", [429, 500, 502, 503, 504])
def test_a_server_in_trouble_is_asked_again(status: int) -> None:
    """After the backoff of this attempt."""
    got = exporter(answer(status)).deliver(FLAG, "opened", attempt=3)
    assert (got.outcome, got.status) == ("retry", status)
    assert got.retry_after == backoff(delivery_id(FLAG, "opened"), 3)


@pytest.mark.parametrize("status", [301, 302, 307, 308, 400, 401, 403, 404, 408, 410, 422])
def test_a_refusal_is_final(status: int) -> None:
    """4xx is never asked again, a redirect never followed."""
    calls: list[str] = []

    def refuse(request: httpx.Request) -> httpx.Response:
        calls.append(request.url.host)
        return httpx.Response(status, headers={"location": "http://10.0.0.1/"})

    got = exporter(refuse).deliver(FLAG, "opened")
    assert (got.outcome, got.status, got.retry_after) == ("refused", status, None)
    assert calls == ["93.184.215.14"]


@pytest.mark.parametrize("error", [httpx.ReadTimeout, httpx.ConnectError, httpx.RemoteProtocolError])
def test_no_answer_is_asked_again(error: type[httpx.TransportError]) -> None:
    """A time-out, no connection, a connection that broke."""

    def fail(request: httpx.Request) -> httpx.Response:
        raise error("no")

    got = exporter(fail).deliver(FLAG, "opened")
    assert (got.outcome, got.status, got.why) == ("retry", None, f"{error.__name__}: no")


def test_a_name_that_does_not_resolve_is_asked_again() -> None:
    """DNS may be back soon."""
    assert exporter(answer(200), addresses=()).deliver(FLAG, "opened").outcome == "retry"


@pytest.mark.parametrize(
    ("header", "seconds"),
    [("120", 120.0), ("99999", 3600.0), ("Sun, 06 Nov 1994 08:49:37 GMT", None), ("x", None)],
)
def test_retry_after_is_honoured_up_to_an_hour(header: str, seconds: float | None) -> None:
    """Never earlier than our own backoff."""
    got = exporter(answer(503, {"retry-after": header})).deliver(FLAG, "opened")
    assert got.retry_after == (seconds or backoff(delivery_id(FLAG, "opened"), 0))


def test_retry_after_may_be_a_date() -> None:
    """HTTP dates are in GMT."""
    assert retry_after("Thu, 01 Jan 1970 00:02:00 GMT", now=30.0) == 90.0
    assert retry_after("Thu, 01 Jan 1970 00:02:00 -0000", now=30.0) == 90.0


@given(st.integers(0, 10_000), st.text(alphabet="0123456789abcdef", min_size=32, max_size=32))
def test_backoff_doubles_up_to_an_hour(attempt: int, ident: str) -> None:
    """Between half of 15 s doubled and all of it."""
    longest = min(15.0 * 2 ** min(attempt, 20), 3600.0)
    assert longest / 2 < backoff(ident, attempt) <= longest


PRIVATE = [
    "127.0.0.1",
    "127.8.8.8",
    "10.1.2.3",
    "172.16.0.1",
    "192.168.1.1",
    "169.254.169.254",
    "100.64.0.1",
    "0.0.0.0",
    "224.0.0.1",
    "255.255.255.255",
    "::1",
    "::",
    "fe80::1%eth0",
    "fd00::1",
    "ff02::1",
    "::ffff:127.0.0.1",
    "::ffff:10.0.0.1",
    "64:ff9b::7f00:1",
    "2002:7f00:1::",
]


@pytest.mark.parametrize("address", PRIVATE)
def test_private_addresses_are_refused(address: str) -> None:
    """No call is made, and trying again would not help."""

    def never(request: httpx.Request) -> httpx.Response:
        raise AssertionError("called")

    got = exporter(never, addresses=("93.184.215.14", address)).deliver(FLAG, "opened")
    assert not is_public(address)
    assert got.outcome == "refused"
    assert "allow private addresses" in got.why


@pytest.mark.parametrize("address", ["93.184.215.14", "2606:2800:21f:cb07::1", "::ffff:93.184.215.14"])
def test_public_addresses_are_called(address: str) -> None:
    """IPv4, IPv6, and one inside the other."""
    assert exporter(answer(200), addresses=(address,)).deliver(FLAG, "opened").outcome == "delivered"


def test_private_addresses_can_be_allowed() -> None:
    """A CI in one's own network is what many have."""
    got = exporter(answer(200), addresses=("10.0.0.1",), allow_private=True).deliver(FLAG, "opened")
    assert got.outcome == "delivered"


def test_the_call_goes_to_the_address_that_was_looked_at() -> None:
    """Not to the name, which may resolve to something else by then; Host and TLS keep the name."""
    request = sent()
    assert request.url.host == "93.184.215.14"
    assert request.headers["Host"] == "ci.example.com"
    assert request.extensions["sni_hostname"] == "ci.example.com"


def test_the_next_address_is_tried_where_one_is_not_reached() -> None:
    """A host with a dead IPv6 address is still a host."""

    def only_v4(request: httpx.Request) -> httpx.Response:
        if ":" in request.url.host:
            raise httpx.ConnectError("unreachable")
        return httpx.Response(200)

    both = ("2606:2800:21f:cb07::1", "93.184.215.14")
    assert exporter(only_v4, addresses=both).deliver(FLAG, "opened").outcome == "delivered"


@pytest.mark.parametrize(
    ("url", "secret", "format_", "says"),
    [
        ("ftp://a/b", "s", "generic", "give both"),
        ("/hook", "s", "generic", "give both"),
        ("https://a:x/", "s", "generic", "cannot be read"),
        ("https://a/", "", "generic", "empty one"),
        ("https://a/", "s", "github", "got none"),
        ("https://a/", "s", "teams", "generic, github, gitlab"),
    ],
)
def test_settings_that_cannot_be_meant_are_refused(url: str, secret: str, format_: Format, says: str) -> None:
    """At the start, with what was expected."""
    with pytest.raises(UsageError, match=says):
        WebhookExporter(url, secret, format=format_)
