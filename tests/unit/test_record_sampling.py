"""Ids, sampling and low confidence: what follows from a call's number and scores alone."""

from __future__ import annotations

import random

from hypothesis import given
from hypothesis import strategies as st

from resweep.domain.event import event_id, parse_event_id
from resweep.record.confidence import Confidence
from resweep.record.ids import Ids
from resweep.record.uniform import Uniform

CONFIG = "9f2c0a417be1"


@given(st.integers(0, (1 << 40) - 1))
def test_an_id_says_when_and_which_config(number: int) -> None:
    """The quick formatting equals the ULID of the domain, and can be read back."""
    ids = Ids(lambda: 1_796_000_000.25)
    t = ids._anchors[0][0]
    text = ids.text(t, number, CONFIG)
    assert text == event_id(1_796_000_000_250, ids.entropy(number), CONFIG)
    assert parse_event_id(text) == (1_796_000_000.25, CONFIG)


def test_times_follow_a_clock_that_is_set_without_changing_what_was() -> None:
    """A call before the step keeps its time, and so its id; one after it has the new."""
    now = [1000.0]
    ids = Ids(lambda: now[0])
    before = ids._anchors[0][0]
    now[0] = 5000.0
    ids.follow_clock()
    after = ids._anchors[-1][0]
    assert (ids.wall(before), ids.wall(after)) == (1000.0, 5000.0)


def test_the_sample_is_even_and_the_same_for_everybody() -> None:
    """One in twenty of consecutive numbers, whoever asks, in whatever order."""
    one, other = Uniform(0.05, 10_000), Uniform(0.05, 10_000)
    numbers = list(range(2_000))
    taken = {number for number in numbers if one.takes(number, 7)}
    random.Random(1).shuffle(numbers)
    assert {number for number in numbers if other.takes(number, 7)} == taken
    assert 98 <= len(taken) <= 102


def test_a_burst_keeps_near_its_budget_and_the_next_minute_knows() -> None:
    """60 a minute: a first burst of 100,000 halves its rate as it goes, the next starts low."""
    uniform = Uniform(0.05, 60)
    first = sum(uniform.takes(number, 1) for number in range(100_000))
    second = sum(uniform.takes(number, 2) for number in range(100_000))
    assert first <= 60 * 2 * 7
    assert 30 <= second <= 61


def scores(level: float, spread: float, n: int, seed: int = 1) -> list[float]:
    chance = random.Random(seed)
    return [chance.gauss(level, spread) for _ in range(n)]


def test_about_five_per_cent_are_low_once_there_is_a_reference() -> None:
    """Nothing before 200 answers; then near one in twenty of the same distribution."""
    confidence = Confidence()
    early = sum(confidence.low(score, score - 0.2) for score in scores(0.8, 0.05, 200))
    late = sum(confidence.low(score, score - 0.2) for score in scores(0.8, 0.05, 4000, seed=2))
    assert early == 0
    assert 0.03 <= late / 4000 <= 0.08


def test_distances_are_turned_round() -> None:
    """Where scores rise with rank, a large one is low confidence."""
    confidence = Confidence()
    for score in scores(0.2, 0.02, 300):
        confidence.low(score, score + 0.2)
    assert confidence.low(0.9, 1.0)
    assert not confidence.low(0.05, 0.3)


def test_scores_that_all_are_equal_are_never_low() -> None:
    """A retriever that scores everything 1.0 floods nobody."""
    confidence = Confidence()
    assert not any(confidence.low(1.0, 1.0) for _ in range(1000))
