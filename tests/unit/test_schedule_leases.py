"""Leases: one recorder at a time, offered again, never counted twice; questions from files and traffic."""

from __future__ import annotations

from pathlib import Path

import pytest

from resweep.domain.duration import seconds
from resweep.domain.errors import InputError, UsageError
from resweep.domain.event import Hit, RetrievalEvent
from resweep.domain.work import Work
from resweep.schedule.leases import TRIES_MAX, WAIT_S, Leases
from resweep.schedule.questions import frozen, read_questions


class Time:
    """A monotonic clock that is set."""

    now = 0.0

    def __call__(self) -> float:
        """Return the time."""
        return self.now


def work(name: str = "w") -> Work:
    """Return a piece of work."""
    return Work(id=name, kind="embed", pipeline="bot", config="c", basis="b")


@pytest.fixture(name="time")
def _time() -> Time:
    return Time()


@pytest.fixture(name="leases")
def _leases(time: Time) -> Leases:
    return Leases(60.0, time)


def take(leases: Leases, writer: str) -> list[str]:
    """Return the ids of what a recorder gets."""
    return [one.id for one in leases.take(writer, lambda _: True, 10)]


def test_work_is_one_recorders_at_a_time(leases: Leases) -> None:
    """Who asks first has it."""
    leases.put(work())
    assert (take(leases, "a"), take(leases, "b"), take(leases, "a")) == (["w"], [], [])


def test_what_is_not_answered_goes_to_another(leases: Leases, time: Time) -> None:
    """And the first one's late answer counts no more."""
    leases.put(work())
    take(leases, "a")
    time.now = 60.0
    assert take(leases, "b") == ["w"]
    assert leases.done("w", "a") is None
    assert leases.done("w", "b") == work()
    assert leases.done("w", "b") is None


def test_what_nobody_answers_is_given_up(leases: Leases, time: Time) -> None:
    """After three tries; what nobody can do, after an hour."""
    leases.put(work())
    for _ in range(TRIES_MAX):
        assert take(leases, "a") == ["w"]
        time.now += 60.0
    assert (take(leases, "a"), leases.given_up) == ([], 1)
    leases.put(work(), only="z")
    time.now += WAIT_S
    assert (leases.outstanding(lambda _: True), leases.given_up) == (False, 2)


def test_a_probe_is_for_the_recorder_that_holds_the_call(leases: Leases) -> None:
    """Nobody else gets it."""
    leases.put(work(), only="a")
    assert (take(leases, "b"), take(leases, "a")) == ([], ["w"])


def test_questions_come_one_a_line(tmp_path: Path) -> None:
    """As text or JSON, of all pipelines or of one."""
    path = tmp_path / "q.txt"
    path.write_text('how long do refunds take\n\n{"query": "x", "relevant": ["p1"], "pipeline": "bot"}\n')
    first, second = read_questions(path, "bot")
    assert (first.query, first.relevant) == ("how long do refunds take", {})
    assert (second.query, second.relevant) == ("x", {"p1": 1})
    assert [one.query for one in read_questions(path, "shop")] == ["how long do refunds take"]


def test_a_line_that_is_no_question_is_named(tmp_path: Path) -> None:
    """With its number."""
    path = tmp_path / "q.txt"
    path.write_text('a\n{"question": 3}\n')
    with pytest.raises(InputError, match="line 2"):
        read_questions(path, "bot")


def event(n: int, **more: object) -> RetrievalEvent:
    """Return a sampled event with its query."""
    known = {"query": f"q{n}", "query_key": n, "hits": (Hit("p"),), "returned": 1, **more}
    return RetrievalEvent(f"e{n}", 1.0, "bot", "c", **known)  # type: ignore[arg-type]


def test_frozen_queries_are_the_same_at_every_look() -> None:
    """More traffic adds smaller hashes and moves none that stays among the smallest."""
    few = [one.id for one in frozen([event(n) for n in range(50)], 10)]
    assert few == [one.id for one in frozen([event(n) for n in reversed(range(50))], 10)]
    more = [one.id for one in frozen([event(n) for n in range(60)], 10)]
    assert len(set(few) & set(more)) >= 7


def test_what_cannot_be_asked_again_is_not_frozen() -> None:
    """A filter, a failure, no text, nothing found."""
    unfit = [event(1, filters={"tenant": "a"}), event(2, query=None), event(3, hits=()), event(4, probe=True)]
    assert list(frozen(unfit, 10)) == []


@pytest.mark.parametrize(
    ("written", "expected"), [("90s", 90), ("15m", 900), ("1h", 3600), ("7d", 604800), (5, 5)]
)
def test_stretches_of_time_are_read(written: str | float, expected: float) -> None:
    """With a unit, or in seconds."""
    assert seconds(written) == expected


@pytest.mark.parametrize("written", ["", "0s", "soon", "1w", "-1h", "1 2h"])
def test_other_stretches_are_refused(written: str) -> None:
    """With what was expected."""
    with pytest.raises(UsageError, match="90s, 15m"):
        seconds(written)
