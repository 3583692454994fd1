"""Snapshots of one or more sources brought together: one value per metric and labels, whatever went wrong.

A source that fails, or a sample that the catalog does not know, costs its own numbers and makes
`resweep_scrape_complete` 0. It never costs the page.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Iterable
from typing import NamedTuple

from resweep.domain.snapshot import Exemplar, Sample, Snapshot, SnapshotSource
from resweep.domain.window import Histogram
from resweep_exporters.catalog import BY_NAME, Metric
from resweep_exporters.labels import clean
from resweep_exporters.throttle import Throttle

COMPLETE = "resweep_scrape_complete"
OTHER = "other"
EXEMPLAR_LONGEST = 128  # OpenMetrics 1.0, "Exemplars"
_log = logging.getLogger(__name__)
_throttle = Throttle()


class Point(NamedTuple):
    """The value of one series, with the exemplar to show beside it."""

    value: float | Histogram
    exemplar: Exemplar | None


class Series:
    """Points by metric name and label values.

    `process_only` is True where nothing but `resweep_process_*` was found: a process whose numbers an agent
    exposes. `complete` is False where a sample or a whole source could not be used.
    """

    def __init__(self) -> None:
        self.points: dict[str, dict[tuple[str, ...], Point]] = {}
        self.complete = True
        self.process_only = True

    def add(self, sample: Sample) -> None:
        """Take one sample in, merged with one of the same name and labels."""
        metric = BY_NAME.get(sample.metric)
        if metric is None or len(sample.labels) != len(metric.labels) or not _fits(metric, sample.value):
            self.complete = False
            return
        self.process_only = self.process_only and metric.process
        labels = _labels(metric, sample.labels)
        of_metric = self.points.setdefault(metric.name, {})
        known = of_metric.get(labels)
        point = Point(sample.value, _usable(metric, sample.exemplar))
        of_metric[labels] = point if known is None else _merge(metric, known, point)

    def finish(self) -> Series:
        """State whether this is everything; a healthy process beside an agent leaves that to the agent."""
        if not (self.process_only and self.complete and self.points):
            self.process_only = False
            self.add(Sample(COMPLETE, (), float(self.complete)))
        return self


def gather(snapshots: Iterable[Snapshot]) -> Series:
    """Return the series of some snapshots."""
    series = Series()
    for snapshot in snapshots:
        series.complete = series.complete and snapshot.complete
        for sample in snapshot.samples:
            series.add(sample)
    return series.finish()


def read(sources: Iterable[SnapshotSource]) -> list[Snapshot]:
    """Return a snapshot of each source; an empty, incomplete one of a source that raises."""
    return [_read(source) for source in sources]


def _read(source: SnapshotSource) -> Snapshot:
    try:
        return source.snapshot()
    except Exception:  # noqa: BLE001 - a scrape must show what the other sources have
        if _throttle.ready():
            _log.warning("a source of metrics failed: its numbers are missing from this page", exc_info=True)
        return Snapshot(ts=0.0, complete=False)


def _labels(metric: Metric, values: tuple[str, ...]) -> tuple[str, ...]:
    pairs = zip(metric.labels, values, strict=True)
    return tuple([_listed(metric.values.get(label, ()), clean(value)) for label, value in pairs])


def _listed(values: tuple[str, ...], value: str) -> str:
    # An error's class is one of a fixed list, however a newer or broken recorder spells it.
    return OTHER if OTHER in values and value not in values else value


def _fits(metric: Metric, value: object) -> bool:
    if isinstance(value, Histogram):
        return len(value.counts) == len(metric.bounds) + 1 and metric.kind == "histogram"
    return metric.kind != "histogram" and isinstance(value, int | float)


def _usable(metric: Metric, exemplar: Exemplar | None) -> Exemplar | None:
    if exemplar is None or metric.kind == "gauge" or not math.isfinite(exemplar.value):
        return None
    labels = tuple((name, clean(value)) for name, value in exemplar.labels)
    if sum(len(name) + len(value) for name, value in labels) > EXEMPLAR_LONGEST:
        return None
    return exemplar._replace(labels=labels)


def _merge(metric: Metric, one: Point, other: Point) -> Point:
    return Point(_merged(metric, one.value, other.value), other.exemplar or one.exemplar)


def _merged(metric: Metric, one: float | Histogram, other: float | Histogram) -> float | Histogram:
    if isinstance(one, Histogram) and isinstance(other, Histogram):
        total = Histogram(list(one.counts), one.total)
        total.merge(other)
        return total
    assert not isinstance(one, Histogram)
    assert not isinstance(other, Histogram)
    if metric.merge == "sum":
        return one + other
    return max(one, other) if metric.merge == "max" else min(one, other)
