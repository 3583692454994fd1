"""What the dashboard shows, as data: one `View` a panel, one `Section` a row. `generate.py` draws it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

Shape = Literal["lines", "states", "number", "table"]

ALL = '{pipeline=~"$pipeline"}'
EACH = '{pipeline=~"$pipeline", config=~"$config"}'
BY = "sum by (pipeline, config)"
NAME = "{{pipeline}} {{config}}"
CAUSE = "reason, component"
PARTS = "embedder, chunker, reranker, generator"


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """One panel.

    `queries` are (PromQL, legend). `unit` is one of Grafana's. `words` maps a value to (text, colour).
    """

    title: str
    description: str
    unit: str
    queries: tuple[tuple[str, str], ...]
    shape: Shape = "lines"
    width: int = 8
    height: int = 8
    words: Mapping[int, tuple[str, str]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """One row of the dashboard."""

    title: str
    views: tuple[View, ...]


def rate(metric: str, by: str = BY, selector: str = EACH) -> str:
    """Return the rate of a counter, summed."""
    return f"{by} (rate({metric}{selector}[$__rate_interval]))"


def per_completed(metric: str, selector: str = EACH) -> str:
    """Return a counter's share of the calls that neither raised nor were closed early."""
    completed = " - ".join(
        rate(name)
        for name in (
            "resweep_retrievals_total",
            "resweep_retrieval_errors_total",
            "resweep_partial_retrievals_total",
        )
    )
    return f"{rate(metric, selector=selector)} / ({completed})"


def mean(histogram: str) -> str:
    """Return the mean of a histogram."""
    return f"{rate(histogram + '_sum')} / {rate(histogram + '_count')}"


def quantile(q: float, histogram: str, by: str = "pipeline, config") -> str:
    """Return a quantile of a histogram."""
    return f"histogram_quantile({q:g}, {rate(histogram + '_bucket', f'sum by ({by}, le)')})"


def by_job(expression: str) -> str:
    """Return an expression per job of the agent, whichever of its two `job` labels the scrape kept."""
    own = f'label_replace({expression}, "task", "$1", "job", "(.+)")'
    return f'label_replace({own}, "task", "$1", "exported_job", "(.+)")'


YES_NO = {0: ("no", "red"), 1: ("yes", "green")}
STATES = {
    1: ("valid", "green"),
    2: ("too little data", "text"),
    3: ("untuned", "blue"),
    4: ("suspect", "orange"),
    5: ("expired", "red"),
}
_STATE_LABELS = ("valid", "too_little_data", "untuned", "suspect", "expired")
VERDICT = " or ".join(
    f'{number} * (resweep_verdict{{pipeline=~"$pipeline", state="{state}"}} == 1)'
    for number, state in enumerate(_STATE_LABELS, start=1)
)

VALID = Section(
    title="Is the tuned k still valid?",
    views=(
        View(
            title="Tuned k valid",
            description="Whether the tuned k of every basis of the pipeline is valid now. "
            "No is the moment to run the sweep; the table of open reasons says why.",
            unit="none",
            shape="number",
            width=4,
            words=YES_NO,
            queries=((f"min by (pipeline) (resweep_tuned_k_valid{ALL})", "{{pipeline}}"),),
        ),
        View(
            title="Verdict",
            description="State of each basis (a config without its depths) over time. "
            "Expired: something the k was tuned for changed. Suspect: live evidence says so. "
            "Untuned: no sweep or stated k for it.",
            unit="none",
            shape="states",
            width=12,
            words=STATES,
            queries=((f"max by (pipeline, basis) ({VERDICT})", "{{pipeline}} {{basis}}"),),
        ),
        View(
            title="Context k: live and tuned",
            description="Passages asked for the prompt, beside the depth that the sweep chose. "
            "A gap that lasts is a k mismatch; a missing tuned line is an untuned config.",
            unit="none",
            queries=(
                (f"max by (pipeline, config) (resweep_context_k{EACH})", f"{NAME} live"),
                (f"max by (pipeline, config) (resweep_tuned_context_k{EACH})", f"{NAME} tuned"),
            ),
        ),
        View(
            title="Open reasons",
            description="Flags that ask for a sweep: why, and which component probably changed. "
            "`resweep flags list` shows the evidence and the next command.",
            unit="none",
            shape="table",
            width=12,
            queries=(
                (
                    f"max by (pipeline, config, basis, {CAUSE}) (resweep_sweep_required{EACH}) == 1",
                    "",
                ),
            ),
        ),
        View(
            title="Configs",
            description="The declared parts behind each config's 12 hex digits.",
            unit="none",
            shape="table",
            width=12,
            queries=(
                (
                    f"max by (pipeline, config, basis, {PARTS}) (resweep_config_info{EACH})",
                    "",
                ),
            ),
        ),
    ),
)

TRAFFIC = Section(
    title="Retrievals",
    views=(
        View(
            title="Retrievals",
            description="Calls per second, whatever came of them. "
            "Two configs at once for longer than a rollout are a mixed fleet.",
            unit="reqps",
            queries=((rate("resweep_retrievals_total"), NAME),),
        ),
        View(
            title="Empty",
            description="Share of completed calls that returned no passage.",
            unit="percentunit",
            queries=((per_completed("resweep_empty_retrievals_total"), NAME),),
        ),
        View(
            title="Short",
            description="Share of completed calls that returned fewer passages than asked: a filter, "
            "a small index, or a stage that cuts.",
            unit="percentunit",
            queries=((per_completed("resweep_short_retrievals_total"), NAME),),
        ),
        View(
            title="Errors",
            description="Calls per second that raised, by class. "
            "dimension_mismatch means that query and index vectors come from two embedders.",
            unit="reqps",
            queries=(
                (
                    rate("resweep_retrieval_errors_total", "sum by (pipeline, config, class)"),
                    f"{NAME} {{{{class}}}}",
                ),
            ),
        ),
        View(
            title="Closed early",
            description="Calls per second whose stream the caller closed before its end.",
            unit="reqps",
            queries=((rate("resweep_partial_retrievals_total"), NAME),),
        ),
        View(
            title="Latency",
            description="Median and 95th percentile as the caller saw it, with the reranker's own time.",
            unit="s",
            queries=tuple(
                (
                    quantile(q, "resweep_retrieval_duration_seconds", "pipeline, config, stage"),
                    f"{NAME} {{{{stage}}}} {word}",
                )
                for q, word in ((0.5, "p50"), (0.95, "p95"))
            ),
        ),
    ),
)

PROMPT = Section(
    title="What reaches the prompt",
    views=(
        View(
            title="Passages",
            description="Mean number of passages returned by a call.",
            unit="none",
            width=6,
            queries=((mean("resweep_retrieved_passages"), NAME),),
        ),
        View(
            title="Context tokens",
            description="Mean and 95th percentile of the tokens of the returned passages together.",
            unit="none",
            width=6,
            queries=(
                (mean("resweep_context_tokens"), f"{NAME} mean"),
                (quantile(0.95, "resweep_context_tokens"), f"{NAME} p95"),
            ),
        ),
        View(
            title="Source diversity",
            description="Distinct sources over passages with a known source, mean over calls. "
            "A fall says that several passages of one document fill the prompt.",
            unit="percentunit",
            width=6,
            queries=((mean("resweep_source_diversity_ratio"), NAME),),
        ),
        View(
            title="Top score",
            description="10th, 50th and 90th percentile of the first passage's score, in the retriever's "
            "own scale; a distance is lower when better. Within a bucket the value is interpolated.",
            unit="none",
            width=6,
            queries=tuple(
                (quantile(q, "resweep_top_score"), f"{NAME} {word}")
                for q, word in ((0.1, "p10"), (0.5, "p50"), (0.9, "p90"))
            ),
        ),
    ),
)

FEEDBACK = Section(
    title="What users say, and what is sampled",
    views=(
        View(
            title="Feedback",
            description="Feedback per second, by kind, once per retrieval, kind and rater.",
            unit="cps",
            queries=(
                (rate("resweep_feedback_total", "sum by (pipeline, config, kind)"), f"{NAME} {{{{kind}}}}"),
            ),
        ),
        View(
            title="Other than positive, per completed call",
            description="Negative, not found, escalated or corrected, per completed call: "
            "where only a thumb down exists, all votes are negative.",
            unit="percentunit",
            queries=(
                (
                    per_completed(
                        "resweep_feedback_total",
                        '{pipeline=~"$pipeline", config=~"$config", kind!="positive"}',
                    ),
                    NAME,
                ),
            ),
        ),
        View(
            title="Sampled for labelling",
            description="Calls per second sampled into the review queue, by stratum.",
            unit="cps",
            queries=(
                (
                    rate("resweep_sampled_total", "sum by (pipeline, stratum)", ALL),
                    "{{pipeline}} {{stratum}}",
                ),
            ),
        ),
    ),
)

HEALTH = Section(
    title="Is the monitor itself well?",
    views=(
        View(
            title="Records dropped",
            description="Records given up per second, by reason. Counters lose nothing by it, samples do.",
            unit="cps",
            width=6,
            queries=(
                (
                    rate("resweep_dropped_records_total", "sum by (pipeline, reason)", ALL),
                    "{{pipeline}} {{reason}}",
                ),
            ),
        ),
        View(
            title="Time added to a call",
            description="99th percentile of the time that recording added to a call.",
            unit="s",
            width=6,
            queries=((quantile(0.99, "resweep_overhead_seconds"), NAME),),
        ),
        View(
            title="Age of each job's last success",
            description="A line that only rises is a job that fails or a scheduler that died.",
            unit="s",
            width=6,
            queries=(
                (
                    f"time() - max by (task) ({by_job('resweep_job_last_success_timestamp_seconds > 0')})",
                    "{{task}}",
                ),
            ),
        ),
        View(
            title="Job runs",
            description="Runs of the agent's jobs per second, by outcome.",
            unit="cps",
            width=6,
            queries=(
                (
                    f"sum by (task, outcome) ({by_job('rate(resweep_job_runs_total[$__rate_interval])')})",
                    "{{task}} {{outcome}}",
                ),
            ),
        ),
        View(
            title="Batches",
            description="Batches per second that recorders handed over, by what became of them.",
            unit="cps",
            width=6,
            queries=((rate("resweep_ingest_batches_total", "sum by (outcome)", ""), "{{outcome}}"),),
        ),
        View(
            title="Spans over OTLP",
            description="Spans per second that other instrumentation sent, by what became of them.",
            unit="cps",
            width=6,
            queries=((rate("resweep_otlp_spans_total", "sum by (outcome)", ""), "{{outcome}}"),),
        ),
        View(
            title="Leading agents",
            description="Exactly one agent leads; none means that nothing is judged.",
            unit="none",
            shape="number",
            width=6,
            words={0: ("none", "red"), 1: ("one", "green")},
            queries=(("sum(resweep_leader)", "leaders"),),
        ),
        View(
            title="Scrape complete",
            description="Whether every number could be read at the last scrape.",
            unit="none",
            shape="number",
            width=6,
            words=YES_NO,
            queries=(("min(resweep_scrape_complete)", "complete"),),
        ),
        View(
            title="Announced maintenance",
            description="Pipelines whose alerts are silent because of announced work.",
            unit="none",
            shape="states",
            width=6,
            words={0: ("no", "green"), 1: ("maintenance", "purple")},
            queries=((f"max by (pipeline) (resweep_maintenance{ALL})", "{{pipeline}}"),),
        ),
    ),
)

SECTIONS = (VALID, TRAFFIC, PROMPT, FEEDBACK, HEALTH)
