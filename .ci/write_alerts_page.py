"""Write docs/alerts.md from the rule files: `make generate` runs it, a test compares the two."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).resolve().parents[1]
ALERTS = ROOT / "rules" / "alerts" / "resweep.alerts.yaml"
RECORDING = ROOT / "rules" / "recording" / "resweep.rules.yaml"
TARGET = ROOT / "docs" / "alerts.md"

TITLES = {
    "resweep.tuned-k": ("The tuned k", "About the record of a depth, and what speaks against it."),
    "resweep.serving": ("What is served", "About the answers users get now."),
    "resweep.labelled-set": (
        "The labelled set",
        "About the judged questions that a sweep stands on. Notices: nothing is wrong with an answer.",
    ),
    "resweep.agent": ("The agent", "About resweep itself. Nobody is woken: users are answered without it."),
}

HEAD = """\
# Alerts

This page is made from the rule files by `make generate`. `resweep rules` prints the files; the chart installs
them with `prometheusRule.enabled`. Prometheus 2.42 and every later release takes them.

- Every alert carries `severity` (`info`, `warning`, `critical`) and `service="resweep"` for routing. Those
  about a pipeline carry `pipeline`, mostly with `config`, `basis`, `reason` and `component`: what changed.
- Whether a state holds is decided in the agent, with hysteresis; `for` is against scrape noise only. A
  restart of the agent neither resolves an alert nor starts it again.
- Announced work (`resweep maintenance start PIPELINE`) silences what is about that pipeline.
- Shares compare with the thresholds below and need enough calls to say something. Most are silent where the
  pipeline's own last week was much the same.

In a message to people, show `description`: a sentence on what happened, the numbers, and the next command.
"""

TAIL = """\
## Changing them

With the chart, by values under `prometheusRule`:

```yaml
prometheusRule:
  thresholds: {empty_ratio: 0.2}
  disabled: [ResweepUntuned]
  overrides: {ResweepLatencyHigh: {severity: warning, for: 30m}}
  additionalAlertLabels: {team: search}
  runbookBaseUrl: https://runbooks.example.org/resweep
```

A name that no rule has is refused. Without the chart, edit your copy: thresholds are the first group of the
recording rules, and every `runbook_url` is one base and the alert's name.
"""


def render(alerts: Path = ALERTS, recording: Path = RECORDING) -> str:
    """Return the whole page."""
    parts = [HEAD, *(_section(group) for group in _groups(alerts)), _thresholds(recording), TAIL]
    return "\n".join(parts)


def _groups(file: Path) -> list[dict[str, Any]]:
    groups: list[dict[str, Any]] = yaml.safe_load(file.read_text("utf-8"))["groups"]
    return groups


def _section(group: dict[str, Any]) -> str:
    title, about = TITLES[group["name"]]
    rows = "\n".join(_row(rule) for rule in group["rules"])
    return f"## {title}\n\n{about}\n\n| alert | severity | for | summary |\n|---|---|---|---|\n{rows}\n"


def _row(rule: dict[str, Any]) -> str:
    name = rule["alert"]
    link = f"[{name}](../rules/runbooks/{name}.md)"
    return f"| {link} | {rule['labels']['severity']} | {rule['for']} | {rule['annotations']['summary']} |"


def _thresholds(file: Path) -> str:
    rules = next(group["rules"] for group in _groups(file) if group["name"] == "resweep.thresholds")
    rows = "\n".join(_threshold(rule) for rule in rules)
    return f"## Thresholds\n\n| series | value | used by |\n|---|---|---|\n{rows}\n"


def _threshold(rule: dict[str, Any]) -> str:
    value = rule["expr"].removeprefix("vector(").removesuffix(")")
    return f"| `{rule['record']}` | {value} | {', '.join(_users(rule['record']))} |"


def _users(record: str) -> Iterator[str]:
    for group in _groups(ALERTS):
        for rule in group["rules"]:
            if re.search(rf"scalar\({re.escape(record)}\)", rule["expr"]):
                yield rule["alert"]


if __name__ == "__main__":
    TARGET.write_text(render(), "utf-8")
