"""Secrets planted wherever a recorder could pick one up are found nowhere."""

from __future__ import annotations

import base64
import gzip
import hashlib
import http.server
import json
import os
import subprocess
import sys
import threading
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, ClassVar
from urllib.parse import quote

import pytest

from resweep.domain.event import CONFIG_ID_LENGTH

APP = Path(__file__).with_name("planted_app.py")
ROOT = Path(__file__).resolve().parents[3]
TEXTS = ("query", "passage", "metadata", "filter", "exception", "hook", "object")
CREDENTIALS = ("api_key", "password", "bearer")
SECRETS = {
    place: f"tango-{hashlib.sha1(place.encode()).hexdigest()[:10]}-{place}"
    for place in (*TEXTS, *CREDENTIALS)
}
SECRETS["api_key"] = "sk-test-AAAA1111tango"
PATHS = (
    "/metrics",
    "/healthz",
    "/v1/status",
    "/v1/flags?all=1",
    "/v1/configs",
    "/v1/tuned",
    "/v1/maintenance",
    "/v1/canaries",
    "/",
    "/pipelines",
    "/nowhere",
)


class Collector(http.server.BaseHTTPRequestHandler):
    """Keeps what exporters send."""

    bodies: ClassVar[list[bytes]] = []

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["content-length"]))
        packed = self.headers.get("content-encoding") == "gzip"
        self.bodies.append(gzip.decompress(body) if packed else body)
        self.send_response(200)
        self.end_headers()

    def log_message(self, *args: object) -> None:
        """Say nothing."""


@pytest.fixture(name="collector")
def _collector() -> Iterator[str]:
    """Give the address of a collector that keeps everything."""
    Collector.bodies.clear()
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Collector)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}/v1/traces"
    server.shutdown()
    server.server_close()


def run(home: Path, collector: str, capture: str) -> bytes:
    """Run the service to its end; return what it wrote to its log and its terminal."""
    home.mkdir(parents=True, exist_ok=True)
    log = home / "app.log"
    given = {"secrets": SECRETS, "capture": capture, "collector": collector, "log": str(log)}
    done = subprocess.run(
        [sys.executable, "-X", "faulthandler", str(APP), json.dumps(given)],
        env={
            "PATH": os.environ["PATH"],
            "RESWEEP_HOME": str(home),
            "PYTHONPATH": os.pathsep.join((str(ROOT / "agent"), str(ROOT / "exporters"))),
        },
        capture_output=True,
        check=False,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr.decode()
    return log.read_bytes() + done.stdout + done.stderr


def spellings(secret: str) -> Iterator[bytes]:
    """Yield the ways in which a secret could be written down."""
    plain = secret.encode()
    yield plain
    yield plain.hex().encode()
    yield base64.b64encode(plain).rstrip(b"=")
    yield quote(secret, safe="").encode()
    yield secret.encode("utf-16-le")


def found(secrets: dict[str, str], where: dict[str, bytes]) -> list[tuple[str, str]]:
    """Return the secrets that are found, and where."""
    return [
        (place, name)
        for place, secret in secrets.items()
        for name, held in where.items()
        if any(spelling in held for spelling in spellings(secret))
    ]


def everything(home: Path) -> dict[str, bytes]:
    """Return every file of a home folder, also as unpacked where one is packed."""
    files = {str(path.relative_to(home)): path.read_bytes() for path in home.rglob("*") if path.is_file()}
    packed = {name: held for name, held in files.items() if held[:2] == b"\x1f\x8b"}
    return files | {f"{name} unpacked": zlib.decompress(held, 31) for name, held in packed.items()}


def spool(home: Path) -> dict[str, bytes]:
    """Return what waits for the agent."""
    held = {name: body for name, body in everything(home).items() if name.startswith("spool")}
    assert held
    return held


def answers(agent: Any) -> dict[str, bytes]:
    """Return what an agent says, also to what is no question."""
    told = {path: agent.call(path)[1] for path in PATHS}
    told["bad batch"] = agent.call("/v1/batches", SECRETS["query"].encode())[1]
    told["bad event"] = agent.call("/v1/events", {"type": "event"})[1]
    return {name: one if isinstance(one, bytes) else json.dumps(one).encode() for name, one in told.items()}


def test_with_content_off_no_secret_is_found_anywhere(
    agents: Callable[..., Any], until: Callable[..., Any], collector: str, tmp_path: Path
) -> None:
    """Spool, store, logs, spans, metrics, answers of the agent; every number is there all the same."""
    home = tmp_path / "home"
    said = run(home, collector, "none")
    where = spool(home) | {"app": said, "spans": b"".join(Collector.bodies)}
    assert b"resweep.event_id" in where["spans"]
    agent = agents(RESWEEP_AGENT_LOG_LEVEL="DEBUG").started()
    until(lambda: not list((home / "spool").glob("*.json")))
    assert agent.call("/v1/traces", otlp())[0] == 200
    page = agent.get("/metrics").decode()
    where |= {f"live {name}": held for name, held in everything(home).items()} | answers(agent)
    assert agent.end() == 0
    where |= {f"left {name}": held for name, held in everything(home).items()}
    assert found(SECRETS, where) == []
    assert unsalted(where) == []
    counted = [line for line in page.splitlines() if line.startswith("resweep_retrievals_total")]
    assert {line.partition('pipeline="')[2].partition('"')[0]: line.rsplit(" ")[-1] for line in counted} == {
        "planted": "4.0",
        "hooked": "4.0",
        "broken": "1.0",
        "hostile": "1.0",
        "streaming": "2.0",
        "waiting": "1.0",
        "spans": "2.0",
    }


def unsalted(where: dict[str, bytes]) -> list[tuple[str, str]]:
    """Return the credentials whose plain hash is found: it could be guessed back."""
    hashes = [
        (place, function(SECRETS[place].encode()).hexdigest()[:CONFIG_ID_LENGTH].encode())
        for place in CREDENTIALS
        for function in (hashlib.sha256, hashlib.sha1, hashlib.md5, hashlib.blake2b)
    ]
    return [(place, name) for place, digest in hashes for name, held in where.items() if digest in held]


def otlp() -> bytes:
    """Return the spans of an instrumentation that sends everything it sees."""

    def attribute(key: str, value: str) -> dict[str, object]:
        return {"key": key, "value": {"stringValue": value}}

    listed = json.dumps([{"id": "a", "content": SECRETS["passage"], "metadata": {"n": SECRETS["metadata"]}}])
    texts = {
        "openinference.span.kind": "RETRIEVER",
        "input.value": SECRETS["query"],
        "output.value": listed,
        "metadata": SECRETS["metadata"],
        "session.id": SECRETS["filter"],
        "retrieval.documents.0.document.content": SECRETS["passage"],
        "retrieval.documents.0.document.metadata": json.dumps({"note": SECRETS["metadata"]}),
    }
    event = {
        "name": "exception",
        "attributes": [
            attribute("exception.type", "builtins.ValueError"),
            attribute("exception.message", SECRETS["exception"]),
            attribute("exception.stacktrace", SECRETS["exception"]),
        ],
    }
    spans = [
        {
            "traceId": "0af7651916cd43dd8448eb211c80319c",
            "spanId": f"b7ad6b716920333{number}",
            "name": SECRETS["query"],
            "startTimeUnixNano": "1796000000000000000",
            "endTimeUnixNano": "1796000000040000000",
            "attributes": [attribute(key, value) for key, value in texts.items()],
            "events": events,
            "status": {"code": 2 if events else 0, "message": SECRETS["exception"]},
        }
        for number, events in enumerate(([], [event]))
    ]
    spans.append({"traceId": "zz", "name": SECRETS["query"]})
    resource = {"attributes": [attribute("service.name", "spans"), attribute("host", SECRETS["object"])]}
    return json.dumps({"resourceSpans": [{"resource": resource, "scopeSpans": [{"spans": spans}]}]}).encode()


def test_with_content_on_only_what_passed_the_hook_is_kept(
    agents: Callable[..., Any], until: Callable[..., Any], collector: str, tmp_path: Path
) -> None:
    """The question is there for reviewers as the hook left it; neither address nor card is anywhere."""
    home = tmp_path / "home"
    said = run(home, collector, "sampled")
    where = spool(home) | {"app": said, "spans": b"".join(Collector.bodies)}
    agent = agents(RESWEEP_AGENT_LOG_LEVEL="DEBUG").started()
    until(lambda: not list((home / "spool").glob("*.json")))
    where |= {f"live {name}": held for name, held in everything(home).items()} | answers(agent)
    assert agent.end() == 0
    where |= {f"left {name}": held for name, held in everything(home).items()}
    personal = {"address": "jane@example.com", "card": "4111 1111 1111 1111", "digits": "4111111111111111"}
    credentials = {place: SECRETS[place] for place in (*CREDENTIALS, "metadata")}
    assert found(personal | credentials, where) == []
    kept = b"mail [email] about card [card], order 20260501123456789"
    assert any(kept in held for name, held in where.items() if name.startswith("left"))
    assert found({"query": SECRETS["query"]}, where)  # what no hook takes out is what is wanted
