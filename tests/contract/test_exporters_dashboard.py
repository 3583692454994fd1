"""The dashboard: committed as generated, and every query one that the exporters can answer."""

from __future__ import annotations

import importlib.util
import json
import re
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import promql_parser as promql
import pytest

from resweep_exporters.catalog import BY_NAME

FOLDER = Path(__file__).resolve().parents[2] / "rules" / "dashboards"
BOARD: dict[str, Any] = json.loads((FOLDER / "resweep.json").read_text(encoding="utf-8"))
PANELS: list[dict[str, Any]] = [panel for panel in BOARD["panels"] if panel["type"] != "row"]
QUERIES = [
    pytest.param(panel, target, id=f"{panel['title']} {target['refId']}")
    for panel in PANELS
    for target in panel["targets"]
]
VARIABLES = {variable["name"] for variable in BOARD["templating"]["list"]}
OF_THE_TARGET = {"job", "exported_job", "instance", "namespace"}  # labels that the scrape adds
SUBSTITUTES = {"$__rate_interval": "5m", "$pipeline": "support-bot", "$config": "9f2c0a417be1"}
# Units of Grafana, as named in its unit picker.
UNITS = {"none", "reqps", "cps", "percentunit", "s", "bytes"}


def generator() -> ModuleType:
    """Load rules/dashboards/generate.py, which is no package."""
    spec = importlib.util.spec_from_file_location("resweep_dashboard_generator", FOLDER / "generate.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def parsed(target: dict[str, Any]) -> Any:
    """Return the syntax tree of a query with its variables filled in."""
    expression: str = target["expr"]
    for variable, value in SUBSTITUTES.items():
        expression = expression.replace(variable, value)
    return promql.parse(expression)


def walk(node: Any) -> Iterator[Any]:
    """Yield a node and all below it."""
    yield node
    for name in ("lhs", "rhs", "expr", "vector_selector"):
        child = getattr(node, name, None)
        if child is not None:
            yield from walk(child)
    for child in getattr(node, "args", None) or ():
        yield from walk(child)


def selectors(node: Any) -> list[Any]:
    """Return the series selectors of a tree."""
    return [one for one in walk(node) if type(one).__name__ == "VectorSelector"]


def labels_of(name: str) -> set[str]:
    """Return the labels of a series the catalog knows; fails for one it does not."""
    if name in BY_NAME:
        return set(BY_NAME[name].labels)
    stem, _, suffix = name.rpartition("_")
    metric = BY_NAME[stem]
    assert metric.kind == "histogram"
    assert suffix == "bucket" or metric.has_sum
    return {*metric.labels, *(["le"] if suffix == "bucket" else [])}


def made(node: Any) -> set[str]:
    """Return the labels that a tree makes by label_replace."""
    calls = [one for one in walk(node) if type(one).__name__ == "Call" and one.func.name == "label_replace"]
    return {call.args[1].val for call in calls}


def test_the_committed_dashboard_is_the_generated_one() -> None:
    """Run `make generate` after a change; twice the same bytes."""
    module = generator()
    assert (FOLDER / "resweep.json").read_text(encoding="utf-8") == module.render() == module.render()


@pytest.mark.parametrize(("panel", "target"), QUERIES)
def test_a_query_asks_for_what_is_exported(panel: dict[str, Any], target: dict[str, Any]) -> None:
    """It parses, and each metric and matched label is in the catalog."""
    found = selectors(parsed(target))
    assert found
    for selector in found:
        matched = {matcher.name for matcher in selector.matchers.matchers}
        assert matched <= labels_of(selector.name)


@pytest.mark.parametrize(("panel", "target"), QUERIES)
def test_a_query_groups_by_labels_that_exist(panel: dict[str, Any], target: dict[str, Any]) -> None:
    """A label in `by` is one of the series below it, of the scrape, or made on the way."""
    for node in walk(parsed(target)):
        if type(node).__name__ == "AggregateExpr" and node.modifier is not None:
            known = set[str]().union(*(labels_of(one.name) for one in selectors(node)))
            assert set(node.modifier.labels) <= known | OF_THE_TARGET | made(node)


@pytest.mark.parametrize(("panel", "target"), QUERIES)
def test_a_legend_names_labels_of_the_result(panel: dict[str, Any], target: dict[str, Any]) -> None:
    """A label that was summed away would show as nothing."""
    shown = set(re.findall(r"\{\{(\w+)\}\}", target.get("legendFormat", "")))
    groups = [
        set(node.modifier.labels)
        for node in walk(parsed(target))
        if type(node).__name__ == "AggregateExpr" and node.modifier is not None
    ]
    assert all(shown <= group for group in groups)


@pytest.mark.parametrize(("panel", "target"), QUERIES)
def test_a_query_of_a_state_merges_replicas(panel: dict[str, Any], target: dict[str, Any]) -> None:
    """Gauges are never summed over agents, but for who leads; counters and histograms are rated first."""
    expression: str = target["expr"]
    for selector in selectors(parsed(target)):
        metric = BY_NAME.get(selector.name)
        if metric is not None and metric.kind == "gauge":
            assert re.match(r"(time\(\) - )?(max|min)\b", expression) or metric.name == "resweep_leader"
        else:
            assert f"rate({selector.name}" in expression


@pytest.mark.parametrize(("panel", "target"), QUERIES)
def test_a_window_is_the_scrapes(panel: dict[str, Any], target: dict[str, Any]) -> None:
    """Every range is $__rate_interval: it fits whatever interval the scrape has."""
    assert set(re.findall(r"\[([^\]]+)\]", target["expr"])) <= {"$__rate_interval"}


@pytest.mark.parametrize(("panel", "target"), QUERIES)
def test_a_query_follows_the_variables(panel: dict[str, Any], target: dict[str, Any]) -> None:
    """Whatever has a pipeline is filtered by it; no name is hard-coded."""
    for selector in selectors(parsed(target)):
        matchers = {matcher.name: matcher.value for matcher in selector.matchers.matchers}
        if "pipeline" in labels_of(selector.name):
            assert matchers["pipeline"] == "support-bot"
        assert not OF_THE_TARGET & set(matchers)
    assert set(re.findall(r"\$(\w+)", target["expr"])) - {"1", "__rate_interval"} <= VARIABLES


@pytest.mark.parametrize("panel", PANELS, ids=lambda panel: str(panel["title"]))
def test_a_panel_explains_itself(panel: dict[str, Any]) -> None:
    """A title, a sentence, a unit, and the data source that the user chose."""
    assert panel["title"]
    assert panel["description"].rstrip().endswith(".")
    assert panel["fieldConfig"]["defaults"]["unit"] in UNITS
    sources = [panel["datasource"], *(target["datasource"] for target in panel["targets"])]
    assert all(source == {"type": "prometheus", "uid": "${datasource}"} for source in sources)


def test_ids_are_unique_and_titles_too() -> None:
    """Grafana would renumber twins at each save."""
    assert sorted(panel["id"] for panel in BOARD["panels"]) == list(range(1, len(BOARD["panels"]) + 1))
    assert len({panel["title"] for panel in PANELS}) == len(PANELS)


def test_no_two_panels_overlap() -> None:
    """Every cell of the grid holds at most one panel, within 24 columns."""
    cells = [
        (at["x"] + x, at["y"] + y)
        for at in (panel["gridPos"] for panel in BOARD["panels"])
        for x in range(at["w"])
        for y in range(at["h"])
    ]
    assert len(cells) == len(set(cells))
    assert max(x for x, _ in cells) == 23


def test_the_uid_is_the_files_name() -> None:
    """Links to the dashboard survive an import."""
    assert BOARD["uid"] == "resweep"
    assert BOARD["title"] == "resweep: is the tuned k still valid"
    assert "id" not in BOARD


def test_the_variables_are_answered_by_the_catalog() -> None:
    """Data source, pipeline and config; their queries name a known series."""
    assert {"datasource", "pipeline", "config"} == VARIABLES
    for variable in BOARD["templating"]["list"][1:]:
        series, label = re.fullmatch(r"label_values\((\w+)(?:\{.*\})?, (\w+)\)", variable["query"]).groups()  # type: ignore[union-attr]
        assert label in labels_of(series)
        assert variable["datasource"]["uid"] == "${datasource}"
