"""Sampling: the stated probabilities are the true ones, and weights undo them."""

from __future__ import annotations

import math
import random
from collections import Counter
from itertools import pairwise

import numpy as np

from resweep.domain.sampling import HOUR, Plan, Pooled, Signals, chance, decide
from resweep.domain.snapshot import STRATA
from resweep.label.learning import Learnt, reference, references
from resweep.label.planning import counted, opened, rate, rounded_up, spent
from resweep.label.sampler import Known, Sampler
from resweep.label.settings import DAILY, LabelSettings

T0 = 1_796_000_400.0 - 1_796_000_400.0 % 86_400  # midnight UTC


def one(number: int, **changes: object) -> Pooled:
    """Give one event of the pool."""
    base = Pooled(f"e{number}", T0 + number * 0.5, "c1", 1.0, f"q{number}", f"what is {number}", None, False)
    return base._replace(**changes)  # type: ignore[arg-type]


def plan(**rates: float) -> Plan:
    """Give a plan with some rates."""
    return Plan(pipeline="p", seed="s", since=T0, until=T0 + HOUR, rates=rates)


def test_the_number_of_an_event_is_uniform() -> None:
    """Ten bins of 20,000 events are equally full, within five standard errors."""
    bins = Counter(int(chance(f"e{i}", "s") * 10) for i in range(20_000))
    assert max(abs(n - 2000) for n in bins.values()) < 5 * math.sqrt(1800)


def test_another_seed_is_another_draw() -> None:
    """The numbers of two seeds have nothing to do with each other."""
    a, b = (np.array([chance(f"e{i}", seed) for i in range(5000)]) for seed in ("s1", "s2"))
    assert abs(float(np.corrcoef(a, b)[0, 1])) < 0.06


def test_inclusion_frequencies_match_the_stated_probabilities() -> None:
    """Over 2,000 seeds an event of two strata is taken as often as its p, the larger rate, says."""
    both = one(1, short=True, negative=True)
    taken = [
        decide(both, Plan(pipeline="p", seed=f"s{i}", since=T0, until=T0 + HOUR, rates=dict(RATES)))
        for i in range(2000)
    ]
    found = [d for d in taken if d is not None]
    assert {d.p for d in found} == {0.3}
    assert abs(len(found) / 2000 - 0.3) < 4 * math.sqrt(0.3 * 0.7 / 2000)


RATES = {"uniform": 0.05, "empty_or_short": 0.3, "feedback": 0.2}


def test_an_event_is_named_by_the_stratum_with_the_highest_rate() -> None:
    """And tells all the strata it qualified for."""
    decision = decide(one(1, short=True), plan(uniform=0.1, empty_or_short=1.0))
    assert decision is not None
    assert (decision.stratum, decision.strata) == ("empty_or_short", ("uniform", "empty_or_short"))


def test_the_pools_own_probability_multiplies() -> None:
    """A recorder that kept a tenth of the calls makes every p a tenth."""
    decision = decide(one(1, p=0.1), plan(uniform=1.0))
    assert decision is not None
    assert decision.p == 0.1


def test_the_weighted_mean_of_the_traffic_is_unbiased_and_the_plain_one_is_not() -> None:
    """500 draws of a stream whose short answers are worse: only the weights give the traffic's mean back."""
    rng = random.Random(7)
    pool = [one(i, short=rng.random() < 0.1) for i in range(1500)]
    value = {e.id: (0.2 if e.short else 0.8) + rng.uniform(-0.1, 0.1) for e in pool}
    truth = sum(value.values()) / len(pool)
    weighted, plain, totals = [], [], []
    for seed in range(500):
        p = Plan(
            pipeline="p",
            seed=f"s{seed}",
            since=T0,
            until=T0 + HOUR,
            rates={"uniform": 0.03, "empty_or_short": 0.4},
        )
        drawn = [(e, d) for e in pool if (d := decide(e, p)) is not None]
        totals.append(sum(1 / d.p for _, d in drawn))
        weighted.append(sum(value[e.id] / d.p for e, d in drawn) / len(pool))
        plain.append(sum(value[e.id] for e, _ in drawn) / len(drawn))
    assert abs(np.mean(weighted) - truth) < 4 * np.std(weighted) / math.sqrt(500)
    assert abs(np.mean(totals) - len(pool)) < 4 * np.std(totals) / math.sqrt(500)
    assert truth - np.mean(plain) > 0.2  # the plain mean is far too low


def test_an_hours_draws_keep_to_its_share_in_expectation() -> None:
    """Rates follow from counts, so share and count bound what is drawn."""
    planned = counted(opened("p", T0, [], LabelSettings()), {"uniform": 5000.0, "empty_or_short": 400.0})
    assert planned.rates["uniform"] * 5000 <= DAILY["uniform"] / 2
    assert planned.rates["uniform"] * 5000 > 0.8 * DAILY["uniform"] / 2


def test_a_rate_never_rises_as_counts_grow() -> None:
    """So that publishing again only thins what was drawn."""
    rates = [rate(12.0, float(n), 0.0) for n in range(3000)]
    assert all(a >= b for a, b in pairwise(rates))
    assert rounded_up(1000.0) >= 1000.0


def test_a_day_of_plans_keeps_to_the_days_budget() -> None:
    """Whatever the hours bring: 24 very different hours, in order."""
    plans: list[Plan] = []
    rng = random.Random(3)
    for hour in range(24):
        first = opened("p", T0 + hour * HOUR, plans, LabelSettings())
        plans.append(counted(first, {s: float(rng.choice((0, 3, 200, 9000))) for s in STRATA}))
    for stratum, budget in DAILY.items():
        assert spent(plans, stratum) <= budget + 1e-9


def test_the_next_hours_share_follows_from_what_is_left() -> None:
    """An hour after a quiet one may use more than an hour after a busy one."""
    quiet = counted(opened("p", T0, [], LabelSettings()), {"uniform": 2.0})
    busy = counted(opened("p", T0, [], LabelSettings()), {"uniform": 9000.0})
    after = [opened("p", T0 + HOUR, [p], LabelSettings()).shares["uniform"] for p in (quiet, busy)]
    assert after[0] > after[1] > 0


def rows(n: int, sign: float) -> list[Signals]:
    """Give answers whose top scores are spread evenly over [0, 1], higher better for sign 1."""
    return [Signals(sign * i / n, sign * (i / n - 0.3), 0.5) for i in range(n)]


def test_low_confidence_is_a_twentieth_of_a_configs_own_answers() -> None:
    """In either direction of the scores: a distance is low when it is large."""
    for sign in (1.0, -1.0):
        found = reference(rows(1000, sign))
        assert found is not None
        assert found.sign == sign
        low = [row for row in rows(1000, sign) if found.confidence(row) < found.low]
        assert 40 <= len(low) <= 60
        assert all(sign * row.top < 0.06 for row in low)


def test_nothing_is_low_before_the_direction_is_clear() -> None:
    """Equal scores, mixed order or too few answers give no reference."""
    assert reference(rows(1000, 1.0)[:150]) is None
    assert reference([Signals(0.5, 0.5, 1.0)] * 500) is None
    assert reference([*rows(500, 1.0), *rows(500, -1.0)]) is None


def test_an_hour_is_learnt_once() -> None:
    """Planning an hour again does not count its answers twice."""
    learnt = Learnt()
    pool = [one(i, found=row) for i, row in enumerate(rows(300, 1.0))]
    learnt.learn(pool, T0 + HOUR)
    learnt.learn(pool, T0 + HOUR)
    assert len(learnt.rows["c1"]) == 300
    assert references(learnt.rows).keys() == {"c1"}


def test_plans_of_equal_content_have_equal_names() -> None:
    """Two replicas that see the same hour publish the same plan."""
    pool = [one(i) for i in range(300)]
    a, b = (Sampler().plan("p", T0, some, Known()) for some in (pool, pool[::-1]))
    assert a == b
    assert len(a.id) == 12


def test_what_is_far_from_the_set_is_novel() -> None:
    """A topic the set has never seen is found; where all are looked at, its count is the true one."""
    known = [f"how do I reset my password on device {w}" for w in "abcdefghijklmnopqrstuvwxyz"]
    usual = [one(i, query=f"how do I reset my password on device {i % 26}") for i in range(180)]
    new = [one(1000 + i, query=f"quarterly tax statement export number {i}") for i in range(20)]
    wide = LabelSettings(daily={"uniform": 1.0, "novel": 1000.0})
    planned = Sampler(wide).plan("p", T0, [*usual, *new], Known(questions=known))
    assert set(planned.novel) == {e.id for e in new}
    assert planned.counts["novel"] == 20
