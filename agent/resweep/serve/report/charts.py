"""The few curves of a report, as places for the template to draw. Two series at most, on shared axes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from resweep.serve.report.scale import Scale, round_range, round_ticks, spread

LOG_FROM = 6.0  # depths that span this factor are drawn on a log scale
_LINE = 15.0  # between two lines of labels


class Size(NamedTuple):
    """A drawing: its whole width and height, and the room around the axes."""

    width: int
    height: int
    left: int = 46
    right: int = 128
    top: int = 28
    bottom: int = 44
    narrow: bool = False


WIDE = Size(800, 400)
NARROW = Size(340, 300, left=34, right=16, narrow=True)
SMALL = Size(400, 240, right=30)


class Value(NamedTuple):
    """One point of a series at a depth; `low` and `high` None without an interval."""

    k: int
    mean: float
    low: float | None = None
    high: float | None = None


class Series(NamedTuple):
    """One curve with the name that stands at its end."""

    name: str
    values: Sequence[Value]


class Tick(NamedTuple):
    """A mark on an axis; `text` empty where there is no room for one."""

    at: float
    text: str


class Dot(NamedTuple):
    """A point with what a reader sees when it is pointed at."""

    x: float
    y: float
    title: str


class Label(NamedTuple):
    """A text at a place: its class decides colour and weight."""

    x: float
    y: float
    text: str
    kind: str
    anchor: str = "start"


@dataclass(frozen=True, slots=True, kw_only=True)
class Drawn:
    """A series as the template draws it; `band` empty without intervals."""

    line: str
    band: str
    dots: Sequence[Dot]


@dataclass(frozen=True, slots=True, kw_only=True)
class Chart:
    """A whole chart. `best` is (x, width) of the shaded best set, `pick` the x of the chosen depth."""

    size: Size
    says: str
    x_title: str
    y_title: str
    x_ticks: Sequence[Tick]
    y_ticks: Sequence[Tick]
    series: Sequence[Drawn]
    labels: Sequence[Label]
    best: tuple[float, float] | None = None
    pick: float | None = None
    box: tuple[float, float, float, float] = field(default=(0, 0, 0, 0))


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What a chart shows, whatever its size. `write` words a value of the y axis."""

    series: Sequence[Series]
    says: str
    x_title: str
    y_title: str
    write: Callable[[float], str]
    chosen: int | None = None
    best: Sequence[int] = ()
    zero: bool = False
    most: float = float("inf")
    log: bool = True  # where the depths span enough


def draw(plan: Plan, size: Size) -> Chart:
    """Return a chart of a plan at a size."""
    ks = sorted({value.k for one in plan.series for value in one.values})
    x = Scale(
        ks[0], ks[-1], size.left + 8, size.width - size.right - 6, log=plan.log and ks[-1] / ks[0] >= LOG_FROM
    )
    shown = [
        end
        for one in plan.series
        for value in one.values
        for end in (value.mean, value.low, value.high)
        if end is not None
    ]
    low, high = round_range(shown, zero=plan.zero, most=plan.most)
    y = Scale(low, high, size.height - size.bottom, size.top)
    named = set(spread([x(k) for k in ks], 22))
    best = [x(k) for k in plan.best if k in ks]
    return Chart(
        size=size,
        says=plan.says,
        x_title=plan.x_title if not size.narrow else plan.x_title.partition(":")[0],
        y_title=plan.y_title,
        x_ticks=[Tick(x(k), str(k) if i in named else "") for i, k in enumerate(ks)],
        y_ticks=[Tick(y(v), plan.write(v) if v else "0") for v in round_ticks(low, high)],
        series=[_drawn(one, x, y, plan.write) for one in plan.series],
        labels=[*_ends(plan, x, y, size), *_picked(plan, x, y, size, bool(best))],
        best=(best[0] - 9, best[-1] - best[0] + 18) if best else None,
        pick=None if plan.chosen not in ks else x(plan.chosen or 0),
        box=(size.left, size.top, size.width - size.right, size.height - size.bottom),
    )


def _drawn(one: Series, x: Scale, y: Scale, write: Callable[[float], str]) -> Drawn:
    upper = [(x(v.k), y(v.high)) for v in one.values if v.high is not None]
    lower = [(x(v.k), y(v.low)) for v in one.values if v.low is not None]
    return Drawn(
        line=_path([(x(v.k), y(v.mean)) for v in one.values]),
        band=_path([*upper, *reversed(lower)]) + "Z" if upper else "",
        dots=[Dot(x(v.k), y(v.mean), f"{one.name} at {v.k}: {_told(v, write)}") for v in one.values],
    )


def _told(value: Value, write: Callable[[float], str]) -> str:
    if value.low is None or value.high is None:
        return write(value.mean)
    return f"{write(value.mean)} ({write(value.low)} to {write(value.high)})"


def _path(places: Sequence[tuple[float, float]]) -> str:
    return "M" + "L".join(f"{x:g} {y:g}" for x, y in places)


def _ends(plan: Plan, x: Scale, y: Scale, size: Size) -> list[Label]:
    """Return a name for every curve at its end, kept apart from one another."""
    ends = sorted(
        ((y(one.values[-1].mean), number, one) for number, one in enumerate(plan.series, 1)),
        key=lambda end: end[0],
    )
    labels: list[Label] = []
    floor = float("-inf")
    for at, number, one in ends:
        value = plan.write(one.values[-1].mean)
        if size.narrow or len(plan.series) == 1:
            crowded = plan.chosen == one.values[-1].k or at - 10 <= size.top
            above = at + 20 if crowded else at - 10
            place = max(above, floor + _LINE)
            words = f"{one.name}, {value}" if len(plan.series) > 1 else value
            labels.append(Label(x(one.values[-1].k) + 4, place, words, f"t{number} halo", "end"))
            floor = place
            continue
        place = max(at, floor + 2 * _LINE)
        labels.append(Label(x(one.values[-1].k) + 12, place, one.name, f"t{number}"))
        labels.append(Label(x(one.values[-1].k) + 12, place + _LINE, value, ""))
        floor = place
    return labels


def _picked(plan: Plan, x: Scale, y: Scale, size: Size, shaded: bool) -> list[Label]:
    """Return what stands at the chosen depth: its name, and the values there."""
    if plan.chosen is None:
        return []
    at = x(plan.chosen)
    right = at > (size.left + size.width - size.right) / 2
    side, anchor = (at - 6, "end") if right else (at + 6, "start")
    labels = [Label(side, size.top + 12, f"chosen: {plan.chosen}", "lab halo", anchor)]
    taken: list[float] = [size.top + 12]
    for number, one in enumerate(plan.series, 1):
        value = next((v for v in one.values if v.k == plan.chosen), None)
        if value is None or value is one.values[-1]:
            continue
        place = y(value.mean) + (-9 if number == 1 else 18)
        while any(abs(place - other) < _LINE - 2 for other in taken):
            place += _LINE
        taken.append(place)
        labels.append(
            Label(side + (2 if not right else -2), place, plan.write(value.mean), f"t{number} halo", anchor)
        )
    if shaded and len(plan.best) > 1 and not size.narrow:
        words = f"not distinguishable: {_brief(plan.best)}"
        middle = (x(plan.best[0]) + x(plan.best[-1])) / 2
        half = 3.1 * len(words)
        middle = min(max(middle, size.left + half), size.width - size.right - half)
        labels.append(Label(round(middle, 1), size.height - size.bottom - 10, words, "halo", "middle"))
    return labels


def _brief(ks: Sequence[int]) -> str:
    return ", ".join(map(str, ks)) if len(ks) <= 6 else f"{ks[0]} to {ks[-1]} ({len(ks)} depths)"
