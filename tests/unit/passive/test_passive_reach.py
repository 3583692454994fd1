"""The smallest change that would be seen is an honest figure: such a change is seen, a lesser one is not."""

from __future__ import annotations

import copy
import random

import numpy as np
import pytest

from resweep.detect.passive.evidence import DAY, Null, Rise
from resweep.detect.passive.features import INDEX, STREAMS, Block
from resweep.detect.passive.levels import Levels
from resweep.detect.passive.reach import bound_per_quarter, least_share, least_shift
from resweep.detect.passive.settings import PassiveSettings

NULL = Null(0.01, 1e-4)
HOUR = 3600.0


def seen(share: float, votes: int, seed: int) -> bool:
    """Whether a day of votes at a share raises an alarm."""
    rise, rng = Rise(720.0, 0.09), random.Random(seed)
    rise.since = 1.0
    for i in range(votes):
        hit = rng.random() < share
        rise.vote(DAY + i * DAY / votes, -1, hit, -1)
        if hit and rise.weigh(NULL) >= 0:
            return True
    return False


@pytest.mark.parametrize("votes", [30, 100, 500])
def test_a_share_of_that_size_is_seen_within_the_day_and_a_third_of_it_hardly(votes: int) -> None:
    """Nine of ten at least; of a third of the size two at most."""
    least = least_share(Rise(720.0, 0.09), NULL, votes, DAY * 10 / votes)
    assert least is not None
    assert sum(seen(least, votes, seed) for seed in range(20)) >= 18
    assert sum(seen(least / 3, votes, seed) for seed in range(20)) <= 4


def test_few_votes_see_only_large_changes_and_fewer_none() -> None:
    """Eight hits are needed at all, so that seven votes tell nothing."""
    few, more, many = (least_share(Rise(720.0, 0.09), NULL, votes, DAY / 2) for votes in (20, 60, 400))
    assert few is not None
    assert more is not None
    assert many is not None
    assert few > more > many
    assert least_share(Rise(720.0, 0.09), NULL, 7, DAY) is None


def test_the_budgets_allow_less_than_half_a_false_alarm_a_quarter() -> None:
    """Three layers at one in 720 days each."""
    assert bound_per_quarter(PassiveSettings()) == pytest.approx(0.38, abs=0.005)


def hours(rng: np.random.Generator, n: int, first: int, jump: float = 0.0, n_each: int = 60) -> list[Block]:
    """Hourly blocks of the top score alone, with unit variance between queries."""
    out = []
    for i in range(first, first + n):
        mean = np.full(len(STREAMS), np.nan)
        mean[INDEX["top"]] = jump + rng.normal(0, n_each**-0.5)
        out.append(Block(i * HOUR, (i + 1) * HOUR, i, i, n_each, mean, np.ones(len(STREAMS))))
    return out


def test_a_shift_of_that_size_is_seen_within_the_day_and_a_third_of_it_is_not() -> None:
    """Twenty days learnt once, then ten different days after them."""
    levels, rng = Levels(720.0), np.random.default_rng(5)
    for block in hours(rng, 480, 0):
        levels.add(block)
    assert levels.reference is not None
    least = least_shift(levels.reference, INDEX["top"], levels, (HOUR, 60.0), DAY)
    assert least is not None
    assert 0.05 < least < 0.8

    def found(jump: float) -> bool:
        fork = copy.deepcopy(levels)
        return any(fork.add(block) is not None for block in hours(rng, 24, 480, jump))

    assert sum(found(least) for _ in range(10)) >= 8
    assert sum(found(least / 3) for _ in range(10)) == 0


def test_a_block_a_day_sees_no_shift_within_a_day() -> None:
    """Twenty queries a day: a window needs two blocks and the one in which the change falls."""
    levels, rng = Levels(720.0), np.random.default_rng(6)
    for i, block in enumerate(hours(rng, 40, 0, n_each=20)):
        levels.add(block._replace(ts=i * DAY, end=(i + 1) * DAY))
    assert levels.reference is not None
    assert least_shift(levels.reference, INDEX["top"], levels, (DAY, 20.0), DAY) is None
