"""Figures of the exporters: a scrape of the fullest page, and exit with a collector that is down or hangs.

    python benchmarks/exporters.py

Prints one line a figure. Needs the agent extra (OpenTelemetry).
"""

from __future__ import annotations

import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from itertools import product
from statistics import median

from resweep.domain.snapshot import Sample, Snapshot, window_samples
from resweep.domain.window import BUCKETS, Window
from resweep_exporters.catalog import CATALOG, OWN_CONFIGS, Metric
from resweep_exporters.prometheus import text

OPENMETRICS = "application/openmetrics-text;version=1.0.0,text/plain;version=0.0.4;q=0.5"
SCRAPE_HOLD = 0.025  # seconds
EXIT_HOLD = 2.0  # seconds
ROUNDS = 60


def traffic(config: str) -> Iterator[Sample]:
    """Yield the counters and histograms of a config with some calls in them."""
    total = Window("support-bot", config, 0)
    for number in range(200):
        total.add("retrievals")
        for name in BUCKETS:
            total.observe(name, number / 7)
    return window_samples("support-bot", config, total)


def state(metric: Metric, configs: list[str]) -> Iterator[Sample]:
    """Yield a metric's series for each config it is about."""
    copies = range(max(1, (metric.at_most or 1)))
    for config, values, copy in product(
        configs if metric.scope == "config" else ["-"], product(*metric.values.values()), copies
    ):
        known = dict(zip(metric.values, values, strict=True)) | {"config": config, "basis": config}
        yield Sample(metric.name, tuple(known.get(label, f"{label}{copy}") for label in metric.labels), 1)


def fullest() -> Snapshot:
    """Return a snapshot of the default number of configs, with everything there is."""
    configs = [f"{number:012x}" for number in range(OWN_CONFIGS)]
    samples = [sample for config in (*configs, "other") for sample in traffic(config)]
    for metric in CATALOG:
        if metric.scope != "traffic":
            samples.extend(state(metric, configs))
    return Snapshot(ts=0.0, samples=tuple(samples))


def seconds(action: Callable[[], object]) -> float:
    """Return the median time of an action."""
    times = []
    for _ in range(ROUNDS):
        began = time.perf_counter()
        action()
        times.append(time.perf_counter() - began)
    return median(times)


def scrapes() -> None:
    """Print the time of a page in both formats."""
    snapshot = fullest()
    page, _ = text(snapshot)
    series = sum(not line.startswith(b"#") for line in page.splitlines())
    for name, accept in (("text", ""), ("openmetrics", OPENMETRICS)):
        took = seconds(lambda accept=accept: text(snapshot, accept))  # type: ignore[misc]
        print(f"scrape {name}: {took * 1e3:.1f} ms for {series} series, hold {SCRAPE_HOLD * 1e3:.0f} ms")


CODE = """
import atexit, sys, time
from resweep.domain.snapshot import Snapshot
from resweep_exporters.otlp import OtlpExporter
class Source:
    def snapshot(self): return Snapshot(ts=0.0)
OtlpExporter(Source(), sys.argv[1], interval=0.05, timeout=600).start()
time.sleep(0.5)
print(time.time(), flush=True)
"""


def exits() -> None:
    """Print how long a process takes to end while it exports to nobody and to one who never answers."""
    with socket.socket() as closed, socket.socket() as silent:
        closed.bind(("127.0.0.1", 0))
        refused = closed.getsockname()[1]
        silent.bind(("127.0.0.1", 0))
        silent.listen(8)
        for name, port in (("down", refused), ("hanging", silent.getsockname()[1])):
            print(f"exit, collector {name}: {_exit_seconds(port):.2f} s, hold {EXIT_HOLD:.0f} s")


def _exit_seconds(port: int) -> float:
    done = subprocess.run(
        [sys.executable, "-c", CODE, f"http://127.0.0.1:{port}"], capture_output=True, text=True, check=True
    )
    return time.time() - float(done.stdout)


if __name__ == "__main__":
    scrapes()
    exits()
