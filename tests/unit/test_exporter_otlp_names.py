"""OpenTelemetry names: the standard translation gives the Prometheus names back.

The translation is written out here after the OpenTelemetry specification, "Prometheus and OpenMetrics
Compatibility", section "OTLP metric points to Prometheus": names, units and type suffixes.
"""

from __future__ import annotations

import re

import pytest

from resweep_exporters.catalog import CATALOG, Kind, Metric

UNITS = {"s": "seconds", "ms": "milliseconds", "By": "bytes", "KiBy": "kibibytes", "%": "percent", "1": ""}


def prometheus_name(name: str, unit: str, kind: Kind) -> str:
    """Return the Prometheus name of an OTLP metric."""
    tokens = [token for token in re.split(r"[^a-zA-Z0-9]+", name) if token]
    main = re.sub(r"\{[^}]*\}", "", unit)
    word = UNITS.get(main, main)
    if word and word not in tokens:
        tokens.append(word)
    if kind == "counter":
        tokens = [token for token in tokens if token != "total"] + ["total"]
    if kind == "gauge" and main == "1":
        tokens = [token for token in tokens if token != "ratio"] + ["ratio"]
    return "_".join(tokens)


@pytest.mark.parametrize(
    ("name", "unit", "kind", "expected"),
    [
        ("system.filesystem.usage", "By", "gauge", "system_filesystem_usage_bytes"),
        ("system.network.dropped", "{packets}", "counter", "system_network_dropped_total"),
        ("system.memory.utilization", "1", "gauge", "system_memory_utilization_ratio"),
        ("http.server.request.duration", "s", "histogram", "http_server_request_duration_seconds"),
        ("requests.total", "", "counter", "requests_total"),
    ],
)
def test_the_translation_is_the_standard_one(name: str, unit: str, kind: Kind, expected: str) -> None:
    """Names of other people's metrics come out as a collector writes them."""
    assert prometheus_name(name, unit, kind) == expected


@pytest.mark.parametrize("metric", CATALOG, ids=lambda metric: metric.name)
def test_every_row_translates_back(metric: Metric) -> None:
    """The OTLP name and unit of each row become its Prometheus name."""
    assert prometheus_name(metric.otel_name, metric.otel_unit, metric.kind) == metric.name


@pytest.mark.parametrize("metric", CATALOG, ids=lambda metric: metric.name)
def test_every_name_is_one_an_instrument_may_have(metric: Metric) -> None:
    """Instrument names and units keep to the OpenTelemetry metrics API; label names need no translation."""
    assert re.fullmatch(r"[a-z][a-z0-9_./-]{0,254}", metric.otel_name)
    assert metric.otel_unit.isascii()
    assert len(metric.otel_unit) <= 63
    assert all(re.fullmatch(r"[a-z][a-z0-9_]*", label) for label in metric.labels)
