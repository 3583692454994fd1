"""The seams: what the parts of resweep ask of one another.

`record`, `ingest`, `store`, `detect`, `label` and `sweep` never import each other; they meet here, and
`schedule` and `serve` put them together.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Protocol

from resweep.domain.batch import Batch, ConfigRecord
from resweep.domain.event import Feedback, RetrievalEvent
from resweep.domain.snapshot import Snapshot
from resweep.domain.verdict import Flag, TunedK, Verdict
from resweep.domain.window import Window


class Sink(Protocol):
    """Where a recorder hands its batches: a spool folder, the agent's HTTP intake, a test's list."""

    def write(self, batch: Batch) -> None:
        """Take one batch over; raises OSError when it cannot be taken now."""

    def close(self) -> None:
        """Let go of files and connections."""


class Store(Protocol):
    """What the agent remembers. One writer; every method is one transaction and raises StoreError."""

    def apply(self, batch: Batch) -> bool:
        """Apply a batch once; False where (writer, seq) was applied before."""

    def add_feedback(self, feedback: Iterable[Feedback]) -> int:
        """Count feedback once per (event, kind, rater); return how many were new."""

    def windows(self, pipeline: str, since_minute: int, until_minute: int) -> Sequence[Window]:
        """Return the minute windows in [since, until), by minute then config."""

    def hours(self, pipeline: str, since_minute: int, until_minute: int) -> Sequence[Window]:
        """Return the windows of hours that begin in [since, until) unix minutes; `minute` is the first."""

    def days(self, pipeline: str, since_minute: int, until_minute: int) -> Sequence[Window]:
        """Return the windows of UTC days that begin in [since, until) unix minutes; `minute` is the first."""

    def pipelines(self) -> Sequence[str]:
        """Return the names of the pipelines ever seen, sorted."""

    def configs(self, pipeline: str) -> Sequence[ConfigRecord]:
        """Return the configs of a pipeline in the order first seen."""

    def events(self, pipeline: str, since_ts: float, until_ts: float) -> Sequence[RetrievalEvent]:
        """Return the sampled events still kept, in time order."""

    def tuned(self, pipeline: str | None = None) -> Sequence[TunedK]:
        """Return the tuned depths; of a basis the epoch that runs now last, as far as known."""

    def record_tuned(self, tuned: TunedK) -> None:
        """Remember a chosen depth; an equal (pipeline, basis, epoch) is replaced, its history kept."""

    def flags(self, pipeline: str | None = None, *, open_only: bool = True) -> Sequence[Flag]:
        """Return flags, oldest first."""

    def save_judgement(self, flags: Iterable[Flag], verdicts: Iterable[Verdict], state: bytes) -> None:
        """Write what the judge concluded and its own state in one transaction."""

    def judge_state(self) -> bytes | None:
        """Return the judge's saved state."""

    def verdicts(self, pipeline: str | None = None) -> Sequence[Verdict]:
        """Return the last verdict of each (pipeline, basis)."""

    def state(self, name: str) -> bytes | None:
        """Return what a part of resweep saved under a name."""

    def save_state(self, name: str, value: bytes) -> None:
        """Save what a part of resweep has to know after a restart, in place of what it saved before."""

    def in_maintenance(self, now: float) -> set[str]:
        """Return the pipelines under announced work at a unix time."""

    def set_gauges(
        self, metric: str, values: Mapping[tuple[str, ...], float], *, replace: bool = False
    ) -> None:
        """Note measured values of a gauge by its label values; `replace` ends the series not given."""

    def snapshot(self) -> Snapshot:
        """Return the numbers to expose."""
