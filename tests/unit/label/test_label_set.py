"""The set as a whole: weights that carry what was not reviewed, progress, the mix, judgments that survive."""

from __future__ import annotations

import random

import pytest

from resweep.domain.case import CaseLine, Cell, Graded
from resweep.domain.event import Hit
from resweep.domain.values import text_hash
from resweep.label.anchors import anchored
from resweep.label.mix import compare
from resweep.label.progress import half_width, progress
from resweep.label.weights import effective, factors, reweighted


def cell(state: str, n: int, weight: float, plan: str = "p1", stratum: str = "uniform") -> Cell:
    """Give the numbers of some cases."""
    return Cell(
        pipeline="bot",
        stratum=stratum,
        state=state,  # type: ignore[arg-type]
        split="tune",
        plan=plan,
        n=n,
        weight=weight,
        squares=weight * weight / n,
    )


def test_what_was_reviewed_carries_what_was_not() -> None:
    """30 of 40 sampled were reviewed: each weighs 4/3."""
    assert factors(
        [cell("labelled", 20, 200.0), cell("rejected", 10, 100.0), cell("candidate", 10, 100.0)]
    ) == {("uniform", "p1"): pytest.approx(4 / 3)}


def test_a_plan_without_a_review_is_carried_by_the_stratums_others() -> None:
    """So the weights add up to the traffic all the same."""
    cells = [
        cell("labelled", 5, 50.0, "p1"),
        cell("candidate", 5, 50.0, "p1"),
        cell("candidate", 10, 300.0, "p2"),
        cell("labelled", 2, 20.0, "p3"),
    ]
    by = factors(cells)
    assert by["uniform", "p1"] * 50.0 + by["uniform", "p3"] * 20.0 == pytest.approx(420.0)
    assert by["uniform", "p2"] == 1.0


def test_strata_do_not_carry_each_other() -> None:
    """Reviewing only the easy ones does not make them stand for the empty ones."""
    by = factors([cell("labelled", 5, 50.0), cell("candidate", 9, 9.0, stratum="empty_or_short")])
    assert by == {("uniform", "p1"): 1.0, ("empty_or_short", "p1"): 1.0}


def test_cases_that_wait_keep_their_weight() -> None:
    """Only what was reviewed carries more."""
    lines = [
        CaseLine(case_id=s, stratum="uniform", plan="p1", state=s, weight=10.0)
        for s in ("labelled", "candidate")
    ]
    assert [c.weight for c in reweighted(lines, {("uniform", "p1"): 2.0})] == [20.0, 10.0]


def test_the_effective_number_of_equal_weights_is_their_number() -> None:
    """And falls where few carry much."""
    assert effective([3.0] * 7) == pytest.approx(7.0)
    assert effective([1.0, 1.0, 8.0]) == pytest.approx(100 / 66)
    assert effective([]) == 0.0


def test_progress_counts_against_what_the_sweep_needs() -> None:
    """By stratum, with the width of the interval now and then."""
    cells = [cell("labelled", 100, 1000.0), cell("candidate", 40, 80.0, stratum="novel")]
    found = progress("bot", cells, 400)
    assert (found.labelled, found.waiting, found.missing) == (100, 40, 300)
    assert found.half_width == pytest.approx(0.098, abs=0.001)
    assert found.half_width_wanted == pytest.approx(0.049, abs=0.001)
    assert [(s.stratum, s.cases, s.labelled) for s in found.strata] == [
        ("novel", 40, 0),
        ("uniform", 100, 100),
    ]
    assert progress("bot", [], 400).half_width is None
    assert half_width(400) == found.half_width_wanted


BILLING = ("invoice", "refund", "charge", "card", "price", "discount")
TECH = ("login", "crash", "upload", "timeout", "driver", "reboot")


def asked(words: tuple[str, ...], n: int, seed: int) -> list[str]:
    """Give n questions about some words."""
    rng = random.Random(seed)
    return [
        f"my {rng.choice(words)} and the {rng.choice(words)} number {rng.randrange(9)} fail" for _ in range(n)
    ]


def test_an_equal_mix_is_not_told_apart() -> None:
    """The interval holds one half, and nothing is stale."""
    found = compare(asked(BILLING, 300, 1), asked(BILLING, 200, 2))
    assert found is not None
    assert found.low < 0.5 < found.high + 0.05
    assert not found.stale


def test_another_mix_is_told_apart_and_named() -> None:
    """Traffic that has turned to another topic."""
    found = compare([*asked(BILLING, 60, 1), *asked(TECH, 240, 2)], asked(BILLING, 200, 3))
    assert found is not None
    assert found.stale
    assert found.auc > 0.8
    assert set(found.words) & set(TECH)


def test_weights_let_a_hard_set_speak_for_the_traffic() -> None:
    """Half of the cases are of a topic that a tenth of the traffic asks, and weigh as little."""
    traffic = [*asked(BILLING, 450, 1), *asked(TECH, 50, 2)]
    labelled = [*asked(BILLING, 100, 3), *asked(TECH, 100, 4)]
    weights = [0.9] * 100 + [0.1] * 100
    fair, unfair = compare(traffic, labelled, weights), compare(traffic, labelled)
    assert fair is not None
    assert unfair is not None
    assert unfair.stale
    assert not fair.stale


def test_few_questions_say_nothing() -> None:
    """Below 50 on either side."""
    assert compare(asked(BILLING, 300, 1), asked(TECH, 49, 2)) is None


def graded(passage: str, text: str | None = None) -> Graded:
    """Give a judgment."""
    return Graded(
        reviewer="ann", passage_id=passage, grade=1.0, ts=0.0, text_hash=text_hash(text) if text else None
    )


LONG = "refunds are paid within thirty days after the parcel has come back to our warehouse in one piece"


def test_a_judgment_follows_its_text_to_another_id() -> None:
    """A re-ingest that renumbers loses nothing."""
    (found,) = anchored([graded("p1", LONG)], (), (Hit("x9", text=LONG), Hit("p1", text="other")))
    assert (found.anchor, found.to and found.to.id) == ("moved", "x9")


def test_a_judgment_stays_where_its_text_stays() -> None:
    """Same id, same text."""
    (found,) = anchored([graded("p1", LONG)], (), (Hit("p1", text=f"  {LONG}"),))
    assert found.anchor == "here"


def test_a_judgment_moves_into_a_larger_chunk_that_holds_its_text() -> None:
    """A re-chunk to twice the size: the words are found by overlap."""
    old = (Hit("p1", text=LONG),)
    new = (Hit("q1", text="shipping is free of charge"), Hit("q2", text=f"before that. {LONG} And more."))
    (found,) = anchored([graded("p1", LONG)], old, new)
    assert (found.anchor, found.to and found.to.id) == ("moved", "q2")
    assert found.overlap >= 0.8


def test_a_judgment_whose_id_is_another_text_is_lost() -> None:
    """Chunkers number by position: the id came back, the text did not; it waits for repair."""
    (found,) = anchored([graded("p1", LONG)], (Hit("p1", text=LONG),), (Hit("p1", text="shipping is free"),))
    assert (found.anchor, found.to) == ("lost", None)


def test_a_judgment_outside_the_list_stays() -> None:
    """A passage that was not retrieved this time is not gone."""
    (found,) = anchored([graded("p1", LONG)], (Hit("p1", text=LONG),), (Hit("z", text="shipping is free"),))
    assert found.anchor == "here"
