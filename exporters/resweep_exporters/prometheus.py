"""Prometheus: a collector over snapshots, for the user's registry or the agent's own page.

Nothing is counted here. Each scrape asks the sources for a snapshot and renders it, so an exposition
always adds up, and a request never touches a metric object.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator
from functools import lru_cache

from prometheus_client import REGISTRY, CollectorRegistry
from prometheus_client import samples as client
from prometheus_client.exposition import choose_encoder
from prometheus_client.metrics_core import Metric as Family
from prometheus_client.registry import Collector

from resweep.domain.errors import UsageError
from resweep.domain.snapshot import Exemplar, Snapshot, SnapshotSource
from resweep.domain.window import Histogram
from resweep_exporters.catalog import CATALOG, Metric
from resweep_exporters.series import Point, Series, gather, read

# The collector is kept on the registry it serves: module globals do not survive a reload, and a second
# collector on one registry is a "Duplicated timeseries" error.
_HANDLE = "_resweep_collector"
_lock = threading.Lock()


class SnapshotCollector(Collector):
    """All sources of one registry as one collector: each metric name once, equal series merged."""

    def __init__(self) -> None:
        self.sources: dict[object, SnapshotSource] = {}

    def collect(self) -> Iterator[Family]:
        """Yield the metric families as of now; never raises for a source that does."""
        return families(gather(read(list(self.sources.values()))))

    def describe(self) -> Iterator[Family]:
        """Yield every family without samples, so that a registry knows the names it may be asked for."""
        return (_family(metric) for metric in CATALOG)


def register(
    source: SnapshotSource, registry: CollectorRegistry | None = None, name: str | None = None
) -> None:
    """Expose a source on a registry, by default the client's global one.

    Registering the same source again changes nothing; a `name` replaces the source registered under it
    before. Sources are kept until `unregister`, so that counters never go backwards. Raises UsageError where
    a metric of the same name, not ours, is on the registry already.
    """
    registry = registry or REGISTRY
    with _lock:
        collector = getattr(registry, _HANDLE, None) or _install(registry)
        collector.sources[name or id(source)] = source


def unregister(source: SnapshotSource, registry: CollectorRegistry | None = None) -> None:
    """Stop exposing a source; unknown ones are ignored."""
    registry = registry or REGISTRY
    with _lock:
        collector = getattr(registry, _HANDLE, None)
        if collector is None:
            return
        collector.sources = {key: one for key, one in collector.sources.items() if one is not source}
        if not collector.sources:
            registry.unregister(collector)
            delattr(registry, _HANDLE)


def text(snapshot: Snapshot, accept: str = "") -> tuple[bytes, str]:
    """Return a page of one snapshot and its content type, in the format that `accept` prefers.

    OpenMetrics (with exemplars) where the scraper asks for it, else the Prometheus text format 0.0.4.
    """
    encode, content_type = choose_encoder(accept)
    return encode(_Page(gather([snapshot]))), content_type


def families(series: Series) -> Iterator[Family]:
    """Yield a family for every metric of the catalog, in its order, with or without samples.

    Families without samples are shown too: a scrape right after the start names every metric there is. A
    process beside an agent shows its own health alone.
    """
    for metric in CATALOG:
        if metric.process or not series.process_only:
            family = _family(metric)
            for labels, point in series.points.get(metric.name, {}).items():
                family.samples.extend(_samples(metric, family.name, labels, point))
            yield family


class _Page(Collector):
    """What an encoder asks for: something to collect from."""

    def __init__(self, series: Series) -> None:
        self.series = series

    def collect(self) -> Iterable[Family]:
        return families(self.series)


def _install(registry: CollectorRegistry) -> SnapshotCollector:
    collector = SnapshotCollector()
    try:
        registry.register(collector)
    except ValueError as error:
        raise UsageError(
            f"expected a registry without metrics named resweep_*; got {error}: "
            "unregister those, or pass a registry of your own"
        ) from None
    setattr(registry, _HANDLE, collector)
    return collector


def _family(metric: Metric) -> Family:
    return Family(metric.name.removesuffix("_total"), metric.help, metric.kind, metric.unit)


def _samples(metric: Metric, name: str, values: tuple[str, ...], point: Point) -> Iterator[client.Sample]:
    labels = dict(zip(metric.labels, values, strict=True))
    if isinstance(point.value, Histogram):
        return _buckets(metric, name, labels, point.value, point.exemplar)
    shown = _exemplar(point.exemplar)
    return iter((client.Sample(metric.name, labels, float(point.value), None, shown),))


def _buckets(
    metric: Metric, name: str, labels: dict[str, str], histogram: Histogram, exemplar: Exemplar | None
) -> Iterator[client.Sample]:
    running = 0
    for (bound, le), count in zip(_bounds(metric.bounds), histogram.counts, strict=True):
        running += count
        shown = None
        if exemplar is not None and exemplar.value <= bound:
            shown, exemplar = _exemplar(exemplar), None
        yield client.Sample(f"{name}_bucket", {**labels, "le": le}, float(running), None, shown)
    if metric.has_sum:
        yield client.Sample(f"{name}_count", labels, float(running))
        yield client.Sample(f"{name}_sum", labels, histogram.sum)


@lru_cache(maxsize=64)
def _bounds(bounds: tuple[float, ...]) -> tuple[tuple[float, str], ...]:
    return tuple((bound, _le(bound)) for bound in (*bounds, float("inf")))


def _le(bound: float) -> str:
    return "+Inf" if bound == float("inf") else repr(float(bound))


def _exemplar(exemplar: Exemplar | None) -> client.Exemplar | None:
    if exemplar is None:
        return None
    return client.Exemplar(dict(exemplar.labels), exemplar.value, exemplar.ts)
