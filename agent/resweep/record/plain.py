"""Plain answers counted in bulk: what `domain.fold` does one by one, done once a window.

An answer is plain where it is a list, complete, without stages and filters: almost all of them.
"""

from __future__ import annotations

from typing import NamedTuple

from resweep.domain.fold import DEPTHS_MAX
from resweep.domain.window import Window
from resweep.record.confidence import Confidence
from resweep.record.lean import Lean, Totals
from resweep.record.uniform import Uniform
from resweep.record.watching import Site


class Run(NamedTuple):
    """Calls of one site within one minute, with all that counting them needs looked up once.

    `begins` and `ends` are times of the call's clock, in seconds.
    """

    site: Site | None
    begins: float
    ends: float
    window: Window
    plain: Plain
    lean: Lean
    uniform: Uniform
    confidence: Confidence


class Plain:
    """The plain answers of one window on their way into it: `domain.fold` in bulk."""

    __slots__ = (
        "depths",
        "distinct",
        "diversity",
        "down",
        "invalid",
        "missing",
        "seconds",
        "tokens",
        "tops",
        "up",
        "valid",
    )

    def __init__(self) -> None:
        self.depths: dict[tuple[int | None, int], int] = {}
        self.diversity: dict[tuple[int, int], int] = {}
        self.seconds: list[float] = []
        self.tokens: list[int] = []
        self.tops: list[float] = []
        self.distinct = self.valid = self.invalid = self.missing = self.up = self.down = 0

    def add(self, asked: int | None, returned: int, seconds: float, totals: Totals | None) -> None:
        """Count one completed answer; `totals` is None for one that is empty or was not looked into."""
        key = (asked, returned)
        self.depths[key] = self.depths.get(key, 0) + 1
        self.seconds.append(seconds)
        if totals is None:
            return
        tokens, known, sources, distinct, valid, invalid, top, first, last = totals
        if tokens is not None:
            self.tokens.append(tokens)
        if known:
            pair = (sources, known)
            self.diversity[pair] = self.diversity.get(pair, 0) + 1
        if top is not None:
            self.tops.append(top)
        self.distinct += distinct
        self.valid += valid
        self.invalid += invalid
        self.missing += returned - valid - invalid
        if first is not None and last is not None and first != last:
            if first > last:
                self.up += 1
            else:
                self.down += 1

    def into(self, window: Window) -> None:
        """Add everything to a window."""
        for (asked, returned), times in self.depths.items():
            _count(window, asked, returned, times)
        for name, values in (
            ("retrieval_duration_seconds", self.seconds),
            ("context_tokens", self.tokens),
            ("top_score", self.tops),
        ):
            for value in values:
                window.observe(name, value)
        for (sources, known), times in self.diversity.items():
            window.observe_many("source_diversity_ratio", sources / known, times)
        for name in _SUMS:
            amount = getattr(self, name)
            if amount:
                window.add(_SUMS[name], amount)


_SUMS = {
    "distinct": "distinct_passages",
    "valid": "score_valid",
    "invalid": "score_invalid",
    "missing": "score_missing",
    "up": "score_up",
    "down": "score_down",
}


def _count(window: Window, asked: int | None, returned: int, times: int) -> None:
    window.add("retrievals", times)
    window.add("ok", times)
    window.add("passages", returned * times)
    window.observe_many("retrieved_passages", returned, times)
    if returned == 0:
        window.add("empty_zero", times)
    if asked is None:
        return
    window.add(f"asked:{min(asked, DEPTHS_MAX)}", times)
    window.add(f"returned:{min(returned, DEPTHS_MAX)}", times)
    window.add("asked_sum", asked * times)
    window.add("returned_sum", returned * times)
    if returned >= asked:
        window.add("served", times)
    elif returned:
        window.add("short", times)
