"""Levels: a jump against the stream's own season is found; seasons, wander and blips are not."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from resweep.detect.passive.engine import PassiveEngine
from resweep.detect.passive.features import INDEX, STREAMS, Block
from resweep.detect.passive.levels import Finding, Levels

HALF_HOUR = 1800.0
MONDAY = 1_795_996_800.0
WATCHED = (
    *("top", "gap", "spread", "tokens", "context", "count", "tail", "sources"),
    *("top_spread", "spread_spread", "copies", "misfit"),
)


def blocks(
    n: int,
    seed: int,
    *,
    season: float = 0.0,
    jump: float = 0.0,
    at: int = 10**9,
    n_each: int = 400,
    step: float = HALF_HOUR,
) -> list[Block]:
    """Blocks of unit-variance streams with a daily season; `top` jumps by so many SD at a block."""
    rng = np.random.default_rng(seed)
    out = []
    for i in range(n):
        ts = MONDAY + i * step
        mean = np.full(len(STREAMS), np.nan)
        for name in WATCHED:
            share = name in ("copies", "misfit")
            noise = rng.normal(0, np.sqrt((0.02 if share else 1.0) / n_each))
            mean[INDEX[name]] = 0.3 + noise + (0 if share else season * np.sin(2 * np.pi * ts / 86_400))
        mean[INDEX["top"]] += jump if i >= at else 0.0
        variance = np.ones(len(STREAMS))
        out.append(Block(ts, ts + step, i, i, n_each, mean, variance))
    return out


def run(stream: list[Block]) -> list[tuple[int, Finding]]:
    """Return findings with the block that completed them; each is followed by a fresh start."""
    levels, found = Levels(720.0), []
    for i, block in enumerate(stream):
        finding = levels.add(block)
        if finding is not None:
            found.append((i, finding))
            levels.freeze(finding.onset_ts)
    return found


@pytest.mark.parametrize("season", [0.0, 0.4])
def test_forty_days_without_change_are_silent(season: float) -> None:
    """Independent noise in blocks of two hours, with and without a daily season."""
    assert run(blocks(12 * 40, 0, season=season, step=4 * HALF_HOUR)) == []


@pytest.mark.parametrize(("jump", "within"), [(0.8, 4), (0.3, 24)])
def test_a_jump_is_found_in_time_and_its_stream_named(jump: float, within: int) -> None:
    """0.8 SD within 2 hours, 0.3 SD within 12."""
    at = 48 * 20
    ((block, found),) = run(blocks(at + within, 0, season=0.3, jump=jump, at=at))
    assert found.loudest == "top"
    assert at <= block < at + within
    assert abs(found.onset_number - at) <= 4


def test_a_shift_inside_the_dead_zone_is_nobodys_alarm() -> None:
    """0.03 SD for a fortnight."""
    at = 12 * 30
    assert run(blocks(at + 12 * 14, 1, jump=0.03, at=at, step=4 * HALF_HOUR)) == []


def test_one_odd_half_hour_is_a_blip() -> None:
    """A single block says nothing alone."""
    stream = blocks(48 * 31, 2)
    stream[48 * 30].mean[INDEX["top"]] += 0.5
    assert run(stream) == []


def test_the_first_day_is_learning_and_the_first_days_are_provisional() -> None:
    """Before 24 hours there is no reference; before 14 days no weekly one."""
    levels = Levels(720.0)
    stages = []
    for i, block in enumerate(blocks(48 * 20, 3)):
        levels.add(block)
        if i in (40, 48 * 2, 48 * 8, 48 * 19):
            stages.append(levels.stage)
    assert stages == [-1, 0, 1, 2]


def month(seed: int) -> list[Block]:
    """Thirty days of twelve independent signals, 100 queries an hour, a block an hour."""
    return blocks(24 * 30, seed, n_each=100, step=2 * HALF_HOUR)


def test_twelve_signals_every_hour_for_a_month_do_not_cry() -> None:
    """DRF-02: twelve signals, one budget. At most one alarm a month on average; here none."""
    assert [len(run(month(seed))) for seed in range(3)] == [0, 0, 0]


def test_one_of_twelve_that_falls_by_one_sd_is_named_within_six_hours() -> None:
    """DRF-02: the signal by name, and the sign of its fall."""
    at = 24 * 20
    ((block, found),) = run(blocks(at + 6, 10, n_each=100, jump=-1.0, at=at, step=2 * HALF_HOUR))
    assert at <= block < at + 6
    assert found.loudest == "top"
    assert found.effects[INDEX["top"]] < -0.5


@pytest.mark.parametrize("n", [30, 50, 100])
def test_windows_of_the_same_scores_never_drift_for_their_size(n: int) -> None:
    """DRF-01: N(0.72, 0.06) before and after, in small windows; what is small is believed little."""
    stream = blocks(24 * 20, n, n_each=n, step=2 * HALF_HOUR)
    rng = np.random.default_rng(n)
    for block in stream:
        scores = rng.normal(0.72, 0.06, n)
        block.mean[INDEX["top"]], block.variance[INDEX["top"]] = scores.mean(), scores.var()
    assert run(stream) == []


def test_too_little_to_judge_is_learning_and_neither_drift_nor_fine() -> None:
    """DRF-01: eleven blocks are no reference, whatever comes after them."""
    levels = Levels(720.0)
    assert [levels.add(block) for block in blocks(11, 4, n_each=8, jump=5.0, at=6)] == [None] * 11
    assert levels.stage == -1


def test_newness_of_the_first_days_does_not_hide_a_new_embedder(lab: Any) -> None:
    """Ten days without a recorded question: everything was new to the layer once, and that is no spread."""
    engine = PassiveEngine("p", salt=lab.salt)
    last = lab.feed(engine, lab.traffic(lab.world(), 14_400, rate=60, keyed=False))
    end = lab.feed(
        engine, lab.traffic(lab.world(seed=5), 100, rate=60, start=last, first=14_400, keyed=False)
    )
    engine.advance(end + 60)
    (flag,) = lab.flags(engine)
    assert (flag.reason, flag.components[0]) == ("silent_change", "embedder")


def test_a_burst_of_one_question_counts_once_where_no_question_is_recorded(lab: Any) -> None:
    """Ten days, then four hours in which nine of ten calls are the same."""
    engine = PassiveEngine("p", salt=lab.salt)
    last = lab.feed(engine, lab.traffic(lab.world(), 14_400, rate=60, keyed=False))
    usual = list(lab.traffic(lab.world(), 240, rate=60, start=last, first=14_400, keyed=False))
    burst = lab.traffic(
        lab.world(), 2160, rate=540, start=last, first=14_640, keyed=False, questions=range(7, 8)
    )
    end = lab.feed(engine, iter(sorted([*usual, *burst], key=lambda pair: pair[1].ts)))
    engine.advance(end + 60)
    assert lab.flags(engine) == []
