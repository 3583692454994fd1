"""The labelling desk: what comes in as events is in the queue, with its probability, and only once."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from pathlib import Path

import pytest

from resweep import shipped
from resweep.domain.case import CaseLine, Judgment
from resweep.domain.clock import VirtualClock
from resweep.domain.event import Feedback
from resweep.ingest.events import read_lines
from resweep.label.replay import replay_cases
from resweep.label.settings import LabelSettings
from resweep.schedule.casedesk import CaseDesk
from resweep.store import open_store
from resweep.store.sql import SqlStore

NOW = 1_796_000_000.0
RULES = shipped.invalidation_rules(None)


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


def body(n: int, since: float = NOW - 1200, step: float = 0.5, tag: str = "e") -> bytes:
    """Give n event lines; every tenth is empty."""
    rng = random.Random(3)
    lines = []
    for i in range(n):
        top = rng.random()
        hits = (
            []
            if i % 10 == 3
            else [{"id": f"p{j}", "score": top - j / 10, "text": f"text {j}"} for j in range(4)]
        )
        event = {"type": "event", "id": f"{tag}{i}", "ts": since + i * step, "pipeline": "bot", "asked": 4}
        lines.append(json.dumps({**event, "query": f"what about topic {tag}{i}", "hits": hits}))
    return "\n".join(lines).encode()


def post(store: SqlStore, data: bytes) -> list[object]:
    """Take event lines in; return the events that were kept."""
    batch = read_lines(data, RULES, NOW).batch
    store.apply(batch)
    return list(batch.events)


def test_posted_events_come_into_the_queue(store: SqlStore, clock: VirtualClock) -> None:
    """With what to judge, why they are there, and weights that add up to the traffic."""
    post(store, body(1000))
    assert CaseDesk(store, clock=clock).run() > 10
    rows = store.case_page(limit=500)
    assert {r.state for r in rows} == {"candidate"}
    assert {r.stratum for r in rows} >= {"uniform", "empty_or_short"}
    assert 500 < sum(r.weight for r in rows) < 2000
    full = next(r for r in rows if r.stratum == "uniform" and store.case(r.case_id).hits)
    assert store.case(full.case_id).hits[0].text == "text 0"


def test_deciding_again_changes_nothing(store: SqlStore, clock: VirtualClock) -> None:
    """Nor does another agent on the same store."""
    post(store, body(400))
    CaseDesk(store, clock=clock).run()
    before = list(store.case_lines())
    assert CaseDesk(store, clock=clock).run() == 0
    assert list(store.case_lines()) == before


def test_the_live_desk_and_a_replay_draw_alike(store: SqlStore, clock: VirtualClock) -> None:
    """The same events, in one go: the same cases, probabilities and splits."""
    events = post(store, body(600))
    clock.ts = NOW + 7200  # all hours are over
    CaseDesk(store, clock=clock).run()
    replayed = replay_cases(events)  # type: ignore[arg-type]
    live = {
        line.event_id: (line.inclusion_probability, line.weight, line.split) for line in store.case_lines()
    }
    assert live == {c.event_id: (c.inclusion_probability, c.weight, c.split) for c in replayed}


def test_an_hour_that_grows_keeps_to_its_share(store: SqlStore, clock: VirtualClock) -> None:
    """Twenty bodies in one hour bring no more than one of them all would."""
    desk = CaseDesk(store, LabelSettings(daily={"uniform": 40.0}), clock)
    since = NOW - NOW % 3600
    clock.ts = since + 3500
    for i in range(20):
        post(store, body(200, since=since + i * 100, step=0.4, tag=f"t{i}-"))
        desk.run()
    rows = store.case_page(limit=500)
    assert 5 < len(rows) < 40
    assert len({round(r.p or 0, 9) for r in rows}) == 1
    assert 2000 < sum(r.weight for r in rows) < 7000


def test_a_bad_word_brings_its_event_in(store: SqlStore, clock: VirtualClock) -> None:
    """Also hours later, and only once per question."""
    post(store, body(800))
    desk = CaseDesk(store, clock=clock)
    desk.run()
    have = {d.event_id for line in store.case_lines() for d in line.events}
    events = {e.id for e in store.events("bot", 0, NOW)}
    missing = sorted(events - have)[:2]
    clock.ts = NOW + 20_000
    store.add_feedback([Feedback(f"f{e}", e, "escalated", "u", clock.ts) for e in missing])
    store.add_feedback([Feedback("g", missing[0], "positive", "v", clock.ts)])
    assert desk.run() == 2
    fed = {line.event_id: line.provenance for line in store.case_lines() if line.stratum == "feedback"}
    assert fed == dict.fromkeys(missing, "feedback")


def test_nothing_without_text_is_queued(store: SqlStore, clock: VirtualClock) -> None:
    """Where content is not kept there is nothing to judge."""
    post(store, body(300).replace(b'"query"', b'"no_query"'))
    assert CaseDesk(store, clock=clock).run() == 0
    assert store.case_page() == []


def test_what_each_stratum_brought_is_counted(store: SqlStore, clock: VirtualClock) -> None:
    """In the counters that Prometheus reads."""
    post(store, body(1000))
    CaseDesk(store, clock=clock).run()
    cases = sum(line.stratum == "empty_or_short" for line in store.case_lines())
    counted = {s.labels[2]: s.value for s in store.snapshot().samples if s.metric == "resweep_sampled_total"}
    assert counted["empty_or_short"] == cases > 0
    assert counted["uniform"] == 1000


def test_imports_find_the_side_of_near_equal_questions(store: SqlStore, clock: VirtualClock) -> None:
    """A question that differs in a filler is in the cluster, and so on the side, of the first."""
    one = "how long does it take until my refund arrives on the account"
    lines = [
        CaseLine(case_id=f"c{i}", query=q, pipeline="bot", judgments=[Judgment(passage_id="a", grade=1)])
        for i, q in enumerate((one, one + " please", "what is the price of a premium plan"))
    ]
    desk = CaseDesk(store, clock=clock)
    desk.import_lines(lines[:1], "ann")
    desk.import_lines(lines[1:], "ann")
    found = {line.case_id: line for line in store.case_lines()}
    assert found["c0"].cluster == found["c1"].cluster != found["c2"].cluster
    assert found["c0"].split == found["c1"].split
