"""Which answers a recorder sends along to be compared, and that they never say the question."""

from __future__ import annotations

import resweep
from resweep.domain.batch import Batch, encode_batch
from resweep.domain.event import Hit, RetrievalEvent
from resweep.domain.sample import query_key
from resweep.record.panel import Panels

SALT = b"salt"


def event(query: str, id_: str = "e") -> RetrievalEvent:
    key = query_key(query, None, SALT)
    return RetrievalEvent(id_, 60.0, "p", "c", 1, 1, (Hit("a", 0.5),), query_key=key)


def test_the_panel_holds_the_smallest_keys_of_its_hour() -> None:
    """Once it is full, only smaller keys get in; the same question always does."""
    panels = Panels(SALT, size=2)
    events = [event(f"question {i}") for i in range(50)]
    for one in events:
        if panels.wants("p", "c", 1, one.query_key):
            panels.take(one, 1)
    smallest = sorted(e.query_key or 0 for e in events)[:2]
    assert all(panels.wants("p", "c", 1, key) for key in smallest)
    assert not panels.wants("p", "c", 1, max(e.query_key or 0 for e in events))


def test_a_new_hour_begins_a_new_panel() -> None:
    """Room for anything again."""
    panels = Panels(SALT, size=1)
    for i in range(10):
        panels.take(event(f"question {i}"), 1)
    assert not panels.wants("p", "c", 1, None)
    assert panels.wants("p", "c", 61, None)


def test_what_was_taken_is_drained_once_by_minute() -> None:
    """A minute's answers in one piece."""
    panels = Panels(SALT)
    panels.take(event("one", "e1"), 1)
    panels.take(event("two", "e2"), 1)
    panels.take(event("one", "e3"), 2)
    assert [(p.minute, len(p.records)) for p in panels.drain()] == [(1, 2), (2, 1)]
    assert panels.drain() == []


def test_a_watched_retriever_sends_its_panel_and_never_the_question() -> None:
    """The batch holds hashes of the answer; the words of question and passage are not in it."""
    batches: list[Batch] = []

    class Sink:
        def write(self, batch: Batch) -> None:
            batches.append(batch)

        def close(self) -> None:
            """Nothing to close."""

    def retrieve(query: str) -> list[dict[str, object]]:
        return [{"id": "p1", "text": "secret passage", "score": 0.5}]

    watched = resweep.watch(retrieve, sink=Sink(), pipeline="panel", config={"context_k": 1})
    for _ in range(3):
        watched("secret question")
    resweep.flush()
    records = [r for b in batches for p in b.panels for r in p.records]
    assert len(records) == 3
    assert len({r.key for r in records}) == 1
    assert b"secret" not in b"".join(map(encode_batch, batches))
