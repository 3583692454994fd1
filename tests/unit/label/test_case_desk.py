"""The labelling desk: what comes in as events is in the queue, with its probability, and only once."""

from __future__ import annotations

import itertools
import json
import random
from collections.abc import Iterator
from pathlib import Path

import pytest

from resweep import shipped
from resweep.detect.canary.book import System
from resweep.domain.case import Candidate, CaseLine, Judgment, question_key
from resweep.domain.clock import VirtualClock
from resweep.domain.event import Feedback, Hit
from resweep.domain.values import text_hash
from resweep.ingest.events import read_lines
from resweep.label.replay import replay_cases
from resweep.label.sampler import Sampler
from resweep.label.settings import LabelSettings
from resweep.schedule.canaries import save_system
from resweep.schedule.casedesk import CaseDesk
from resweep.store import open_store
from resweep.store.canaries import CanaryQuery
from resweep.store.probes import Probe
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


def test_a_large_hour_comes_in_slices_and_ends_the_same(store: SqlStore, clock: VirtualClock) -> None:
    """A run without time left leaves the rest to the next; the plan is published with the last slice."""
    wanted, ticks = LabelSettings(daily={"uniform": 100_000.0}), itertools.count()
    events = post(store, body(900))
    clock.ts = NOW + 7200
    desk = CaseDesk(store, wanted, clock, run_s=2.0, monotonic=lambda: float(next(ticks)))
    runs = [desk.run()]
    assert (runs, len(store.case_page(limit=500)), store.plans("bot")) == ([200], 200, [])
    while runs[-1]:
        runs.append(desk.run())
    assert (max(runs), sum(runs)) == (400, 900)
    replayed = replay_cases(events, Sampler(wanted))  # type: ignore[arg-type]
    assert {(c.event_id, c.weight, c.split) for c in store.case_lines()} == {
        (c.event_id, c.weight, c.split) for c in replayed
    }


def test_an_agent_that_ends_between_two_slices_loses_nothing(store: SqlStore, clock: VirtualClock) -> None:
    """The next one decides the hour again."""
    wanted, ticks = LabelSettings(daily={"uniform": 100_000.0}), itertools.count()
    post(store, body(900))
    CaseDesk(store, wanted, clock, run_s=2.0, monotonic=lambda: float(next(ticks))).run()
    assert CaseDesk(store, wanted, clock).run() == 700
    assert store.case_count() == 900


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


def hit(passage: str, text: str) -> Hit:
    """Give a passage with its text."""
    return Hit(passage, 0.5, text=text, text_hash=text_hash(text))


LONG = "refunds are paid within thirty days after the parcel has come back to our warehouse"


def judged_case(store: SqlStore) -> str:
    """Put a case in whose two passages ann has judged."""
    hits = (hit("p1", LONG), hit("p2", "shipping is free of charge"))
    candidate = Candidate(
        pipeline="bot", question=question_key("refund?"), query="refund?", hits=hits, asked=2, slices={}
    )
    (case,) = store.enqueue([candidate]).values()
    for passage, grade in ((hits[0], 1), (hits[1], 0)):
        store.judge(case, "ann", passage.id, grade, passage.text_hash)
    store.finish(case, "ann", "labelled")
    return case


def test_judgments_follow_their_texts_through_a_new_chunking(store: SqlStore, clock: VirtualClock) -> None:
    """Renumbered and joined: moved, and still labelled since all that is listed was judged."""
    case = judged_case(store)
    new = (hit("n1", "shipping is free of charge"), hit("n2", f"{LONG} in one piece"))
    row = CaseDesk(store, clock=clock).relist(case, new, "d" * 12, 2, NOW)
    grades = {j.passage_id: (j.grade, j.anchor) for j in store.case(case).judgments}
    assert grades == {"n1": (0.0, "moved"), "n2": (1.0, "moved")}
    assert row.state == "labelled"


def test_a_passage_that_nobody_judged_asks_for_a_look(store: SqlStore, clock: VirtualClock) -> None:
    """A new embedder brought it into the list."""
    case = judged_case(store)
    new = (hit("p1", LONG), hit("p9", "something new altogether"))
    assert CaseDesk(store, clock=clock).relist(case, new, "d" * 12, 2, NOW).state == "needs_look"


def test_a_judgment_whose_text_is_gone_waits_for_repair(store: SqlStore, clock: VirtualClock) -> None:
    """Its id came back with another text: it is listed, never silently orphaned."""
    case = judged_case(store)
    new = (hit("p1", "opening hours are nine to five"), hit("p2", "shipping is free of charge"))
    assert CaseDesk(store, clock=clock).relist(case, new, "d" * 12, 2, NOW).state == "needs_look"
    assert [(c, j.passage_id) for c, j in store.repairs("bot")] == [(case, "p1")]


def test_a_question_asked_of_another_config_brings_its_list_along(
    store: SqlStore, clock: VirtualClock
) -> None:
    """Without anybody doing anything."""
    case = judged_case(store)
    clock.ts = NOW + 100
    line = {"type": "event", "id": "n1", "ts": NOW + 50, "pipeline": "bot", "query": "Refund?", "asked": 2}
    hits = [{"id": "new", "text": "nobody has seen this", "score": 0.4}]
    post(store, json.dumps({**line, "config_hash": "d" * 12, "hits": hits}).encode())
    CaseDesk(store, clock=clock).run()
    assert store.case(case).case.state == "needs_look"
    assert [h.id for h in store.case(case).hits] == ["new"]


def test_a_probe_brings_its_deeper_list_in(store: SqlStore, clock: VirtualClock) -> None:
    """So that judgments reach beyond the depth in use."""
    post(store, body(30))
    desk = CaseDesk(store, clock=clock)
    desk.run()
    row = next(r for r in store.case_page() if store.case(r.case_id).hits)
    deep = tuple(Hit(f"p{i}", 1.0 - i / 50) for i in range(40))
    assert row.event_id is not None
    store.keep_probe(
        Probe(event_id=row.event_id, pipeline="bot", config=row.config or "", ts=NOW + 1, k=40, hits=deep)
    )
    desk.run()
    view = store.case(row.case_id)
    assert (len(view.hits), view.asked) == (40, 4)
    assert store.probed() == []


def test_a_file_that_would_leak_is_quarantined(store: SqlStore, clock: VirtualClock) -> None:
    """Two wordings of one question that a file puts on opposite sides: the later one takes no part."""
    lines = [
        CaseLine(
            case_id="a", query="how do I reset my password today", pipeline="bot", split="tune", cluster="x"
        ),
        CaseLine(
            case_id="b",
            query="How do I reset my password today?!",
            pipeline="bot",
            split="holdout",
            cluster="y",
        ),
        CaseLine(
            case_id="c",
            query="so how do I reset my password today",
            pipeline="bot",
            split="holdout",
            cluster="z",
        ),
        CaseLine(
            case_id="d",
            query="where are the invoices of last year",
            pipeline="bot",
            split="holdout",
            cluster="w",
        ),
    ]
    CaseDesk(store, clock=clock).import_lines(lines, "eve")
    sides = {row.query: row.split for row in store.case_page()}
    assert sides == {
        "how do I reset my password today": "tune",
        "so how do I reset my password today": "quarantined",
        "where are the invoices of last year": "holdout",
    }


def test_traffic_that_asks_what_a_canary_lost_is_sampled_for_it(store: SqlStore, clock: VirtualClock) -> None:
    """Its stratum has a budget of its own; other questions do not qualify."""
    store.set_canaries("bot", "file", [CanaryQuery(id="q1", query="what about topic e5", relevant={"p9": 1})])
    system = System(pipeline="bot", basis="b1")
    system.quality.lost = {"q1": 3, "q2": 3}
    save_system(store, system)
    post(store, body(300))
    CaseDesk(store, LabelSettings(daily={"canary_lost": 4.0}), clock).run()
    (only,) = store.case_page()
    assert (only.query, only.stratum, only.p) == ("what about topic e5", "canary_lost", 1.0)
