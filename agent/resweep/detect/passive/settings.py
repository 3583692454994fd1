"""Every number the passive layers are tuned by, in one place; docs/detection.md says why each is so."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import date

import msgspec

HOUR = 3600.0
DAY = 24 * HOUR


class PassiveSettings(msgspec.Struct, frozen=True, kw_only=True):
    """Settings of one pipeline's passive detection. Times are seconds unless the name says otherwise."""

    sample_size: int = 1024  # distinct queries an hour
    block_size: int = 192  # of these, read for levels each half-hour
    held: float = 12 * HOUR  # an answer must be this old to be compared with
    learning: float = DAY  # before that, nothing is judged
    least_votes: int = 50  # twins seen before any is judged
    tolerance_sd: float = 0.05  # of the top score: moves below it are rounding
    answers_once: int = 24_576  # answers remembered of queries seen once
    answers_known: int = 12_288  # and of queries seen again
    passages: int = 32_768  # passages and sources remembered
    expire: float = 3 * DAY  # age at which a possible onset is forgotten
    # One false alarm is expected in so many days without change, by layer.
    budget_twins_days: float = 720.0
    budget_shares_days: float = 1440.0
    budget_levels_days: float = 720.0
    budget_outcome_days: float = 720.0
    least_twins: float = 0.09  # smallest rise of the changed share that is told
    least_novelty: float = 0.25
    holidays: tuple[int, ...] = ()  # days since 1970-01-01 (UTC) on which people ask as on a Sunday
    small_ingest: float = 0.5  # growth of the corpus that changes fewer answers is a notice


def with_holidays(dates: Iterable[date] | None) -> PassiveSettings:
    """Return the settings with a calendar of holidays."""
    days = sorted({(day - date(1970, 1, 1)).days for day in dates or ()})
    return PassiveSettings(holidays=tuple(days))
