"""The passive layers in a live agent: batches of many writers in any order, minutes closed in order."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path

import pytest

from resweep.detect.passive.engine import PassiveEngine
from resweep.domain.batch import Batch, ConfigRecord
from resweep.domain.clock import VirtualClock
from resweep.domain.event import Hit, RetrievalEvent
from resweep.domain.fold import fold
from resweep.domain.sample import query_key
from resweep.domain.verdict import FlagChange, TunedK
from resweep.domain.window import MINUTE, Window
from resweep.record.panel import Panels
from resweep.schedule.passive import PassiveDesk
from resweep.store import open_store
from resweep.store.sql import SqlStore

SALT = b"one salt for all"
START = 1_796_000_040
CONFIG = ConfigRecord(pipeline="bot", config="c" * 12, basis="b" * 12, document={"embedder": {"model": "m"}})


def events(hours: int, change_at: int | None = None) -> Iterator[RetrievalEvent]:
    """One question a minute out of forty; from hour `change_at` on the same questions get other answers."""
    rng = random.Random(7)
    for minute in range(hours * 60):
        number = rng.randrange(40)
        changed = change_at is not None and minute >= change_at * 60
        hits = tuple(
            Hit(
                f"p{number * 10 + rank + 500 * changed}",
                0.9 - rank / 20 - changed * (number % 7) / 50,
                source=f"s{(number * (3 if changed else 1) + rank) % 29}",
                tokens=100 + changed * rank,
            )
            for rank in range(5)
        )
        yield RetrievalEvent(
            f"e{minute}", float(START + minute * 60), "bot", CONFIG.config, 5, 5, hits,
            query_key=query_key(f"question {number}", None, SALT), latency_s=0.05,
        )  # fmt: skip


class Fleet:
    """Replicas that fold events and hand over batches, and an agent's desk that hears them."""

    def __init__(self, store: SqlStore, clock: VirtualClock) -> None:
        store.apply(Batch(writer="first", seq=0, ts=clock.ts, configs=[CONFIG]))
        self.clock = clock
        self.desk = PassiveDesk(store, clock)
        self.desk.open()
        self.changes: list[FlagChange] = []

    def run(self, stream: Iterator[RetrievalEvent], replicas: int = 1, shuffle: int = 0) -> Fleet:
        rng, panels = random.Random(shuffle), [Panels(SALT) for _ in range(replicas)]
        held: list[Batch] = []
        for seq, event in enumerate(stream):
            mine = panels[rng.randrange(replicas)]
            minute = int(event.ts // MINUTE)
            window = Window("bot", event.config, minute)
            fold(window, event)
            mine.take(event, minute)
            sent = {"writer": f"w{event.id}", "ts": event.ts}
            held.append(Batch(**sent, seq=2 * seq, configs=[CONFIG], windows=[window]))  # type: ignore[arg-type]
            held.append(Batch(**sent, seq=2 * seq + 1, kind="samples", panels=mine.drain()))  # type: ignore[arg-type]
            self.clock.ts = event.ts + 30
            if len(held) >= 80:
                rng.shuffle(held)
                for batch in held:
                    self.desk.heard(batch)
                held = []
                self.clock.ts += 60
                self.changes += self.desk.sit()
        for batch in held:
            self.desk.heard(batch)
        self.clock.ts += 300
        self.changes += self.desk.sit()
        return self


@pytest.fixture
def clock() -> VirtualClock:
    return VirtualClock(float(START))


@pytest.fixture
def store(tmp_path: Path, clock: VirtualClock) -> Iterator[SqlStore]:
    opened = open_store(str(tmp_path / "store.db"), clock=clock)
    yield opened
    opened.close()


def test_a_silent_change_is_flagged_in_a_live_agent(store: SqlStore, clock: VirtualClock) -> None:
    """Nothing was declared; the same questions get other answers."""
    fleet = Fleet(store, clock).run(events(31, change_at=28))
    flags = [c.flag for c in fleet.changes if c.kind == "opened"]
    assert [(f.reason, f.layer, f.basis) for f in flags] == [("silent_change", "twins", "b" * 12)]
    assert START + 28 * 3600 <= (flags[0].onset_ts or 0) <= START + 29 * 3600


def test_a_steady_fleet_says_nothing(store: SqlStore, clock: VirtualClock) -> None:
    """Repeats that get the same answers are quiet."""
    assert Fleet(store, clock).run(events(31)).changes == []


def test_replicas_in_any_order_find_what_one_process_finds(tmp_path: Path) -> None:
    """Three writers, batches shuffled: the same flag, opened on the same evidence."""
    found = []
    for name, replicas, shuffle in (("one", 1, 0), ("three", 3, 5)):
        clock = VirtualClock(float(START))
        opened = open_store(str(tmp_path / f"{name}.db"), clock=clock)
        fleet = Fleet(opened, clock).run(events(31, change_at=28), replicas, shuffle)
        found.append([(c.kind, c.flag.message, c.flag.opened_ts) for c in fleet.changes])
        opened.close()
    assert found[0] == found[1]


def test_what_was_learnt_outlives_a_restart(store: SqlStore, clock: VirtualClock) -> None:
    """Saved at the end of the first agent's day, taken up by the second."""
    stream = list(events(31, change_at=28))
    first = Fleet(store, clock).run(iter(stream[: 26 * 60]))
    first.desk.save()
    second = Fleet(store, clock).run(iter(stream[26 * 60 :]))
    changes = first.changes + second.changes
    assert [c.flag.reason for c in changes if c.kind == "opened"] == ["silent_change"]


def test_accepting_a_depth_closes_the_flag(store: SqlStore, clock: VirtualClock) -> None:
    """The present system is the right one now."""
    fleet = Fleet(store, clock).run(events(31, change_at=28))
    store.record_tuned(TunedK(pipeline="bot", basis="b" * 12, context_k=5, epoch=2, tuned_at=clock.ts))
    assert [c.kind for c in fleet.desk.sit()] == ["cleared"]


def test_the_desk_agrees_with_the_engine_fed_event_by_event(store: SqlStore, clock: VirtualClock) -> None:
    """A live minute and a replayed one are judged alike."""
    fleet = Fleet(store, clock).run(events(31, change_at=28))
    engine = PassiveEngine("bot", salt=SALT, basis_of=lambda _: "b" * 12)
    for number, event in enumerate(events(31, change_at=28)):
        engine.observe(number, event)
    engine.finish()
    replayed = [c.flag.message for c in engine.drain() if c.kind == "opened"]
    assert [c.flag.message for c in fleet.changes if c.kind == "opened"] == replayed
