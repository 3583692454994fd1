"""Generators and judges: over HTTP from a server that fails, stalls and limits, and as callables."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from resweep.domain.errors import UsageError
from resweep.serve import models
from resweep.sweep.answers import Said, ToJudge
from resweep.sweep.cache import Cache
from resweep.sweep.calls import Ask, CallFailedError, Calls, Policy

ASKED = ToJudge("q", "r", "a")


class Server:
    """A chat endpoint that answers with what its script says, one entry a call, the last for ever."""

    def __init__(self) -> None:
        self.script: list[tuple[int, dict[str, str], Any]] = []
        self.bodies: list[dict[str, Any]] = []
        self.headers: list[dict[str, str]] = []
        self.stall_s = 0.0
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["content-length"]))
                outer.bodies.append(json.loads(body))
                outer.headers.append({name.lower(): value for name, value in self.headers.items()})
                time.sleep(outer.stall_s)
                status, headers, told = outer.script.pop(0) if len(outer.script) > 1 else outer.script[0]
                data = told if isinstance(told, bytes) else json.dumps(told).encode()
                self.send_response(status)
                for name, value in {**headers, "content-length": str(len(data))}.items():
                    self.send_header(name, value)
                self.end_headers()
                with suppress(OSError):  # whoever asked may have given up
                    self.wfile.write(data)

            def log_message(self, *args: Any) -> None:
                """Keep quiet."""

        self.http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.http.server_port}/v1"
        threading.Thread(target=self.http.serve_forever, daemon=True).start()


def completion(text: str) -> dict[str, Any]:
    return {
        "choices": [{"message": {"content": text}}],
        "usage": {"prompt_tokens": 12, "completion_tokens": 3},
    }


@pytest.fixture(name="server")
def _server() -> Iterator[Server]:
    server = Server()
    yield server
    server.http.shutdown()
    server.http.server_close()


def chat(server: Server, timeout_s: float = 5.0) -> models.ChatModel:
    return models.ChatModel(server.url, "m", "secret", timeout_s)


def test_a_generator_gets_passages_in_order_and_does_not_stream(server: Server) -> None:
    """At temperature 0, with the key from the environment; tokens are what the server counts."""
    server.script = [(200, {}, completion("42"))]
    make = models.generator(models.parse_model(f"{server.url}#m1"), 5.0)
    assert make("why", ["one", "two"]) == Said("42", 12, 3)
    body = server.bodies[0]
    assert (body["model"], body["stream"], body["temperature"]) == ("m1", False, 0)
    assert body["messages"][1]["content"] == "[1] one\n\n[2] two\n\nQuestion: why"
    make("why", [])
    assert server.bodies[1]["messages"] == [
        {"role": "system", "content": models.UNAIDED},
        {"role": "user", "content": "Question: why"},
    ]


def test_the_key_comes_from_the_environment_and_goes_nowhere_else(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its own variable before the usual one."""
    monkeypatch.setenv("OPENAI_API_KEY", "usual")
    monkeypatch.setenv("RESWEEP_JUDGE_KEY", "own")
    server.script = [(200, {}, completion('{"correct": true}'))]
    models.judge(models.parse_model(f"{server.url}#m"), 5.0)(ASKED)
    models.generator(models.parse_model(f"{server.url}#m"), 5.0)("q", [])
    assert [headers["authorization"] for headers in server.headers] == ["Bearer own", "Bearer usual"]


@pytest.mark.parametrize(
    ("text", "right"),
    [
        ('{"reason": "same", "correct": true}', True),
        ('Here you are:\n```json\n{"correct": false, "reason": "no"}\n```', False),
        ('{"note": 1} then {"correct": true}', True),
        ('{"reason": "the set {a, b} is meant", "correct": true}', True),
        ('{"reason": "no", "correct": false} {{ {"correct": false}', False),
    ],
)
def test_a_verdict_is_found_in_what_a_judge_says(text: str, right: bool) -> None:
    """Models wrap their JSON in words."""
    assert models.verdict_in(Said(text)).right is right


@pytest.mark.parametrize(
    "text",
    ["", "yes", '{"correct": "yes"}', "{", '{"reason": "x"}', '{"correct": true} or {"correct": false}'],
)
def test_no_verdict_is_no_verdict(text: str) -> None:
    """Never taken for wrong; asked again."""
    with pytest.raises(CallFailedError, match="from the judge") as raised:
        models.verdict_in(Said(text))
    assert raised.value.again


@pytest.mark.parametrize("status", [429, 500, 502, 503, 504])
def test_what_may_pass_is_tried_again(server: Server, status: int, tmp_path: Path) -> None:
    """After as long as the server asks, which is no failure yet; each attempt is a call paid for."""
    waits: list[float] = []
    server.script = [
        (status, {"retry-after": "7"}, {"error": "slow down"}),
        (status, {}, {"error": "again"}),
        (200, {}, completion("ok")),
    ]
    cache = Cache(tmp_path, now=1e9)
    calls = Calls(cache, Policy(backoff_s=0.5, sleep=waits.append))
    found = calls.run([Ask("k", lambda: chat(server).chat("s", "u").text.encode())])
    cache.close()
    assert (found, waits, calls.progress.calls) == ({"k": b"ok"}, [7.0, 0.5], 3)


def test_a_server_that_puts_calls_off_is_waited_for_more_often_than_one_that_fails(
    server: Server, tmp_path: Path
) -> None:
    """Six times here, by a date in a far year, of which a minute is waited; the attempts are for failures."""
    waits: list[float] = []
    later = {"retry-after": "Fri, 31 Dec 9999 00:00:00 GMT"}
    server.script = [*[(429, later, {"error": "slow down"})] * 6, (200, {}, completion("ok"))]
    cache = Cache(tmp_path, now=1e9)
    calls = Calls(cache, Policy(sleep=waits.append))
    found = calls.run([Ask("k", lambda: chat(server).chat("s", "u").text.encode())])
    cache.close()
    assert (found, waits) == ({"k": b"ok"}, [60.0] * 6)


@pytest.mark.parametrize(
    "message",
    [{"role": "assistant", "content": None}, {"role": "user", "content": "echo"}, {"content": ["parts"]}],
)
def test_what_is_no_text_of_an_assistant_is_no_answer(server: Server, message: dict[str, Any]) -> None:
    """Kept as an empty answer it would be judged wrong; what it took is counted."""
    told = {"choices": [{"message": message}], "usage": {"prompt_tokens": 50, "completion_tokens": 3}}
    server.script = [(200, {}, told)]
    with pytest.raises(CallFailedError, match="expected the text of an assistant") as raised:
        chat(server).chat("s", "u")
    assert (raised.value.again, raised.value.taken) == (True, (50, 3))


def test_what_will_not_pass_is_not_tried_again(server: Server) -> None:
    """A wrong key stays wrong."""
    server.script = [(401, {}, {"error": "no such key"})]
    with pytest.raises(CallFailedError, match="answered 401") as raised:
        chat(server).chat("s", "u")
    assert not raised.value.again


@pytest.mark.parametrize("told", [b"<html>", b"{}", b'{"choices": []}', b"[]", b"null"])
def test_an_answer_that_is_no_completion_is_told(server: Server, told: bytes) -> None:
    """A proxy's page, say."""
    server.script = [(200, {}, told)]
    with pytest.raises(CallFailedError, match="expected a chat completion"):
        chat(server).chat("s", "u")


def test_a_server_that_stalls_is_given_up(server: Server) -> None:
    """And may be asked again."""
    server.script, server.stall_s = [(200, {}, completion("late"))], 1.0
    with pytest.raises(CallFailedError, match="ReadTimeout"):
        chat(server, timeout_s=0.1).chat("s", "u")


def test_nobody_there_is_told() -> None:
    """With the address."""
    with pytest.raises(CallFailedError, match=r"127\.0\.0\.1:9"):
        models.ChatModel("http://127.0.0.1:9/v1", "m", None, 1.0).chat("s", "u")


def test_an_endpoint_needs_a_model() -> None:
    """Given behind a #."""
    with pytest.raises(UsageError, match="give it as URL#MODEL"):
        models.parse_model("https://host/v1").known()
    known = models.parse_model("https://host/v1#gpt", "2026-01", 2.5).known()
    assert (known.name, known.version, known.usd_per_million) == ("https://host/v1 gpt", "2026-01", 2.5)


@pytest.fixture(name="own")
def _own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], str]:
    """Give a function that puts an expression behind a name."""
    monkeypatch.syspath_prepend(str(tmp_path))
    numbers = iter(range(100))

    def named(expression: str) -> str:
        module = f"own_model_{tmp_path.name}_{next(numbers)}"
        (tmp_path / f"{module}.py").write_text(f"model = {expression}\n")
        return f"{module}:model"

    return named


def test_a_callable_of_ones_own_makes_answers(own: Callable[[str], str]) -> None:
    """From question and passages."""
    make = models.generator(models.parse_model(own("lambda q, p: f'{q} {len(p)}'")), 1.0)
    assert make("why", ["a", "b"]).text == "why 2"


@pytest.mark.parametrize(
    ("expression", "right", "reason"),
    [
        ("lambda q, a, r: a == 'a'", True, ""),
        ("lambda q, a, r: (False, 'why not')", False, "why not"),
        ("lambda q, a, r: {'correct': True, 'reason': 'yes'}", True, "yes"),
    ],
)
def test_a_callable_of_ones_own_judges(
    own: Callable[[str], str], expression: str, right: bool, reason: str
) -> None:
    """With a reason or without."""
    verdict = models.judge(models.parse_model(own(expression)), 1.0)(ASKED)
    assert (verdict.right, verdict.reason) == (right, reason)


def test_what_is_no_ruling_is_refused(own: Callable[[str], str]) -> None:
    """A score is not right or wrong; nothing is guessed."""
    with pytest.raises(CallFailedError, match="expected true or false") as raised:
        models.judge(models.parse_model(own("lambda q, a, r: 0.7")), 1.0)(ASKED)
    assert not raised.value.again
    with pytest.raises(CallFailedError, match="expected a text; got int"):
        models.generator(models.parse_model(own("lambda q, p: 3")), 1.0)("q", [])


def test_a_generator_of_ones_own_may_say_what_it_cites(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As places beside its text, in a mapping or an object; places that are none fail at once."""
    code = (
        "from types import SimpleNamespace as N\n"
        "def a(q, p): return {'text': 'so', 'citations': [2, 1]}\n"
        "def b(q, p): return N(content='so', citations=())\n"
        "def c(q, p): return {'answer': 'so'}\n"
        "def d(q, p): return {'text': 'so', 'citations': ['p1']}\n"
    )
    (tmp_path / "citing_generators.py").write_text(code)
    monkeypatch.syspath_prepend(str(tmp_path))
    one, two, three, wrong = (
        models.generator(models.parse_model(f"citing_generators:{name}"), 5.0) for name in "abcd"
    )
    assert [make("q", ["x", "y"]).cited for make in (one, two, three)] == [(2, 1), (), None]
    with pytest.raises(CallFailedError, match="expected `citations` as places of passages"):
        wrong("q", ["x"])


def test_an_endpoint_is_asked_to_cite_where_citations_are_wanted(server: Server) -> None:
    """Not for the closed book: there is nothing to cite."""
    server.script = [(200, {}, completion("so [1]"))]
    make = models.generator(models.parse_model(f"{server.url}#m1"), 5.0, cite=True)
    make("q", ["x"])
    make("q", [])
    told = [body["messages"][0]["content"] for body in server.bodies]
    assert [models.CITE in one for one in told] == [True, False]
