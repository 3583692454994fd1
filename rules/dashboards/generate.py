"""Writes resweep.json beside this file: `make generate` runs it, a test compares the two.

Needs grafana-foundation-sdk, a development dependency. The same input gives the same bytes.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path

from grafana_foundation_sdk.builders import common as common_builder
from grafana_foundation_sdk.builders import dashboard, prometheus, stat, statetimeline, table, timeseries
from grafana_foundation_sdk.cog.encoder import JSONEncoder
from grafana_foundation_sdk.models import common
from grafana_foundation_sdk.models import dashboard as model
from grafana_foundation_sdk.models.prometheus import PromQueryFormat

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))  # this folder is no package: it ships as data

from dashboard_views import SECTIONS, View  # noqa: E402

TARGET = HERE / "resweep.json"
SOURCE = model.DataSourceRef(type_val="prometheus", uid="${datasource}")
COLUMNS = 24


def render() -> str:
    """Return the dashboard as JSON, with keys in order."""
    drawn = json.loads(json.dumps(build(TARGET.stem).build(), cls=JSONEncoder))
    for variable in drawn["templating"]["list"]:
        for unknown in (
            "auto",
            "auto_count",
            "auto_min",
        ):  # the SDK adds what Grafana does not know
            variable.pop(unknown, None)
    return json.dumps(drawn, sort_keys=True, indent=2) + "\n"


def build(uid: str) -> dashboard.Dashboard:
    """Return the dashboard under a uid, which is its file's name."""
    board = (
        dashboard.Dashboard("resweep: is the tuned k still valid")
        .uid(uid)
        .description("Whether the depth that a sweep chose still holds for the live retriever, and why not.")
        .tags(["rag", "resweep", "retrieval"])
        .editable()
        .tooltip(model.DashboardCursorSync.CROSSHAIR)
        .refresh("1m")
        .time("now-6h", "now")
        .timezone("browser")
        .with_variable(dashboard.DatasourceVariable("datasource").label("Data source").type("prometheus"))
        .with_variable(_variable("pipeline", "Pipeline", "label_values(resweep_retrievals_total, pipeline)"))
        .with_variable(
            _variable(
                "config",
                "Config",
                'label_values(resweep_retrievals_total{pipeline=~"$pipeline"}, config)',
            )
        )
    )
    return _filled(board)


def _filled(board: dashboard.Dashboard) -> dashboard.Dashboard:
    number, top = 1, 0
    for section in SECTIONS:
        at = model.GridPos(h=1, w=COLUMNS, x=0, y=top)
        board.with_row(dashboard.Row(section.title).id(number).grid_pos(at))
        number, top = number + 1, top + 1
        for view, place in _placed(section.views, top):
            board.with_panel(_panel(view).id(number).grid_pos(place))
            number, top = number + 1, max(top, place.y + place.h)
    return board


def _placed(views: tuple[View, ...], top: int) -> Iterator[tuple[View, model.GridPos]]:
    x, y, tallest = 0, top, 0
    for view in views:
        if x + view.width > COLUMNS:
            x, y, tallest = 0, y + tallest, 0
        yield view, model.GridPos(h=view.height, w=view.width, x=x, y=y)
        x, tallest = x + view.width, max(tallest, view.height)


def _variable(name: str, label: str, query: str) -> dashboard.QueryVariable:
    return (
        dashboard.QueryVariable(name)
        .label(label)
        .query(query)
        .datasource(SOURCE)
        .refresh(model.VariableRefresh.ON_TIME_RANGE_CHANGED)
        .sort(model.VariableSort.ALPHABETICAL_ASC)
        .multi(True)
        .include_all(True)
        .all_value(".*")
        .current(model.VariableOption(selected=True, text="All", value="$__all"))
    )


Panel = timeseries.Panel | statetimeline.Panel | stat.Panel | table.Panel


def _panel(view: View) -> Panel:
    panel = {"lines": _lines, "states": _states, "number": _number, "table": _table}[view.shape]()
    panel.title(view.title).description(view.description).unit(view.unit).datasource(SOURCE)
    if view.words:
        panel.mappings([_words(view)])
    for position, (expression, legend) in enumerate(view.queries):
        panel.with_target(_query(view, chr(ord("A") + position), expression, legend))
    return panel


def _query(view: View, ref: str, expression: str, legend: str) -> prometheus.Dataquery:
    query = prometheus.Dataquery().ref_id(ref).expr(expression).datasource(SOURCE)
    if view.shape == "table":
        return query.instant().format(PromQueryFormat.TABLE)
    if view.shape == "number":
        return query.instant().legend_format(legend)
    return query.range().legend_format(legend)


def _words(view: View) -> model.ValueMap:
    results = enumerate(sorted(view.words.items()))
    return model.ValueMap(
        {
            str(value): model.ValueMappingResult(text=text, color=color, index=index)
            for index, (value, (text, color)) in results
        }
    )


def _lines() -> Panel:
    legend = common_builder.VizLegendOptions()
    legend.display_mode(common.LegendDisplayMode.LIST).placement(common.LegendPlacement.BOTTOM).show_legend(
        True
    )
    tooltip = common_builder.VizTooltipOptions().mode(common.TooltipDisplayMode.MULTI)
    return timeseries.Panel().legend(legend).tooltip(tooltip).fill_opacity(5).line_width(1).axis_soft_min(0)


def _states() -> Panel:
    return statetimeline.Panel().merge_values(True).show_value(common.VisibilityMode.AUTO)


def _number() -> Panel:
    last = common_builder.ReduceDataOptions().calcs(["lastNotNull"])
    return (
        stat.Panel()
        .reduce_options(last)
        .color_mode(common.BigValueColorMode.BACKGROUND)
        .graph_mode(common.BigValueGraphMode.NONE)
    )


def _table() -> Panel:
    hidden = {"excludeByName": {"Time": True, "Value": True}, "indexByName": {}, "renameByName": {}}
    return table.Panel().with_transformation(model.DataTransformerConfig(id_val="organize", options=hidden))


if __name__ == "__main__":
    TARGET.write_text(render(), encoding="utf-8")
