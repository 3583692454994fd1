"""Live figures of two configs side by side: shares with intervals, means, and their course over time."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from resweep.domain.window import Window, merged
from resweep.serve.pages import words

Z = 1.959964  # two-sided 95 %
BAD_WORDS = ("feedback:negative", "feedback:not_found", "feedback:escalated")


@dataclass(frozen=True, slots=True, kw_only=True)
class Measure:
    """A figure of some windows: a share (`part` of `whole`) or a mean of the histogram `mean_of`.

    `scale` turns a mean into its unit. `worse` is the way that is bad news, None where neither is.
    """

    name: str
    unit: str
    of: str
    part: tuple[str, ...] = ()
    whole: tuple[str, ...] = ()
    mean_of: str = ""
    scale: float = 1.0
    worse: str | None = None

    @property
    def is_share(self) -> bool:
        """Whether it is a share."""
        return bool(self.part)

    def counts(self, window: Window) -> tuple[float, int]:
        """Return numerator and denominator."""
        if self.is_share:
            whole = sum(window.get(name) for name in self.whole)
            return min(whole, sum(window.get(name) for name in self.part)), whole
        histogram = window.histograms.get(self.mean_of)
        return (0.0, 0) if histogram is None else (histogram.sum * self.scale, histogram.n)

    def value(self, window: Window) -> float | None:
        """Return the figure; None where nothing was observed."""
        part, whole = self.counts(window)
        return part / whole if whole else None

    def shown(self, value: float | None) -> str:
        """Return a value in words."""
        if value is None:
            return "no data"
        return words.share(value) if self.is_share else f"{words.number(value)} {self.unit}".strip()


EMPTY = Measure(
    name="Empty answers",
    unit="%",
    of="completed retrievals",
    part=("empty_zero", "empty_none"),
    whole=("ok",),
    worse="up",
)
SHORT = Measure(
    name="Short answers", unit="%", of="completed retrievals", part=("short",), whole=("ok",), worse="up"
)
ERRORS = Measure(
    name="Errors", unit="%", of="retrievals", part=("errors",), whole=("retrievals",), worse="up"
)
NEGATIVE = Measure(
    name="Negative feedback",
    unit="%",
    of="words of users",
    part=BAD_WORDS,
    whole=(*BAD_WORDS, "feedback:positive", "feedback:corrected"),
    worse="up",
)
DIVERSITY = Measure(
    name="Source diversity", unit="", of="sources per passage", mean_of="source_diversity_ratio"
)
TOKENS = Measure(name="Context size", unit="tokens", of="mean per answer", mean_of="context_tokens")
PASSAGES = Measure(name="Passages", unit="", of="mean per answer", mean_of="retrieved_passages")
LATENCY = Measure(
    name="Retrieval time",
    unit="ms",
    of="mean per retrieval",
    mean_of="retrieval_duration_seconds",
    scale=1000.0,
)
TABLE = (NEGATIVE, EMPTY, SHORT, ERRORS, DIVERSITY, PASSAGES, TOKENS, LATENCY)


@dataclass(frozen=True, slots=True, kw_only=True)
class Compared:
    """One measure before and after, in words. `word` is better, worse, not clear or empty.

    `counted` says how many observations stand behind either side.
    """

    name: str
    note: str
    counted: str
    before: str
    after: str
    difference: str
    interval: str
    word: str


def wilson(part: float, whole: int) -> tuple[float, float]:
    """Return Wilson's 95 % interval of a share (Wilson, JASA 22, 1927)."""
    p, z2 = part / whole, Z * Z
    centre = (p + z2 / (2 * whole)) / (1 + z2 / whole)
    half = Z / (1 + z2 / whole) * math.sqrt(p * (1 - p) / whole + z2 / (4 * whole * whole))
    return max(0.0, centre - half), min(1.0, centre + half)


def difference(before: tuple[float, int], after: tuple[float, int]) -> tuple[float, float]:
    """Return the 95 % interval of the difference of two shares.

    Newcombe's hybrid score interval (Statistics in Medicine 17, 1998, method 10).
    """
    p, q = before[0] / before[1], after[0] / after[1]
    (low_p, high_p), (low_q, high_q) = wilson(*before), wilson(*after)
    down = math.hypot(q - low_q, high_p - p)
    up = math.hypot(high_q - q, p - low_p)
    return q - p - down, q - p + up


def compare(before: Sequence[Window], after: Sequence[Window]) -> list[Compared]:
    """Return the measures that were observed on either side, what is worse first.

    What never happened on either side is left out.
    """
    old, new = merged(before, "", ""), merged(after, "", "")
    pairs = ((one, one.counts(old), one.counts(new)) for one in TABLE)
    rows = [_compared(*pair) for pair in pairs if pair[1][0] or pair[2][0]]
    return sorted(rows, key=lambda row: row.word != "worse")


def _compared(one: Measure, before: tuple[float, int], after: tuple[float, int]) -> Compared:
    values = [part / whole if whole else None for part, whole in (before, after)]
    change, interval, word = _difference(one, before, after)
    return Compared(
        name=one.name,
        note=f"of {one.of}" if one.is_share else ", ".join(filter(None, (one.of, one.unit))),
        counted=f"{words.count(before[1])} and {words.count(after[1])}",
        before=_plain(one, values[0]),
        after=_plain(one, values[1]),
        difference=change,
        interval=interval,
        word=word,
    )


def _plain(one: Measure, value: float | None) -> str:
    """Return a value without its unit, which stands beside the name."""
    return one.shown(value) if one.is_share or value is None else words.number(value)


def _difference(one: Measure, before: tuple[float, int], after: tuple[float, int]) -> tuple[str, str, str]:
    if not before[1] or not after[1]:
        return "", "", ""
    change = after[0] / after[1] - before[0] / before[1]
    if not one.is_share:
        sign = "+" if change > 0 else "\u2212" if change < 0 else ""
        return f"{sign}{words.number(abs(change))}", "", ""
    low, high = difference(before, after)
    interval = f"{words.points(low)} to {words.points(high)}"
    if low <= 0.0 <= high:
        return "", interval, "not clear"
    word = "worse" if (change > 0) == (one.worse == "up") else "better"
    return f"{words.points(change)} pt", interval, word


@dataclass(frozen=True, slots=True, kw_only=True)
class Course:
    """A measure over time, before and after a change: (unix s, value or None for a gap)."""

    measure: Measure
    before: Sequence[tuple[float, float | None]]
    after: Sequence[tuple[float, float | None]]


def course(before: Iterable[Window], after: Iterable[Window], one: Measure, step_minutes: int) -> Course:
    """Return the course of a measure by steps, with a gap wherever nothing was observed."""
    return Course(
        measure=one,
        before=_points(before, one, step_minutes),
        after=_points(after, one, step_minutes),
    )


def _points(windows: Iterable[Window], one: Measure, step: int) -> list[tuple[float, float | None]]:
    sums: dict[int, list[float]] = {}
    for window in windows:
        part, whole = one.counts(window)
        if whole:
            total = sums.setdefault(window.minute // step, [0.0, 0.0])
            total[0] += part
            total[1] += whole
    points: list[tuple[float, float | None]] = []
    for place in sorted(sums):
        value, at = sums[place][0] / sums[place][1], (place + 0.5) * step * 60.0
        gap = place - 1 not in sums
        if gap and points:
            points.append((at - step * 60.0, None))
        if gap and place + 1 not in sums:  # alone: a dash of one step
            points.append((at - step * 30.0, value))
            at += step * 30.0
        points.append((at, value))
    return points
