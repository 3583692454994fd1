"""Charts as SVG, drawn by pygal and coloured by the stylesheet: the one place that knows pygal.

A chart shows one measure before and after a change, as two lines that never join, and the change as a rule.
What pygal would put inline (a style sheet, a script) is taken out: the policy of the pages allows neither.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

import pygal  # type: ignore[import-untyped]
from markupsafe import Markup, escape
from pygal.style import Style  # type: ignore[import-untyped]

from resweep.serve.pages import words
from resweep.serve.pages.figures import Course

# On import pygal adds a finder for plugins, in a protocol that Python has given up: whoever asks the finders
# one by one trips over it, and nothing here needs plugins.
sys.meta_path[:] = [finder for finder in sys.meta_path if not type(finder).__module__.startswith("pygal")]

_STYLE = Style(
    label_font_size=11,
    major_label_font_size=11,
    title_font_size=11,
    background="transparent",
    font_family="x",
)
_DROPPED = ("style", "script", "desc", "title")
TICKS = 5


def draw(course: Course, at: float | None, *, wide: bool = False) -> Markup | None:
    """Return the chart of a course; None where there is nothing to draw."""
    points = [point for point in (*course.before, *course.after) if point[1] is not None]
    if len(points) < 2:
        return None
    chart = _chart(course, points, wide)
    factor = 100.0 if course.measure.is_share else 1.0
    top = _top(points, factor)
    chart.range = (0, top)
    chart.y_labels = [top * n / 4 for n in range(5)]
    chart.add("before", _scaled(course.before, factor))
    chart.add("after", _scaled(course.after, factor))
    if at is not None and course.before and course.after:
        chart.add("change", [(at, 0), (at, top)])
    chart.add_xml_filter(_bare)
    svg = chart.render(is_unicode=True)
    says = escape(_says(course))
    return Markup(svg.replace("<svg ", f'<svg role="img" aria-label="{says}" ', 1))  # noqa: S704 (pygal escapes)


def _chart(course: Course, points: Sequence[tuple[float, float | None]], wide: bool) -> Any:
    first, last = min(p[0] for p in points), max(p[0] for p in points)
    return pygal.XY(
        width=760 if wide else 400,
        height=230 if wide else 190,
        style=_STYLE,
        css=[],
        js=[],
        show_legend=False,
        show_dots=False,
        allow_interruptions=True,
        disable_xml_declaration=True,
        explicit_size=False,
        xrange=(first, last),
        x_labels=_ticks(first, last, TICKS if wide else 3),
        x_value_formatter=lambda ts: _tick(ts, last - first),
        value_formatter=words.number,
        margin=8,
        spacing=8,
        show_y_guides=True,
        show_x_guides=False,
        no_data_text="",
    )


def _ticks(first: float, last: float, n: int) -> list[float]:
    inset = (last - first) * (0.06 if n > 3 else 0.12)
    return [first + inset + (last - first - 2 * inset) * i / (n - 1) for i in range(n)]


def _tick(ts: float, width: float) -> str:
    text = words.short_when(ts)
    day, _, clock = text.rpartition(" ")
    if width > 5 * words.DAY:
        return day
    return clock if width < words.DAY / 2 else text


def _top(points: Sequence[tuple[float, float | None]], factor: float) -> float:
    """Return a round number above all values."""
    most = max(value * factor for _, value in points if value is not None)
    if most <= 0:
        return 1.0
    power = 10.0 ** len(str(int(most))) / 10 if most >= 1 else 0.1 if most >= 0.1 else 0.01
    return next(power * step for step in (1, 2, 4, 6, 8, 10, 12, 16, 20) if power * step >= most * 1.05)


def _scaled(points: Sequence[tuple[float, float | None]], factor: float) -> list[tuple[float, float | None]]:
    return [(ts, None if value is None else value * factor) for ts, value in points]


def _bare(root: Any) -> Any:
    """Leave out what the policy forbids, and what a reader of the page does not need twice."""
    for parent in list(root.iter()):
        for child in list(parent):
            name = child.tag.rpartition("}")[2] if isinstance(child.tag, str) else "style"
            if name in _DROPPED or child.get("class") in ("tooltip", "text-overlay"):
                parent.remove(child)
    root.attrib.pop("id", None)
    root.set("class", "chart")
    for one in root.iter():
        one.attrib.pop("style", None)
    return root


def _says(course: Course) -> str:
    one = course.measure
    means = [_mean(points) for points in (course.before, course.after)]
    told = [one.shown(mean) for mean in means if mean is not None]
    if len(told) < 2:
        return f"{one.name}: {told[0]} on average."
    return f"{one.name}: {told[0]} before the change, {told[1]} after it, on average."


def _mean(points: Sequence[tuple[float, float | None]]) -> float | None:
    values = [value for _, value in points if value is not None]
    return sum(values) / len(values) if values else None
