"""Snapshots as OpenTelemetry metric data.

Counters and gauges are observable instruments of an SDK meter. Histograms are built from our own folded
buckets: the SDK could only make them from single measurements, and those are long gone.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Iterable
from functools import partial
from typing import cast

from opentelemetry.metrics import CallbackOptions, Observation
from opentelemetry.sdk.metrics import AlwaysOffExemplarFilter, MeterProvider
from opentelemetry.sdk.metrics import Exemplar as SdkExemplar
from opentelemetry.sdk.metrics import export as sdk
from opentelemetry.sdk.resources import SERVICE_INSTANCE_ID, SERVICE_NAME, Resource

from resweep.domain.snapshot import Exemplar
from resweep.domain.window import Histogram
from resweep_exporters.catalog import CATALOG, Metric
from resweep_exporters.series import Point, Series

SCOPE = "resweep"


class DataBuilder:
    """Turns series into the SDK's metric data; cumulative, counted from when the builder was made.

    `service.name` is that of the environment (`OTEL_SERVICE_NAME`), else `resweep`; `service.instance.id` is
    new for each builder.
    """

    def __init__(self) -> None:
        self._series = Series()
        self._start_ns = time.time_ns()
        self._reader = sdk.InMemoryMetricReader()
        provider = MeterProvider(
            [self._reader],
            resource=_resource(),
            shutdown_on_exit=False,
            exemplar_filter=AlwaysOffExemplarFilter(),  # the exporting thread's span is nobody's retrieval
        )
        self._provider = provider  # the reader does not keep it alive
        for metric in CATALOG:
            self._instrument(provider, metric)

    def build(self, series: Series) -> sdk.MetricsData | None:
        """Return the data of some series; None where OpenTelemetry is switched off (OTEL_SDK_DISABLED)."""
        self._series = series
        observed = self._reader.get_metrics_data()
        if observed is None or not observed.resource_metrics:
            return None
        resource = observed.resource_metrics[0]
        scope = resource.scope_metrics[0]
        histograms = [self._histogram(metric) for metric in CATALOG if self._shows(metric)]
        whole = sdk.ScopeMetrics(scope.scope, [*scope.metrics, *histograms], scope.schema_url)
        return sdk.MetricsData([sdk.ResourceMetrics(resource.resource, [whole], resource.schema_url)])

    def _instrument(self, provider: MeterProvider, metric: Metric) -> None:
        meter = provider.get_meter(SCOPE)
        callbacks: list[Callable[[CallbackOptions], Iterable[Observation]]] = [partial(self._observe, metric)]
        if metric.kind == "counter":
            meter.create_observable_counter(metric.otel_name, callbacks, metric.otel_unit, metric.help)
        elif metric.kind == "gauge":
            meter.create_observable_gauge(metric.otel_name, callbacks, metric.otel_unit, metric.help)

    def _observe(self, metric: Metric, _: CallbackOptions) -> Iterable[Observation]:
        for labels, point in self._series.points.get(metric.name, {}).items():
            assert not isinstance(point.value, Histogram)
            yield Observation(point.value, dict(zip(metric.labels, labels, strict=True)))

    def _shows(self, metric: Metric) -> bool:
        return metric.kind == "histogram" and metric.name in self._series.points

    def _histogram(self, metric: Metric) -> sdk.Metric:
        points = [
            self._point(metric, labels, point) for labels, point in self._series.points[metric.name].items()
        ]
        data = sdk.Histogram(points, sdk.AggregationTemporality.CUMULATIVE)
        return sdk.Metric(metric.otel_name, metric.help, metric.otel_unit, data)

    def _point(self, metric: Metric, labels: tuple[str, ...], point: Point) -> sdk.HistogramDataPoint:
        histogram = cast(Histogram, point.value)
        unknown = cast(float, None)  # optional in OTLP; the SDK's types do not say so
        return sdk.HistogramDataPoint(
            attributes=dict(zip(metric.labels, labels, strict=True)),
            start_time_unix_nano=self._start_ns,
            time_unix_nano=time.time_ns(),
            count=histogram.n,
            sum=histogram.sum if metric.has_sum else unknown,
            bucket_counts=histogram.counts,
            explicit_bounds=metric.bounds,
            min=unknown,
            max=unknown,
            exemplars=[] if point.exemplar is None else [_exemplar(point.exemplar)],
        )


def count_points(data: sdk.MetricsData) -> int:
    """Return how many data points some data holds."""
    return sum(
        len(metric.data.data_points)
        for resource in data.resource_metrics
        for scope in resource.scope_metrics
        for metric in scope.metrics
    )


def _resource() -> Resource:
    found = Resource.create({SERVICE_INSTANCE_ID: str(uuid.uuid4())})
    if str(found.attributes[SERVICE_NAME]).startswith("unknown_service"):
        found = found.merge(Resource({SERVICE_NAME: SCOPE}))
    return found


def _exemplar(exemplar: Exemplar) -> SdkExemplar:
    labels = dict(exemplar.labels)
    trace, span = _hex(labels.pop("trace_id", None)), _hex(labels.pop("span_id", None))
    at = time.time_ns() if exemplar.ts is None else int(exemplar.ts * 1e9)
    return SdkExemplar(labels, exemplar.value, at, span, trace)


def _hex(value: str | None) -> int | None:
    try:
        return int(value, 16) if value else None
    except ValueError:
        return None
