"""OTLP against a receiver that decodes protobuf, and against collectors that are down or silent."""

from __future__ import annotations

import gzip
import logging
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import ClassVar

import pytest
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from opentelemetry.proto.metrics.v1.metrics_pb2 import Metric

from resweep.domain.errors import UsageError
from resweep.domain.snapshot import Exemplar, Sample, Snapshot, window_samples
from resweep.domain.window import BUCKETS, Histogram, Window
from resweep_exporters.catalog import CATALOG
from resweep_exporters.otlp import OtlpExporter, metrics_url

ROOT = Path(__file__).resolve().parents[2]


class Source:
    """A window with one retrieval of 3 passages, and one gauge."""

    def __init__(self) -> None:
        self.window = Window("p", "c", 0)
        self.window.add("retrievals", 7)
        self.window.observe("retrieved_passages", 3)
        self.k: float | None = 8.0

    def snapshot(self) -> Snapshot:
        """Return them."""
        samples = list(window_samples("p", "c", self.window))
        if self.k is not None:
            samples.append(Sample("resweep_context_k", ("p", "c"), self.k))
        return Snapshot(ts=0.0, samples=tuple(samples))


class Receiver(BaseHTTPRequestHandler):
    """An OTLP/HTTP intake: keeps what it decodes, answers `status`."""

    got: ClassVar[list[tuple[str, str, ExportMetricsServiceRequest]]] = []
    status: ClassVar[int] = 200

    def do_POST(self) -> None:
        """Decode one request."""
        body = self.rfile.read(int(self.headers["content-length"]))
        if self.headers.get("content-encoding") == "gzip":
            body = gzip.decompress(body)
        request = ExportMetricsServiceRequest.FromString(body)
        self.got.append((self.path, self.headers.get("authorization", ""), request))
        self.send_response(self.status)
        self.send_header("content-length", "0")
        self.end_headers()

    def log_message(self, *args: object) -> None:
        """Keep quiet."""


@pytest.fixture
def collector() -> Iterator[str]:
    """Run a receiver and give its address."""
    Receiver.got.clear()
    Receiver.status = 200
    server = ThreadingHTTPServer(("127.0.0.1", 0), Receiver)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    yield f"http://127.0.0.1:{server.server_address[1]}"
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture
def closed_port() -> str:
    """Return an address where nobody listens."""
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return f"http://127.0.0.1:{one.getsockname()[1]}"


@pytest.fixture
def silent() -> Iterator[str]:
    """Listen, and never answer."""
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        one.listen(8)
        yield f"http://127.0.0.1:{one.getsockname()[1]}"


def metrics() -> dict[str, Metric]:
    """Return the metrics of the last request, by name."""
    (resource,) = Receiver.got[-1][2].resource_metrics
    (scope,) = resource.scope_metrics
    assert scope.scope.name == "resweep"
    return {metric.name: metric for metric in scope.metrics}


def test_counters_gauges_and_histograms_arrive(collector: str) -> None:
    """A counter is a monotonic cumulative sum, a gauge a gauge, a histogram our own buckets."""
    assert OtlpExporter(Source(), collector).export_once()
    got = metrics()
    retrievals = got["resweep.retrievals"].sum
    assert retrievals.is_monotonic
    assert retrievals.aggregation_temporality == 2
    assert retrievals.data_points[0].as_int == 7
    assert got["resweep.context_k"].gauge.data_points[0].as_double == 8.0
    point = got["resweep.retrieved.passages"].histogram.data_points[0]
    assert list(point.explicit_bounds) == list(BUCKETS["retrieved_passages"])
    assert list(point.bucket_counts) == [0, 0, 0, 1, *[0] * 9]
    assert (point.count, point.sum) == (1, 3.0)
    assert not point.HasField("min")
    assert not point.HasField("max")


def test_names_units_and_labels_are_the_catalogs(collector: str) -> None:
    """What arrives has a row, with its unit and its labels."""
    OtlpExporter(Source(), collector).export_once()
    rows = {row.otel_name: row for row in CATALOG}
    for name, metric in metrics().items():
        data = getattr(metric, str(metric.WhichOneof("data")))
        assert metric.unit == rows[name].otel_unit
        assert all(
            {pair.key for pair in point.attributes} == set(rows[name].labels) for point in data.data_points
        )


def test_every_traffic_series_is_there_from_zero(collector: str) -> None:
    """All classes of error arrive at 0 before the first error."""
    OtlpExporter(Source(), collector).export_once()
    points = metrics()["resweep.retrieval.errors"].sum.data_points
    assert [point.as_int for point in points] == [0] * 7


def test_scores_go_without_a_sum(collector: str) -> None:
    """A sum of negative scores could fall: it is left out here too."""
    OtlpExporter(Source(), collector).export_once()
    point = metrics()["resweep.top.score"].histogram.data_points[0]
    assert not point.HasField("sum")


def test_a_series_that_ended_is_not_sent_again(collector: str) -> None:
    """A retired config's gauge ends with it."""
    source = Source()
    exporter = OtlpExporter(source, collector)
    exporter.export_once()
    source.k = None
    exporter.export_once()
    assert "resweep.context_k" not in metrics()


def test_an_exemplar_links_to_its_trace(collector: str) -> None:
    """Trace and span ids travel as bytes, other labels as attributes."""

    class Traced:
        def snapshot(self) -> Snapshot:
            labels = (
                ("trace_id", "0af76519" * 4),
                ("span_id", "b7ad6b71" * 2),
                ("a", "b"),
            )
            histogram = Histogram([1] + [0] * 12, 0)
            sample = Sample("resweep_retrieved_passages", ("p", "c"), histogram, Exemplar(labels, 0.0, 1.5))
            return Snapshot(ts=0.0, samples=(sample,))

    OtlpExporter(Traced(), collector).export_once()
    (exemplar,) = metrics()["resweep.retrieved.passages"].histogram.data_points[0].exemplars
    assert exemplar.trace_id.hex() == "0af76519" * 4
    assert exemplar.span_id.hex() == "b7ad6b71" * 2
    assert exemplar.time_unix_nano == 1_500_000_000
    assert [pair.key for pair in exemplar.filtered_attributes] == ["a"]


def test_headers_and_path_are_as_asked(collector: str) -> None:
    """The address is completed, the header is sent, the service has a name."""
    OtlpExporter(Source(), collector, {"authorization": "Bearer t"}).export_once()
    path, header, request = Receiver.got[-1]
    names = {pair.key: pair.value.string_value for pair in request.resource_metrics[0].resource.attributes}
    assert (path, header) == ("/v1/metrics", "Bearer t")
    assert names["service.name"] == "resweep"
    assert names["service.instance.id"]


def test_the_environment_names_the_service(collector: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """OTEL_SERVICE_NAME is the user's word."""
    monkeypatch.setenv("OTEL_SERVICE_NAME", "support-bot")
    OtlpExporter(Source(), collector).export_once()
    attributes = Receiver.got[-1][2].resource_metrics[0].resource.attributes
    assert "support-bot" in [pair.value.string_value for pair in attributes]


def test_opentelemetry_switched_off_sends_nothing(collector: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """OTEL_SDK_DISABLED is obeyed."""
    monkeypatch.setenv("OTEL_SDK_DISABLED", "true")
    assert not OtlpExporter(Source(), collector).export_once()
    assert Receiver.got == []


def test_a_broken_source_is_told_to_the_collector(collector: str) -> None:
    """The export goes out and says that it is not complete."""

    class Broken:
        def snapshot(self) -> Snapshot:
            raise OSError("gone")

    assert OtlpExporter(Broken(), collector).export_once()
    assert metrics()["resweep.scrape.complete"].gauge.data_points[0].as_double == 0.0


def undelivered(exporter: OtlpExporter) -> object:
    """Return what the exporter says of itself."""
    return exporter.snapshot().samples[0].value


def test_what_is_not_delivered_is_counted_exactly(collector: str, closed_port: str) -> None:
    """Every data point of every failed export, and none of a good one."""
    good = OtlpExporter(Source(), collector)
    good.export_once()
    sent = sum(
        len(getattr(metric, str(metric.WhichOneof("data"))).data_points) for metric in metrics().values()
    )
    down = OtlpExporter(Source(), closed_port, timeout=0.5)
    assert not down.export_once()
    assert not down.export_once()
    assert undelivered(good) == 0
    assert undelivered(down) == 2 * sent


def test_a_refusal_is_counted(collector: str) -> None:
    """A collector that answers 400 has not taken anything."""
    Receiver.status = 400
    exporter = OtlpExporter(Source(), collector)
    assert not exporter.export_once()
    assert undelivered(exporter) == exporter.undelivered > 0


def test_a_collector_that_is_down_makes_one_line_a_minute(
    closed_port: str, caplog: pytest.LogCaptureFixture
) -> None:
    """Ten failures in 59 s are one line, the next minute brings another, and the HTTP client is quiet."""
    now = [0.0]
    exporter = OtlpExporter(Source(), closed_port, timeout=0.2, monotonic=lambda: now[0])
    with caplog.at_level(logging.WARNING):
        for at in (0.0, 1.0, 30.0, 59.0):
            now[0] = at
            exporter.export_once()
        assert len(caplog.records) == 1
        now[0] = 61.0
        exporter.export_once()
    assert [record.name for record in caplog.records] == ["resweep_exporters.otlp"] * 2


def test_other_peoples_exporters_keep_their_logs(caplog: pytest.LogCaptureFixture) -> None:
    """Only our own exports silence the HTTP client's logger."""
    logging.getLogger("opentelemetry.exporter.otlp.proto.http.metric_exporter").error("theirs")
    assert [record.message for record in caplog.records] == ["theirs"]


def test_a_login_in_the_address_is_not_logged(caplog: pytest.LogCaptureFixture, closed_port: str) -> None:
    """User and password stay out of the log."""
    OtlpExporter(Source(), closed_port.replace("//", "//me:secret@"), timeout=0.2).export_once()
    assert "127.0.0.1" in caplog.text
    assert "secret" not in caplog.text


def test_the_thread_exports_and_stop_flushes(collector: str) -> None:
    """What happened after the last interval is sent at the end; stopping twice is stopping once."""
    exporter = OtlpExporter(Source(), collector, interval=3600)
    exporter.start()
    exporter.start()
    exporter.stop(timeout=30)
    exporter.stop()
    assert len(Receiver.got) == 1


def test_a_stopped_exporter_can_start_again(collector: str) -> None:
    """Stop is no end."""
    exporter = OtlpExporter(Source(), collector, interval=3600)
    for _ in range(2):
        exporter.start()
        exporter.stop(timeout=30)
    assert len(Receiver.got) == 2


def test_giving_up_at_the_end_counts_what_was_under_way(silent: str) -> None:
    """A collector that never answers costs the flush, and its points are counted once."""
    exporter = OtlpExporter(Source(), silent, interval=3600)
    exporter.start()
    exporter.stop(timeout=0.3)
    counted = exporter.undelivered
    exporter.stop()
    assert exporter.undelivered == counted


@pytest.mark.parametrize("listening", [False, True], ids=["refused", "silent"])
def test_a_process_ends_whatever_the_collector_does(closed_port: str, silent: str, listening: bool) -> None:
    """Interpreter exit does not wait for a collector that is down or hangs, even in mid-export."""
    code = f"""
import sys, time
sys.path[:0] = [{str(ROOT / "agent")!r}, {str(ROOT / "exporters")!r}]
from resweep.domain.snapshot import Snapshot
from resweep_exporters.otlp import OtlpExporter
class Source:
    def snapshot(self): return Snapshot(ts=0.0)
OtlpExporter(Source(), {(silent if listening else closed_port)!r}, interval=0.05, timeout=600).start()
time.sleep(0.3)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0
    assert len(done.stderr.splitlines()) <= 1


def test_a_forked_worker_exports_for_itself(collector: str) -> None:
    """Parent and child send under two instance ids: threads do not survive a fork, the exporter does."""
    code = f"""
import os, sys
sys.path[:0] = [{str(ROOT / "agent")!r}, {str(ROOT / "exporters")!r}]
from resweep.domain.snapshot import Snapshot
from resweep_exporters.otlp import OtlpExporter
class Source:
    def snapshot(self): return Snapshot(ts=0.0)
exporter = OtlpExporter(Source(), {collector!r}, interval=3600)
exporter.start()
child = os.fork()
exporter.stop(timeout=30)
if child: os.waitpid(child, 0)
"""
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)
    ids = [
        pair.value.string_value
        for _, _, request in Receiver.got
        for pair in request.resource_metrics[0].resource.attributes
        if pair.key == "service.instance.id"
    ]
    assert len(ids) == len(set(ids)) == 2


def test_grpc_is_never_loaded() -> None:
    """The exporter speaks HTTP only."""
    code = (
        f"import sys; sys.path[:0] = [{str(ROOT / 'agent')!r}, {str(ROOT / 'exporters')!r}]; "
        "import resweep_exporters.otlp; print('grpc' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


@pytest.mark.parametrize(
    ("given", "url"),
    [
        ("http://c:4318", "http://c:4318/v1/metrics"),
        ("http://c:4318/", "http://c:4318/v1/metrics"),
        ("https://c/otlp", "https://c/otlp/v1/metrics"),
        ("https://c/otlp/v1/metrics", "https://c/otlp/v1/metrics"),
    ],
)
def test_an_address_is_completed(given: str, url: str) -> None:
    """The path for metrics is added where it is missing."""
    assert metrics_url(given) == url


@pytest.mark.parametrize("given", ["collector:4317", "grpc://c:4317", "", "/v1/metrics"])
def test_an_address_that_is_none_is_refused(given: str) -> None:
    """With what was expected, what came and what to do."""
    with pytest.raises(UsageError, match="give scheme and host"):
        metrics_url(given)
