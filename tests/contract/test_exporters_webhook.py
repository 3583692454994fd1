"""A webhook over a real socket: what a receiver sees, and what a bad one costs."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import ClassVar

import pytest

from resweep.domain.verdict import Flag
from resweep_exporters.webhook import WebhookExporter
from resweep_exporters.webhook_body import verify

FLAG = Flag(
    key="p/untuned/b",
    pipeline="p",
    config="c" * 12,
    basis="b" * 12,
    reason="untuned",
    layer="declared",
    components=("depth",),
    severity="notice",
    message="no tuned k: größer ist nicht besser",
    opened_ts=1.0,
)


class Receiver(BaseHTTPRequestHandler):
    """Keeps what comes in, answers `status`."""

    got: ClassVar[list[tuple[dict[str, str], bytes]]] = []
    status: ClassVar[int] = 204

    def do_POST(self) -> None:
        """Keep one call."""
        body = self.rfile.read(int(self.headers["content-length"]))
        self.got.append(({name.lower(): value for name, value in self.headers.items()}, body))
        self.send_response(self.status)
        self.send_header("location", "/elsewhere")
        self.send_header("content-length", "0")
        self.end_headers()

    def log_message(self, *args: object) -> None:
        """Keep quiet."""


@pytest.fixture
def port() -> Iterator[int]:
    """Run a receiver and give its port."""
    Receiver.got.clear()
    Receiver.status = 204
    server = HTTPServer(("127.0.0.1", 0), Receiver)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    yield server.server_address[1]
    server.shutdown()
    thread.join()
    server.server_close()


def test_a_receiver_can_check_what_it_got(port: int) -> None:
    """The bytes on the wire carry a good signature."""
    with WebhookExporter(f"http://localhost:{port}/hook", "s", allow_private=True) as exporter:
        assert exporter.deliver(FLAG, "opened").outcome == "delivered"
    ((headers, body),) = Receiver.got
    assert verify("s", headers["x-resweep-signature"], body, time.time())
    assert headers["host"] == f"localhost:{port}"
    assert FLAG.message in body.decode()


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1", "127.1", "2130706433", "[::ffff:127.0.0.1]"])
def test_this_machine_is_not_called_unless_allowed(port: int, host: str) -> None:
    """However its address is written."""
    with WebhookExporter(f"http://{host}:{port}/hook", "s") as exporter:
        assert exporter.deliver(FLAG, "opened").outcome == "refused"
    assert Receiver.got == []


def test_a_redirect_is_not_followed(port: int) -> None:
    """One call, and no second one to the location."""
    Receiver.status = 307
    with WebhookExporter(f"http://127.0.0.1:{port}/hook", "s", allow_private=True) as exporter:
        assert exporter.deliver(FLAG, "opened").outcome == "refused"
    assert len(Receiver.got) == 1


def test_a_receiver_that_never_answers_is_asked_again() -> None:
    """After the time-out, later."""
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen(1)
        url = f"http://127.0.0.1:{silent.getsockname()[1]}/"
        with WebhookExporter(url, "s", allow_private=True, timeout=0.1) as exporter:
            got = exporter.deliver(FLAG, "opened")
    assert (got.outcome, got.status) == ("retry", None)
    assert "ReadTimeout" in got.why


def test_a_closed_port_is_asked_again() -> None:
    """Nobody listens now."""
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{closed.getsockname()[1]}/"
    with WebhookExporter(url, "s", allow_private=True) as exporter:
        assert exporter.deliver(FLAG, "opened").outcome == "retry"
