"""OTLP over HTTP: the same numbers as the Prometheus page, pushed to a collector at an interval.

Nothing here is on a request, and nothing waits for the collector: a thread of its own exports, gives up
after a timeout, counts what was not delivered, and writes at most one log line a minute. Values are
cumulative, so the next export that succeeds makes up for the ones that did not.
"""

from __future__ import annotations

import atexit
import logging
import os
import threading
import time
import weakref
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from urllib.parse import urlsplit, urlunsplit

from opentelemetry.context import _SUPPRESS_INSTRUMENTATION_KEY, attach, detach, set_value
from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
from opentelemetry.sdk.metrics.export import MetricExportResult, MetricsData

from resweep.domain.errors import UsageError
from resweep.domain.snapshot import Sample, Snapshot, SnapshotSource
from resweep_exporters.otlp_data import DataBuilder, count_points
from resweep_exporters.series import gather, read
from resweep_exporters.throttle import Throttle

FLUSH = 0.75  # seconds that the last export, at exit, may take: too short for a second attempt
_log = logging.getLogger(__name__)
_exporting: ContextVar[bool] = ContextVar("resweep_exporting", default=False)


class OtlpExporter:
    """Exports a source's snapshot every `interval` seconds.

    `endpoint` is the collector's address, with or without `/v1/metrics`; None takes it from the
    `OTEL_EXPORTER_OTLP_*` environment, which also gives headers, certificates and compression where they are
    not given here. One export may take `timeout` seconds. The exporter is itself a source of metrics: its
    `snapshot` tells what was not delivered. Raises UsageError for an address that is none.
    """

    def __init__(
        self,
        source: SnapshotSource,
        endpoint: str | None = None,
        headers: Mapping[str, str] | None = None,
        interval: float = 60.0,
        *,
        timeout: float = 10.0,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self.undelivered = 0  # data points
        self.failures = 0  # exports, one after the other
        self._source = source
        self._endpoint = None if endpoint is None else metrics_url(endpoint)
        self._headers = None if headers is None else dict(headers)
        self._interval = interval
        self._timeout = timeout
        self._throttle = Throttle(monotonic=monotonic)
        self._thread: threading.Thread | None = None
        self._renew()

    def start(self) -> None:
        """Export from now on, in a thread that ends with the process; starting twice is starting once."""
        if self._thread is None:
            if self._stopping.is_set():
                self._renew()
            _running.add(self)
            atexit.register(self.stop)
            self._thread = threading.Thread(target=self._run, name="resweep-otlp", daemon=True)
            self._thread.start()

    def stop(self, timeout: float = 1.5) -> None:
        """Export once more and end, within `timeout` seconds whatever the collector does.

        What is still under way then is given up and counted.
        """
        thread, self._thread = self._thread, None
        self._stopping.set()
        if (client := self._client) is not None:
            with _quietly():
                client.shutdown()  # ends a wait between two attempts, also that of `export_once`
        if thread is None:
            return
        atexit.unregister(self.stop)
        _running.discard(self)
        thread.join(timeout)
        with self._counting:
            self._given_up = True
            self.undelivered += self._in_flight

    def export_once(self) -> bool:
        """Export now and wait for the answer; False where nothing was delivered. Never raises."""
        return self._export()

    def snapshot(self) -> Snapshot:
        """Return the health of the export."""
        name = "resweep_process_undelivered_points_total"
        return Snapshot(ts=time.time(), samples=(Sample(name, (), self.undelivered),))

    def _renew(self) -> None:
        # Also in a forked child, where threads, locks and connections of the parent mean nothing. The rest is
        # made at the first export: inside a fork handler, the SDK would wait for a lock that fork holds.
        self._builder: DataBuilder | None = None
        self._client: OTLPMetricExporter | None = None
        self._stopping = threading.Event()
        self._exclusive = threading.Lock()
        self._counting = threading.Lock()
        self._in_flight = 0
        self._given_up = False

    def _open(self, timeout: float) -> OTLPMetricExporter:
        return OTLPMetricExporter(self._endpoint, headers=self._headers, timeout=timeout)

    def _run(self) -> None:
        while not self._stopping.wait(self._interval):
            self._export()
        with self._exclusive:
            self._client = None
        self._export(FLUSH)

    def _export(self, timeout: float | None = None) -> bool:
        with self._exclusive, _quietly():
            try:
                self._builder = self._builder or DataBuilder()
                data = self._builder.build(gather(read([self._source, self])))
                if data is None:
                    return False
                self._client = self._client or self._open(timeout or self._timeout)
                return self._send(self._client, data)
            except Exception as error:  # noqa: BLE001 - the thread must live on, the caller must not notice
                self._settle(self._in_flight, failed=True, why=_in_brief(error))
                return False

    def _send(self, client: OTLPMetricExporter, data: MetricsData) -> bool:
        self._in_flight = count_points(data)
        delivered = client.export(data) is MetricExportResult.SUCCESS
        self._settle(self._in_flight, failed=not delivered, why="the collector did not take them")
        return delivered

    def _settle(self, points: int, *, failed: bool, why: str) -> None:
        with self._counting:
            self._in_flight = 0
            if self._given_up:  # counted by `stop` already
                return
            self.failures = self.failures + 1 if failed else 0
            self.undelivered += points if failed else 0
        if failed:
            self._warn(why)

    def _warn(self, why: str) -> None:
        if not self._throttle.ready():
            return
        _log.warning(
            "OTLP export to %s failed %d times in a row (%s); %d data points undelivered so far, "
            "trying again every %g s: is the collector running?",
            _without_login(self._endpoint),
            self.failures,
            why,
            self.undelivered,
            self._interval,
        )


def metrics_url(endpoint: str) -> str:
    """Return the full address for metrics of a collector's address. Raises UsageError for what is none."""
    parts = urlsplit(endpoint)
    if parts.scheme not in {"http", "https"} or not parts.hostname:
        raise UsageError(
            f"expected an OTLP endpoint such as 'http://collector:4318'; got {_without_login(endpoint)!r}: "
            "give scheme and host (OTLP over gRPC is not spoken)"
        )
    path = parts.path.rstrip("/")
    if not path.endswith("/v1/metrics"):
        path += "/v1/metrics"
    return urlunsplit(parts._replace(path=path))


def _without_login(endpoint: str | None) -> str:
    if endpoint is None:
        return "the endpoint of OTEL_EXPORTER_OTLP_ENDPOINT"
    return endpoint.rpartition("@")[2]


def _in_brief(error: Exception) -> str:
    return f"{type(error).__name__}: {error}".partition("\n")[0][:200]


@contextmanager
def _quietly() -> Iterator[None]:
    # The HTTP client logs each failed attempt; our own line, once a minute, says the same. Spans of an
    # instrumented HTTP library would be noise in the user's traces.
    flag = _exporting.set(True)
    token = attach(set_value(_SUPPRESS_INSTRUMENTATION_KEY, True))
    try:
        yield
    finally:
        detach(token)
        _exporting.reset(flag)


def _others_only(_: logging.LogRecord) -> bool:
    return not _exporting.get()


for _name in (
    OTLPMetricExporter.__module__,
    "opentelemetry.exporter.otlp.common.http",
    "urllib3.connectionpool",
):
    logging.getLogger(_name).addFilter(_others_only)

_running: weakref.WeakSet[OtlpExporter] = weakref.WeakSet()


def _after_fork() -> None:
    for exporter in list(_running):
        exporter._renew()
        exporter._thread = None
        exporter.start()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
