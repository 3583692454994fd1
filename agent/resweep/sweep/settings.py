"""What a sweep is asked for, in one value."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from resweep.domain.errors import UsageError
from resweep.domain.estimate import DEFAULT_ALPHA, DEFAULT_STANDARD
from resweep.domain.measures import DEFINITIONS
from resweep.domain.resample import RESAMPLES, SEED
from resweep.sweep.constraints import Constraint
from resweep.sweep.evidence import ANSWER_MEASURES, USEFULNESS, Cell
from resweep.sweep.rules import Rule

DEFAULT_DEPTHS: tuple[int, ...] = (3, 5, 8, 10, 15, 20, 40)
# Retrieval measures cannot show a peak of the answers; a depth is as good as the best within this.
RETRIEVAL_MARGIN = 0.02


def parse_depths(text: str) -> tuple[int, ...]:
    """Return the depths of a text such as `3,5,8` or `1-10,20`. Raises UsageError for anything else."""
    depths: list[int] = []
    for part in text.split(","):
        first, dash, last = part.strip().partition("-")
        if not first.isdecimal() or (dash and not last.isdecimal()):
            raise UsageError(f"expected depths such as 3,5,8 or 1-10,20; got `{text}`")
        depths.extend(range(int(first), int(last) + 1) if dash else (int(first),))
    return tuple(sorted(set(depths)))


class Latency(NamedTuple):
    """Seconds a request takes at a depth. A p50 of one part is never added to a p95 of the whole."""

    p50_s: float | None = None
    p95_s: float | None = None


class Looks(NamedTuple):
    """How often the holdout has been looked at, this time included, and how often it may be."""

    look: int = 1
    of: int = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class SweepSettings:
    """How to choose.

    `margin` None means 0.02 for retrieval measures and 0 for what can turn over. `standard` is what a case
    must reach to count in `share_above`. `critical` names slices (`name=value`) that are always shown.
    `baseline` is the cell to compare the chosen one with, None the one with the best mean; `baseline_k` names
    it by its context depth alone, at the deepest candidates. `passage_tokens` stands in for passages whose
    tokens are not recorded. `latency` is measured per cell, if at all.
    """

    objective: str = "ndcg"
    margin: float | None = None
    constraint: Constraint | None = None
    alpha: float = DEFAULT_ALPHA
    resamples: int = RESAMPLES
    seed: int = SEED
    standard: float = DEFAULT_STANDARD
    critical: Sequence[str] = ()
    baseline: Cell | None = None
    baseline_k: int | None = None
    rules: Sequence[Rule] = ()
    passage_tokens: int | None = None
    usd_per_million_tokens: float | None = None
    latency: Mapping[Cell, Latency] = field(default_factory=dict)
    looks: Looks = field(default_factory=Looks)

    def margin_used(self) -> float:
        """Return the margin in force: stated, else by what the objective can do."""
        if self.margin is not None:
            return self.margin
        return RETRIEVAL_MARGIN if self.objective in (*DEFINITIONS, USEFULNESS) else 0.0

    def check(self, measures: Sequence[str]) -> None:
        """Raise UsageError where the objective or a number cannot be meant."""
        if self.objective not in measures:
            asked = "it needs answers" if self.objective in ANSWER_MEASURES else "it was not measured"
            raise UsageError(
                f"expected an objective among {', '.join(measures)}, got `{self.objective}`: {asked}"
            )
        for wanted in self.critical:
            if "=" not in wanted:
                raise UsageError(f"expected a critical slice as name=value, e.g. language=de; got `{wanted}`")
        if not 1 <= self.looks.look <= self.looks.of:
            raise UsageError(
                f"expected at most {self.looks.of} looks at the holdout, this would be number "
                f"{self.looks.look}; refresh the holdout with new cases"
            )
        if not 0 < self.alpha < 1 or self.resamples < 100 or self.margin_used() < 0:
            raise UsageError(
                "expected alpha in (0, 1), at least 100 resamples and a margin from 0, got "
                f"{self.alpha}, {self.resamples} and {self.margin_used()}"
            )
