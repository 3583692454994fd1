"""The rule files hold to the catalog, to the words of a verdict, and to what an alert promises."""

from __future__ import annotations

import importlib.util
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any, get_args

import promql_parser
import pytest
import typer
import yaml

from resweep.domain.verdict import COMPONENTS, LAYERS, PROMETHEUS_SEVERITY, REASONS, Reason
from resweep.serve.cli.app import app
from resweep_exporters.catalog import BY_NAME, Metric

ROOT = Path(__file__).resolve().parents[2]
RULES = ROOT / "rules"
RUNBOOKS = RULES / "runbooks"
RUNBOOK_BASE = "https://resweep.readthedocs.io/runbooks"
HEADINGS = ["Meaning", "Impact", "Diagnosis", "Mitigation"]
TARGET_LABELS = {"job", "instance", "namespace", "exported_job"}  # what a scrape adds
WORDS = {"reason": REASONS, "component": COMPONENTS, "layer": LAYERS}
ABOUT_AGENT = {
    "ResweepRecordsDropped",
    "ResweepSinkDown",
    "ResweepSchedulerDead",
    "ResweepJobFailing",
    "ResweepNoLeader",
    "ResweepAgentAbsent",
    "ResweepScrapeIncomplete",
}
# Flags with these reasons are for `resweep flags list`: they ask nobody to come.
NOTICES: set[Reason] = {"score_scale", "ids_renumbered", "judge_stale"}

LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)

Rule = dict[str, Any]


def rules(kind: str) -> list[Rule]:
    """All alerts, or all recording rules."""
    files = [*RULES.glob("alerts/*.yaml"), *RULES.glob("recording/*.yaml")]
    groups = [group for file in files for group in yaml.safe_load(file.read_text())["groups"]]
    return [rule for group in groups for rule in group["rules"] if kind in rule]


@cache
def checks() -> list[Rule]:
    """Every check of an alert in the promtool files."""
    return [
        check
        for file in (RULES / "tests").glob("*.yaml")
        for test in yaml.load(file.read_text(), LOADER)["tests"]
        for check in test.get("alert_rule_test", [])
    ]


ALERTS = rules("alert")
RECORDS = rules("record")
RECORDED = {rule["record"] for rule in RECORDS}
each_alert = pytest.mark.parametrize("alert", ALERTS, ids=lambda rule: rule["alert"])
each_rule = pytest.mark.parametrize(
    "rule", [*ALERTS, *RECORDS], ids=lambda rule: rule.get("alert") or rule["record"]
)


def queries(rule: Rule) -> Iterator[str]:
    """The expression of a rule and those inside its annotations, with values put in."""
    yield rule["expr"]
    for text in rule.get("annotations", {}).values():
        for quoted in re.findall(r'(?:printf|query) ("(?:[^"\\]|\\.)*")', text):
            query = quoted[1:-1].replace('\\"', '"').replace("%q", '"x"')
            if "resweep" in query:
                yield query


def selectors(node: Any) -> Iterator[Any]:
    """Every selector in a parsed expression."""
    if isinstance(node, promql_parser.VectorSelector):
        yield node
    elif isinstance(node, promql_parser.MatrixSelector):
        yield node.vector_selector
    elif isinstance(node, promql_parser.Call):
        for argument in node.args:
            yield from selectors(argument)
    else:
        for name in ("lhs", "rhs", "expr", "param"):
            child = getattr(node, name, None)
            if child is not None:
                yield from selectors(child)


def every_selector(rule: Rule) -> list[Any]:
    """Every selector of a rule, annotations included."""
    return [s for query in queries(rule) for s in selectors(promql_parser.parse(query))]


def metric_of(name: str) -> Metric | None:
    """The catalog's metric behind a series name."""
    plain = re.sub(r"_(bucket|sum|count)$", "", name)
    return BY_NAME.get(name) or BY_NAME.get(plain)


def measured_by(recorded: str) -> Metric | None:
    """The catalog's metric that a recorded series is named after."""
    middle = recorded.split(":")[1]
    return BY_NAME.get(middle) or BY_NAME.get(f"{middle}_total")


def labels_of(name: str) -> set[str]:
    """The labels a series has: the catalog's, or those a recording rule leaves."""
    metric = metric_of(name)
    if metric is not None:
        return {*metric.labels, *TARGET_LABELS, *({"le"} if metric.kind == "histogram" else ())}
    level = name.split(":", 1)[0]
    return set() if level == "resweep" else set(level.split("_"))


def matchers(selector: Any) -> list[tuple[str, str, str]]:
    """The label matchers of a selector: name, operator, value."""
    return re.findall(r'(\w+)(=~|!~|!=|=)"((?:[^"\\]|\\.)*)"', str(selector.matchers))


# -- against the catalog


@each_rule
def test_every_metric_is_in_the_catalog_or_recorded(rule: Rule) -> None:
    """No rule waits for a series that nobody exposes."""
    names = {selector.name for selector in every_selector(rule)}
    assert [n for n in names if metric_of(n) is None and n not in RECORDED] == []


@each_rule
def test_every_label_is_one_the_metric_has(rule: Rule) -> None:
    """In selectors, and in what an aggregation keeps."""
    found = every_selector(rule)
    for selector in found:
        assert {name for name, _, _ in matchers(selector)} <= labels_of(selector.name), selector
    kept = {
        label.strip()
        for group in re.findall(r"(?:by|on) \(([^)]*)\)", rule["expr"])
        for label in group.split(",")
        if label.strip()
    }
    assert kept <= set().union(*(labels_of(s.name) for s in found))


@each_rule
def test_every_label_value_exists(rule: Rule) -> None:
    """A reason, class, kind, stage, state or layer that is misspelt would never match."""
    for selector in every_selector(rule):
        metric = metric_of(selector.name) or measured_by(selector.name)
        for name, operator, value in matchers(selector):
            values = (metric.values.get(name) if metric else None) or WORDS.get(name)
            if values and value != "x":
                wanted = value.split("|") if "~" in operator else [value]
                assert set(wanted) <= set(values), (selector, name)


def test_a_recorded_series_says_in_its_name_which_labels_it_has() -> None:
    """level:metric:operation, as Prometheus recommends."""
    for rule in RECORDS:
        assert re.fullmatch(r"[a-z_]+:[a-z0-9_]+:[a-z0-9_]+", rule["record"])
        level = rule["record"].split(":")[0]
        kept = re.search(r"by \(([^)]*)\)", rule["expr"])
        if kept:
            labels = {label.strip() for label in kept[1].split(",")} - {"le"}
            assert labels == set(level.split("_")), rule["record"]


def test_no_series_is_recorded_twice() -> None:
    """Names are unique."""
    assert len(RECORDED) == len(RECORDS)


# -- against the words of a verdict


def reasons_of(alert: Rule) -> set[str]:
    """The reasons of flags that make an alert fire: those selected before anything is taken away."""
    fires = alert["expr"].split("unless")[0]
    found = re.findall(r'resweep_sweep_required\{reason=~?"([^"]+)"', fires)
    return {reason for group in found for reason in group.split("|")}


def test_every_reason_has_an_alert_or_is_a_notice() -> None:
    """No flag is raised in silence unless it was meant so."""
    alerted = set().union(*(reasons_of(alert) for alert in ALERTS))
    assert alerted == set(get_args(Reason)) - NOTICES


def test_a_reason_has_two_alerts_only_where_the_verdict_tells_them_apart() -> None:
    """One cause, one alert: silent_change is a page when expired and a warning when suspect."""
    by_reason = {r: [a for a in ALERTS if r in reasons_of(a)] for r in REASONS}
    shared = {r: {a["alert"] for a in alerts} for r, alerts in by_reason.items() if len(alerts) > 1}
    assert shared == {"silent_change": {"ResweepSilentChange", "ResweepTunedKSuspect"}}
    states = {re.findall(r'resweep_verdict\{state="(\w+)"', a["expr"])[0] for a in by_reason["silent_change"]}
    assert states == {"expired", "suspect"}


# -- what an alert promises


@each_alert
def test_an_alert_waits_a_little_and_has_a_severity(alert: Rule) -> None:
    """`for`, severity among three, a label to route by."""
    assert re.fullmatch(r"[1-9][0-9]*m", alert["for"])
    assert alert["labels"]["severity"] in PROMETHEUS_SEVERITY.values()
    assert alert["labels"]["service"] == "resweep"


@each_alert
def test_the_summary_is_one_plain_sentence(alert: Rule) -> None:
    """Without a template, short enough for a subject line."""
    summary = alert["annotations"]["summary"]
    assert "{{" not in summary
    assert re.fullmatch(r"[A-Z][^.]*\.", summary)
    assert len(summary) <= 99


@each_alert
def test_the_description_has_numbers_and_the_next_command(alert: Rule) -> None:
    """A person who reads nothing else knows what happened and what to type."""
    text = alert["annotations"]["description"]
    assert "$value" in text or "query" in text
    assert re.search(r"Next: resweep \w+", text)


@each_alert
def test_the_runbook_is_one_base_and_the_name(alert: Rule) -> None:
    """So that a deployment can put its own base in one place."""
    assert alert["annotations"]["runbook_url"] == f"{RUNBOOK_BASE}/{alert['alert']}"


@each_alert
def test_every_alert_about_a_pipeline_heeds_announced_work(alert: Rule) -> None:
    """Those about the agent do not."""
    about_agent = alert["alert"] in ABOUT_AGENT
    assert ("resweep_maintenance" in alert["expr"]) is not about_agent


def test_the_chart_points_at_the_same_runbooks() -> None:
    """The default of its value is the base in the files."""
    values = yaml.safe_load((ROOT / "helm" / "resweep" / "values.yaml").read_text())
    assert values["prometheusRule"]["runbookBaseUrl"] == RUNBOOK_BASE


@each_alert
def test_every_alert_is_tested_firing_and_silent(alert: Rule) -> None:
    """By promtool, with full labels and annotations, and staying quiet in another test."""
    tests = [check for check in checks() if check["alertname"] == alert["alert"]]
    fired = [one for check in tests for one in check["exp_alerts"]]
    assert fired
    assert all(set(one["exp_annotations"]) == {"summary", "description", "runbook_url"} for one in fired)
    assert any(not check["exp_alerts"] for check in tests)


# -- runbooks and page


def test_there_is_one_runbook_per_alert() -> None:
    """File named exactly as the alert, and none without one."""
    assert sorted(file.stem for file in RUNBOOKS.glob("*")) == sorted(a["alert"] for a in ALERTS)


@each_alert
def test_a_runbook_has_the_four_headings(alert: Rule) -> None:
    """Meaning, Impact, Diagnosis, Mitigation, each with something below it."""
    text = (RUNBOOKS / f"{alert['alert']}.md").read_text()
    assert text.startswith(f"# {alert['alert']}\n")
    parts = re.split(r"^## (.+)$", text, flags=re.MULTILINE)
    assert parts[1::2] == HEADINGS
    assert all(len(part.strip()) > 60 for part in parts[2::2])


@each_alert
def test_a_runbook_can_be_pasted_from(alert: Rule) -> None:
    """It has PromQL that parses over metrics that exist, or a command."""
    text = (RUNBOOKS / f"{alert['alert']}.md").read_text()
    blocks = re.findall(r"```promql\n(.*?)```", text, flags=re.DOTALL)
    lines = [line for block in blocks for line in block.splitlines()]
    assert lines or "```sh" in text
    for line in lines:
        for selector in selectors(promql_parser.parse(line)):
            if "resweep" in selector.name:
                assert metric_of(selector.name) or selector.name in RECORDED, line
                assert {name for name, _, _ in matchers(selector)} <= labels_of(selector.name), line


def commands() -> dict[str, set[str]]:
    """Every command of resweep, with its options."""
    found: dict[str, set[str]] = {}
    for name, command in typer.main.get_command(app).commands.items():  # type: ignore[attr-defined]
        for sub, leaf in getattr(command, "commands", {"": command}).items():
            found[f"{name} {sub}".strip()] = {option for p in leaf.params for option in p.opts}
    return found


@each_alert
def test_every_command_that_is_named_exists(alert: Rule) -> None:
    """In the description and in the runbook, with the options given there."""
    known = commands()
    words = {word for name in known for word in name.split()[:1]}
    text = alert["annotations"]["description"] + (RUNBOOKS / f"{alert['alert']}.md").read_text()
    for said in re.findall(r"\bresweep ([a-z]+\b(?:(?!\bresweep |`|\n).)*)", text):
        first, *rest = said.split()
        if first in words:
            name = first if first in known else f"{first} {rest[0]}"
            assert set(re.findall(r"(?<!\S)--[a-z-]+", said)) <= known[name], said


def test_the_page_of_alerts_is_that_of_the_rules() -> None:
    """docs/alerts.md is written by `make generate`."""
    spec = importlib.util.spec_from_file_location("write_alerts_page", ROOT / ".ci" / "write_alerts_page.py")
    assert spec is not None
    assert spec.loader is not None
    writer = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(writer)
    assert (ROOT / "docs" / "alerts.md").read_text("utf-8") == writer.render()
