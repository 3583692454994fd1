"""One minute of one config as it crosses from a recorder to the agent: mergeable, and all a test reads."""

from __future__ import annotations

from resweep.domain.event import RetrievalEvent
from resweep.domain.sample import SAMPLE_SIZE, BottomK, Hashes, event_key, record_of


class Summary:
    """Counts and the bottom-k sample of one (config, period). Merging is commutative and associative.

    Counts: `events`, `ok` (neither error nor partial), `empty`, `short`, `errors`, `partial`, `feedback`,
    `negative`. `start` is the period's first unix second; merged summaries keep the earliest.
    """

    def __init__(self, config: str, start: float, size: int = SAMPLE_SIZE) -> None:
        self.config = config
        self.start = start
        self.counts: dict[str, int] = {}
        self.sample = BottomK(size)
        self.last = -1  # number of the last event, -1 in a live agent

    def count(self, name: str, amount: int = 1) -> None:
        """Add to a count."""
        self.counts[name] = self.counts.get(name, 0) + amount

    def add(self, event: RetrievalEvent, number: int, salt: bytes, hashes: Hashes) -> None:
        """Count one event and offer it to the sample; probes are not traffic and are left out."""
        if event.probe:
            return
        self.count("events")
        self.last = max(self.last, number)
        if event.error is not None or event.partial:
            self.count("errors" if event.error is not None else "partial")
            return
        self.count("ok")
        if event.returned == 0:
            self.count("empty")
        elif event.asked is not None and event.returned < event.asked:
            self.count("short")
        key = event.query_key
        known = key is not None
        if key is None:
            key = event_key(event.id, salt)
        if key < self.sample.bound:
            self.sample.add(record_of(event, number, key, known, hashes))

    def merge(self, other: Summary) -> None:
        """Add another summary of the same config."""
        self.start = min(self.start, other.start)
        self.last = max(self.last, other.last)
        for name, amount in other.counts.items():
            self.count(name, amount)
        self.sample.merge(other.sample)

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, Summary)
            and (self.config, self.start, self.counts) == (other.config, other.start, other.counts)
            and self.sample == other.sample
        )

    __hash__ = None  # type: ignore[assignment]
