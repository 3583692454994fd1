"""The HTTP sink against a real server: what it sends, what it retries, what it gives up."""

from __future__ import annotations

import gzip
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any

import pytest

import resweep
from resweep.domain.batch import Batch, decode_batch
from resweep.domain.errors import InputError
from resweep.domain.window import Window
from resweep.record.http import HttpSink


class Agent(HTTPServer):
    """Takes batches and answers with `status`."""

    def __init__(self) -> None:
        self.status = 200
        self.got: list[tuple[str, dict[str, str], Batch]] = []
        super().__init__(("127.0.0.1", 0), Handler)


class Handler(BaseHTTPRequestHandler):
    server: Agent

    def do_POST(self) -> None:
        body = gzip.decompress(self.rfile.read(int(self.headers["Content-Length"])))
        self.server.got.append((self.path, dict(self.headers), decode_batch(body)))
        self.send_response(self.server.status)
        if self.server.status == 307:
            self.send_header("Location", "http://127.0.0.1:1/elsewhere")
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_: Any) -> None:
        pass


@pytest.fixture
def agent() -> Iterator[Agent]:
    with Agent() as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield server
        server.shutdown()
        thread.join()


def url(agent: Agent) -> str:
    return f"http://127.0.0.1:{agent.server_port}"


def batch(seq: int = 1) -> Batch:
    return Batch(writer="w", seq=seq, ts=0.0, windows=[Window("p", "c", 1, {"retrievals": 2})])


def test_a_batch_arrives_with_the_token(agent: Agent) -> None:
    """POST /v1/batches, gzip, bearer token, nothing lost on the way."""
    HttpSink(url(agent), "secret-token").write(batch())
    ((path, headers, got),) = agent.got
    assert path == "/v1/batches"
    assert headers["Authorization"] == "Bearer secret-token"
    assert got == batch()


@pytest.mark.parametrize("status", [401, 404, 429, 500, 503, 307])
def test_what_may_be_taken_later_is_retried(agent: Agent, status: int) -> None:
    """OSError says: not now. A redirect is not followed with the token."""
    agent.status = status
    with pytest.raises(OSError, match=str(status)):
        HttpSink(url(agent), "secret-token").write(batch())
    assert len(agent.got) == 1


@pytest.mark.parametrize("status", [400, 413, 422])
def test_what_never_will_be_taken_is_given_up(agent: Agent, status: int) -> None:
    """InputError says: never, so that the batches behind it can go."""
    agent.status = status
    with pytest.raises(InputError):
        HttpSink(url(agent)).write(batch())


def test_the_same_batch_comes_again_until_it_is_taken(agent: Agent) -> None:
    """Same writer and number, so the agent applies it once; later calls are in the next one."""
    agent.status = 503
    retrieve: Any = resweep.watch(lambda query: ["a"], sink=url(agent))
    retrieve("q")
    resweep.flush(10.0)
    retrieve("q")
    agent.status = 200
    resweep.flush(10.0)
    resweep.shutdown()
    sent = [(got.writer, got.seq, got.kind) for _, _, got in agent.got]
    assert sent[0] == sent[1]
    taken = {(got.writer, got.seq): got for _, _, got in agent.got}.values()
    assert sum(window.get("retrievals") for got in taken for window in got.windows) == 2
