"""The door: addresses, tokens, rates, places."""

from __future__ import annotations

import os
import socket
import stat
from pathlib import Path
from typing import Any

import pytest
from starlette.types import Receive, Scope, Send

from resweep.domain.errors import AddressInUseError, StoreReadOnlyError, UsageError
from resweep.serve.guard import Guard, RateLimit
from resweep.serve.listen import Endpoint, bind, bound, check_public, endpoint, is_loopback
from resweep.serve.places import (
    Address,
    check_token,
    forget_address,
    make_token,
    places,
    read_address,
    token_of,
    write_address,
)
from resweep.serve.roles import RANK, Role
from resweep.settings import AgentSettings, Settings


async def inner(scope: Scope, receive: Receive, send: Send) -> None:
    """Answer 200 to whoever comes through."""
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": b"in"})


async def knock(
    guard: Guard, path: str = "/v1/status", token: str | None = None, method: str = "GET"
) -> tuple[int, dict[str, str]]:
    """Return status and headers of a request."""
    sent: list[Any] = []

    async def send(message: Any) -> None:
        sent.append(message)

    async def receive() -> Any:
        return {"type": "http.request", "body": b""}

    headers = [] if token is None else [(b"authorization", token.encode("latin-1"))]
    scope = {"type": "http", "method": method, "path": path, "headers": headers, "client": ("127.0.0.1", 1)}
    await guard(scope, receive, send)
    return sent[0]["status"], {name.decode(): value.decode() for name, value in sent[0]["headers"]}


def guard(per_second: float = 100.0) -> Guard:
    """Return a guard with the token `right`."""
    return Guard(inner, token="right", limit=RateLimit(per_second))


@pytest.mark.parametrize(
    ("given", "status"),
    [
        ("Bearer right", 200),
        ("bearer right", 200),
        ("Bearer  right ", 200),
        (None, 401),
        ("", 401),
        ("right", 401),
        ("Basic right", 401),
        ("Bearer wrong", 401),
        ("Bearer right right", 401),
        ("Bearer ünright", 401),
    ],
)
async def test_only_the_token_opens(given: str | None, status: int) -> None:
    """As a bearer token, and nothing else."""
    assert (await knock(guard(), token=given))[0] == status


@pytest.mark.parametrize(
    ("method", "path", "least"),
    [
        ("GET", "/metrics", "viewer"),
        ("GET", "/v1/status", "viewer"),
        ("HEAD", "/v1/flags", "viewer"),
        ("GET", "/v1/cases/progress", "viewer"),
        ("GET", "/v1/cases", "reviewer"),
        ("GET", "/v1/cases/", "reviewer"),
        ("GET", "/v1/cases/ab12", "reviewer"),
        ("GET", "/v1/cases/export", "reviewer"),
        ("POST", "/v1/cases/next", "reviewer"),
        ("POST", "/v1/cases/ab12/judge", "reviewer"),
        ("POST", "/v1/cases/ab12/settle", "admin"),
        ("POST", "/v1/cases/ab12/delete", "admin"),
        ("POST", "/v1/cases/import", "admin"),
        ("POST", "/v1/flags/bot:stale/ack", "reviewer"),
        ("POST", "/v1/flags/bot:stale/resolve", "admin"),
        ("POST", "/v1/forget", "admin"),
        ("GET", "/v1/audit", "admin"),
        ("POST", "/v1/events", "admin"),
        ("GET", "/v1/work", "admin"),
        ("GET", "/v1/reports/r1", "reviewer"),
        ("DELETE", "/v1/status", "admin"),
    ],
)
async def test_each_role_may_what_it_may(method: str, path: str, least: Role) -> None:
    """The tokens of viewers and reviewers open their part of the API; what is not named needs an admin."""
    tokens: dict[Role, str] = {"viewer": "see", "reviewer": "judge"}
    at = Guard(inner, token="right", limit=RateLimit(100), others=tokens)
    for role, token in {**tokens, "admin": "right"}.items():
        status = 200 if RANK[role] >= RANK[least] else 403
        assert (await knock(at, path, f"Bearer {token}", method))[0] == status
    assert (await knock(at, path, "Bearer nope", method))[0] == 401


async def test_an_empty_token_opens_nothing_where_a_role_has_none() -> None:
    """A role without a token is no role."""
    at = Guard(inner, token="right", limit=RateLimit(100), others={"viewer": ""})
    assert (await knock(at, token="Bearer "))[0] == 401


async def test_health_is_open_and_nothing_that_looks_like_it() -> None:
    """No path beside it is let through."""
    assert (await knock(guard(), "/healthz"))[0] == 200
    assert (await knock(guard(), "/healthz/ready"))[0] == 200
    for path in ("/healthz/../v1/status", "/healthz2", "/v1/healthz", "//healthz", "/HEALTHZ"):
        assert (await knock(guard(), path))[0] == 401


async def test_every_answer_carries_the_security_headers() -> None:
    """Refusals too."""
    for token in ("Bearer right", "Bearer wrong"):
        _, headers = await knock(guard(), token=token)
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["content-security-policy"].startswith("default-src 'none'")


async def test_guessing_tokens_is_slowed_down() -> None:
    """The rate counts before the token is looked at."""
    at = guard(per_second=1)
    assert [(await knock(at, token="Bearer wrong"))[0] for _ in range(4)] == [401, 401, 429, 429]


def test_a_bucket_fills_again_and_old_ones_go() -> None:
    """One a second here; thousands of addresses do not fill the memory."""
    now = [0.0]
    limit = RateLimit(1, lambda: now[0])
    assert [limit.take("a") for _ in range(3)] == [True, True, False]
    assert limit.take("b")
    now[0] = 1.0
    assert limit.take("a")
    for number in range(10_000):
        limit.take(str(number))
    assert len(limit._buckets) <= 4096


@pytest.mark.parametrize(
    ("given", "host", "port"),
    [
        ("127.0.0.1:80", "127.0.0.1", 80),
        (":9000", "127.0.0.1", 9000),
        ("0.0.0.0:0", "0.0.0.0", 0),
        ("[::1]:9", "::1", 9),
        ("[::1]", "::1", 9464),
        ("localhost", "localhost", 9464),
    ],
)
def test_an_address_is_read(given: str, host: str, port: int) -> None:
    """As people write them."""
    assert endpoint(given) == Endpoint(host, port)


@pytest.mark.parametrize("given", ["x:y", "127.0.0.1:99999", "a:-1", ":", "a:b:c"])
def test_what_is_no_address_is_refused(given: str) -> None:
    """With an example."""
    with pytest.raises(UsageError, match="HOST:PORT"):
        endpoint(given)


def test_only_loopback_does_without_a_token() -> None:
    """A name might be anything, but localhost is not."""
    assert [is_loopback(h) for h in ("127.0.0.1", "::1", "127.9.9.9", "localhost")] == [True] * 4
    assert [is_loopback(h) for h in ("0.0.0.0", "::", "10.0.0.1", "example.org")] == [False] * 4
    check_public(Endpoint("127.0.0.1", 1), None)
    check_public(Endpoint("0.0.0.0", 1), "t" * 20)
    with pytest.raises(UsageError, match="RESWEEP_TOKEN"):
        check_public(Endpoint("0.0.0.0", 1), None)


def test_an_address_that_is_taken_or_not_ours_is_told() -> None:
    """Exit 4 for the first, 2 for the second."""
    with bind(Endpoint("127.0.0.1", 0)) as taken, pytest.raises(AddressInUseError, match="another program"):
        bind(bound(taken))
    with pytest.raises(UsageError, match="check --listen"):
        bind(Endpoint("203.0.113.1", 1))


def test_a_token_is_made_once_for_its_owner_alone(tmp_path: Path) -> None:
    """The second agent takes the first one's."""
    where = places(Settings(agent=AgentSettings(home=str(tmp_path))))
    made = make_token(where)
    assert make_token(where) == made == token_of(Settings(), where)
    assert len(made) >= 32
    assert stat.S_IMODE(where.token.stat().st_mode) == 0o600


def test_a_token_that_cannot_stand_in_a_header_is_refused() -> None:
    """Without showing it."""
    for token in ("with space", "ünicode", "line\nbreak"):
        with pytest.raises(UsageError) as raised:
            check_token(token)
        assert token not in str(raised.value)
    check_token("a" * 20)


def test_the_address_file_is_removed_by_its_own_agent_alone(tmp_path: Path) -> None:
    """One that came after us has written its own."""
    where = places(Settings(agent=AgentSettings(home=str(tmp_path))))
    assert read_address(where) is None
    write_address(where, Address(listening="http://127.0.0.1:1", pid=os.getpid() + 1, host="h"))
    forget_address(where)
    assert read_address(where) is not None
    write_address(where, Address(listening="http://127.0.0.1:1", pid=os.getpid(), host=socket.gethostname()))
    forget_address(where)
    assert read_address(where) is None


def test_a_home_that_cannot_be_written_names_owner_and_user(tmp_path: Path) -> None:
    """One clear message, with the way out."""
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreReadOnlyError, match=f"this process is user {os.getuid()}"):
        places(Settings(agent=AgentSettings(home=str(tmp_path / "file" / "home"))))


def test_a_file_of_another_user_is_named_with_both_ids(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A volume that was written as root, for instance; root itself may write everything."""
    (tmp_path / "resweep.db").write_text("")
    monkeypatch.setattr(os, "access", lambda path, mode: Path(path).name != "resweep.db")
    with pytest.raises(StoreReadOnlyError, match=rf"resweep\.db belongs to user {os.getuid()} and this"):
        places(Settings(agent=AgentSettings(home=str(tmp_path))))
