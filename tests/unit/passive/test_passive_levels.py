"""Levels: a jump against the stream's own season is found; seasons, wander and blips are not."""

from __future__ import annotations

import numpy as np
import pytest

from resweep.detect.passive.features import INDEX, STREAMS, Block
from resweep.detect.passive.levels import Finding, Levels

HALF_HOUR = 1800.0
MONDAY = 1_795_996_800.0
WATCHED = ("top", "gap", "spread", "tokens", "context", "count", "tail", "sources", "copies", "misfit")


def blocks(
    n: int, seed: int, *, season: float = 0.0, jump: float = 0.0, at: int = 10**9, n_each: int = 400
) -> list[Block]:
    """Half-hours of unit-variance streams with a daily season; `top` jumps by so many SD at a block."""
    rng = np.random.default_rng(seed)
    out = []
    for i in range(n):
        ts = MONDAY + i * HALF_HOUR
        mean = np.full(len(STREAMS), np.nan)
        for name in WATCHED:
            share = name in ("copies", "misfit")
            noise = rng.normal(0, np.sqrt((0.02 if share else 1.0) / n_each))
            mean[INDEX[name]] = 0.3 + noise + (0 if share else season * np.sin(2 * np.pi * ts / 86_400))
        mean[INDEX["top"]] += jump if i >= at else 0.0
        variance = np.ones(len(STREAMS))
        out.append(Block(ts, ts + HALF_HOUR, i, i, n_each, mean, variance))
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
    """Independent noise, with and without a daily season."""
    for seed in range(1):
        assert run(blocks(48 * 40, seed, season=season)) == []


@pytest.mark.parametrize(("jump", "within"), [(0.8, 4), (0.3, 24)])
def test_a_jump_is_found_in_time_and_its_stream_named(jump: float, within: int) -> None:
    """0.8 SD within 2 hours, 0.3 SD within 12."""
    at = 48 * 20
    for seed in range(2):
        found = run(blocks(at + within, seed, season=0.3, jump=jump, at=at))
        assert [f.loudest for _, f in found] == ["top"]
        assert at <= found[0][0] < at + within
        assert abs(found[0][1].onset_number - at) <= 4


def test_a_shift_inside_the_dead_zone_is_nobodys_alarm() -> None:
    """0.03 SD for a fortnight."""
    at = 48 * 30
    assert run(blocks(at + 48 * 14, 1, jump=0.03, at=at)) == []


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


def test_twelve_quiet_signals_and_one_that_falls() -> None:
    """Each stream is one of many in one budget: quiet for 20 days, and a fall of one SD found in 6 hours."""
    ((at, found),) = run(blocks(48 * 20 + 12, 10, n_each=50, jump=-1.0, at=48 * 20))
    assert at >= 48 * 20
    assert found.loudest == "top"
