"""Windows: what a minute of one config's traffic was, in numbers that merge exactly.

A `Window` holds integers only: counts, bucket counts and fixed-point sums. Addition of integers is
associative and commutative, so replicas merged in any order and grouping equal one process bit for bit.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Mapping

import msgspec

MINUTE = 60
SCALE = 1_000_000  # fixed point: sums are kept in millionths
GROUPS_MAX = 32  # filter keys one process keeps per window; more share "other"

# Upper bounds of the buckets (le), without +Inf.
BUCKETS: Mapping[str, tuple[float, ...]] = {
    "retrieved_passages": (0, 1, 2, 3, 4, 5, 8, 10, 15, 20, 40, 100),
    "context_tokens": (0, 128, 256, 512, 1024, 2048, 4096, 8192, 16384, 32768, 131072),
    "source_diversity_ratio": (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0),
    "retrieval_duration_seconds": (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0),
    "rerank_duration_seconds": (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0),
    "top_score": (-1.0, -0.5, 0.0, 0.2, 0.4, 0.6, 0.8, 0.9, 1.0, 2.0, 5.0, 20.0),
    "overhead_seconds": (1e-6, 2e-6, 5e-6, 1e-5, 2e-5, 5e-5, 1e-4, 1e-3, 1e-2),
}

# Counts every window has from the start. Others (error:CLASS, feedback:KIND, sampled:STRATUM,
# dropped:REASON, asked:K, dim:A:B) come as they are seen.
COUNTS: tuple[str, ...] = (
    "retrievals",  # every call, whatever came of it
    "ok",  # completed: neither error nor partial
    "empty_zero",
    "empty_none",
    "short",  # 0 < returned < asked
    "served",  # returned >= asked
    "errors",
    "partial",
    "truncated",  # the sender lost part of the answer
    "low_confidence",
    "score_valid",
    "score_missing",
    "score_invalid",
    "score_up",  # answers whose scores fall with rank: higher is better
    "score_down",
    "passages",  # passages returned
    "distinct_passages",
    "candidates_cut",  # calls where a stage after the index returned fewer than asked
    "asked_sum",  # over calls that say what they asked
    "returned_sum",
)


class Histogram(msgspec.Struct):
    """Bucket counts (one more than the bounds: the last is +Inf) and a fixed-point sum in millionths."""

    counts: list[int]
    total: int = 0

    def observe(self, bounds: tuple[float, ...], value: float) -> None:
        """Count one finite value."""
        self.counts[bisect_left(bounds, value)] += 1
        self.total += round(value * SCALE)

    def merge(self, other: Histogram) -> None:
        """Add another histogram over the same bounds."""
        self.counts = [a + b for a, b in zip(self.counts, other.counts, strict=True)]
        self.total += other.total

    @property
    def n(self) -> int:
        """How many values were observed."""
        return sum(self.counts)

    @property
    def sum(self) -> float:
        """Their sum."""
        return self.total / SCALE


class Group(msgspec.Struct):
    """Completed calls that carried one filter key: how many, empty, short, passages returned and asked."""

    n: int = 0
    empty: int = 0
    short: int = 0
    returned: int = 0
    asked: int = 0

    def merge(self, other: Group) -> None:
        """Add another group's counts."""
        self.n += other.n
        self.empty += other.empty
        self.short += other.short
        self.returned += other.returned
        self.asked += other.asked


class Window(msgspec.Struct):
    """Everything counted for one (pipeline, config, minute). `minute` is unix minutes."""

    pipeline: str
    config: str
    minute: int
    counts: dict[str, int] = msgspec.field(default_factory=dict)
    histograms: dict[str, Histogram] = msgspec.field(default_factory=dict)
    groups: dict[str, Group] = msgspec.field(default_factory=dict)

    def add(self, name: str, amount: int = 1) -> None:
        """Add to a count."""
        self.counts[name] = self.counts.get(name, 0) + amount

    def observe(self, name: str, value: float) -> None:
        """Count one finite value in the histogram `name`."""
        histogram = self.histograms.get(name)
        if histogram is None:
            histogram = self.histograms[name] = Histogram([0] * (len(BUCKETS[name]) + 1))
        histogram.observe(BUCKETS[name], value)

    def observe_many(self, name: str, value: float, times: int) -> None:
        """Count one finite value several times in the histogram `name`."""
        self.observe(name, value)
        if times > 1:
            histogram = self.histograms[name]
            histogram.counts[bisect_left(BUCKETS[name], value)] += times - 1
            histogram.total += round(value * SCALE) * (times - 1)

    def group(self, key: str) -> Group:
        """Return the counts of one filter key; beyond `GROUPS_MAX` keys, those of `other`."""
        found = self.groups.get(key)
        if found is None:
            if len(self.groups) >= GROUPS_MAX:
                key = "other"
            found = self.groups.setdefault(key, Group())
        return found

    def merge(self, other: Window) -> None:
        """Add another window's counts; the caller sees to it that the keys belong together."""
        for name, amount in other.counts.items():
            self.add(name, amount)
        for name, histogram in other.histograms.items():
            mine = self.histograms.get(name)
            if mine is None:
                self.histograms[name] = Histogram(list(histogram.counts), histogram.total)
            else:
                mine.merge(histogram)
        for key, group in other.groups.items():  # no bound here: a bound would make the order matter
            self.groups.setdefault(key, Group()).merge(group)

    def get(self, name: str) -> int:
        """Return a count, 0 where never seen."""
        return self.counts.get(name, 0)


def merged(windows: Iterable[Window], pipeline: str, config: str, minute: int = 0) -> Window:
    """Return one window holding the sum of some windows."""
    total = Window(pipeline, config, minute)
    for window in windows:
        total.merge(window)
    return total
