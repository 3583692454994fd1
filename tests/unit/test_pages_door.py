"""Who gets into the pages, and what every form must carry."""

from __future__ import annotations

import stat
from collections.abc import Iterator
from pathlib import Path

import pytest
from starlette.applications import Starlette
from starlette.testclient import TestClient

from resweep.domain.errors import UsageError
from resweep.serve.agent import Agent
from resweep.serve.pages.door import Door
from resweep.serve.pages.routes import Pages, is_page, safe_path
from resweep.serve.pages.session import COOKIE, Sessions, key_of
from resweep.serve.places import places
from resweep.settings import AgentSettings, Settings, WebSection

TOKENS = {"admin": "token-of-the-agent", "reviewer": "token-of-reviewers", "viewer": "token-of-viewers"}


@pytest.fixture(name="agent", scope="module")
def _agent(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Agent]:
    """Give an agent with an empty store."""
    home = tmp_path_factory.mktemp("home")
    web = WebSection(
        viewer_token=TOKENS["viewer"],
        reviewer_token=TOKENS["reviewer"],
        proxy_user_header="X-User",
        proxy_role_header="X-Role",
        proxy_addresses="10.0.0.0/8",
    )
    settings = Settings(agent=AgentSettings(home=str(home), token=TOKENS["admin"]), web=web)
    agent = Agent(settings, places(settings))
    agent.start()
    yield agent
    agent.stop()


@pytest.fixture(name="site")
def _site(agent: Agent) -> Starlette:
    """Serve its pages."""
    return Starlette(routes=list(Pages(agent, TOKENS["admin"]).routes()))


def signed_in(site: Starlette, role: str = "admin") -> TestClient:
    """Return a browser of somebody."""
    client = TestClient(site, follow_redirects=False)
    answer = client.post("/login", data={"token": TOKENS[role], "name": "m.okafor", "next": "/flags"})
    assert (answer.status_code, answer.headers["location"]) == (303, "/flags")
    return client


def csrf(client: TestClient) -> str:
    """Return the token of the forms on a page."""
    return client.get("/").text.split('name="csrf" value="')[1].split('"')[0]


def test_a_stranger_is_sent_to_the_login_and_back(site: Starlette) -> None:
    """And sees nothing."""
    answer = TestClient(site, follow_redirects=False).get("/p/bot")
    assert (answer.status_code, answer.headers["location"]) == (303, "/login?next=/p/bot")


def test_the_cookie_is_hidden_from_scripts_and_other_sites(site: Starlette) -> None:
    """And neither it nor the page holds the token."""
    client = TestClient(site, follow_redirects=False)
    answer = client.post("/login", data={"token": TOKENS["admin"], "name": "m"})
    header = answer.headers["set-cookie"].lower()
    assert "httponly" in header
    assert "samesite=strict" in header
    assert TOKENS["admin"] not in header + client.get("/").text


@pytest.mark.parametrize(("token", "name", "status"), [("wrong", "m", 403), (TOKENS["admin"], " ", 400)])
def test_a_wrong_token_or_no_name_is_refused(token: str, name: str, status: int, site: Starlette) -> None:
    """The page says why."""
    answer = TestClient(site).post("/login", data={"token": token, "name": name})
    assert answer.status_code == status
    assert 'role="alert"' in answer.text
    assert COOKIE not in answer.headers.get("set-cookie", "")


def test_guessing_is_slowed_down(site: Starlette) -> None:
    """The right token still opens."""
    client = TestClient(site, follow_redirects=False)
    answers = [client.post("/login", data={"token": "x", "name": "m"}).status_code for _ in range(4)]
    assert answers[-1] == 429
    assert client.post("/login", data={"token": TOKENS["viewer"], "name": "m"}).status_code == 303


@pytest.mark.parametrize(
    ("role", "path", "status"),
    [
        ("viewer", "/", 200),
        ("viewer", "/review", 403),
        ("reviewer", "/review", 200),
        ("admin", "/review", 200),
    ],
)
def test_questions_of_users_are_for_reviewers(role: str, path: str, status: int, site: Starlette) -> None:
    """A viewer sees pipelines and flags."""
    assert signed_in(site, role).get(path).status_code == status


@pytest.mark.parametrize(("role", "path"), [("viewer", "/flags/ack"), ("reviewer", "/flags/resolve")])
def test_what_a_role_may_not_do_is_refused(role: str, path: str, site: Starlette) -> None:
    """Whatever the page shows."""
    client = signed_in(site, role)
    assert client.post(path, data={"csrf": csrf(client), "key": "k"}).status_code == 403


def test_a_form_without_its_token_or_from_elsewhere_is_not_heeded(site: Starlette) -> None:
    """With both it reaches the handler, which knows no such flag."""
    client = signed_in(site)
    good = {"csrf": csrf(client), "key": "none"}
    assert client.post("/flags/ack", data={"key": "none"}).status_code == 403
    assert client.post("/flags/ack", data=good, headers={"sec-fetch-site": "cross-site"}).status_code == 403
    assert client.post("/flags/ack", data=good, headers={"origin": "https://evil.example"}).status_code == 403
    assert client.post("/flags/ack", data=good).status_code == 404


def test_signing_out_ends_the_session_in_this_browser(site: Starlette) -> None:
    """The next page is the login."""
    client = signed_in(site)
    client.post("/logout", data={"csrf": csrf(client)})
    assert client.get("/").headers["location"] == "/login"


def test_a_proxy_is_believed_from_its_addresses_alone(site: Starlette) -> None:
    """The same headers from elsewhere are a stranger's."""
    headers = {"x-user": "p.roxy", "x-role": "reviewer"}
    inside = TestClient(site, client=("10.1.2.3", 1), follow_redirects=False)
    outside = TestClient(site, client=("192.0.2.1", 1), follow_redirects=False)
    assert "p.roxy, reviewer" in inside.get("/", headers=headers).text
    assert outside.get("/", headers=headers).status_code == 303


def test_a_cookie_ends_with_its_token_its_key_and_its_time(tmp_path: Path) -> None:
    """And a forged one is none."""
    sessions = Sessions(b"key", 60)
    cookie = sessions.give("admin", "m", "token")
    assert sessions.read(cookie, {"admin": "token"}) is not None
    assert sessions.read(cookie, {"admin": "another"}) is None
    assert sessions.read(cookie[:-2] + "xx", {"admin": "token"}) is None
    assert Sessions(b"other", 60).read(cookie, {"admin": "token"}) is None
    assert Sessions(b"key", -1).read(cookie, {"admin": "token"}) is None


def test_the_key_is_kept_for_its_owner_alone(tmp_path: Path) -> None:
    """A restart keeps everybody signed in."""
    assert key_of(tmp_path) == key_of(tmp_path)
    path = tmp_path / "session_key"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert len(path.read_bytes()) == 64
    assert [p.name for p in tmp_path.iterdir()] == ["session_key"]


def test_an_address_that_is_none_is_refused() -> None:
    """At the start, not at the first request."""
    with pytest.raises(UsageError, match="proxy_addresses: expected an address or a network; got 'here'"):
        Door(WebSection(proxy_addresses="here"), "t", Sessions(b"k", 1))


@pytest.mark.parametrize("given", ["https://evil.example", "//evil.example", "/\\evil.example", "x", "/a\nb"])
def test_no_form_leads_to_another_site(given: str) -> None:
    """It leads home instead."""
    assert safe_path(given) == "/"
    assert safe_path("/p/bot?x=1#y") == "/p/bot?x=1#y"


def test_pages_are_the_paths_that_let_people_in_themselves() -> None:
    """The API is none of them."""
    assert all(map(is_page, ("/", "/login", "/p/a", "/case/x/judge", "/review/export", "/static/keys.js")))
    assert not any(map(is_page, ("/v1/status", "/metrics", "/healthz", "/reviews", "/flag")))


def test_cases_come_in_and_go_out_as_files(site: Starlette) -> None:
    """What could not be used is told; a reviewer may not bring cases in."""
    client = signed_in(site)
    lines = '{"case_id": "a", "query": "how long?"}\n{"case_id": 5\n'
    file = {"file": ("cases.jsonl", lines.encode())}
    data = {"csrf": csrf(client), "pipeline": "bot"}
    answer = client.post("/review/import", data=data, files=file, follow_redirects=True)
    assert "1 new, 0 merged, 0 kept as they were. 1 row could not be used: row 2:" in answer.text
    assert "how long?" in answer.text
    out = client.get("/review/export?format=csv&pipeline=bot")
    assert "how long?" in out.text
    assert 'filename="cases.csv"' in out.headers["content-disposition"]
    assert client.get("/review/export?format=exe").status_code == 400
    assert client.post("/review/import", data={"csrf": "x"}, files=file).status_code == 403
    other = signed_in(site, "reviewer")
    assert other.post("/review/import", data={"csrf": csrf(other)}, files=file).status_code == 403
