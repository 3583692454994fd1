"""The seams: what the parts of resweep ask of one another.

`record`, `ingest`, `store`, `detect`, `label` and `sweep` never import each other; they meet here, and
`schedule` and `serve` put them together.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
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

    def pipelines(self) -> Sequence[str]:
        """Return the names of the pipelines ever seen, sorted."""

    def configs(self, pipeline: str) -> Sequence[ConfigRecord]:
        """Return the configs of a pipeline in the order first seen."""

    def events(self, pipeline: str, since_ts: float, until_ts: float) -> Sequence[RetrievalEvent]:
        """Return the sampled events still kept, in time order."""

    def tuned(self, pipeline: str | None = None) -> Sequence[TunedK]:
        """Return the tuned depths, the newest epoch of a basis last."""

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

    def snapshot(self) -> Snapshot:
        """Return the numbers to expose."""
