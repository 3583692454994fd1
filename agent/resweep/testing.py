"""A test double that ships: what a retriever recorded, in lists, at once.

with resweep.testing.capture() as recorded:
    retriever = resweep.watch(my_retriever, sink=recorded)
    retriever("a question")
assert recorded.counts["retrievals"] == 1
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

from resweep.domain.batch import Batch, ConfigRecord
from resweep.domain.event import Feedback, RetrievalEvent
from resweep.domain.window import Window


class MemorySink:
    """Keeps everything that recorders hand over. Nothing runs in the background: `flush` folds what waits.

    Every event is sampled. `windows` may hold several of one minute; `counts` adds them all up.
    """

    synchronous = True
    samples_all = True

    def __init__(self) -> None:
        self.batches: list[Batch] = []

    def write(self, batch: Batch) -> None:
        """Keep a batch."""
        self.batches.append(batch)

    def close(self) -> None:
        """Nothing is kept open."""

    def flush(self) -> None:
        """Fold and hand over what was recorded so far."""
        from resweep.record.process import recorders

        for recorder in list(recorders().values()):
            if recorder.sink is self:
                recorder.flush()

    @property
    def events(self) -> list[RetrievalEvent]:
        """The events so far, in the order in which they were folded."""
        self.flush()
        return [event for batch in self.batches for event in batch.events]

    @property
    def windows(self) -> list[Window]:
        """The windows so far."""
        self.flush()
        return [window for batch in self.batches for window in batch.windows]

    @property
    def feedback(self) -> list[Feedback]:
        """The feedback so far."""
        self.flush()
        return [one for batch in self.batches for one in batch.feedback]

    @property
    def configs(self) -> list[ConfigRecord]:
        """The configs said so far; one that changed what it observed is there again."""
        self.flush()
        return [record for batch in self.batches for record in batch.configs]

    @property
    def counts(self) -> Counter[str]:
        """All counts of all windows together."""
        total: Counter[str] = Counter()
        for window in self.windows:
            total.update(window.counts)
        return total


@contextmanager
def capture() -> Iterator[MemorySink]:
    """Give a sink for the time of a `with` block; after it, what was recorded can still be read."""
    sink = MemorySink()
    try:
        yield sink
    finally:
        sink.flush()
        _end(sink)


def _end(sink: MemorySink) -> None:
    from resweep.record.process import forget

    forget(sink)
