"""Which series exist, with what in them, and when they end."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from resweep.domain.batch import ConfigRecord
from resweep.domain.clock import VirtualClock
from resweep.domain.snapshot import Snapshot
from resweep.domain.verdict import Flag, TunedK, Verdict, VerdictState
from resweep.domain.window import Histogram, Window
from resweep.store.configs import choose_slot
from resweep.store.exposition import CASE_STATES, SPLITS, describe
from resweep.store.sql import SqlStore
from resweep_exporters import catalog
from resweep_exporters.series import gather

NOW = 1_796_000_000.0
MINUTE = int(NOW // 60)
A, B = "aaaaaaaaaaaa", "bbbbbbbbbbbb"
Post = Callable[..., bool]
DAY = 86_400.0


def window(config: str = A, pipeline: str = "bot", minute: int = MINUTE, **counts: int) -> Window:
    """Return a window with these counts, one good call without any."""
    return Window(pipeline, config, minute, counts or {"retrievals": 1, "ok": 1})


def declared(config: str = A, basis: str = "b1", pipeline: str = "bot", **document: object) -> ConfigRecord:
    """Return a config's declaration."""
    return ConfigRecord(pipeline=pipeline, config=config, basis=basis, document=document)


def values(snapshot: Snapshot, metric: str) -> dict[tuple[str, ...], float]:
    """Return the series of a metric; of a histogram, its number of observations."""
    return {
        s.labels: float(s.value.n if isinstance(s.value, Histogram) else s.value)
        for s in snapshot.samples
        if s.metric == metric
    }


def retrievals(store: SqlStore) -> dict[tuple[str, ...], float]:
    """Return the retrieval counters."""
    return values(store.snapshot(), "resweep_retrievals_total")


def test_a_config_is_born_at_zero(store: SqlStore, post: Post) -> None:
    """So that the first error after a deploy is seen as an increase."""
    post(store, configs=[declared()])
    snapshot = store.snapshot()
    assert retrievals(store) == {("bot", A): 0}
    assert values(snapshot, "resweep_empty_retrievals_total") == {("bot", A, k): 0 for k in ("zero", "none")}
    assert len(values(snapshot, "resweep_retrieval_errors_total")) == 7


def test_every_sample_fits_the_catalog(store: SqlStore, post: Post) -> None:
    """Names and numbers of labels are those of the one table."""
    _everything(store, post)
    found = store.snapshot()
    assert gather([found]).complete
    for sample in found.samples:
        assert len(sample.labels) == len(catalog.BY_NAME[sample.metric].labels)
    assert (CASE_STATES, SPLITS) == (catalog.CASE_STATES, catalog.SPLITS)


def test_no_series_is_given_twice(store: SqlStore, post: Post) -> None:
    """A page with a series twice is refused by Prometheus."""
    _everything(store, post)
    keys = [(s.metric, s.labels) for s in store.snapshot().samples]
    assert len(keys) == len(set(keys))


def test_fifty_configs_share_and_lose_nothing(store: SqlStore, post: Post) -> None:
    """Five keep their own series, the rest share `other`; the sum is everything, under 1,000 series."""
    configs = [f"{n:012x}" for n in range(50)]
    for config in configs:
        post(store, configs=[declared(config, f"b{config}")], windows=[window(config, retrievals=2000)])
    found = retrievals(store)
    assert [labels[1] for labels in found if labels[1] != "other"] == configs[:5]
    assert sum(found.values()) == 100_000
    assert _exposed(store.snapshot()) < 1000


def test_own_or_other_is_fixed_at_first_sight(store: SqlStore, post: Post) -> None:
    """A busy latecomer does not move anybody."""
    for n in range(6):
        post(store, windows=[window(f"{n:012x}")])
    post(store, windows=[window("000000000005", retrievals=500)])
    assert retrievals(store)["bot", "other"] == 501


def test_traffic_takes_the_place_of_what_only_was_declared(store: SqlStore, post: Post) -> None:
    """Twenty watched pipelines that nobody asks leave the busy one its series; they get theirs when asked."""
    post(store, configs=[declared(pipeline=f"quiet{n:02}") for n in range(20)])
    post(store, configs=[declared(pipeline="busy")])
    post(store, windows=[window(pipeline="busy", retrievals=30)])
    assert retrievals(store)["busy", A] == 30
    post(store, windows=[window(pipeline="quiet00", retrievals=2)])
    found = retrievals(store)
    assert (found["busy", A], found["quiet00", A]) == (30, 2)
    assert len(found) == 21  # with what all others would share
    assert sum(found.values()) == 32


def test_a_silent_config_ends_its_series_and_frees_its_place(
    opened: Callable[..., SqlStore], post: Post, clock: VirtualClock
) -> None:
    """Its counts are never added to `other`, and come back with it."""
    store = opened(series_configs=1)
    post(store, windows=[window(A, retrievals=7)])
    clock.advance(DAY)
    assert retrievals(store) == {}
    later = MINUTE + 1440
    post(store, windows=[window(B, minute=later, retrievals=3)])
    assert retrievals(store) == {("bot", B): 3}
    post(store, windows=[window(A, minute=later, retrievals=1)])
    assert retrievals(store) == {("bot", B): 3, ("bot", "other"): 1}
    clock.advance(DAY)
    post(store, windows=[window(A, minute=later + 1440, retrievals=1)])
    assert retrievals(store) == {("bot", A): 8, ("bot", "other"): 1}


def test_a_config_retires_by_the_agents_clock(store: SqlStore, post: Post, clock: VirtualClock) -> None:
    """A spool delivered two days late is traffic of today for the series."""
    post(store, windows=[window(minute=MINUTE - 2 * 1440, retrievals=5)])
    assert retrievals(store) == {("bot", A): 5}
    assert store.configs_seen("bot")[0].last_seen < NOW - DAY


def test_a_declaration_alone_does_not_keep_a_config_alive(
    store: SqlStore, post: Post, clock: VirtualClock
) -> None:
    """Recorders repeat it with every batch."""
    post(store, configs=[declared()], windows=[window()])
    clock.advance(DAY)
    post(store, configs=[declared()])
    assert retrievals(store) == {}
    assert store.housekeep().configs_retired == 0
    assert store.configs_seen("bot")[0].retired_at == clock.ts


@pytest.mark.parametrize(
    ("own", "serving", "slot"),
    [
        ({}, set(), "own"),
        ({1: 4}, {1}, "own"),
        ({1: 5}, {1}, "other"),
        (dict.fromkeys(range(2, 6), 5), {2, 3, 4, 5}, "other"),
        (dict.fromkeys(range(2, 22), 1), set(range(2, 22)), "pool"),
        (dict.fromkeys(range(1, 21), 1), set(range(1, 21)), "other"),
    ],
)
def test_places_are_few(own: dict[int, int], serving: set[int], slot: str) -> None:
    """At most five a pipeline, 20 in all, and 20 pipelines by name."""
    assert choose_slot(own, serving, 1, 5) == slot


def test_two_hundred_pipelines_share_without_losing_counts(store: SqlStore, post: Post) -> None:
    """Twenty by name, the others together."""
    post(store, windows=[window(pipeline=f"p{n:03}", retrievals=10) for n in range(200)])
    found = retrievals(store)
    assert len(found) == 21
    assert found["other", "other"] == 1800
    assert sum(found.values()) == 2000


def test_odd_names_stay_apart_and_render(store: SqlStore, post: Post) -> None:
    """Half a surrogate pair, nothing, and names that differ after 5,000 letters."""
    names = ["bad\udc81", 'a\nb"c\\', "", "x" * 5000 + "1", "x" * 5000 + "2"]
    post(store, windows=[window(pipeline=name) for name in names])
    found = {labels[0] for labels in retrievals(store)}
    assert {"bad\ufffd", 'a\nb"c\\', "unknown"} < found
    assert len(found) == 5
    assert max(map(len, found)) <= 64
    assert len(store.windows("x" * 5000 + "1", MINUTE, MINUTE + 1)) == 1


def test_unknown_error_classes_are_counted_as_other(store: SqlStore, post: Post) -> None:
    """An exception's own name never becomes a label, and no error is lost."""
    counts = {f"error:Weird{n}Error": 1 for n in range(300)} | {"error:timeout": 2}
    post(store, windows=[Window("bot", A, MINUTE, counts)])
    found = values(store.snapshot(), "resweep_retrieval_errors_total")
    assert found["bot", A, "other"] == 300
    assert found["bot", A, "timeout"] == 2


def test_the_parts_of_a_config_are_told_in_words(store: SqlStore, post: Post) -> None:
    """Short, from the document, and always 1."""
    post(store, configs=[declared(embedder={"model": "m1", "dim": 3}, chunker={"tokens": 512}, context_k=8)])
    snapshot = store.snapshot()
    assert values(snapshot, "resweep_config_info") == {
        ("bot", A, "b1", "m1", "tokens=512", "none", "none"): 1
    }
    assert values(snapshot, "resweep_context_k") == {("bot", A): 8}


@pytest.mark.parametrize(
    ("part", "words"),
    [
        (None, "none"),
        ("bge-small", "bge-small"),
        ({"type": "hnsw", "name": "docs"}, "docs"),
        ({"tokens": 512, "overlap": 64}, "overlap=64 tokens=512"),
        ({"nested": {"a": 1}}, "unknown"),
        ("m" * 100, "m" * 64),
        (["a", "b"], "['a', 'b']"),
    ],
)
def test_a_part_is_described_in_at_most_64_characters(part: object, words: str) -> None:
    """Its model or name, else its plain settings."""
    assert describe(part) == words


def test_k_falls_back_to_what_the_live_object_said(store: SqlStore, post: Post) -> None:
    """An undeclared depth is the observed one."""
    record = ConfigRecord(pipeline="bot", config=A, basis="b1", document={}, observed={"k": 4})
    post(store, configs=[record])
    assert values(store.snapshot(), "resweep_context_k") == {("bot", A): 4}


def test_the_tuned_depth_is_that_of_the_newest_epoch(store: SqlStore, post: Post) -> None:
    """Shown beside each config of its basis."""
    post(store, configs=[declared(A, "b1"), declared(B, "b2")])
    for epoch, k in ((2, 20), (1, 10)):
        store.record_tuned(TunedK(pipeline="bot", basis="b1", epoch=epoch, context_k=k))
    assert values(store.snapshot(), "resweep_tuned_context_k") == {("bot", A): 20}


def test_a_verdict_is_one_of_its_states(store: SqlStore, post: Post) -> None:
    """One-hot, with `tuned_k_valid` for `valid` alone."""
    post(store, configs=[declared()])
    store.save_judgement([], [verdict("b1", "suspect")], b"{}")
    snapshot = store.snapshot()
    on = {labels for labels, value in values(snapshot, "resweep_verdict").items() if value}
    assert on == {("bot", "b1", "suspect")}
    assert len(values(snapshot, "resweep_verdict")) == 5
    assert values(snapshot, "resweep_tuned_k_valid") == {("bot", "b1"): 0}


def test_a_verdict_out_of_force_or_of_a_retired_config_is_not_shown(
    store: SqlStore, post: Post, clock: VirtualClock
) -> None:
    """No alert hangs on what no longer exists."""
    post(store, configs=[declared(A, "b1"), declared(B, "b2")])
    store.save_judgement([], [verdict("b1", "expired"), verdict("b2", "valid")], b"{}")
    store.save_judgement([], [verdict("b2", "valid")], b"{}")
    assert set(values(store.snapshot(), "resweep_tuned_k_valid")) == {("bot", "b2")}
    clock.advance(DAY)
    assert values(store.snapshot(), "resweep_tuned_k_valid") == {}


def test_bases_without_a_place_share_the_worst_verdict(opened: Callable[..., SqlStore], post: Post) -> None:
    """A verdict that no config of its own can show is not lost."""
    store = opened(series_configs=1)
    post(store, configs=[declared(A, "b1"), declared(B, "b2"), declared("c" * 12, "b3")])
    states: dict[str, VerdictState] = {"b1": "valid", "b2": "expired", "b3": "valid"}
    store.save_judgement([flag(B, "b2")], [verdict(b, s) for b, s in states.items()], b"{}")
    snapshot = store.snapshot()
    assert values(snapshot, "resweep_verdict")["bot", "other", "expired"] == 1
    assert values(snapshot, "resweep_sweep_required") == {
        ("bot", "other", "other", "config_changed", "embedder"): 1
    }


def test_a_flag_is_one_while_open_and_zero_for_an_hour_after(
    store: SqlStore, post: Post, clock: VirtualClock
) -> None:
    """So that the alert sees it end."""
    post(store, configs=[declared()])
    at = ("bot", A, "b1", "config_changed", "embedder")
    store.save_judgement([flag()], [], b"{}")
    assert values(store.snapshot(), "resweep_sweep_required") == {at: 1}
    store.save_judgement([flag(cleared=NOW)], [], b"{}")
    assert values(store.snapshot(), "resweep_sweep_required") == {at: 0}
    clock.advance(3601)
    assert values(store.snapshot(), "resweep_sweep_required") == {}


def test_jobs_measure_and_the_store_shows(store: SqlStore, post: Post) -> None:
    """Of configs and pipelines alive, from 0."""
    post(store, configs=[declared()])
    store.set_gauges("resweep_drift_evidence", {("bot", A, "twins"): -2.5, ("bot", B, "twins"): 1.0})
    store.set_gauges("resweep_last_sweep_timestamp_seconds", {("bot",): 5.0, ("gone",): 6.0})
    snapshot = store.snapshot()
    assert values(snapshot, "resweep_drift_evidence") == {("bot", A, "twins"): -2.5}
    assert values(snapshot, "resweep_last_sweep_timestamp_seconds") == {("bot",): 5.0}
    assert values(snapshot, "resweep_review_queue_oldest_seconds") == {("bot",): 0.0}
    assert len(values(snapshot, "resweep_labelled_cases")) == 18


def test_a_second_store_exposes_the_same(opened: Callable[..., SqlStore], post: Post) -> None:
    """A standby that takes over goes on where the other stopped."""
    first = opened()
    _everything(first, post)
    assert opened().snapshot() == first.snapshot()


def test_a_store_that_cannot_be_read_shows_its_last_numbers(
    store: SqlStore, post: Post, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Marked as incomplete; the page stays."""
    post(store, windows=[window(retrievals=3)])
    whole = store.snapshot()
    monkeypatch.setattr(store._db.engine, "connect", _refuse)
    broken = store.snapshot()
    assert (broken.complete, broken.samples, broken.ts) == (False, whole.samples, whole.ts)


def _refuse() -> None:
    raise OSError("disk on fire")


def verdict(basis: str, state: VerdictState) -> Verdict:
    """Return a verdict on a basis of the pipeline."""
    return Verdict(pipeline="bot", basis=basis, config=A, state=state, why="because", since=NOW)


def flag(config: str = A, basis: str = "b1", cleared: float | None = None) -> Flag:
    """Return a flag for a new embedder."""
    return Flag(
        key=f"bot:config_changed:{config}",
        pipeline="bot",
        config=config,
        basis=basis,
        reason="config_changed",
        layer="declared",
        components=("embedder",),
        severity="warning",
        message="the embedder changed",
        opened_ts=NOW - 60,
        cleared_ts=cleared,
    )


def _everything(store: SqlStore, post: Post) -> None:
    post(store, configs=[declared(context_k=8), declared(B, "b2")], windows=[window(), window(B)])
    for n in range(8):
        post(store, windows=[window(f"{n:012x}")])
    store.record_tuned(TunedK(pipeline="bot", basis="b1", context_k=8))
    store.save_judgement([flag()], [verdict("b1", "expired"), verdict("b2", "valid")], b"{}")
    store.set_gauges("resweep_canary_recall_ratio", {("bot", A, "8"): 0.9})
    store.set_gauges("resweep_labelled_cases", {("bot", "labelled", "tune"): 4})
    store.start_maintenance("bot", "jane")


def _exposed(snapshot: Snapshot) -> int:
    """Return how many lines a page has for it: buckets, +Inf, count and sum each are one."""
    return sum(len(s.value.counts) + 2 if isinstance(s.value, Histogram) else 1 for s in snapshot.samples)
