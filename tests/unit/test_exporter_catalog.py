"""The catalog: one table, bounded, and the page that is made from it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from resweep.domain.snapshot import Sample, window_samples
from resweep.domain.window import BUCKETS, Window
from resweep_exporters.catalog import (
    BY_NAME,
    CATALOG,
    SERIES_IN_ALL,
    SERIES_PER_CONFIG,
    Metric,
    series_in_all,
    series_per_config,
)
from resweep_exporters.metrics_page import render_markdown

ROOT = Path(__file__).resolve().parents[2]
FORBIDDEN = {"query", "user", "passage", "source", "document", "filter", "message", "pid", "text"}


def test_a_config_keeps_within_its_series() -> None:
    """One config with series of its own has at most 150."""
    assert series_per_config() <= SERIES_PER_CONFIG == 150


def test_a_page_keeps_within_its_series() -> None:
    """Five configs of their own and `other` make at most 1,000 series."""
    assert series_in_all(own_configs=5) <= SERIES_IN_ALL == 1_000


def test_names_are_unique() -> None:
    """No Prometheus name and no OpenTelemetry name stands twice."""
    assert len(BY_NAME) == len(CATALOG) == len({metric.otel_name for metric in CATALOG})


@pytest.mark.parametrize("metric", CATALOG, ids=lambda metric: metric.name)
def test_a_row_is_whole(metric: Metric) -> None:
    """A name ends as its kind and unit say, a help is a sentence, fixed values belong to labels."""
    assert metric.name.startswith("resweep_process_" if metric.process else "resweep_")
    assert metric.name.endswith("_total") == (metric.kind == "counter")
    assert metric.name.removesuffix("_total").endswith(metric.unit)
    assert metric.help.endswith(".")
    assert set(metric.values) <= set(metric.labels)
    assert (metric.kind == "histogram") == bool(metric.bounds)


@pytest.mark.parametrize("metric", CATALOG, ids=lambda metric: metric.name)
def test_every_label_is_bounded(metric: Metric) -> None:
    """Labels beyond pipeline, config and basis have fixed values or a bound, and none is free text."""
    open_ended = set(metric.labels) - {"pipeline", "config", "basis"} - set(metric.values)
    assert not open_ended or metric.at_most is not None
    assert not FORBIDDEN & set(metric.labels)


def test_both_stages_share_buckets() -> None:
    """The two stages of one histogram have the same bounds."""
    assert BUCKETS["rerank_duration_seconds"] == BY_NAME["resweep_retrieval_duration_seconds"].bounds


def test_a_windows_samples_are_all_in_the_catalog() -> None:
    """Every sample of a window has its row, with labels in number, and fixed values as listed."""
    for sample in window_samples("p", "c" * 12, Window("p", "c" * 12, 0)):
        metric = BY_NAME[sample.metric]
        assert len(sample.labels) == len(metric.labels)
        assert _fixed(metric, sample) <= {value for values in metric.values.values() for value in values}


def _fixed(metric: Metric, sample: Sample) -> set[str]:
    return {
        value for label, value in zip(metric.labels, sample.labels, strict=True) if label in metric.values
    }


def test_a_windows_samples_cover_all_of_traffic() -> None:
    """Every traffic metric and each of its label values exists from the start."""
    found = {(sample.metric, sample.labels) for sample in window_samples("p", "c", Window("p", "c", 0))}
    assert {name for name, _ in found} == {metric.name for metric in CATALOG if metric.scope == "traffic"}


def test_the_committed_page_is_the_catalog() -> None:
    """docs/metrics.md is what the catalog renders: run `make generate` after a change."""
    assert (ROOT / "docs" / "metrics.md").read_text(encoding="utf-8") == render_markdown()


@pytest.mark.parametrize("module", ["catalog", "prometheus", "series"])
def test_the_base_install_is_enough(module: str) -> None:
    """Catalog and Prometheus load without OpenTelemetry, httpx, numpy, pandas or a web framework."""
    heavy = "{'opentelemetry','httpx','numpy','pandas','sklearn','scipy','sqlalchemy','starlette','requests'}"
    code = f"import sys, resweep_exporters.{module}; print(sorted({heavy} & set(sys.modules)))"
    assert _python(code) == "[]"


def _python(code: str) -> str:
    path = f"import sys; sys.path[:0] = [{str(ROOT / 'agent')!r}, {str(ROOT / 'exporters')!r}]; "
    done = subprocess.run([sys.executable, "-c", path + code], capture_output=True, text=True, check=True)
    return done.stdout.strip()
