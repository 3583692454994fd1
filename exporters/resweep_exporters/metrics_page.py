"""The page docs/metrics.md, from the catalog. `python -m resweep_exporters.metrics_page` prints it."""

from __future__ import annotations

import sys
from collections.abc import Iterator

from resweep_exporters.catalog import (
    CATALOG,
    OWN_CONFIGS,
    SERIES_IN_ALL,
    Metric,
    Scope,
    series_in_all,
    series_per_config,
)

_TITLES: tuple[tuple[Scope, str, str], ...] = (
    (
        "traffic",
        "Traffic",
        "One set per config with series of its own, one for `other`; each present from 0.",
    ),
    ("config", "Verdict and evidence", "One set per config or basis with series of its own."),
    ("pipeline", "Labelled set and sweeps", "One set per pipeline."),
    ("agent", "Agent", "Exposed by the agent, or by a process that has none."),
    ("process", "Recording process", "Health of each process that records; the only ones beside an agent."),
)


def render_markdown() -> str:
    """Return the whole page."""
    return (
        "\n".join([*_head(), *(line for title in _TITLES for line in _section(*title)), *_buckets()]) + "\n"
    )


def _head() -> Iterator[str]:
    yield "# Metrics"
    yield ""
    yield "This page is made from the catalog in `resweep_exporters.catalog` by `make generate`."
    yield ""
    yield (
        f"A config with series of its own has at most {series_per_config()} of them. The first {OWN_CONFIGS} "
        'with traffic have their own, the rest share `config="other"`: a whole page of one pipeline has '
        f"at most {series_in_all()} series, and never more than {SERIES_IN_ALL:,} at the default."
    )
    yield ""
    yield (
        "`pipeline` is the name given to `watch`, `config` and `basis` are 12 hex digits. No label carries a "
        "query, a user, a passage or other free text. Label values are cut at 64 characters; an empty one is "
        "`unknown`."
    )
    yield ""
    yield (
        "Prometheus renames a label that clashes with one of the target's: unless the scrape sets "
        "`honor_labels`, the label `job` of the agent's job metrics arrives as `exported_job`."
    )
    yield ""
    yield (
        "Over OTLP the same metrics go out under the OpenTelemetry names below; the standard translation to "
        "Prometheus gives the names of the first column back."
    )


def _section(scope: Scope, title: str, what: str) -> Iterator[str]:
    yield from ("", f"## {title}", "", what, "")
    yield "| metric | type | labels | meaning | OpenTelemetry name, unit |"
    yield "|---|---|---|---|---|"
    yield from (_row(metric) for metric in CATALOG if metric.scope == scope)


def _row(metric: Metric) -> str:
    labels = ", ".join(_label(metric, label) for label in metric.labels)
    unit = f", `{metric.otel_unit}`" if metric.otel_unit else ""
    return f"| `{metric.name}` | {metric.kind} | {labels} | {metric.help} | `{metric.otel_name}`{unit} |"


def _label(metric: Metric, label: str) -> str:
    values = metric.values.get(label)
    return f"`{label}` ({', '.join(values)})" if values else f"`{label}`"


def _buckets() -> Iterator[str]:
    yield from ("", "## Buckets", "", "Upper bounds of the histograms' buckets; `+Inf` follows.", "")
    yield "| metric | bounds |"
    yield "|---|---|"
    for metric in CATALOG:
        if metric.kind == "histogram":
            yield f"| `{metric.name}` | {', '.join(f'{bound:g}' for bound in metric.bounds)} |"
    yield ""
    yield "`resweep_top_score` has neither `_sum` nor `_count`: scores may be negative, and OpenMetrics"
    yield "allows no sum that could fall. Its `+Inf` bucket is the count."


if __name__ == "__main__":
    sys.stdout.write(render_markdown())
