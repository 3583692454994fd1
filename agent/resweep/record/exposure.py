"""What a process shows of itself: its own health beside an agent, the whole catalog without one."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping

from resweep.domain.event import Feedback, parse_event_id
from resweep.domain.snapshot import DROP_REASONS, Exemplar, Sample, window_samples
from resweep.domain.window import Window

OWN_CONFIGS = 5
OWN_CONFIGS_MAX = 20
OTHER = "other"
WATCH_STATES = ("called", "uncalled", "no_ids", "no_scores", "no_sources")
_UNBOUNDED = ("asked:", "returned:", "dim:", "note:")
_RATINGS_MAX = 10_000  # feedback remembered, so that it is counted once


class Totals:
    """Running totals by (pipeline, config). The first `own` keep their series; later ones share `other`."""

    def __init__(self, own: int = OWN_CONFIGS) -> None:
        self._own = max(1, min(own, OWN_CONFIGS_MAX))
        self._series: dict[tuple[str, str], tuple[str, str]] = {}
        self._totals: dict[tuple[str, str], Window] = {}
        self.exemplars: dict[tuple[str, str], Exemplar] = {}
        self._ratings: OrderedDict[tuple[str, str, str | None], None] = OrderedDict()

    def see(self, pipeline: str, config: str) -> Window:
        """Return the totals of a config, from 0 at first sight."""
        at = self._series.get((pipeline, config)) or self._place(pipeline, config)
        return self._totals[at]

    def add(self, windows: Iterable[Window]) -> None:
        """Add windows to the totals."""
        for window in windows:
            self.see(window.pipeline, window.config).merge(_bounded(window))

    def rate(self, feedback: Feedback) -> None:
        """Count feedback once per (event, kind, rater), on the config that the event id names."""
        key = (feedback.event_id, feedback.kind, feedback.rater)
        parts = parse_event_id(feedback.event_id)
        if key in self._ratings:
            return
        self._ratings[key] = None
        if len(self._ratings) > _RATINGS_MAX:
            self._ratings.popitem(last=False)
        config = parts.config if parts else "unknown"
        pipeline = next((name for name, known in self._series if known == config), "unknown")
        self.see(pipeline, config).add(f"feedback:{feedback.kind}")

    def samples(self) -> Iterator[Sample]:
        """Yield every series of the totals."""
        for (pipeline, config), total in self._totals.items():
            shown = self.exemplars.get((pipeline, config))
            for sample in window_samples(pipeline, config, total):
                timed = sample.metric == "resweep_retrieval_duration_seconds" and sample.labels[-1] == "total"
                yield sample._replace(exemplar=shown) if timed and shown is not None else sample

    def _place(self, pipeline: str, config: str) -> tuple[str, str]:
        """Fix which series a config has: its own, its pipeline's `other`, or that of everything else."""
        at = (pipeline, config)
        if len(self._series) >= self._own:
            at = (pipeline, OTHER)
            shared = next((known for known in self._totals if known[1] == OTHER), at)
            if shared != at and at not in self._totals:
                at = (OTHER, OTHER)
        if len(self._series) < 10_000:
            self._series[pipeline, config] = at
        self._totals.setdefault(at, Window(*at, 0))
        return at


def _bounded(window: Window) -> Window:
    """The part of a window that has series: no depths, no filter keys, which would add up over time."""
    counts = {name: n for name, n in window.counts.items() if not name.startswith(_UNBOUNDED)}
    return Window(window.pipeline, window.config, 0, counts, window.histograms)


def process_samples(
    calls: int,
    dropped: Mapping[str, int],
    spooled_bytes: int,
    lag_s: float,
    up: bool,
    states: Mapping[str, int],
) -> Iterator[Sample]:
    """Yield the health of a process that records."""
    yield Sample("resweep_process_calls_total", (), calls)
    for reason in DROP_REASONS:
        yield Sample("resweep_process_dropped_records_total", (reason,), dropped.get(reason, 0))
    yield Sample("resweep_process_spooled_bytes", (), spooled_bytes)
    yield Sample("resweep_process_folding_lag_seconds", (), lag_s)
    yield Sample("resweep_process_sink_up", (), float(up))
    for state in WATCH_STATES:
        yield Sample("resweep_process_watches", (state,), states.get(state, 0))
