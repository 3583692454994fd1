"""The desk: what the judge says outlives a restart; what it was not told is told again."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import msgspec
import pytest

from resweep.detect.judge import Judge
from resweep.detect.settings import DetectSettings
from resweep.domain.batch import Batch, ConfigRecord
from resweep.domain.clock import VirtualClock
from resweep.domain.fingerprint import fingerprint
from resweep.domain.invalidation import InvalidationRules
from resweep.domain.verdict import Flag, TunedK
from resweep.domain.window import Window
from resweep.schedule.desk import Desk
from resweep.schedule.lockwatch import LockWatch
from resweep.store import open_store
from resweep.store.lockfile import LockFile, write_lock
from resweep.store.sql import SqlStore

START = 1_800_000_000.0


def judge(state: bytes | None) -> Judge:
    """Make a judge that settles at once."""
    return Judge(DetectSettings(switch_quiet_s=0), InvalidationRules.load_default(), state)


def config(model: str = "m1") -> ConfigRecord:
    """Return the record of a config."""
    known = fingerprint({"embedder": {"model": model}, "context_k": 8})
    return ConfigRecord(
        pipeline="bot", config=known.config_hash, basis=known.basis_hash, document=known.document
    )


def batch(seq: int, record: ConfigRecord, ts: float) -> Batch:
    """Return a batch of 40 calls that ended at a time."""
    counts = {"retrievals": 40, "ok": 40, "served": 40, "asked:8": 40, "returned:8": 40}
    window = Window(record.pipeline, record.config, int(ts // 60), counts=counts)
    return Batch(writer="w", seq=seq, ts=ts, configs=[record], windows=[window])


@pytest.fixture(name="clock")
def _clock() -> VirtualClock:
    return VirtualClock(START)


@pytest.fixture(name="store")
def _store(tmp_path: Path, clock: VirtualClock) -> Iterator[SqlStore]:
    store = open_store(str(tmp_path / "s.db"), clock=clock)
    yield store
    store.close()


@pytest.fixture(name="desk")
def _desk(store: SqlStore, clock: VirtualClock) -> Desk:
    return opened(store, clock)


def opened(store: SqlStore, clock: VirtualClock) -> Desk:
    """Return a desk that took up what the store holds."""
    desk = Desk(store, judge, clock)
    desk.open()
    return desk


def hear(desk: Desk, store: SqlStore, one: Batch) -> None:
    """Apply a batch and tell the judge, as the intake does."""
    assert store.apply(one)
    desk.heard(one)


def test_a_flag_is_saved_with_the_verdict_and_told_once(
    desk: Desk, store: SqlStore, clock: VirtualClock
) -> None:
    """Sitting again says nothing new."""
    hear(desk, store, batch(1, config(), START))
    assert [change.kind for change in desk.sit()] == ["opened"]
    assert desk.sit() == []
    assert [flag.reason for flag in store.flags()] == ["untuned"]
    assert [verdict.state for verdict in store.verdicts()] == ["untuned"]


def test_a_restart_says_nothing_twice_and_keeps_the_time(
    desk: Desk, store: SqlStore, clock: VirtualClock
) -> None:
    """The judge goes on where its saved state ends."""
    hear(desk, store, batch(1, config(), START))
    desk.sit()
    clock.advance(300)
    assert opened(store, clock).sit() == []
    assert [flag.opened_ts for flag in store.flags(open_only=False)] == [START]


def test_what_came_after_the_last_save_is_told_again(
    desk: Desk, store: SqlStore, clock: VirtualClock
) -> None:
    """A kill -9 between applying and saving does not hide a change of config."""
    hear(desk, store, batch(1, config(), START))
    desk.sit()
    clock.advance(120)
    store.apply(batch(2, config("m2"), START + 120))  # the judge never heard of it
    found = opened(store, clock)
    clock.advance(1)
    assert "config_changed" in [change.flag.reason for change in found.sit()]


def test_a_state_that_cannot_be_read_is_made_anew_from_the_windows(
    desk: Desk, store: SqlStore, clock: VirtualClock
) -> None:
    """Of a newer version, or damaged."""
    hear(desk, store, batch(1, config(), START))
    desk.sit()
    store.save_state("judge", b"{")
    clock.advance(60)
    assert [verdict.state for verdict in opened(store, clock).verdicts(clock.now())] == ["untuned"]


def test_a_writer_whose_clock_runs_ahead_does_not_bring_the_future(
    desk: Desk, store: SqlStore, clock: VirtualClock
) -> None:
    """Its batch counts, as of now."""
    hear(desk, store, batch(1, config(), START + 3600))
    desk.sit()
    assert [flag.opened_ts for flag in store.flags()] == [START]


def test_accepting_is_seen_at_the_next_sitting(desk: Desk, store: SqlStore, clock: VirtualClock) -> None:
    """The tuned depths are read each time."""
    hear(desk, store, batch(1, config(), START))
    desk.sit()
    store.record_tuned(TunedK(pipeline="bot", basis=config().basis, context_k=8, tuned_at=START))
    assert [change.kind for change in desk.sit()] == ["cleared"]
    assert store.flags() == []


def test_an_unchanged_state_is_not_written_again(desk: Desk, store: SqlStore, clock: VirtualClock) -> None:
    """But once a minute, so that little has to be told again."""
    desk.sit()
    saved = store.judge_state()
    clock.advance(5)
    desk.sit()
    assert store.judge_state() == saved
    clock.advance(60)
    desk.sit()
    assert store.judge_state() != saved


def test_announced_work_makes_flags_notices(desk: Desk, store: SqlStore, clock: VirtualClock) -> None:
    """Recorded, and nobody is paged."""
    store.start_maintenance("bot", "me")
    hear(desk, store, batch(1, config(), START))
    desk.sit()
    hear(desk, store, batch(2, config("m2"), START + 60))
    clock.advance(60)
    desk.sit()
    assert {flag.severity for flag in store.flags()} == {"notice"}


def test_flags_that_are_held_open_open_once_and_clear_once(
    desk: Desk, store: SqlStore, clock: VirtualClock
) -> None:
    """For findings from outside the judge; a restart between changes nothing."""
    flag = Flag(
        key="bot:contradiction:b:lock",
        pipeline="bot",
        config="c",
        basis="b",
        reason="contradiction",
        layer="declared",
        components=("depth",),
        severity="warning",
        message="they differ",
        opened_ts=0.0,
    )
    desk.hold("lock", [flag])
    clock.advance(60)
    desk.hold("lock", [replace(flag, message="they still differ")])
    assert [(f.opened_ts, f.cleared_ts) for f in store.flags()] == [(START, None)]
    opened(store, clock).hold("lock", [])
    assert [f.cleared_ts for f in store.flags(open_only=False)] == [START + 60]


def lock(path: Path, **changes: object) -> Path:
    """Write a lock file with one record."""
    record = TunedK(pipeline="bot", basis=config().basis, context_k=8, tuned_at=1e9)
    write_lock(path, LockFile(entries=(replace(record, **changes),)))  # type: ignore[arg-type]
    return path


def test_a_merged_lock_file_is_adopted(desk: Desk, store: SqlStore, tmp_path: Path) -> None:
    """What the store does not have at all was accepted by the review of the file."""
    path = lock(tmp_path / "resweep.lock")
    LockWatch(store, desk, lambda: path).run()
    assert [record.context_k for record in store.tuned()] == [8]
    assert store.flags() == []


def test_a_disagreement_is_a_flag_until_it_is_settled(desk: Desk, store: SqlStore, tmp_path: Path) -> None:
    """The store's record stands meanwhile."""
    path = lock(tmp_path / "resweep.lock")
    watch = LockWatch(store, desk, lambda: path)
    watch.run()
    lock(path, context_k=5)
    watch.run()
    (flag,) = store.flags()
    assert (flag.reason, flag.pipeline, flag.severity) == ("contradiction", "bot", "warning")
    assert "context_k is 5 in the lock file and 8 in the store" in flag.message
    assert store.tuned()[0].context_k == 8
    lock(path)
    watch.run()
    assert store.flags() == []


def test_a_lock_file_that_cannot_be_read_changes_nothing(desk: Desk, store: SqlStore, tmp_path: Path) -> None:
    """It is told of, and the agent stays ready."""
    path = lock(tmp_path / "resweep.lock")
    watch = LockWatch(store, desk, lambda: path)
    watch.run()
    path.write_text("<<<<<<< ours\n")
    watch.run()
    assert "merge conflict" in str(watch.trouble)
    assert [record.context_k for record in store.tuned()] == [8]
    path.unlink()
    lock(path)
    watch.run()
    assert watch.trouble is None


def test_a_saved_state_is_json(desk: Desk, store: SqlStore) -> None:
    """No pickle: it is read by the next version, and by people."""
    desk.sit()
    assert msgspec.json.decode(store.judge_state() or b"")["told_until"] == START
