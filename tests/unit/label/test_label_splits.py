"""Splits: near-equal questions on one side, whatever the order, and nothing ever moves."""

from __future__ import annotations

import random

from resweep.domain.case import question_key, side_of
from resweep.label.nearby import Nearby
from resweep.label.splits import Placed, Question, leaks, place

TOPICS = ("refund", "invoice", "password", "shipping", "login")
OTHERS = ("discount", "warranty", "export", "import", "billing")


def asked(n: int) -> list[str]:
    """Give n different questions."""
    return [f"how does {TOPICS[i % 5]} work with {OTHERS[i // 5 % 5]} in region {i}" for i in range(n)]


def split(
    queries: list[str], held: dict[str, Placed] | None = None, nearby: Nearby | None = None
) -> dict[str, Placed]:
    """Place questions by their keys."""
    return place([Question(question_key(q), q) for q in queries], held or {}, nearby or Nearby())


def four_hundred() -> list[str]:
    """Give 400 questions, 40 pairs of which differ only in case, spaces or a full stop."""
    first = asked(360)
    ways = (str.upper, lambda q: f"  {q.replace(' ', '  ')}", lambda q: f"{q}.")
    twins = [ways[i % 3](q) for i, q in enumerate(first[:40])]
    return [*first, *twins]


def test_no_question_is_on_both_sides() -> None:
    """After normalising, the overlap of the two sides is 0."""
    placed = split(four_hundred())
    sides = {question_key(q): placed[question_key(q)].side for q in four_hundred()}
    tune = {k for k, s in sides.items() if s == "tune"}
    assert len(sides) == 360
    assert not tune & {k for k, s in sides.items() if s == "holdout"}
    assert 0.12 < 1 - len(tune) / 360 < 0.28


def test_new_questions_move_nobody() -> None:
    """The side of each of the first 400 is the same after 100 more, 400 of 400."""
    nearby = Nearby()
    before = split(four_hundred(), nearby=nearby)
    held = dict(before)
    after = held | split([f"which {t} applies to plan {i}" for i in range(10) for t in TOPICS], held, nearby)
    assert all(after[question_key(q)] == before[question_key(q)] for q in four_hundred())


def test_order_does_not_matter() -> None:
    """Any order of the questions gives the same sides."""
    queries = four_hundred()
    shuffled = random.Random(1).sample(queries, len(queries))
    assert split(queries) == split(shuffled)


def test_sides_are_pinned() -> None:
    """Process and Python version do not matter: these are the sides for ever."""
    assert [side_of(f"cluster {i}") for i in range(8)] == PINNED


PINNED = ["tune", "tune", "tune", "tune", "holdout", "holdout", "tune", "tune"]


def test_near_equal_questions_share_a_side() -> None:
    """A filler, or another order of words, makes no new question."""
    one = "how long does it take until my refund arrives on the account"
    nearby = Nearby()
    placed = split([one, one + " please", "please " + one], nearby=nearby)
    assert len({p.cluster for p in placed.values()}) == 1
    assert leaks({k: p.side for k, p in placed.items()}, nearby, {}) == []


def test_other_numbers_are_other_questions() -> None:
    """Error 500 is not error 502."""
    nearby = Nearby([("a", "what does error 500 mean when I upload a file", "")])
    assert nearby.like("what does error 502 mean when I upload a file") == []
    assert nearby.like("what does error 500 mean when I upload a file please") == ["a"]


def test_a_bridge_between_the_sides_is_quarantined() -> None:
    """A later question near to both sides belongs to neither; nobody else moves."""
    a = "how long does it take until my refund arrives on the account today"
    b = "please tell how long does it take until my refund arrives on the account"
    bridge = "how long does it take until my refund arrives on the account"
    held = {"a": Placed("a", "tune"), "b": Placed("b", "holdout")}
    nearby = Nearby([("a", a, ""), ("b", b, "")])
    placed = place([Question("c", bridge)], held, nearby)
    assert placed["c"].side == "quarantined"


def test_leaks_are_found() -> None:
    """A planted leak is told."""
    one, two = (
        "how long does it take until my refund arrives",
        "how long does it take until my refund arrives please",
    )
    nearby = Nearby([("a", one, ""), ("b", two, "")])
    assert leaks({"a": "tune", "b": "holdout"}, nearby, {"a": one, "b": two}) == [("a", "b")]
