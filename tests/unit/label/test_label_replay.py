"""Replay: what a stream would have put into the set, with weights that add up to it."""

from __future__ import annotations

import math
import random
from collections.abc import Iterator

from resweep.domain.case import CaseLine
from resweep.domain.event import Feedback, Hit, RetrievalEvent
from resweep.label.replay import CaseRecorder, replay_cases
from resweep.label.sampler import Sampler
from resweep.label.settings import DAILY, LabelSettings

T0 = 1_796_000_000.0


def stream(n: int, per_hour: float, questions: int = 10**9, tag: str = "e") -> Iterator[RetrievalEvent]:
    """Give n events of one pipeline; every twentieth is empty."""
    rng = random.Random(5)
    for i in range(n):
        empty = i % 20 == 7
        top = rng.random()
        hits = () if empty else tuple(Hit(f"p{j}", top - 0.1 * j) for j in range(5))
        asked = f"question {rng.randrange(questions) if questions < n else i} about billing"
        yield RetrievalEvent(f"{tag}{i}", T0 + i * 3600 / per_hour, "p", "c1", 5, len(hits), hits, asked)


def draws(cases: list[CaseLine]) -> int:
    """Count the sampled events of cases."""
    return sum(len(case.events) for case in cases)


def spread(cases: list[CaseLine]) -> float:
    """Estimate the standard error of the sum of weights (Horvitz and Thompson)."""
    return math.sqrt(sum((1 - d.p) / d.p**2 for case in cases for d in case.events))


def test_weights_add_up_to_the_stream() -> None:
    """Two days of traffic, within three standard errors."""
    cases = replay_cases(stream(9600, 200.0))
    assert abs(sum(c.weight or 0 for c in cases) - 9600) < 3 * spread(cases)


def test_the_number_of_cases_keeps_to_the_budget() -> None:
    """Over four calendar days, a burst of everything in one hour included."""
    budget = sum(DAILY.values())
    assert draws(replay_cases(stream(9600, 200.0))) < 4 * budget
    assert 10 < draws(replay_cases(stream(5000, 50_000.0))) < budget


def test_repeats_are_one_case_and_keep_their_weight() -> None:
    """Forty questions asked over and over are at most forty cases, and still stand for all of the traffic."""
    cases = replay_cases(stream(9600, 200.0, questions=40))
    assert len(cases) <= 40 < draws(cases)
    assert abs(sum(c.weight or 0 for c in cases) - 9600) < 3 * spread(cases)


def test_the_stated_probabilities_are_the_true_ones() -> None:
    """20 draws of one stream: events are taken as often as the sum of the stated p says."""
    events = list(stream(600, 300.0))
    taken = stated = variance = 0.0
    for seed in range(20):
        cases = replay_cases(events, Sampler(LabelSettings(seed=f"s{seed}")))
        taken += sum(1 / d.p for c in cases for d in c.events)
        variance += sum((1 - d.p) / d.p**2 for c in cases for d in c.events)
        stated += 600
    assert abs(taken - stated) < 4 * math.sqrt(variance)


def test_empties_are_sampled_above_their_share_and_weigh_less() -> None:
    """A stratum is over-sampled; its weights say so."""
    cases = replay_cases(stream(9600, 200.0))
    empty = [c for c in cases if c.stratum == "empty_or_short"]
    usual = [c for c in cases if c.stratum == "uniform"]
    assert len(empty) / len(cases) > 0.08
    assert sum(c.weight or 0 for c in empty) / len(empty) < sum(c.weight or 0 for c in usual) / len(usual)


def test_a_bad_word_makes_a_candidate_and_a_good_one_does_not() -> None:
    """Feedback a day late is still heard; once per question, whoever asked."""
    events = list(stream(2400, 100.0))
    bad = [Feedback(f"f{i}", events[i].id, "negative", "u", events[i].ts + 80_000) for i in range(3)]
    good = [Feedback("g", events[50].id, "positive", "u", events[50].ts)]
    cases = replay_cases([*events, *bad, *good])
    fed = [c for c in cases if c.stratum == "feedback"]
    assert {c.event_id for c in fed} == {"e0", "e1", "e2"}
    assert all(c.provenance == "feedback" and c.state == "candidate" and not c.judgments for c in fed)


def test_feedback_on_one_question_makes_one_case() -> None:
    """Thirty unhappy users of one question are one case."""
    events = [e._replace(query="where is my refund") for e in stream(30, 100.0)]
    bad = [Feedback(f"f{e.id}", e.id, "not_found", e.id, e.ts) for e in events]
    cases = replay_cases([*events, *bad])
    assert len(cases) == 1
    assert cases[0].seen == draws(cases)


def test_probes_are_no_traffic() -> None:
    """What resweep itself asked is not sampled."""
    assert replay_cases(e._replace(probe=True) for e in stream(100, 100.0)) == []


def test_questions_without_text_are_cases_of_their_own() -> None:
    """They cannot be told apart or folded, but their weight counts."""
    cases = replay_cases(e._replace(query=None) for e in stream(300, 100.0))
    assert all(c.query is None for c in cases)
    assert abs(sum(c.weight or 0 for c in cases) - 300) < 3 * spread(cases) + 1e-9


def test_late_events_are_decided_under_the_plan_of_their_hour() -> None:
    """An event that comes three days late enters under the plan published then."""
    recorder = CaseRecorder(Sampler(LabelSettings(daily={"uniform": 1e9})))
    for event in stream(800, 10.0):
        recorder.take(event)
    recorder.take(RetrievalEvent("late", T0 + 60, "p", "c1", 5, 0, (), "what was that"))
    assert "late" in {c.event_id for c in recorder.finish()}


def test_equal_streams_give_equal_cases() -> None:
    """Nothing depends on clock, process or chance."""
    first, second = (replay_cases(stream(2000, 500.0)) for _ in range(2))
    assert first == second
