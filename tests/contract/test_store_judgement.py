"""What the judge says, what people do about it, and the calls that tell others."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from resweep.domain.clock import VirtualClock
from resweep.domain.errors import UsageError
from resweep.domain.ports import Store
from resweep.domain.verdict import Flag, TunedK, Verdict
from resweep.store.rows import JobRow
from resweep.store.sql import SqlStore

NOW = 1_796_000_000.0
FLAG = Flag(
    key="bot:k_mismatch",
    pipeline="bot",
    config="aaaaaaaaaaaa",
    basis="b1",
    reason="k_mismatch",
    layer="declared",
    components=("depth",),
    severity="warning",
    message="k is 5, tuned for 8",
    opened_ts=NOW,
    evidence={"declared": 5, "tuned": 8, "rates": [0.25, None]},
    next_command="resweep sweep bot",
)
CLEARED = replace(FLAG, cleared_ts=NOW + 60)
TUNED = TunedK(
    pipeline="bot",
    basis="b1",
    context_k=15,
    candidate_k=50,
    best_set=(15, 20, 40),
    parts={"embedder": {"model": "m1"}},
    observed={"passages": 1200},
    weak_cases=("c1", "c2"),
    tuned_at=NOW + 0.125,
    tuned_by="jane",
)


def verdict(basis: str = "b1") -> Verdict:
    """Return a verdict on a basis of the pipeline."""
    return Verdict(pipeline="bot", basis=basis, config="a", state="expired", why="k", since=NOW)


def test_the_store_is_what_the_others_ask_for(store: SqlStore) -> None:
    """It has every method of the port, with the port's own signatures."""
    asked: Store = store
    assert asked.pipelines() == []


def test_flags_come_back_as_they_were(store: SqlStore) -> None:
    """With their evidence; the cleared ones on request."""
    store.save_judgement([FLAG], [], b"{}")
    assert store.flags() == [FLAG]
    store.save_judgement([CLEARED], [], b"{}")
    assert store.flags() == []
    assert store.flags("bot", open_only=False) == [CLEARED]
    assert store.flags("other-bot", open_only=False) == []


def test_the_same_cause_is_the_same_flag(store: SqlStore) -> None:
    """Sharper evidence replaces what was said; a second opening is a second flag."""
    again = replace(FLAG, opened_ts=NOW + 500)
    store.save_judgement([FLAG, replace(FLAG, components=("depth", "index"))], [], b"{}")
    assert [f.components for f in store.flags()] == [("depth", "index")]
    store.save_judgement([CLEARED, again], [], b"{}")
    assert store.flags(open_only=False) == [CLEARED, again]


def test_flags_verdicts_and_state_are_written_together(store: SqlStore) -> None:
    """A judgement that cannot be written whole is not written."""
    store.save_judgement([FLAG], [verdict()], b"one")
    with pytest.raises(TypeError):
        store.save_judgement([CLEARED], [replace(verdict(), why=object())], b"two")  # type: ignore[arg-type]
    assert store.flags() == [FLAG]
    assert store.judge_state() == b"one"


def test_the_last_verdict_of_each_basis_is_kept(store: SqlStore) -> None:
    """Also of one that is out of use."""
    store.save_judgement([], [verdict("b1"), verdict("b2")], b"")
    newer = replace(verdict("b2"), state="valid")
    store.save_judgement([], [newer], b"")
    assert store.verdicts("bot") == [verdict("b1"), newer]


def test_a_fresh_store_knows_no_state(store: SqlStore) -> None:
    """And keeps any by its name."""
    assert store.judge_state() is None
    store.save_state("plan", b"\x00\xff")
    assert store.state("plan") == b"\x00\xff"


def test_each_opening_and_clearing_is_one_call(opened: Callable[..., SqlStore], clock: VirtualClock) -> None:
    """For each receiver; a restart that says the same again posts nothing."""
    store = opened(webhook_targets=("ci", "chat"))
    for said in (FLAG, FLAG, CLEARED, CLEARED):
        store.save_judgement([said], [], b"")
    calls = [(d.target, d.change, d.flag.key) for d in store.due_deliveries()]
    assert calls == [
        ("ci", "opened", FLAG.key),
        ("chat", "opened", FLAG.key),
        ("ci", "cleared", FLAG.key),
        ("chat", "cleared", FLAG.key),
    ]


def test_a_call_is_tried_again_until_it_is_taken(
    opened: Callable[..., SqlStore], clock: VirtualClock
) -> None:
    """Not before its time, and never once it was taken; then it goes after a month."""
    store = opened(webhook_targets=("ci",))
    store.save_judgement([FLAG], [], b"")
    (call,) = store.due_deliveries()
    store.delivery_failed(call.id, "503", clock.ts + 30)
    assert store.due_deliveries() == []
    clock.advance(31)
    assert [(d.attempts, d.error) for d in store.due_deliveries()] == [(1, "503")]
    store.delivered(call.id)
    assert store.due_deliveries() == []
    clock.advance(31 * 86400)
    assert store.housekeep().deliveries == 1


def test_what_people_say_of_a_flag_is_kept(store: SqlStore, clock: VirtualClock) -> None:
    """Who, what and why, in order."""
    store.ack_flag(FLAG, "jane", "looking")
    clock.advance(1)
    store.ack_flag(FLAG, "joe", action="resolve")
    assert [(a.who, a.action, a.because) for a in store.acks("bot")] == [
        ("jane", "ack", "looking"),
        ("joe", "resolve", ""),
    ]


def test_a_tuned_depth_comes_back_as_it_was(store: SqlStore) -> None:
    """With everything that was written beside it."""
    store.record_tuned(TUNED)
    assert store.tuned("bot") == [TUNED]


def test_a_tuned_depth_is_replaced_and_its_history_kept(store: SqlStore) -> None:
    """The newest epoch of a basis comes last."""
    second, redone = replace(TUNED, epoch=2), replace(TUNED, context_k=20)
    for record in (second, TUNED, redone):
        store.record_tuned(record)
    assert store.tuned() == [redone, second]
    assert store.tuned_history("bot", "b1") == [second, TUNED, redone]


def test_a_tuned_depth_can_be_taken_back(store: SqlStore) -> None:
    """It stays in the history."""
    store.record_tuned(TUNED)
    assert store.retract_tuned("bot", "b1", 1)
    assert not store.retract_tuned("bot", "b1", 1)
    assert store.tuned() == []
    assert store.tuned_history("bot", "b1") == [TUNED]


def test_job_states_outlive_the_process(opened: Callable[..., SqlStore]) -> None:
    """The next agent reads what this one wrote."""
    row = JobRow(name="judge", tick=NOW, succeeded=NOW + 1, runs=3, failures=1, lateness_s=0.25, error="x")
    opened().save_job(row)
    opened().save_job(replace(row, runs=4))
    assert opened().jobs() == [replace(row, runs=4)]


def test_announced_work_lasts_until_its_end(store: SqlStore, clock: VirtualClock) -> None:
    """Ended by hand, or by its own time; a second announcement replaces the first."""
    store.start_maintenance("bot", "jane", "reindex", until=NOW + 600)
    store.start_maintenance("shop", "jane")
    assert store.in_maintenance(NOW) == {"bot", "shop"}
    assert store.in_maintenance(NOW + 600) == {"shop"}
    clock.advance(5)
    store.start_maintenance("bot", "joe")
    assert store.end_maintenance("bot")
    assert not store.end_maintenance("bot")
    assert store.in_maintenance(clock.ts) == {"shop"}
    assert [(m.who, m.ended) for m in store.maintenances("bot")] == [("jane", NOW + 5), ("joe", NOW + 5)]


def test_the_audit_log_says_who_did_what(store: SqlStore) -> None:
    """The newest first."""
    store.record_audit("jane", "accept", "bot", {"k": 8})
    store.record_audit("joe", "resolve", FLAG.key)
    assert [(e.who, e.action, e.details) for e in store.audit_log()] == [
        ("joe", "resolve", {}),
        ("jane", "accept", {"k": 8}),
    ]


@pytest.mark.parametrize(
    ("metric", "labels", "value"),
    [
        ("resweep_retrievals_total", ("bot",), 1.0),
        ("resweep_drift_evidence", ("bot",), 1.0),
        ("resweep_drift_evidence", ("bot", "a", "twins"), float("nan")),
    ],
)
def test_a_gauge_that_is_none_is_refused(
    store: SqlStore, metric: str, labels: tuple[str, ...], value: float
) -> None:
    """A counter, too few labels, no number."""
    with pytest.raises(UsageError, match="expected"):
        store.set_gauges(metric, {labels: value})
