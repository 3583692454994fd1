"""The agent's histograms lead to a trace."""

from __future__ import annotations

from resweep.domain.event import ErrorInfo, RetrievalEvent
from resweep.domain.snapshot import Exemplar, Sample, Snapshot
from resweep.domain.window import BUCKETS, Histogram
from resweep.serve.exemplars import DURATION, Exemplars
from resweep_exporters.prometheus import text

EVENT = RetrievalEvent("e1", 5.0, "bot", "c1", latency_s=0.03, trace_id="ab" * 16)


def histogram(stage: str = "total", config: str = "c1") -> Sample:
    counts = [0] * (len(BUCKETS["retrieval_duration_seconds"]) + 1)
    counts[3] = 1
    return Sample(DURATION, ("bot", config, stage), Histogram(counts, 30_000))


def shown(exemplars: Exemplars, *samples: Sample) -> list[Exemplar | None]:
    return [sample.exemplar for sample in exemplars.beside(samples)]


def test_the_newest_trace_of_a_config_stands_beside_its_durations() -> None:
    """Not beside those of a stage, nor of another config."""
    exemplars = Exemplars()
    exemplars.heard([EVENT, EVENT._replace(ts=4.0, trace_id="cd" * 16)])
    assert shown(exemplars, histogram(), histogram("rerank"), histogram(config="c2")) == [
        Exemplar((("trace_id", "ab" * 16),), 0.03, 5.0),
        None,
        None,
    ]


def test_what_has_no_duration_that_counts_is_no_exemplar() -> None:
    """Errors, partial and truncated answers, probes, events outside of any trace."""
    exemplars = Exemplars()
    exemplars.heard(
        [
            EVENT._replace(error=ErrorInfo("timeout")),
            EVENT._replace(partial=True),
            EVENT._replace(truncated=True),
            EVENT._replace(probe=True),
            EVENT._replace(trace_id=None),
            EVENT._replace(latency_s=None),
        ]
    )
    assert shown(exemplars, histogram()) == [None]


def test_a_page_in_openmetrics_shows_it() -> None:
    """Where a scraper asks for that format."""
    exemplars = Exemplars()
    exemplars.heard([EVENT])
    snapshot = Snapshot(ts=6.0, samples=tuple(exemplars.beside([histogram()])))
    page, _ = text(snapshot, "application/openmetrics-text;version=1.0.0")
    assert f'# {{trace_id="{"ab" * 16}"}} 0.03 5.0' in page.decode()
