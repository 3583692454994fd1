"""Every metric of resweep in one table; exporters, rules, dashboards and docs follow it.

Names are Prometheus names. The OpenTelemetry name and unit beside each are such that the standard
translation of OTLP metrics gives the Prometheus name back
(https://opentelemetry.io/docs/specs/otel/compatibility/prometheus_and_openmetrics/).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import prod
from typing import Literal

from resweep.domain.event import FEEDBACK_KINDS
from resweep.domain.snapshot import DROP_REASONS, ERROR_CLASSES, STRATA
from resweep.domain.verdict import VERDICT_STATES
from resweep.domain.window import BUCKETS

Kind = Literal["counter", "histogram", "gauge"]
# What one set of series is about; traffic is that of a config with its own series, or of all `other` ones.
Scope = Literal["traffic", "config", "pipeline", "agent", "process"]
Merge = Literal["sum", "max", "min"]

OWN_CONFIGS = 5  # configs with series of their own, by default
SERIES_PER_CONFIG = 150
SERIES_IN_ALL = 1_000
JOBS = 16  # an agent has fewer jobs than this

PIPELINE = ("pipeline",)
CONFIG = ("pipeline", "config")
CASE_STATES = ("candidate", "in_review", "labelled", "needs_look", "unanswerable", "rejected")
SPLITS = ("tune", "holdout", "quarantined")
WATCH_STATES = ("called", "uncalled", "no_ids", "no_scores", "no_sources")
EVIDENCE_LAYERS = ("active", "twins", "levels", "outcome")


@dataclass(frozen=True, slots=True, kw_only=True)
class Metric:
    """One metric.

    `name` carries unit and `_total`. `labels` are in the order in which a `Sample` gives its values. `unit`
    is the Prometheus base unit the name ends with, or empty. `bounds_key` is the key of `BUCKETS`. `values`
    lists a label's fixed values; `at_most` bounds the series of one scope where a label has none. `merge`
    says how two series of one name and labels become one.
    """

    name: str
    kind: Kind
    scope: Scope
    help: str
    labels: tuple[str, ...]
    otel_name: str
    otel_unit: str = ""
    unit: str = ""
    bounds_key: str | None = None
    values: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    at_most: int | None = None
    merge: Merge = "max"

    @property
    def process(self) -> bool:
        """Whether the metric tells the health of the process that records, not the traffic."""
        return self.scope == "process"

    @property
    def bounds(self) -> tuple[float, ...]:
        """The upper bounds of a histogram's buckets, without +Inf; empty for the other kinds."""
        return BUCKETS[self.bounds_key] if self.bounds_key else ()

    @property
    def has_sum(self) -> bool:
        """Whether a histogram shows sum and count: a sum of negative values could fall.

        OpenMetrics forbids it then, and the count without it.
        """
        return bool(self.bounds) and self.bounds[0] >= 0

    @property
    def series(self) -> int:
        """How many series one scope holds at most: buckets, +Inf, count and sum each are one."""
        each = len(self.bounds) + 1 + 2 * self.has_sum if self.kind == "histogram" else 1
        return each * (self.at_most or prod(len(values) for values in self.values.values()))


def _counter(
    name: str,
    otel: str,
    unit: str,
    help_: str,
    values: Mapping[str, tuple[str, ...]] | None = None,
    *,
    labels: tuple[str, ...] = CONFIG,
    scope: Scope = "traffic",
    at_most: int | None = None,
) -> Metric:
    values = values or {}
    return Metric(
        name=name,
        kind="counter",
        scope=scope,
        help=help_,
        labels=(*labels, *values),
        otel_name=otel,
        otel_unit=unit,
        values=values,
        at_most=at_most,
        merge="sum",
    )


def _histogram(
    name: str, otel: str, otel_unit: str, help_: str, unit: str = "", **values: tuple[str, ...]
) -> Metric:
    return Metric(
        name=name,
        kind="histogram",
        scope="traffic",
        help=help_,
        labels=(*CONFIG, *values),
        otel_name=otel,
        otel_unit=otel_unit,
        unit=unit,
        bounds_key=name.removeprefix("resweep_"),
        values=values,
        merge="sum",
    )


def _gauge(
    name: str,
    otel: str,
    otel_unit: str,
    help_: str,
    labels: tuple[str, ...],
    scope: Scope,
    unit: str = "",
    merge: Merge = "max",
    at_most: int | None = None,
    **values: tuple[str, ...],
) -> Metric:
    return Metric(
        name=name,
        kind="gauge",
        scope=scope,
        help=help_,
        labels=labels,
        otel_name=otel,
        otel_unit=otel_unit,
        unit=unit,
        values=values,
        at_most=at_most,
        merge=merge,
    )


_TRAFFIC: tuple[Metric, ...] = (
    _counter(
        "resweep_retrievals_total",
        "resweep.retrievals",
        "{retrieval}",
        "Retrievals, whatever came of them.",
    ),
    _counter(
        "resweep_empty_retrievals_total",
        "resweep.empty.retrievals",
        "{retrieval}",
        "Completed retrievals that returned no passage: an empty list (zero) or None (none).",
        {"kind": ("zero", "none")},
    ),
    _counter(
        "resweep_short_retrievals_total",
        "resweep.short.retrievals",
        "{retrieval}",
        "Completed retrievals that returned fewer passages than asked.",
    ),
    _counter(
        "resweep_retrieval_errors_total",
        "resweep.retrieval.errors",
        "{error}",
        "Retrievals that raised, by class of error.",
        {"class": ERROR_CLASSES},
    ),
    _counter(
        "resweep_partial_retrievals_total",
        "resweep.partial.retrievals",
        "{retrieval}",
        "Retrievals whose stream the caller closed early.",
    ),
    _counter(
        "resweep_feedback_total",
        "resweep.feedback",
        "{feedback}",
        "Feedback on retrievals, once per retrieval, kind and rater.",
        {"kind": FEEDBACK_KINDS},
    ),
    _counter(
        "resweep_low_confidence_total",
        "resweep.low_confidence",
        "{retrieval}",
        "Retrievals among the lowest 5 % of their config's own reference by confidence rank.",
    ),
    _counter(
        "resweep_sampled_total",
        "resweep.sampled",
        "{event}",
        "Retrievals sampled for labelling, by stratum; one may qualify for several.",
        {"stratum": STRATA},
    ),
    _counter(
        "resweep_dropped_records_total",
        "resweep.dropped.records",
        "{record}",
        "Records given up after they were counted, by reason; counters lose nothing by it.",
        {"reason": DROP_REASONS},
    ),
    _histogram(
        "resweep_retrieved_passages",
        "resweep.retrieved.passages",
        "{passage}",
        "Passages returned by a completed retrieval.",
    ),
    _histogram(
        "resweep_context_tokens",
        "resweep.context.tokens",
        "{token}",
        "Tokens of the returned passages together.",
    ),
    _histogram(
        "resweep_source_diversity_ratio",
        "resweep.source.diversity.ratio",
        "1",
        "Distinct known sources over returned passages with a known source; not observed without any.",
        unit="ratio",
    ),
    _histogram(
        "resweep_retrieval_duration_seconds",
        "resweep.retrieval.duration",
        "s",
        "Time of a retrieval: as the caller saw it (total), and of its reranker (rerank).",
        unit="seconds",
        stage=("total", "rerank"),
    ),
    _histogram(
        "resweep_top_score",
        "resweep.top.score",
        "{score}",
        "Score of the first passage, in the retriever's own scale; a distance is lower when better.",
    ),
    _histogram(
        "resweep_overhead_seconds",
        "resweep.overhead",
        "s",
        "Time that recording added to a call.",
        unit="seconds",
    ),
)

_STATE: tuple[Metric, ...] = (
    _gauge(
        "resweep_config_info",
        "resweep.config.info",
        "",
        "The declared parts of a config in words; always 1.",
        (*CONFIG, "basis", "embedder", "chunker", "reranker", "generator"),
        "config",
        at_most=1,
    ),
    _gauge(
        "resweep_context_k",
        "resweep.context_k",
        "{passage}",
        "Passages asked for the prompt by a config in use.",
        CONFIG,
        "config",
    ),
    _gauge(
        "resweep_tuned_context_k",
        "resweep.tuned.context_k",
        "{passage}",
        "Context depth chosen by the sweep of the config's basis; absent where there is none.",
        CONFIG,
        "config",
    ),
    _gauge(
        "resweep_verdict",
        "resweep.verdict",
        "",
        "State of a pipeline's basis: 1 for the state it is in, 0 for the others.",
        (*PIPELINE, "basis", "state"),
        "config",
        state=VERDICT_STATES,
    ),
    _gauge(
        "resweep_tuned_k_valid",
        "resweep.tuned_k.valid",
        "",
        "1 while the tuned k of a basis is valid, else 0.",
        (*PIPELINE, "basis"),
        "config",
        merge="min",
    ),
    _gauge(
        "resweep_sweep_required",
        "resweep.sweep.required",
        "",
        "1 while an open flag asks for a new sweep, with its reason and the component that changed.",
        (*CONFIG, "basis", "reason", "component"),
        "config",
        at_most=4,
    ),
    _gauge(
        "resweep_drift_evidence",
        "resweep.drift.evidence",
        "",
        "Natural logarithm of the evidence of a change over the alarm threshold; above 0 is an alarm.",
        (*CONFIG, "layer"),
        "config",
        layer=EVIDENCE_LAYERS,
    ),
    _gauge(
        "resweep_reference_distance",
        "resweep.reference.distance",
        "",
        "Newest week against the week after the depth was chosen: the level that moved most, in SD between "
        "questions, and the share of questions that changed groups.",
        (*CONFIG, "of"),
        "config",
        of=("levels", "mix"),
    ),
    _gauge(
        "resweep_canary_recall_ratio",
        "resweep.canary.recall",
        "1",
        "Mean recall of the retrieval canaries among the first k.",
        (*CONFIG, "k"),
        "config",
        unit="ratio",
        merge="min",
        at_most=2,
    ),
)

_AGENT: tuple[Metric, ...] = (
    _gauge(
        "resweep_labelled_cases",
        "resweep.labelled.cases",
        "{case}",
        "Cases of the labelled set, by state of review and split.",
        (*PIPELINE, "state", "split"),
        "pipeline",
        state=CASE_STATES,
        split=SPLITS,
    ),
    _gauge(
        "resweep_review_queue_oldest_seconds",
        "resweep.review_queue.oldest",
        "s",
        "Age of the oldest case that waits for review; 0 when none waits.",
        PIPELINE,
        "pipeline",
        unit="seconds",
    ),
    _gauge(
        "resweep_last_sweep_timestamp_seconds",
        "resweep.last_sweep.timestamp",
        "s",
        "When a sweep of the pipeline last ended, in unix seconds; 0 for never.",
        PIPELINE,
        "pipeline",
        unit="seconds",
    ),
    _gauge(
        "resweep_maintenance",
        "resweep.maintenance",
        "",
        "1 while announced work on a pipeline lasts: its alerts are silent, its flags are recorded; else 0.",
        PIPELINE,
        "pipeline",
    ),
    _gauge(
        "resweep_job_last_success_timestamp_seconds",
        "resweep.job.last_success.timestamp",
        "s",
        "When a job of the agent last ended well, in unix seconds; 0 for never.",
        ("job",),
        "agent",
        unit="seconds",
        at_most=JOBS,
    ),
    _counter(
        "resweep_job_runs_total",
        "resweep.job.runs",
        "{run}",
        "Runs of the agent's jobs, by outcome.",
        {"outcome": ("ok", "failed")},
        labels=("job",),
        scope="agent",
        at_most=2 * JOBS,
    ),
    _counter(
        "resweep_job_late_runs_total",
        "resweep.job.late_runs",
        "{run}",
        "Runs of the agent's jobs that began more than a second after they were due.",
        labels=("job",),
        scope="agent",
        at_most=JOBS,
    ),
    _counter(
        "resweep_job_skipped_runs_total",
        "resweep.job.skipped_runs",
        "{run}",
        "Runs of the agent's jobs that were missed and made up for by one later run.",
        labels=("job",),
        scope="agent",
        at_most=JOBS,
    ),
    _gauge(
        "resweep_job_last_lateness_seconds",
        "resweep.job.last_lateness",
        "s",
        "How long after its due time a job last began.",
        ("job",),
        "agent",
        unit="seconds",
        at_most=JOBS,
    ),
    _counter(
        "resweep_ingest_batches_total",
        "resweep.ingest.batches",
        "{batch}",
        "Batches that recorders handed over: applied, known already, or refused.",
        {"outcome": ("applied", "duplicate", "refused")},
        labels=(),
        scope="agent",
    ),
    _counter(
        "resweep_otlp_spans_total",
        "resweep.otlp.spans",
        "{span}",
        "Spans that came over OTLP, by what became of them; a truncated one lost part of its answer.",
        {"outcome": ("retrieval", "truncated", "own", "other", "refused")},
        labels=(),
        scope="agent",
    ),
    _gauge(
        "resweep_leader",
        "resweep.leader",
        "",
        "1 in the agent that leads, 0 in one that stands by.",
        (),
        "agent",
    ),
    _gauge(
        "resweep_agent_info",
        "resweep.agent.info",
        "",
        "The agent's version; always 1.",
        ("version",),
        "agent",
        at_most=1,
    ),
    _gauge(
        "resweep_scrape_complete",
        "resweep.scrape.complete",
        "",
        "1 when every number could be read for this scrape, 0 when some are missing from it.",
        (),
        "agent",
        merge="min",
    ),
)

_PROCESS: tuple[Metric, ...] = (
    _counter(
        "resweep_process_calls_total",
        "resweep.process.calls",
        "{call}",
        "Calls this process recorded, over all pipelines.",
        labels=(),
        scope="process",
    ),
    _counter(
        "resweep_process_dropped_records_total",
        "resweep.process.dropped.records",
        "{record}",
        "Records this process gave up, by reason.",
        {"reason": DROP_REASONS},
        labels=(),
        scope="process",
    ),
    _gauge(
        "resweep_process_spooled_bytes",
        "resweep.process.spooled",
        "By",
        "Bytes that wait in the spool for the agent.",
        (),
        "process",
        unit="bytes",
        merge="sum",
    ),
    _gauge(
        "resweep_process_folding_lag_seconds",
        "resweep.process.folding.lag",
        "s",
        "Age of the oldest record not yet folded into a window.",
        (),
        "process",
        unit="seconds",
    ),
    _gauge(
        "resweep_process_sink_up",
        "resweep.process.sink.up",
        "",
        "1 when the last batch was handed over, 0 when the sink refused it.",
        (),
        "process",
        merge="min",
    ),
    _gauge(
        "resweep_process_watches",
        "resweep.process.watches",
        "{retriever}",
        "Retrievers this process watches: with and without a call so far, and those whose answers carried "
        "no id, score or source.",
        ("state",),
        "process",
        merge="sum",
        state=WATCH_STATES,
    ),
    _counter(
        "resweep_process_undelivered_points_total",
        "resweep.process.undelivered.points",
        "{point}",
        "Data points of OTLP exports that the collector did not take.",
        labels=(),
        scope="process",
    ),
)

CATALOG: tuple[Metric, ...] = (*_TRAFFIC, *_STATE, *_AGENT, *_PROCESS)
BY_NAME: Mapping[str, Metric] = {metric.name: metric for metric in CATALOG}


def _series(*scopes: Scope) -> int:
    return sum(metric.series for metric in CATALOG if metric.scope in scopes)


def series_per_config() -> int:
    """Return how many series one config with series of its own has at most."""
    return _series("traffic", "config")


def series_in_all(own_configs: int = OWN_CONFIGS, pipelines: int = 1) -> int:
    """Return how many series a whole exposition has at most; the configs beyond the own ones share `other`.

    `other` has the counters and histograms only: it is no config that a verdict could be about.
    """
    once = _series("agent", "process") + pipelines * _series("pipeline")
    return own_configs * series_per_config() + _series("traffic") + once
