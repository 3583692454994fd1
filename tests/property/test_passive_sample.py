"""The sample merges bit for bit, and an engine fed by replicas says what one process says."""

from __future__ import annotations

import random

from hypothesis import given, settings
from hypothesis import strategies as st

from resweep.detect.passive.engine import PassiveEngine
from resweep.detect.passive.summary import Summary
from resweep.domain.event import Hit, RetrievalEvent
from resweep.domain.sample import BottomK, Hashes, Record, Sum, query_key

RECORDS = st.lists(
    st.builds(
        Record,
        key=st.integers(0, 40),
        ts=st.integers(0, 5).map(float),
        id=st.text("ab", min_size=1, max_size=3),
        number=st.just(-1),
        known=st.just(True),
        answer=st.just(b""),
        asked=st.just(8),
        latency_s=st.just(0.1),
    ),
    max_size=60,
).map(lambda records: list({(r.ts, r.id): r for r in records}.values()))


@given(RECORDS, st.integers(1, 8), st.randoms(use_true_random=False), st.integers(1, 5))
def test_a_bottom_k_sample_is_the_same_however_it_was_put_together(
    records: list[Record], size: int, rng: random.Random, parts: int
) -> None:
    """Split at random, merged in any order: equal to one pass."""
    whole = BottomK(size, records)
    pieces = [BottomK(size) for _ in range(parts)]
    for record in records:
        rng.choice(pieces).add(record)
    rng.shuffle(pieces)
    merged = BottomK(size)
    for piece in pieces:
        merged.merge(piece)
    assert merged == whole


@given(st.lists(st.floats(-1e6, 1e6), max_size=30), st.integers(0, 30))
def test_fixed_point_sums_merge_exactly(values: list[float], cut: int) -> None:
    """Integers add up the same in any grouping."""
    whole, left, right = Sum(), Sum(), Sum()
    for i, value in enumerate(values):
        whole.add(value)
        (left if i < cut else right).add(value)
    left.merge(right)
    assert left == whole


@given(st.text(max_size=20))
def test_a_query_key_sees_no_case_spaces_or_final_punctuation(text: str) -> None:
    """What a user types twice in two ways is one question."""
    assert query_key(text, None, b"s") == query_key(f"  {text} ?", None, b"s")


def test_a_query_key_sees_tenant_and_salt() -> None:
    """The same words of another tenant are another question; another salt gives another key."""
    keys = {
        query_key("q", None, b"s"),
        query_key("q", {"tenant": "a"}, b"s"),
        query_key("q", {"tenant": "b"}, b"s"),
        query_key("q", None, b"t"),
    }
    assert len(keys) == 4


def _events(n: int) -> list[RetrievalEvent]:
    rng = random.Random(2)
    events = []
    for i in range(n):
        q = rng.randrange(60)
        hits = tuple(
            Hit(f"p{(q * 7 + r) % 90 + 300 * (i > 4000)}", 0.9 - r / 20, source=f"s{q % 9}", tokens=90)
            for r in range(6)
        )
        key = query_key(str(q), None, b"x")
        events.append(
            RetrievalEvent(f"e{i}", 1_796_000_000 + 30.0 * i, "p", "0123456789ab", 6, 6, hits, query_key=key)
        )
    return events


@settings(max_examples=3, deadline=None)
@given(st.integers(2, 5), st.integers(0, 10**6))
def test_replicas_merged_in_any_order_give_the_flags_of_one_process(replicas: int, seed: int) -> None:
    """Split over replicas and shuffled, the same flags open at the same events with the same evidence."""
    rng = random.Random(seed)
    events = _events(4300)
    one = PassiveEngine("p", salt=b"x")
    for i, event in enumerate(events):
        one.observe(i, event)
    one.advance(events[-1].ts + 60)
    parts: list[list[tuple[int, RetrievalEvent]]] = [[] for _ in range(replicas)]
    for i, event in enumerate(events):
        rng.choice(parts).append((i, event))
    many = PassiveEngine("p", salt=b"x")
    slices = [_numbered(part) for part in parts]
    for minute in sorted({m for s in slices for m in s}):
        batch = [s[minute] for s in slices if minute in s]
        rng.shuffle(batch)
        many.absorb(batch)
    assert [c.flag for c in many.drain()] == [c.flag for c in one.drain()]
    assert many.status() == one.status()


def _numbered(part: list[tuple[int, RetrievalEvent]]) -> dict[int, Summary]:
    hashes, minutes = Hashes(), dict[int, Summary]()
    for i, event in part:
        minute = int(event.ts // 60)
        if minute not in minutes:
            minutes[minute] = Summary(event.config, minute * 60.0)
        minutes[minute].add(event, i, b"x", hashes)
    return minutes
