"""Repeated questions: a changed system is found and named, a harmless one is left alone."""

from __future__ import annotations

from typing import Any

import pytest

CHANGES: list[tuple[str, dict[str, Any], set[str]]] = [
    ("another embedder", {"seed": 5}, {"embedder"}),
    ("smaller chunks", {"name": "q{}".format, "tokens": lambda i: 50 + i % 17}, {"chunker"}),
    ("half the sources lost", {"gone": frozenset(range(0, 200, 2))}, {"filter", "corpus"}),
    ("a reranker's scale", {"seed": 5, "score": lambda s: 20 * s}, {"reranker", "embedder"}),
    ("fewer passages", {"depth": 5}, {"depth", "filter"}),
]
HARMLESS: list[tuple[str, dict[str, Any]]] = [
    ("rounded scores", {"score": lambda s: round(s, 3)}),
    ("nothing at all", {}),
]


@pytest.mark.parametrize(("what", "how", "causes"), CHANGES, ids=[c[0] for c in CHANGES])
def test_a_silent_change_is_found_within_a_hundred_events_and_named(
    lab: Any, what: str, how: dict[str, Any], causes: set[str]
) -> None:
    """Each kind of change opens one warning that names its component."""
    (flag,) = [f for f in lab.change(lab.world(), lab.world(**how)) if f.reason == "silent_change"]
    assert 16_000 <= flag.opened_at_event < 16_100
    assert flag.severity == "warning"
    assert flag.moves == "suspect"
    assert set(flag.components) <= causes
    assert flag.components[0] in causes


@pytest.mark.parametrize(("what", "how"), HARMLESS, ids=[c[0] for c in HARMLESS])
def test_a_harmless_change_says_nothing(lab: Any, what: str, how: dict[str, Any]) -> None:
    """Rounding swaps neighbours at the cut and nothing else."""
    assert lab.change(lab.world(), lab.world(**how)) == []


def test_scores_turned_into_distances_are_a_notice(lab: Any) -> None:
    """The same passages in the same order: one score_scale notice, no doubt about k."""
    (flag,) = lab.change(lab.world(), lab.world(score=lambda s: 1 - s))
    assert (flag.reason, flag.severity, flag.moves) == ("score_scale", "notice", None)
    assert "direction" in flag.message


def test_renumbered_ids_are_a_notice(lab: Any) -> None:
    """The same scores, tokens and sources under other ids are the same passages."""
    (flag,) = lab.change(lab.world(), lab.world(name=lambda i: f"p{(7 * i + 11) % 600}"))
    assert (flag.reason, flag.severity) == ("ids_renumbered", "notice")


def test_the_onset_is_near_the_change_and_the_message_has_the_numbers(lab: Any) -> None:
    """A reader learns since when, how many of how many, and the next command."""
    (flag,) = lab.change(lab.world(), lab.world(seed=5))
    assert abs(flag.onset_event - 16_000) < 40
    assert f"{flag.evidence['changed']} of" not in ("", flag.message)
    assert "repeated questions" in flag.message
    assert flag.next_command == "resweep sweep p"


def test_a_rollback_clears_the_flag_by_itself(lab: Any) -> None:
    """The same system found again clears what its successor had opened."""
    from resweep.detect.passive.engine import PassiveEngine

    old, new, engine = lab.world(), lab.world(seed=5), PassiveEngine("p", salt=lab.salt)
    last = lab.feed(engine, lab.traffic(old, 16_000))
    last = lab.feed(engine, lab.traffic(new, 800, start=last, first=16_000))
    end = lab.feed(engine, lab.traffic(old, 800, start=last, first=16_800))
    engine.advance(end + 60)
    (flag,) = [f for f in lab.flags(engine) if f.reason == "silent_change"]
    assert flag.cleared_at_event is not None
    assert 16_800 <= flag.cleared_at_event < 17_000


def test_other_questions_are_traffic_and_not_the_system(lab: Any) -> None:
    """Known questions stop and new ones come: a traffic flag, no doubt about the retriever."""
    from resweep.detect.passive.engine import PassiveEngine

    world, engine = lab.world(), PassiveEngine("p", salt=lab.salt)
    last = lab.feed(engine, lab.traffic(world, 16_000, questions=range(40)))
    end = lab.feed(engine, lab.traffic(world, 400, start=last, first=16_000, questions=range(40, 80)))
    engine.advance(end + 60)
    (flag,) = lab.flags(engine)
    assert (flag.reason, flag.components) == ("traffic_changed", ("traffic",))


def test_the_first_day_is_for_learning(lab: Any) -> None:
    """Nothing is judged in the first 24 hours, and the state says so."""
    from resweep.detect.passive.engine import PassiveEngine

    engine = PassiveEngine("p", salt=lab.salt)
    last = lab.feed(engine, lab.traffic(lab.world(), 5000))
    lab.feed(engine, lab.traffic(lab.world(seed=5), 2000, start=last, first=5000))
    assert lab.flags(engine) == []
    assert {s.layer: s.state for s in engine.status()}["twins"] == "learning"


def test_scores_that_turn_round_are_told_even_while_learning(lab: Any) -> None:
    """200 answers by similarity, 200 by distance, no query recorded: one notice, and nothing else."""
    from resweep.detect.passive.engine import PassiveEngine

    engine = PassiveEngine("p", salt=lab.salt)
    last = lab.feed(engine, lab.traffic(lab.world(), 200, keyed=False))
    end = lab.feed(
        engine, lab.traffic(lab.world(score=lambda s: 1 - s), 200, start=last, first=200, keyed=False)
    )
    engine.advance(end + 60)
    (flag,) = lab.flags(engine)
    assert (flag.reason, flag.severity) == ("score_scale", "notice")
    assert "Score direction changed" in flag.message


def test_a_declared_change_gets_a_before_and_after_for_free(lab: Any) -> None:
    """The first answers under a new config beside the last ones under the old: no flag, a report."""
    from resweep.detect.passive.engine import PassiveEngine

    engine = PassiveEngine("p", salt=lab.salt)
    last = lab.feed(engine, lab.traffic(lab.world(), 8000))
    declared = lab.traffic(lab.world(tokens=lambda i: 300, name="q{}".format), 400, start=last, first=8000)
    lab.feed(engine, ((n, event._replace(config="ffffffffffff")) for n, event in declared))
    engine.finish()
    assert lab.flags(engine) == []
    report = engine.before_after("ffffffffffff")
    assert report is not None
    traces, cause = report
    assert traces.changed > 0.9
    assert cause.components == ("chunker",)
    assert engine.before_after(lab.config) is None


def test_a_crawl_of_two_days_is_a_notice_and_clears_when_it_is_over(lab: Any) -> None:
    """As many new questions as known ones for two days, then the known ones alone."""
    from resweep.detect.passive.engine import PassiveEngine

    engine, day = PassiveEngine("p", salt=lab.salt), 86_400.0
    world = lab.world(questions=400)

    def asked(days: int, start: float, first: int, pool: range) -> Any:
        return lab.traffic(world, 960 * days, rate=40, start=start, first=first, questions=pool)

    last = lab.feed(engine, asked(10, lab.start, 0, range(80)))
    crawl = sorted(
        [*asked(2, last, 9600, range(80)), *asked(2, last, 11_520, range(80, 400))],
        key=lambda pair: pair[1].ts,
    )
    last = lab.feed(engine, iter(crawl))
    engine.advance(lab.feed(engine, asked(5, last, 13_440, range(80))) + day)
    (flag,) = lab.flags(engine)
    assert (flag.reason, flag.severity) == ("traffic_changed", "notice")
    assert flag.cleared_ts is not None
