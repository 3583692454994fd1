"""A real Prometheus scrapes our page: it reads every series, and every panel of the dashboard shows data."""

from __future__ import annotations

import json
import socket
import subprocess
import threading
import time
import urllib.parse
import urllib.request
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import product
from pathlib import Path
from typing import Any, ClassVar

import pytest

from resweep.domain.snapshot import Exemplar, Sample, Snapshot, window_samples
from resweep.domain.window import BUCKETS, Window
from resweep_exporters.catalog import CATALOG, Metric
from resweep_exporters.prometheus import text

pytestmark = pytest.mark.integration
DASHBOARDS = Path(__file__).resolve().parents[2] / "rules" / "dashboards"
BOARD: dict[str, Any] = json.loads((DASHBOARDS / "resweep.json").read_text(encoding="utf-8"))
PIPELINE = 'bad\ufffd "b"\\c'  # what a label may hold, at its worst
CONFIG = "9f2c0a417be1"


def window(calls: int) -> Window:
    """Return the totals of some calls, with everything in them counted."""
    total = Window(PIPELINE, CONFIG, 0)
    names = ("retrievals", "empty_zero", "short", "partial", "error:timeout", "feedback:negative")
    for name in (*names, "sampled:uniform", "dropped:late"):
        total.add(name, calls)
    for name in BUCKETS:
        for _ in range(calls):
            total.observe(name, 0.3)
    return total


def gauges(metric: Metric) -> Iterator[Sample]:
    """Yield a series of value 1 for each fixed value of a gauge's labels."""
    free = {"pipeline": (PIPELINE,), "config": (CONFIG,)}
    values = [metric.values.get(label, free.get(label, (label,))) for label in metric.labels]
    return (Sample(metric.name, labels, 1.0) for labels in product(*values))


class Page(BaseHTTPRequestHandler):
    """An agent's /metrics: each scrape sees more calls than the one before."""

    scrapes: ClassVar[int] = 0
    accepted: ClassVar[set[str]] = set()

    def do_GET(self) -> None:
        """Answer one scrape."""
        type(self).scrapes += 1
        self.accepted.add(self.headers["accept"].partition(";")[0])
        samples = [
            one._replace(exemplar=Exemplar((("trace_id", "abc"),), 0.3))
            if one.metric == "resweep_retrieval_duration_seconds"
            else one
            for one in window_samples(PIPELINE, CONFIG, window(self.scrapes))
        ]
        for metric in CATALOG:
            if metric.kind == "gauge":
                samples.extend(gauges(metric))
        for outcome in ("ok", "failed"):
            samples.append(Sample("resweep_job_runs_total", ("judge", outcome), self.scrapes))
        samples.append(Sample("resweep_ingest_batches_total", ("applied",), self.scrapes))
        samples.append(Sample("resweep_otlp_spans_total", ("retrieval",), self.scrapes))
        body, content_type = text(Snapshot(ts=0.0, samples=tuple(samples)), self.headers["accept"])
        self.send_response(200)
        self.send_header("content-type", content_type)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *args: object) -> None:
        """Keep quiet."""


class Prometheus:
    """A running Prometheus, asked over HTTP."""

    def __init__(self, address: str) -> None:
        self.address = address

    def get(self, path: str, **arguments: str) -> Any:
        """Return the `data` of an API call; raises OSError while it is not up."""
        url = f"{self.address}{path}?{urllib.parse.urlencode(arguments)}"
        with urllib.request.urlopen(url, timeout=10) as answer:
            return json.load(answer)["data"]

    def query(self, expression: str) -> list[Any]:
        """Return the result of an instant query."""
        found: list[Any] = self.get("/api/v1/query", query=expression)["result"]
        return found


@pytest.fixture(scope="module")
def prometheus(
    program: Callable[[str], str],
    until: Callable[[Callable[[], object]], None],
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Prometheus]:
    """Run Prometheus against our page until it has scraped it three times."""
    path, folder = program("prometheus"), tmp_path_factory.mktemp("prometheus")
    page = ThreadingHTTPServer(("127.0.0.1", 0), Page)
    thread = threading.Thread(target=page.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    target = f"127.0.0.1:{page.server_address[1]}"
    config = {
        "global": {"scrape_interval": "1s"},
        "scrape_configs": [{"job_name": "resweep", "static_configs": [{"targets": [target]}]}],
    }
    (folder / "prometheus.yml").write_text(json.dumps(config), encoding="utf-8")
    address = f"127.0.0.1:{_free_port()}"
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(
            [
                path,
                f"--config.file={folder}/prometheus.yml",
                f"--storage.tsdb.path={folder}/data",
                f"--web.listen-address={address}",
                "--enable-feature=exemplar-storage",
            ],
            stdout=log,
            stderr=log,
        )
        try:
            server = Prometheus(f"http://{address}")
            until(lambda: len(server.query("changes(resweep_retrievals_total[1m]) >= 2")) == 1)
            yield server
        finally:
            process.terminate()
            process.wait(timeout=30)
            page.shutdown()
            thread.join()
            page.server_close()


def _free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        port: int = one.getsockname()[1]
        return port


def test_the_page_is_read_whole(prometheus: Prometheus) -> None:
    """OpenMetrics is agreed on, the scrape succeeds, and nothing on the page is a duplicate."""
    assert Page.accepted == {"application/openmetrics-text"}
    assert prometheus.query("up")[0]["value"][1] == "1"


def test_every_metric_of_the_catalog_is_known_with_its_kind(prometheus: Prometheus) -> None:
    """Type and unit arrive as the catalog says."""
    known = prometheus.get("/api/v1/metadata")
    for metric in CATALOG:
        (found,) = known[metric.name.removesuffix("_total")]
        assert (found["type"], found["unit"]) == (metric.kind, metric.unit)


def test_a_bad_label_value_is_one_series_like_any_other(prometheus: Prometheus) -> None:
    """Quote, backslash and a replaced surrogate come through."""
    (series,) = prometheus.query("resweep_retrievals_total")
    assert series["metric"]["pipeline"] == PIPELINE


def test_an_exemplar_is_stored(prometheus: Prometheus, until: Callable[[Callable[[], object]], None]) -> None:
    """A latency can be followed to its trace."""
    until(lambda: bool(_exemplars(prometheus)))
    assert {one["labels"]["trace_id"] for one in _exemplars(prometheus)} == {"abc"}


def _exemplars(prometheus: Prometheus) -> list[Any]:
    now = time.time()
    found = prometheus.get(
        "/api/v1/query_exemplars",
        query="resweep_retrieval_duration_seconds_bucket",
        start=str(now - 300),
        end=str(now + 60),
    )
    return [exemplar for series in found for exemplar in series["exemplars"]]


def test_every_panel_shows_data(prometheus: Prometheus, panel_query: str) -> None:
    """With all of the variables at "All"."""
    assert prometheus.query(panel_query)


def test_the_jobs_label_survives_the_scrape(prometheus: Prometheus) -> None:
    """The target's own `job` does not hide which job of the agent it is."""
    (panel,) = (panel for panel in BOARD["panels"] if panel["title"] == "Age of each job's last success")
    (series,) = prometheus.query(panel["targets"][0]["expr"])
    assert series["metric"] == {"task": "job"}
