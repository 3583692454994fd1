"""What labelling is told."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from resweep.domain.case import HOLDOUT_SHARE

# Cases a reviewer can be asked for in half an hour a day.
DAILY: Mapping[str, float] = {
    "uniform": 24.0,
    "low_confidence": 10.0,
    "novel": 8.0,
    "empty_or_short": 6.0,
    "feedback": 8.0,
    "canary_lost": 4.0,
}
SEED = "resweep"
WANTED = 400  # judged cases with which a sweep can place the best k within one listed depth


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelSettings:
    """`daily` is the number of events a day and pipeline that each stratum may bring into the set.

    `seed` makes another draw of the same traffic. `holdout` is the share of near-duplicate clusters that is
    kept for confirming. `wanted` is how many judged cases a sweep needs.
    """

    daily: Mapping[str, float] = field(default_factory=lambda: dict(DAILY))
    seed: str = SEED
    holdout: float = HOLDOUT_SHARE
    wanted: int = WANTED
