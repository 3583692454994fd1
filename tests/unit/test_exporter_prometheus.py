"""The Prometheus page: formats, histograms, exemplars, and registries that outlive modules."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterable, Iterator
from itertools import product

import pytest
from prometheus_client import REGISTRY, CollectorRegistry, Counter, generate_latest
from prometheus_client.metrics_core import Metric as Family
from prometheus_client.openmetrics.parser import text_string_to_metric_families as parse_openmetrics
from prometheus_client.parser import text_string_to_metric_families as parse_text

import resweep_exporters.prometheus as exporter
from resweep.domain.errors import UsageError
from resweep.domain.snapshot import Exemplar, Sample, Snapshot, window_samples
from resweep.domain.window import Window
from resweep_exporters.catalog import CATALOG, Metric, series_in_all

OPENMETRICS = "application/openmetrics-text;version=1.0.0,text/plain;version=0.0.4;q=0.5"
AT = {"pipeline": "p", "config": "c"}


class Source:
    """A recorder's worth of numbers: `calls` retrievals."""

    def __init__(self, calls: int = 0) -> None:
        self.window = Window("p", "c", 0)
        self.window.add("retrievals", calls)

    def snapshot(self) -> Snapshot:
        """Return them."""
        return Snapshot(ts=0.0, samples=tuple(window_samples("p", "c", self.window)))


class Broken:
    """A source that cannot be read."""

    def snapshot(self) -> Snapshot:
        """Fail."""
        raise OSError("the store is gone")


@pytest.fixture
def registry() -> CollectorRegistry:
    """Return a registry of one's own."""
    return CollectorRegistry()


@pytest.fixture
def default_registry() -> Iterator[CollectorRegistry]:
    """Return the client's global registry, and leave it as it was."""
    yield REGISTRY
    collector = getattr(REGISTRY, "_resweep_collector", None)
    for source in list(collector.sources.values()) if collector else ():
        exporter.unregister(source)


def test_two_retrievers_and_a_reload_are_one_exposition(default_registry: CollectorRegistry) -> None:
    """Built for A, for B, then after a reload: no error, each name once, the total is 15."""
    exporter.register(Source(5))
    exporter.register(Source(5))
    reloaded = importlib.reload(exporter)
    reloaded.register(Source(5))
    page = generate_latest(default_registry).decode()
    assert page.count("# TYPE resweep_retrievals_total ") == 1
    assert default_registry.get_sample_value("resweep_retrievals_total", AT) == 15


def test_a_module_imported_anew_finds_the_old_collector(registry: CollectorRegistry) -> None:
    """Not only a reload: a module thrown away and imported again shares the registry too."""
    exporter.register(Source(5), registry)
    kept = sys.modules.pop("resweep_exporters.prometheus")
    try:
        importlib.import_module("resweep_exporters.prometheus").register(Source(5), registry)
    finally:
        sys.modules["resweep_exporters.prometheus"] = kept
    assert registry.get_sample_value("resweep_retrievals_total", AT) == 10


def test_the_same_source_twice_counts_once(registry: CollectorRegistry) -> None:
    """Registering again changes nothing."""
    source = Source(5)
    exporter.register(source, registry)
    exporter.register(source, registry)
    assert registry.get_sample_value("resweep_retrievals_total", AT) == 5


def test_a_name_replaces_its_source(registry: CollectorRegistry) -> None:
    """The second source of one name takes the place of the first."""
    exporter.register(Source(5), registry, name="recorder")
    exporter.register(Source(7), registry, name="recorder")
    assert registry.get_sample_value("resweep_retrievals_total", AT) == 7


def test_a_registry_of_ones_own_leaves_the_default_alone(registry: CollectorRegistry) -> None:
    """All metrics go where they were sent, none to the global registry."""
    exporter.register(Source(5), registry)
    assert REGISTRY.get_sample_value("resweep_retrievals_total", AT) is None


def test_the_last_source_takes_the_collector_along(registry: CollectorRegistry) -> None:
    """After unregister the registry is as before, and can be used again."""
    source = Source(5)
    exporter.register(source, registry)
    exporter.unregister(source, registry)
    exporter.unregister(source, registry)
    assert generate_latest(registry) == b""
    exporter.register(source, registry)
    assert registry.get_sample_value("resweep_retrievals_total", AT) == 5


def test_a_name_that_is_taken_is_said_in_full(registry: CollectorRegistry) -> None:
    """A metric of ours that somebody else registered is one clear error."""
    Counter("resweep_retrievals", "not ours", registry=registry)
    with pytest.raises(UsageError, match="registry of your own"):
        exporter.register(Source(), registry)


def test_a_restricted_registry_shows_what_was_asked(registry: CollectorRegistry) -> None:
    """`?name[]=` works for every metric: the collector describes itself."""
    exporter.register(Source(5), registry)
    page = generate_latest(registry.restricted_registry(["resweep_retrievals_total"])).decode()
    assert page.splitlines()[2:] == ['resweep_retrievals_total{config="c",pipeline="p"} 5.0']


def test_a_source_that_fails_costs_its_own_numbers_only(registry: CollectorRegistry) -> None:
    """The others are shown, and the page says that it is not complete."""
    exporter.register(Source(5), registry)
    exporter.register(Broken(), registry)
    assert registry.get_sample_value("resweep_retrievals_total", AT) == 5
    assert registry.get_sample_value("resweep_scrape_complete") == 0


def test_only_broken_sources_are_still_a_page(registry: CollectorRegistry) -> None:
    """Nothing to show is no error."""
    exporter.register(Broken(), registry)
    assert registry.get_sample_value("resweep_scrape_complete") == 0


def test_a_first_scrape_names_every_metric() -> None:
    """Right after the start, with nothing seen, each name of the catalog is on the page."""
    page, _ = exporter.text(Snapshot(ts=0.0))
    assert all(f"# TYPE {metric.name} {metric.kind}\n" in page.decode() for metric in CATALOG)


def test_a_process_beside_an_agent_names_its_own_health_alone() -> None:
    """The agent tells the rest; no number is shown twice."""
    page, _ = exporter.text(Snapshot(ts=0.0, samples=(Sample("resweep_process_calls_total", (), 3),)))
    names = {family.name for family in parse_text(page.decode())}
    assert names
    assert all(name.startswith("resweep_process_") for name in names)


def test_the_format_follows_the_scraper() -> None:
    """OpenMetrics where it is asked for, the text format otherwise; no `_created` in either."""
    snapshot = Source(1).snapshot()
    openmetrics, plain = exporter.text(snapshot, OPENMETRICS), exporter.text(snapshot, "")
    assert openmetrics[1].startswith("application/openmetrics-text; version=1.0.0")
    assert plain[1].startswith("text/plain; version=0.0.4")
    assert openmetrics[0].endswith(b"# EOF\n")
    assert b"_created" not in openmetrics[0] + plain[0]


def test_both_formats_hold_the_same_numbers() -> None:
    """Strict parsers read the same samples from both pages."""
    snapshot = Source(3).snapshot()
    plain = exporter.text(snapshot)[0].decode()
    strict = exporter.text(snapshot, OPENMETRICS)[0].decode()
    assert _numbers(parse_text(plain)) == _numbers(parse_openmetrics(strict))  # type: ignore[no-untyped-call]


def _numbers(families: Iterable[Family]) -> dict[tuple[object, ...], float]:
    return {
        (one.name, *sorted(one.labels.items())): one.value for family in families for one in family.samples
    }


def histogram_window() -> Window:
    """Return a window with three retrievals of 3, 4 and 200 passages."""
    window = Window("p", "c", 0)
    for passages in (3, 4, 200):
        window.observe("retrieved_passages", passages)
    return window


def test_buckets_are_cumulative_with_sum_and_count() -> None:
    """3, 4 and 200 passages: two within 4, three in all, 207 together."""
    samples = tuple(window_samples("p", "c", histogram_window()))
    page = exporter.text(Snapshot(ts=0.0, samples=samples))[0].decode()
    for line in (
        '_bucket{config="c",le="4.0",pipeline="p"} 2.0',
        '_bucket{config="c",le="+Inf",pipeline="p"} 3.0',
        '_sum{config="c",pipeline="p"} 207.0',
        '_count{config="c",pipeline="p"} 3.0',
    ):
        assert f"resweep_retrieved_passages{line}" in page


def test_both_stages_are_shown() -> None:
    """Total and rerank are two series of one histogram."""
    page = exporter.text(Source().snapshot())[0].decode()
    assert page.count('resweep_retrieval_duration_seconds_count{config="c",pipeline="p",stage=') == 2


def test_scores_have_buckets_only() -> None:
    """A sum of negative scores could fall: it is left out with its count, as OpenMetrics demands."""
    page = exporter.text(Source().snapshot())[0].decode()
    assert 'resweep_top_score_bucket{config="c",le="+Inf",pipeline="p"} 0.0' in page
    assert "resweep_top_score_sum" not in page
    assert "resweep_top_score_count" not in page


def test_an_exemplar_stands_in_its_bucket_and_in_no_other() -> None:
    """The trace of a slow call is shown beside the first bucket that holds its value."""
    window = Window("p", "c", 0)
    window.observe("retrieval_duration_seconds", 0.3)
    exemplar = Exemplar((("trace_id", "abc"),), 0.3, 12.5)
    histogram = window.histograms["retrieval_duration_seconds"]
    sample = Sample("resweep_retrieval_duration_seconds", ("p", "c", "total"), histogram, exemplar)
    page = exporter.text(Snapshot(ts=0.0, samples=(sample,)), OPENMETRICS)[0].decode()
    lines = [line for line in page.splitlines() if " # " in line]
    assert [line.partition("le=")[2] for line in lines] == [
        '"0.5",pipeline="p",stage="total"} 1.0 # {trace_id="abc"} 0.3 12.5'
    ]


def test_a_counter_carries_an_exemplar() -> None:
    """And the text format leaves it out."""
    sample = Sample("resweep_retrievals_total", ("p", "c"), 1, Exemplar((("trace_id", "abc"),), 1.0))
    snapshot = Snapshot(ts=0.0, samples=(sample,))
    assert b'} 1.0 # {trace_id="abc"} 1.0\n' in exporter.text(snapshot, OPENMETRICS)[0]
    assert b"trace_id" not in exporter.text(snapshot)[0]


def test_an_exemplar_of_a_gauge_does_not_break_the_page() -> None:
    """OpenMetrics has none there; it is dropped."""
    sample = Sample("resweep_context_k", ("p", "c"), 8, Exemplar((("trace_id", "abc"),), 1.0))
    assert b"trace_id" not in exporter.text(Snapshot(ts=0.0, samples=(sample,)), OPENMETRICS)[0]


def fullest(own: int) -> Iterator[Sample]:
    """Yield every series there can be: `own` configs with series of their own, `other`, one pipeline."""
    configs = [f"{number:012x}" for number in range(own)]
    for config in (*configs, "other"):
        yield from window_samples("p", config, Window("p", config, 0))
    for metric in CATALOG:
        about = {"config": configs, "traffic": []}.get(metric.scope, ["one"])
        for config, labels in product(about, _labels(metric)):
            here = labels | {"config": config, "basis": config}
            yield Sample(metric.name, tuple(here[label] for label in metric.labels), 1)


def _labels(metric: Metric) -> list[dict[str, str]]:
    fixed = [dict(zip(metric.values, values, strict=True)) for values in product(*metric.values.values())]
    free = [label for label in metric.labels if label not in metric.values]
    if metric.at_most is None:
        return [dict.fromkeys(free, "v") | one for one in fixed]
    copies = metric.at_most // len(fixed)
    return [dict.fromkeys(free, f"v{number}") | one for number in range(copies) for one in fixed]


def test_the_fullest_page_has_as_many_series_as_the_catalog_says() -> None:
    """Five configs of their own and `other`: counted on the page, and within 1,000."""
    page, _ = exporter.text(Snapshot(ts=0.0, samples=tuple(fullest(5))))
    series = [line for line in page.decode().splitlines() if not line.startswith("#")]
    assert len(series) == len(set(series)) == series_in_all(5) <= 1_000
    assert "resweep_scrape_complete 1.0" in series
