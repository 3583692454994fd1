"""A collector that is away, silent or slow: what a call costs then, how long the exit takes, what is counted.

    python benchmarks/collector.py [--json] [--calls N]

Each case is a process of its own that watches a retriever, sends a span of each retrieval to the collector,
and ends by itself after its calls. `call` is the median time of a call in µs, `exit` the seconds from the
last line of the program to the end of the process, `lost` the spans that its own metric says were not
delivered, `full` the calls of which only the counts were kept since they came too fast, `lines` the lines it
logged meanwhile.
"""

from __future__ import annotations

import argparse
import http.server
import json
import os
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
SLOW_S = 0.5  # seconds that a slow collector takes for an answer
HOLDS = {"call": 1.1, "exit": 2.0}

PROGRAM = """
import atexit, json, logging, sys, time
from statistics import median
import resweep
from resweep.record.process import recorders
where, calls = sys.argv[1], int(sys.argv[2])
logging.basicConfig(stream=sys.stderr)
if where != "off":
    resweep.configure(spans=where)
@atexit.register  # before resweep's own, so that it runs after it
def tell():
    (recorder,) = recorders().values()
    dropped = {s.labels[0]: s.value for s in recorder.snapshot().samples
               if s.metric == "resweep_process_dropped_records_total"}
    told = {"call": median(times) * 1e6, "lost": dropped["sink_failed"], "full": dropped["ring_full"]}
    print(json.dumps({**told, "ended": ended}), flush=True)
passages = [{"id": f"p{i}", "score": 1 - i / 10, "text": "passage " * 60, "source": "a.md"} for i in range(8)]
retrieve = resweep.watch(lambda query: list(passages), pipeline="bench", config={"context_k": 8}, sink="none")
times = []
for number in range(calls):
    began = time.perf_counter()
    answer = retrieve("how long do refunds take")
    times.append(time.perf_counter() - began)
    assert len(answer) == 8
    if number % 100 == 0:
        time.sleep(0.01)
ended = time.time()
"""


class Answers(http.server.BaseHTTPRequestHandler):
    """Takes everything, at its own pace."""

    pause_s = 0.0

    def do_POST(self) -> None:
        """Take a request."""
        self.rfile.read(int(self.headers["content-length"]))
        time.sleep(self.pause_s)
        self.send_response(200)
        self.end_headers()

    def log_message(self, *args: object) -> None:
        """Say nothing."""


class Slow(Answers):
    """Takes its time."""

    pause_s = SLOW_S


@contextmanager
def serving(handler: type[Answers]) -> Iterator[str]:
    """Run a collector; give its address."""
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/v1/traces"
    finally:
        server.shutdown()
        server.server_close()


@contextmanager
def silent() -> Iterator[str]:
    """Give the address of one that accepts connections and never answers."""
    with socket.create_server(("127.0.0.1", 0), backlog=64) as listening:
        yield f"http://127.0.0.1:{listening.getsockname()[1]}/v1/traces"


@contextmanager
def closed() -> Iterator[str]:
    """Give an address at which nobody listens."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    yield f"http://127.0.0.1:{port}/v1/traces"


@contextmanager
def off() -> Iterator[str]:
    """No spans at all."""
    yield "off"


CASES = {
    "off": off,
    "up": lambda: serving(Answers),
    "slow": lambda: serving(Slow),
    "closed": closed,
    "silent": silent,
}


def run(where: str, calls: int) -> dict[str, float]:
    """Run the program against a collector; return its figures."""
    environ = {**os.environ, "PYTHONPATH": os.pathsep.join((str(ROOT / "agent"), str(ROOT / "exporters")))}
    done = subprocess.Popen(
        [sys.executable, "-c", PROGRAM, where, str(calls)],
        env=environ,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    out, err = done.communicate(timeout=120)
    ended = time.time()
    told = json.loads(out)
    return {
        "call": told["call"],
        "exit": ended - told["ended"],
        "lost": told["lost"],
        "full": told["full"],
        "lines": float(len(err.splitlines())),
    }


def main() -> None:
    """Measure every case, and print a table or JSON."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument("--calls", type=int, default=3000, help="calls of each case (default 3000)")
    given = parser.parse_args()
    found = {}
    for name, collector in CASES.items():
        with collector() as where:
            found[name] = run(where, given.calls)
    if given.json:
        ratios = {f"{name}/up": case["call"] / found["up"]["call"] for name, case in found.items()}
        print(json.dumps({"cases": found, "ratios": ratios, "hold": HOLDS}))
        return
    print(f"{'':8}{'call µs':>10}{'/ up':>8}{'exit s':>8}{'lost':>8}{'full':>8}{'lines':>7}")
    for name, case in found.items():
        ratio = case["call"] / found["up"]["call"]
        print(
            f"{name:8}{case['call']:10.2f}{ratio:8.2f}{case['exit']:8.2f}{case['lost']:8.0f}{case['full']:8.0f}{case['lines']:7.0f}"
        )


if __name__ == "__main__":
    main()
