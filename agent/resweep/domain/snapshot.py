"""The numbers to expose, without a word on how: exporters render a `Snapshot`, recorder and store make one.

Metric names are the Prometheus names of the catalog; label values come in the order in which the catalog
lists the labels of that metric.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

from resweep.domain.event import FEEDBACK_KINDS
from resweep.domain.window import BUCKETS, Histogram, Window

ERROR_CLASSES: tuple[str, ...] = (
    "dimension_mismatch",
    "timeout",
    "connection",
    "auth",
    "rate_limit",
    "value",
    "other",
)
DROP_REASONS: tuple[str, ...] = ("ring_full", "spool_full", "sink_failed", "redaction", "late", "invalid")
STRATA: tuple[str, ...] = ("uniform", "low_confidence", "novel", "empty_or_short", "feedback", "canary_lost")


class Exemplar(NamedTuple):
    """One observation behind a series, with where to look it up, e.g. `(("trace_id", "…"),)`.

    `value` is in the unit of its metric; in a histogram it says which bucket the exemplar belongs to. `ts`
    is unix seconds. All label names and values together hold at most 128 characters (OpenMetrics 1.0).
    """

    labels: tuple[tuple[str, str], ...]
    value: float
    ts: float | None = None


class Sample(NamedTuple):
    """One series and its value; histograms carry a `Histogram` over `BUCKETS[bounds]`."""

    metric: str
    labels: tuple[str, ...]
    value: float | Histogram
    exemplar: Exemplar | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """Everything to expose at one moment. `complete` is False where a part could not be read."""

    ts: float
    samples: tuple[Sample, ...] = field(default=())
    complete: bool = True


class SnapshotSource(Protocol):
    """Whatever has numbers to expose: a recorder in the user's process, or the agent's store."""

    def snapshot(self) -> Snapshot:
        """Return the numbers as of now; must not block a request."""


def window_samples(pipeline: str, config: str, total: Window) -> Iterator[Sample]:
    """Yield the counters and histograms of one config from its totals, each present from 0."""
    at = (pipeline, config)
    yield Sample("resweep_retrievals_total", at, total.get("retrievals"))
    yield Sample("resweep_empty_retrievals_total", (*at, "zero"), total.get("empty_zero"))
    yield Sample("resweep_empty_retrievals_total", (*at, "none"), total.get("empty_none"))
    yield Sample("resweep_short_retrievals_total", at, total.get("short"))
    yield Sample("resweep_partial_retrievals_total", at, total.get("partial"))
    yield Sample("resweep_low_confidence_total", at, total.get("low_confidence"))
    yield from _by("resweep_retrieval_errors_total", at, "error", ERROR_CLASSES, total)
    yield from _by("resweep_feedback_total", at, "feedback", FEEDBACK_KINDS, total)
    yield from _by("resweep_sampled_total", at, "sampled", STRATA, total)
    yield from _by("resweep_dropped_records_total", at, "dropped", DROP_REASONS, total)
    yield from _histograms(at, total)


def _by(
    metric: str, at: tuple[str, str], prefix: str, values: Iterable[str], total: Window
) -> Iterator[Sample]:
    for value in values:
        yield Sample(metric, (*at, value), total.get(f"{prefix}:{value}"))


# metric, labels after pipeline and config, histogram of the window
_HISTOGRAMS: tuple[tuple[str, tuple[str, ...], str], ...] = (
    ("resweep_retrieved_passages", (), "retrieved_passages"),
    ("resweep_context_tokens", (), "context_tokens"),
    ("resweep_source_diversity_ratio", (), "source_diversity_ratio"),
    ("resweep_retrieval_duration_seconds", ("total",), "retrieval_duration_seconds"),
    ("resweep_retrieval_duration_seconds", ("rerank",), "rerank_duration_seconds"),
    ("resweep_top_score", (), "top_score"),
    ("resweep_overhead_seconds", (), "overhead_seconds"),
)


def _histograms(at: tuple[str, str], total: Window) -> Iterator[Sample]:
    for metric, labels, name in _HISTOGRAMS:
        empty = Histogram([0] * (len(BUCKETS[name]) + 1))
        yield Sample(metric, (*at, *labels), total.histograms.get(name, empty))
