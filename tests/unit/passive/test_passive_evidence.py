"""Evidence for a risen share: it comes from many voters, and the past says how much is usual."""

from __future__ import annotations

import random

from resweep.detect.passive.evidence import DAY, Null, Rise, Shares, log_ratio


def run(shares: Shares, rise: Rise, rate: float, days: int, votes: int = 200, start: float = 0.0) -> int:
    """Vote `votes` times a day; return how often M reached 1."""
    rng, alarms = random.Random(7), 0
    for day in range(days):
        for i in range(votes):
            ts, hit = start + (day + i / votes) * DAY, rng.random() < rate
            shares.add(ts, hit)
            rise.vote(ts, -1, hit, -1)
            if hit and rise.weigh(shares.null()) >= 0:
                alarms += 1
                rise.reset()
    return alarms


def test_a_steady_share_never_alarms_in_a_year() -> None:
    """One per cent of changed answers a day is learnt as usual."""
    assert run(Shares(prior=0.01, spread=1.0), Rise(720.0, 0.09), 0.01, 365) == 0


def test_a_risen_share_alarms_within_a_day() -> None:
    """Thirty per cent after a month of one per cent."""
    shares, rise = Shares(prior=0.01, spread=1.0), Rise(720.0, 0.09)
    assert run(shares, rise, 0.01, 30) == 0
    assert run(shares, rise, 0.3, 1, start=30 * DAY) >= 1


def test_nights_that_move_many_answers_together_are_learnt() -> None:
    """Where one night in four changes a fifth of the answers, another such night is no news."""
    shares, rise, rng, alarms = Shares(prior=0.01, spread=1.0), Rise(720.0, 0.09), random.Random(1), 0
    for day in range(120):
        rate = 0.2 if day % 4 == 0 else 0.005
        for i in range(100):
            ts, hit = (day + i / 100) * DAY, rng.random() < rate
            shares.add(ts, hit)
            rise.vote(ts, -1, hit, -1)
            if day > 28 and hit and rise.weigh(shares.null()) >= 0:
                alarms += 1
                rise.reset()
    assert alarms == 0


def test_one_voter_counts_once_for_an_onset() -> None:
    """A popular question that changed is one question, however often it is asked."""
    rise, previous = Rise(720.0, 0.09), -1
    for i in range(500):
        previous = rise.vote(1000.0 + i, i, True, previous)
    assert max(onset.hits for onset in rise.onsets) == 1


def test_a_small_rise_has_no_evidence_however_long_it_lasts() -> None:
    """Shares below the smallest rise worth telling are given no alternative."""
    assert log_ratio(100_000, 4000, Null(0.01, 1e-4), 1.0, 0.09) <= 0


def test_more_hits_are_more_evidence() -> None:
    """The ratio grows with the hits among the same number of votes."""
    ratios = [log_ratio(100, hits, Null(0.01, 1e-4), 1.0, 0.09) for hits in (10, 20, 40, 80)]
    assert ratios == sorted(ratios)
    assert ratios[0] > 0
