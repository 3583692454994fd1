"""OTLP intake: spans a second decoded and folded on one core, and taken by a running agent over HTTP.

    python benchmarks/otlp.py [--json] [--spans N]

Spans are those of a retriever instrumented by OpenInference: 36 attributes, 8 documents with id, score,
metadata and text. Parsing the same bodies with the official protobuf classes is the floor of the same run:
only ratios to it travel from machine to machine. The HTTP client runs on the same cores as the agent.
"""

from __future__ import annotations

import argparse
import gzip
import http.client
import json
import os
import random
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
SOURCES = [str(ROOT / "agent"), str(ROOT / "exporters")]
sys.path[:0] = SOURCES

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (  # noqa: E402
    ExportTraceServiceRequest,
)
from opentelemetry.proto.trace.v1.trace_pb2 import Span  # noqa: E402

from resweep.ingest.otlp.intake import read_traces  # noqa: E402

DEPTH = 8
BODY_SPANS = 512  # the default batch of the SDK's processor
PASSAGES = 4000
CLIENTS = 2
REPEATS = 5
TEXT = "Refunds are paid to the card that was charged, within ten working days of the return. "
HOLDS = {"decode/parse": 23.5, "spans_per_s_http": 12_000}


def bodies(spans: int, seed: int = 7) -> list[bytes]:
    """Return trace requests that hold so many spans together, all different."""
    chance = random.Random(seed)
    return [body(chance, min(BODY_SPANS, spans - at)) for at in range(0, spans, BODY_SPANS)]


def body(chance: random.Random, spans: int) -> bytes:
    """Return one request in protobuf."""
    message = ExportTraceServiceRequest()
    resource = message.resource_spans.add()
    resource.resource.attributes.add(key="service.name").value.string_value = "support-bot"
    scope = resource.scope_spans.add()
    now = time.time_ns()
    for _ in range(spans):
        span = scope.spans.add(name="Retriever.retrieve", start_time_unix_nano=now)
        span.end_time_unix_nano = now + chance.randrange(5_000_000, 90_000_000)
        span.trace_id, span.span_id = chance.randbytes(16), chance.randbytes(8)
        _attributes(span, chance)
    return bytes(message.SerializeToString())


def _attributes(span: Span, chance: random.Random) -> None:
    said = {
        "openinference.span.kind": "RETRIEVER",
        "input.value": "how long do refunds take",
        "input.mime_type": "text/plain",
        "session.id": f"s{chance.randrange(10_000)}",
    }
    for at, passage in enumerate(chance.sample(range(PASSAGES), DEPTH)):
        stem = f"retrieval.documents.{at}.document"
        said[f"{stem}.id"] = f"p{passage}"
        said[f"{stem}.metadata"] = json.dumps({"source": f"manual-{passage % 1000}.md", "page": passage % 9})
        said[f"{stem}.content"] = TEXT * 3
        span.attributes.add(key=f"{stem}.score").value.double_value = 0.9 - at / 50
    for key, value in said.items():
        span.attributes.add(key=key).value.string_value = value
    assert len(span.attributes) == 36


def per_span(function: Callable[[bytes], object], every: Sequence[bytes], spans: int) -> float:
    """Return the µs of CPU time that a function takes for a span: the least of some rounds."""
    rounds = []
    for _ in range(REPEATS):
        began = time.process_time()
        for one in every:
            function(one)
        rounds.append(time.process_time() - began)
    return min(rounds) / spans * 1e6


def decoding(every: Sequence[bytes], spans: int) -> dict[str, float]:
    """Return µs a span for parsing alone, and for decoding and folding."""
    parse = per_span(ExportTraceServiceRequest.FromString, every, spans)
    configs = {"support-bot": "9f2c0a417be1"}
    decode = per_span(lambda one: read_traces(one, "protobuf", configs, time.time()), every, spans)
    return {"parse_us": parse, "decode_us": decode}


class AgentProcess:
    """A `resweep agent` of its own, on a free port."""

    def __init__(self, home: Path) -> None:
        environ = {**os.environ, "RESWEEP_HOME": str(home), "PYTHONPATH": os.pathsep.join(SOURCES)}
        command = [sys.executable, "-m", "resweep", "agent", "--listen", "127.0.0.1:0", "--json"]
        self.process = subprocess.Popen(command, env=environ, cwd=home, stdout=subprocess.PIPE, text=True)
        assert self.process.stdout is not None
        self.address = json.loads(self.process.stdout.readline())["listening"].removeprefix("http://")
        self.token = (home / "token").read_text().strip()

    def cpu(self) -> float:
        """Return the seconds of CPU time that it has used so far."""
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def end(self) -> None:
        """End it as a supervisor does."""
        self.process.terminate()
        self.process.wait(10)


def over_http(every: Sequence[bytes], spans: int, *, packed: bool) -> tuple[float, float]:
    """Return spans a second that an agent takes from some clients, and its own µs of CPU time a span."""
    sent = [gzip.compress(one, compresslevel=1) for one in every] if packed else list(every)
    headers = {"content-type": "application/x-protobuf"} | ({"content-encoding": "gzip"} if packed else {})
    with tempfile.TemporaryDirectory() as folder:
        agent = AgentProcess(Path(folder))
        headers["authorization"] = f"Bearer {agent.token}"
        try:
            waiting = iter(sent)
            lock = threading.Lock()
            clients = [
                threading.Thread(target=_client, args=(agent.address, headers, waiting, lock))
                for _ in range(CLIENTS)
            ]
            used, began = agent.cpu(), time.perf_counter()
            for client in clients:
                client.start()
            for client in clients:
                client.join()
            return spans / (time.perf_counter() - began), (agent.cpu() - used) / spans * 1e6
        finally:
            agent.end()


def _client(address: str, headers: dict[str, str], waiting: object, lock: threading.Lock) -> None:
    connection = http.client.HTTPConnection(address, timeout=30)
    while True:
        with lock:
            one = next(waiting, None)  # type: ignore[call-overload]
        if one is None:
            connection.close()
            return
        connection.request("POST", "/v1/traces", one, headers)
        answer = connection.getresponse()
        answer.read()
        assert answer.status == 200, answer.status


def main() -> None:
    """Measure, and print a table or JSON."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument("--spans", type=int, default=40_000, help="spans over HTTP (default 40000)")
    given = parser.parse_args()
    few = bodies(4096)
    found = decoding(few, 4096)
    found["decode/parse"] = found["decode_us"] / found["parse_us"]
    found["spans_per_s"] = 1e6 / found["decode_us"]
    for seed, packed in enumerate((False, True)):
        rate, cpu = over_http(bodies(given.spans, seed), given.spans, packed=packed)
        name = "gzip" if packed else "http"
        found |= {f"spans_per_s_{name}": rate, f"agent_us_{name}": cpu}
    if given.json:
        print(json.dumps({"cases": found, "hold": HOLDS}))
        return
    for name, value in found.items():
        hold = f"   hold {HOLDS[name]:g}" if name in HOLDS else ""
        print(f"{name:24} {value:12,.1f}{hold}")


if __name__ == "__main__":
    main()
