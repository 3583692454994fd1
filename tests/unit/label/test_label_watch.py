"""Watching over the set: gauges, and the flag when it no longer speaks for the traffic."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path

import pytest

from resweep.detect.judge import Judge
from resweep.detect.settings import DetectSettings
from resweep.domain.batch import Batch
from resweep.domain.case import CaseLine, Judgment
from resweep.domain.clock import VirtualClock
from resweep.domain.event import RetrievalEvent
from resweep.schedule.desk import Desk
from resweep.schedule.labelwatch import OLD_S, LabelWatch
from resweep.shipped import invalidation_rules
from resweep.store import open_store
from resweep.store.sql import SqlStore

NOW = 1_796_000_000.0
BILLING = ("invoice", "refund", "charge", "card")
TECH = ("login", "crash", "upload", "timeout")


@pytest.fixture
def clock() -> VirtualClock:
    """Give a clock that stands still."""
    return VirtualClock(NOW)


@pytest.fixture
def store(tmp_path: Path, clock: VirtualClock) -> Iterator[SqlStore]:
    """Give a fresh store."""
    opened = open_store(str(tmp_path / "resweep.db"), clock=clock)
    yield opened
    opened.close()


def watch(store: SqlStore, clock: VirtualClock) -> LabelWatch:
    """Give a watch with a desk of its own."""
    rules = invalidation_rules(None)
    return LabelWatch(store, Desk(store, lambda state: Judge(DetectSettings(), rules, state), clock), clock)


def label(store: SqlStore, words: tuple[str, ...], n: int = 120) -> None:
    """Put n judged cases about some words in."""
    lines = [
        CaseLine(case_id=f"c{i}", query=q, pipeline="bot", judgments=[Judgment(passage_id="a", grade=1)])
        for i, q in enumerate(asked(words, n, 1))
    ]
    store.import_cases(lines, "ann")


def ask(store: SqlStore, words: tuple[str, ...], n: int = 200) -> None:
    """Let n questions about some words come in."""
    events = [
        RetrievalEvent(f"e{i}", NOW - 1000 + i, "bot", "c" * 12, query=q)
        for i, q in enumerate(asked(words, n, 2))
    ]
    store.apply(Batch(writer="w", seq=1, ts=NOW, events=events))


def asked(words: tuple[str, ...], n: int, seed: int) -> list[str]:
    """Give n questions about some words, each one different."""
    rng = random.Random(seed)
    return [f"my {rng.choice(words)} and the {rng.choice(words)} number {seed}-{i} fail" for i in range(n)]


def flags(store: SqlStore) -> list[tuple[str, str]]:
    """Return reason and severity of the open flags."""
    return [(flag.reason, flag.severity) for flag in store.flags()]


def test_a_set_of_the_traffics_own_topics_is_left_alone(store: SqlStore, clock: VirtualClock) -> None:
    """Nothing is said."""
    label(store, BILLING)
    ask(store, BILLING)
    watch(store, clock).run()
    assert flags(store) == []


def test_a_set_of_other_topics_is_a_notice_that_clears(store: SqlStore, clock: VirtualClock) -> None:
    """It names the words, and goes when the set has caught up."""
    label(store, BILLING)
    ask(store, TECH)
    watching = watch(store, clock)
    watching.run()
    assert flags(store) == [("labelled_set_stale", "notice")]
    (flag,) = store.flags()
    assert set(TECH) & set(flag.evidence["words"])  # type: ignore[call-overload]
    store.delete_cases([row.case_id for row in store.case_page(limit=500)])
    label(store, TECH)
    clock.advance(7 * 3600)
    watching.run()
    assert flags(store) == []


def test_a_set_that_nobody_adds_to_grows_old(store: SqlStore, clock: VirtualClock) -> None:
    """After half a year without a label."""
    label(store, BILLING)
    clock.advance(OLD_S + 86_400)
    watch(store, clock).run()
    assert flags(store) == [("labelled_set_stale", "notice")]
    assert "nobody judged a case for 181 days" in store.flags()[0].message


def test_little_traffic_says_nothing(store: SqlStore, clock: VirtualClock) -> None:
    """Below 50 questions."""
    label(store, BILLING)
    ask(store, TECH, 49)
    watch(store, clock).run()
    assert flags(store) == []


def test_the_gauges_follow_the_set(store: SqlStore, clock: VirtualClock) -> None:
    """Cases by state and split; the age of the oldest that waits."""
    ask(store, BILLING, 1)
    label(store, BILLING, 30)
    store.import_cases([CaseLine(case_id="w", query="what waits here", pipeline="bot")], "ann")
    clock.advance(600)
    watch(store, clock).run()
    shown = {s.metric: {} for s in store.snapshot().samples}  # type: ignore[var-annotated]
    for sample in store.snapshot().samples:
        shown[sample.metric][sample.labels] = sample.value
    cases = shown["resweep_labelled_cases"]
    assert sum(v for (_, state, _), v in cases.items() if state == "labelled") == 30
    assert shown["resweep_review_queue_oldest_seconds"] == {("bot",): 600.0}
