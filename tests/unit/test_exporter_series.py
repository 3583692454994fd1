"""Snapshots brought together: sums, extremes, and what happens to what does not fit."""

from __future__ import annotations

import pytest

from resweep.domain.snapshot import Exemplar, Sample, Snapshot, window_samples
from resweep.domain.window import BUCKETS, Histogram, Window
from resweep_exporters.series import Point, gather
from resweep_exporters.throttle import Throttle

AT = ("p", "c")
RETRIEVALS = "resweep_retrievals_total"


def one(*samples: Sample, complete: bool = True) -> Snapshot:
    """Return a snapshot of some samples."""
    return Snapshot(ts=0.0, samples=samples, complete=complete)


def value(name: str, labels: tuple[str, ...], *snapshots: Snapshot) -> object:
    """Return the value of one series of the gathered snapshots."""
    return gather(snapshots).points[name][labels].value


def complete(*snapshots: Snapshot) -> object:
    """Return what the gathered snapshots say of themselves."""
    return value("resweep_scrape_complete", (), *snapshots)


def test_counters_of_two_sources_add_up() -> None:
    """Two processes' worth of calls under one name and config are one series."""
    assert value(RETRIEVALS, AT, one(Sample(RETRIEVALS, AT, 5)), one(Sample(RETRIEVALS, AT, 10))) == 15


def test_a_class_of_error_that_is_not_listed_is_other() -> None:
    """500 exception names are one series, and none of their counts is lost."""
    name = "resweep_retrieval_errors_total"
    samples = [Sample(name, (*AT, f"Error{number}"), 1) for number in range(500)]
    assert value(name, (*AT, "other"), one(*samples)) == 500


@pytest.mark.parametrize(
    ("name", "labels", "expected"),
    [
        ("resweep_context_k", AT, 2.0),
        ("resweep_tuned_k_valid", ("p", "b"), 1.0),
        ("resweep_process_spooled_bytes", (), 3.0),
    ],
)
def test_gauges_merge_as_their_row_says(name: str, labels: tuple[str, ...], expected: float) -> None:
    """A state takes its worse value, bytes add up."""
    assert value(name, labels, one(Sample(name, labels, 1.0)), one(Sample(name, labels, 2.0))) == expected


def test_histograms_add_up_and_leave_their_sources_alone() -> None:
    """Merged buckets are a new histogram."""
    name = "resweep_retrieved_passages"
    first, second = (Histogram([1] * (len(BUCKETS["retrieved_passages"]) + 1), 7) for _ in range(2))
    merged = value(name, AT, one(Sample(name, AT, first)), one(Sample(name, AT, second)))
    assert merged == Histogram([2] * 13, 14)
    assert first.total == second.total == 7


@pytest.mark.parametrize(
    "sample",
    [
        Sample("resweep_no_such_total", AT, 1.0),
        Sample(RETRIEVALS, ("p",), 1.0),
        Sample(RETRIEVALS, AT, Histogram([1])),
        Sample("resweep_top_score", AT, Histogram([1, 2])),
        Sample("resweep_top_score", AT, 1.0),
    ],
)
def test_a_sample_that_does_not_fit_is_left_out_and_told(sample: Sample) -> None:
    """Unknown names, wrong labels and wrong values cost themselves and the word "complete"."""
    assert complete(one(sample)) == 0.0
    assert complete(one(Sample(RETRIEVALS, AT, 1.0))) == 1.0


def test_an_incomplete_snapshot_makes_the_scrape_incomplete() -> None:
    """One source that could not read everything is enough."""
    assert complete(one(), one(complete=False)) == 0.0


def test_a_process_beside_an_agent_shows_its_own_health_alone() -> None:
    """Nothing but process metrics, and no word on the rest."""
    series = gather([one(Sample("resweep_process_calls_total", (), 3))])
    assert set(series.points) == {"resweep_process_calls_total"}


def test_a_process_beside_an_agent_still_says_that_it_failed() -> None:
    """An incomplete process says so."""
    assert complete(one(Sample("resweep_process_calls_total", (), 3), complete=False)) == 0.0


@pytest.mark.parametrize(
    "exemplar",
    [
        Exemplar((("trace_id", "t" * 200), ("span_id", "s" * 60)), 1.0),
        Exemplar((("trace_id", "t"),), float("nan")),
    ],
)
def test_an_exemplar_that_openmetrics_refuses_is_dropped(exemplar: Exemplar) -> None:
    """Too long, or no number: the sample stays, the exemplar goes."""
    series = gather([one(Sample(RETRIEVALS, AT, 1.0, exemplar))])
    assert series.points[RETRIEVALS][AT] == Point(1.0, None)


def test_a_fresh_window_gives_every_series_at_zero() -> None:
    """The first scrape after a config is seen holds all of its counters at 0."""
    series = gather([one(*window_samples("p", "c", Window("p", "c", 0)))])
    counters = [point.value for name in series.points for point in series.points[name].values()]
    assert [number for number in counters if isinstance(number, int)] == [0] * 30


def test_a_failing_source_may_log_once_a_minute() -> None:
    """At the first failure, and again after sixty seconds."""
    now = [0.0]
    throttle = Throttle(monotonic=lambda: now[0])
    said = []
    for now[0] in (0.0, 15.0, 59.9, 60.0, 61.0):
        said.append(throttle.ready())
    assert said == [True, False, False, True, False]
