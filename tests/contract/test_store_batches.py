"""Batches: each applied once, whole or not at all, and every count found again."""

from __future__ import annotations

import itertools
from collections.abc import Callable

import pytest

from resweep.domain.batch import Batch, ConfigRecord
from resweep.domain.clock import VirtualClock
from resweep.domain.errors import InputError, ResweepError
from resweep.domain.event import ErrorInfo, Hit, RetrievalEvent, event_id
from resweep.domain.fold import fold
from resweep.domain.window import Group, Histogram, Window
from resweep.store.sql import SqlStore

NOW = 1_796_000_000.0
MINUTE = int(NOW // 60)
A, B = "aaaaaaaaaaaa", "bbbbbbbbbbbb"
Post = Callable[..., bool]


def window(config: str = A, minute: int = MINUTE, pipeline: str = "bot", **counts: int) -> Window:
    """Return a window with these counts, one good call without any."""
    return Window(pipeline, config, minute, counts or {"retrievals": 1, "ok": 1})


def batch(seq: int, *windows: Window, writer: str = "w1") -> Batch:
    """Return a batch of windows."""
    return Batch(writer=writer, seq=seq, ts=NOW, windows=list(windows))


def total(store: SqlStore, name: str = "resweep_retrievals_total") -> float:
    """Return the sum of a counter over all its series."""
    samples = [s for s in store.snapshot().samples if s.metric == name]
    return sum(s.value for s in samples if isinstance(s.value, int | float))


def test_a_batch_is_applied_once(store: SqlStore) -> None:
    """The second delivery of (writer, seq) says so and counts nothing."""
    assert store.apply(batch(1, window()))
    assert not store.apply(batch(1, window()))
    assert total(store) == 1


def test_two_writers_have_numbers_of_their_own(store: SqlStore) -> None:
    """The same number of another writer is another batch."""
    assert store.apply(batch(1, window()))
    assert store.apply(batch(1, window(), writer="w2"))
    assert total(store) == 2


@pytest.mark.parametrize("order", list(itertools.permutations([1, 2, 4, 5]))[::5])
def test_a_late_batch_fills_its_gap_in_any_order(store: SqlStore, order: tuple[int, ...]) -> None:
    """Numbers may be missing and come late; none is taken twice."""
    assert all(store.apply(batch(seq, window())) for seq in order)
    assert store.apply(batch(3, window()))
    assert not any(store.apply(batch(seq, window())) for seq in (1, 2, 3, 4, 5))
    assert total(store) == 5


def test_a_number_stays_taken_over_a_restart(opened: Callable[..., SqlStore]) -> None:
    """What was applied is known to the next agent."""
    opened().apply(batch(7, window()))
    assert not opened().apply(batch(7, window()))


def test_a_silent_writer_is_forgotten(store: SqlStore, clock: VirtualClock) -> None:
    """Its numbers are dropped once it was silent for longer than the setting."""
    store.apply(batch(1, window()))
    clock.ts += 31 * 86400
    assert store.housekeep().writers == 1


def test_a_window_comes_back_as_it_went_in(store: SqlStore, post: Post) -> None:
    """Counts, buckets, sums and groups are all kept."""
    sent = window()
    for n in range(3):
        fold(sent, _event(n, filters={"tenant": "acme"}))
    fold(sent, _event(3, error=ErrorInfo("timeout")))
    post(store, windows=[sent])
    (kept,) = store.windows("bot", MINUTE, MINUTE + 1)
    sent.counts = {name: n for name, n in sent.counts.items() if n}
    assert kept == sent


def test_windows_of_replicas_merge(store: SqlStore, post: Post) -> None:
    """Two processes' counts of one minute become one window."""
    for _ in range(2):
        post(store, windows=[window(retrievals=5, ok=3, errors=2)])
    (kept,) = store.windows("bot", MINUTE, MINUTE + 1)
    assert kept.counts == {"retrievals": 10, "ok": 6, "errors": 4}


def test_windows_are_ordered_by_minute_then_config(store: SqlStore, post: Post) -> None:
    """A reader sees time pass."""
    post(store, windows=[window(B), window(A), window(B, MINUTE - 1)])
    seen = [(w.minute, w.config) for w in store.windows("bot", 0, MINUTE + 1)]
    assert seen == [(MINUTE - 1, B), (MINUTE, A), (MINUTE, B)]


def test_hours_and_days_hold_the_same_counts(store: SqlStore, post: Post) -> None:
    """Every count is in its minute, its hour and its day."""
    minutes = [MINUTE, MINUTE - 45, MINUTE - 90, MINUTE - 2000]
    post(store, windows=[window(minute=m, retrievals=3, ok=3) for m in minutes])
    for read in (store.windows, store.hours, store.days):
        assert sum(w.get("retrievals") for w in read("bot", 0, MINUTE + 1)) == 12
    assert [w.get("retrievals") for w in store.days("bot", 0, MINUTE + 1)] == [3, 3, 6]


def test_minutes_end_and_hours_stay(store: SqlStore, post: Post, clock: VirtualClock) -> None:
    """Retention takes the fine windows first; the totals never fall."""
    post(store, windows=[window(retrievals=3)])
    clock.ts += 15 * 86400
    post(store, windows=[window(minute=MINUTE + 15 * 1440, retrievals=1)])
    assert store.housekeep().windows == 1
    assert [w.get("retrievals") for w in store.windows("bot", 0, 2**40)] == [1]
    assert [w.get("retrievals") for w in store.hours("bot", 0, 2**40)] == [3, 1]


def test_a_window_later_than_its_retention_is_in_its_hour_and_day(store: SqlStore, post: Post) -> None:
    """A spool found after three weeks still counts where it belongs."""
    old = MINUTE - 21 * 1440
    post(store, windows=[window(minute=old, retrievals=4)])
    post(store, windows=[window(minute=old, retrievals=4)])
    assert store.windows("bot", 0, 2**40) == []
    assert [w.get("retrievals") for w in store.hours("bot", 0, 2**40)] == [8]
    assert [w.get("retrievals") for w in store.days("bot", 0, 2**40)] == [8]
    assert total(store) == 8


def test_a_row_is_bounded_and_loses_no_count(store: SqlStore, post: Post) -> None:
    """More filter keys than a row holds share `other`; the same ones stay in any order of arrival."""
    groups = {f"f{n}": Group(n=1, asked=8) for n in range(600)}
    for keys in (range(250), range(200, 450), range(400, 600)):
        one = window()
        one.groups = {f"f{n}": Group(n=1) for n in keys}
        post(store, windows=[one])
    (kept,) = store.windows("bot", MINUTE, MINUTE + 1)
    assert len(kept.groups) == 257
    assert sum(group.n for group in kept.groups.values()) == len(groups) + 100


def test_sums_beyond_a_database_integer_are_held_at_the_largest(store: SqlStore, post: Post) -> None:
    """Scores in the millions for years must not stop the intake."""
    for _ in range(3):
        one = window()
        one.histograms["top_score"] = Histogram([0] * 12 + [10**12], 2**53)
        post(store, windows=[one])
    assert store.windows("bot", MINUTE, MINUTE + 1)[0].histograms["top_score"].total == 3 * 2**53


BAD: dict[str, dict[str, object]] = {
    "negative count": {"windows": [window(retrievals=-1)]},
    "a count that is no number": {"windows": [window(retrievals=True)]},
    "huge count": {"windows": [window(retrievals=10**13)]},
    "minute before 1970": {"windows": [window(minute=-5)]},
    "minute next year": {"windows": [window(minute=MINUTE + 365 * 1440)]},
    "wrong buckets": {"windows": [Window("bot", A, MINUTE, {}, {"top_score": Histogram([1, 2])})]},
    "unknown histogram": {"windows": [Window("bot", A, MINUTE, {}, {"novel": Histogram([1])})]},
    "negative bucket": {"windows": [Window("bot", A, MINUTE, {}, {"top_score": Histogram([-1] * 13)})]},
    "negative group": {"windows": [Window("bot", A, MINUTE, {}, {}, {"t": Group(n=-1)})]},
    "huge pipeline name": {"windows": [window(pipeline="x" * 20_000)]},
    "config named other": {"windows": [window("other")]},
    "config with spaces": {"windows": [window("a b")]},
    "endless count name": {"windows": [Window("bot", A, MINUTE, {"x" * 500: 1})]},
    "event without id": {"events": [RetrievalEvent(id="", ts=NOW, pipeline="bot", config=A)]},
    "event id with a null": {"events": [RetrievalEvent(id="a\0b", ts=NOW, pipeline="bot", config=A)]},
    "event at no time": {"events": [RetrievalEvent(id="e", ts=float("nan"), pipeline="bot", config=A)]},
    "event of half a pair": {
        "events": [RetrievalEvent(id="e", ts=NOW, pipeline="bot", config=A, stop="\udc81")]
    },
    "event with objects": {
        "events": [RetrievalEvent(id="e", ts=NOW, pipeline="bot", config=A, filters={"x": object()})]
    },
    "document of half a pair": {
        "configs": [ConfigRecord(pipeline="bot", config=A, basis="b1", document={"x": "\udc81"})]
    },
}


@pytest.mark.parametrize("parts", BAD.values(), ids=BAD.keys())
def test_a_bad_batch_is_refused_whole(store: SqlStore, post: Post, parts: dict[str, list[object]]) -> None:
    """One bad record refuses its batch; its good ones are not counted, its number is not taken."""
    good = {"windows": [window(B), *parts.get("windows", [])]}
    with pytest.raises(InputError):
        store.apply(Batch(writer="w9", seq=1, ts=NOW, **(parts | good)))  # type: ignore[arg-type]
    assert store.pipelines() == []
    assert store.apply(batch(1, window(), writer="w9"))


def test_too_many_pipelines_are_a_mistake(store: SqlStore, post: Post) -> None:
    """A pipeline per user is refused with a word on what to do."""
    post(store, windows=[window(pipeline=f"p{n}") for n in range(500)])
    with pytest.raises(ResweepError, match="not for a user"):
        post(store, windows=[window(pipeline="one more")])


def test_a_thousand_windows_in_one_batch(store: SqlStore, post: Post) -> None:
    """A spool that waited for hours goes in as one."""
    minutes = range(MINUTE - 999, MINUTE + 1)
    post(store, windows=[window(minute=m) for m in minutes])
    assert len(store.windows("bot", 0, MINUTE + 1)) == 1000
    assert total(store) == 1000


def _event(n: int, **more: object) -> RetrievalEvent:
    hit = Hit(id="p1", score=0.5, source="s", tokens=100, score_state="ok")
    return RetrievalEvent(
        id=event_id(int(NOW * 1000), n, A),
        ts=NOW,
        pipeline="bot",
        config=A,
        asked=4,
        returned=3,
        hits=(hit,) * 3,
        latency_s=0.02,
        **more,  # type: ignore[arg-type]
    )
