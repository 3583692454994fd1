"""Sampled events: found by what they are asked for, bounded, and removed on request."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from resweep.domain.batch import ConfigRecord
from resweep.domain.clock import VirtualClock
from resweep.domain.event import ErrorInfo, Feedback, Hit, RetrievalEvent
from resweep.domain.window import Window
from resweep.store import open_store
from resweep.store.sql import SqlStore

NOW = 1_796_000_000.0
A, B = "aaaaaaaaaaaa", "bbbbbbbbbbbb"
Post = Callable[..., bool]


def event(id_: str = "e1", ts: float = NOW, config: str = A, **more: object) -> RetrievalEvent:
    """Return an event of the pipeline."""
    return RetrievalEvent(id=id_, ts=ts, pipeline="bot", config=config, **more)  # type: ignore[arg-type]


FULL = event(
    "full",
    asked=8,
    returned=2,
    hits=(Hit("p1", 0.5, "rerank", 0.25, "a.md", 100, "ff", "ok", "text"), Hit("p2")),
    query="how long do refunds take",
    query_key=2**64 - 3,
    filters={"tenant": "acme"},
    latency_s=0.25,
    stages={"rerank_s": 0.125},
    error=ErrorInfo("timeout", "late"),
    trace_id="t1",
    user_key="u7",
)


def test_an_event_comes_back_as_it_went_in(store: SqlStore, post: Post) -> None:
    """With hits, stages, text and error."""
    post(store, events=[FULL])
    assert store.events("bot", NOW, NOW + 1) == [FULL]
    assert store.event("full") == FULL
    assert store.event("none") is None


def test_an_event_is_kept_once(store: SqlStore, post: Post) -> None:
    """Two deliveries under two numbers, also within one batch."""
    post(store, events=[event(), event()])
    post(store, events=[event()])
    assert len(store.events("bot", 0, 2**40)) == 1


def test_events_come_in_time_order(store: SqlStore, post: Post) -> None:
    """From, up to but not including."""
    post(store, events=[event("b", NOW + 2), event("a", NOW + 1, B), event("c", NOW + 3)])
    assert [e.id for e in store.events("bot", NOW + 1, NOW + 3)] == ["a", "b"]


def test_events_are_found_by_trace_and_by_query(store: SqlStore, post: Post) -> None:
    """An unsigned 64-bit key too."""
    post(store, events=[FULL, event(query_key=5)])
    assert store.events_of_trace("t1") == [FULL]
    assert store.events_of_query("bot", 2**64 - 3) == [FULL]
    assert [e.id for e in store.events_of_query("bot", 5)] == ["e1"]


def test_events_go_with_age_and_the_oldest_beyond_the_bound(
    opened: Callable[..., SqlStore], post: Post, clock: VirtualClock
) -> None:
    """Whatever the traffic, the table stays small."""
    store = opened(events_max=3)
    post(store, events=[event(f"e{n}", NOW - n) for n in range(5)])
    assert store.housekeep().events == 2
    assert [e.id for e in store.events("bot", 0, 2**40)] == ["e2", "e1", "e0"]
    clock.advance(31 * 86400)
    assert store.housekeep().events == 3


def test_a_user_can_be_forgotten(store: SqlStore, post: Post) -> None:
    """Their events and what was said of them go; counts stay."""
    minute = Window("bot", A, int(NOW // 60), {"retrievals": 2})
    said = [Feedback("f1", "full", "positive", "u7", NOW)]
    post(store, windows=[minute], events=[FULL, event()], feedback=said)
    assert store.delete_user("u7") == 1
    assert [e.id for e in store.events("bot", 0, 2**40)] == ["e1"]
    assert store.feedback_of("full") == []
    assert store.delete_events(["e1"]) == 1
    assert [w.get("retrievals") for w in store.windows("bot", 0, 2**40)] == [2]


def test_what_was_deleted_is_in_no_file(tmp_path: Path, clock: VirtualClock, post: Post) -> None:
    """Neither in the database nor in its log, while the store is open."""
    store = open_store(str(tmp_path / "resweep.db"), clock=clock)
    post(store, events=[FULL, event()])
    assert any(b"refunds take" in path.read_bytes() for path in tmp_path.iterdir())
    store.delete_user("u7")
    assert not any(b"refunds take" in path.read_bytes() for path in tmp_path.iterdir())
    store.close()


def test_configs_are_kept_with_their_history(store: SqlStore, post: Post, clock: VirtualClock) -> None:
    """What was declared, what was seen, and which config answered before."""
    first = ConfigRecord(
        pipeline="bot",
        config=A,
        basis="b1",
        document={"embedder": {"model": "m1"}, "context_k": 8},
        digest="ab" * 32,
        omitted=("api_key",),
        opaque=("tokenizer",),
        complete=False,
        observed={"dimensions": 384},
        default_k=4,
        first_ts=NOW - 10,
    )
    post(store, configs=[first])
    clock.advance(60)
    post(store, windows=[Window("bot", B, int(clock.ts // 60), {"retrievals": 1})])
    one, other = store.configs_seen("bot")
    assert one.record == first
    assert (other.record.config, other.declared, other.parent) == (B, False, A)
    assert store.configs("bot")[0] == first


def test_a_config_known_by_its_id_is_declared_later(store: SqlStore, post: Post) -> None:
    """Events may overtake the declaration."""
    post(store, events=[event()])
    assert store.configs("bot")[0].basis == "unknown"
    post(store, configs=[ConfigRecord(pipeline="bot", config=A, basis="b1", document={"context_k": 8})])
    (seen,) = store.configs_seen("bot")
    assert (seen.declared, seen.record.basis, seen.record.document) == (True, "b1", {"context_k": 8})


def test_what_the_live_object_says_may_change(store: SqlStore, post: Post) -> None:
    """The newest observation is kept."""
    for count in (10, 20):
        record = ConfigRecord(pipeline="bot", config=A, basis="b1", document={}, observed={"count": count})
        post(store, configs=[record])
    assert store.configs("bot")[0].observed == {"count": 20}
