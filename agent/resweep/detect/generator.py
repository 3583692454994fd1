"""Facts of the answer side: the model that answered, and the provider's fingerprint of its system.

Retrieval cannot show that a generator changed; the application can tell. A provider rolls a new system out
machine by machine, so the old value and the new one alternate for hours. A new value therefore counts once it
has come often and for long enough, and stops to count once others have, without it, likewise.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator

import msgspec

from resweep.detect.finding import Finding
from resweep.domain.verdict import TunedK
from resweep.domain.window import Window

PREFIX = "fact:"
FACTS = ("response_model", "system_fingerprint")
LEAST_EVENTS = 20
LEAST_S = 600.0
LEARN_EVENTS = 50  # before that, and for the first hour, every value is one of the usual ones
LEARN_S = 3600.0
FORGET_S = 86_400.0  # a value that came too seldom is forgotten when it stays away so long
VALUES_MAX = 16


class Newcomer(msgspec.Struct):
    """A value that was not among the usual ones: how often it came, and what came without it since."""

    first_ts: float
    last_ts: float
    n: int = 0
    confirmed: bool = False
    without: int = 0  # answers with other values since it came last

    def settles(self, ts: float) -> bool:
        """Whether it came often and for long enough."""
        return self.n >= LEAST_EVENTS and ts - self.first_ts >= LEAST_S

    def is_gone(self, ts: float) -> bool:
        """Whether others came often and for long enough without it."""
        return self.without >= LEAST_EVENTS and ts - self.last_ts >= LEAST_S


class Fact(msgspec.Struct):
    """One fact of a config's answers: its usual values, and those that came later."""

    first_ts: float
    n: int = 0
    usual: list[str] = msgspec.field(default_factory=list)
    new: dict[str, Newcomer] = msgspec.field(default_factory=dict)

    def take(self, value: str, times: int, ts: float) -> None:
        """Count a value that came so many times up to `ts` (unix s)."""
        learning = self.n < LEARN_EVENTS or ts - self.first_ts < LEARN_S
        self.n += times
        for name, other in self.new.items():
            other.without += times if name != value else 0
        if value in self.usual:
            return
        if learning and len(self.usual) < VALUES_MAX:
            self.usual.append(value)
            return
        self._newcomer(value, times, ts)

    def _newcomer(self, value: str, times: int, ts: float) -> None:
        if value not in self.new and len(self.new) >= VALUES_MAX:
            del self.new[min(self.new, key=lambda name: self.new[name].last_ts)]
        one = self.new.setdefault(value, Newcomer(ts, ts))
        one.n += times
        one.last_ts, one.without = ts, 0
        one.confirmed = one.confirmed or one.settles(ts)

    def settle(self, ts: float) -> None:
        """Let go of values that are gone."""
        self.new = {
            name: one
            for name, one in self.new.items()
            if not one.is_gone(ts) and (one.confirmed or ts - one.last_ts < FORGET_S)
        }

    def other(self, right: Collection[str] = ()) -> str | None:
        """Return the value that took over and is not one of the usual or `right` ones, None without any."""
        found = [name for name, one in self.new.items() if one.confirmed and name not in right]
        return max(found, key=lambda name: self.new[name].last_ts, default=None)


def take(facts: dict[str, Fact], window: Window, ts: float) -> None:
    """Count the facts of a delta of counts, up to `ts` (unix s)."""
    for name, times in window.counts.items():
        if name.startswith(PREFIX):
            _, named, value = name.split(":", 2)
            if named in FACTS:
                facts.setdefault(named, Fact(ts)).take(value, times, ts)
    for fact in facts.values():
        fact.settle(ts)


def generator(
    pipeline: str, config: str, basis: str, facts: dict[str, Fact], record: TunedK | None
) -> Iterator[Finding]:
    """Yield that the generator changed, where it did; a depth tuned with the new one makes it right."""
    observed = {} if record is None else record.observed
    found = {
        name: value
        for name, fact in sorted(facts.items())
        if (value := fact.other([str(observed.get(name))])) is not None
    }
    if not found:
        return
    before = {name: list(facts[name].usual) for name in found}
    told = " and ".join(
        f"{name.replace('_', ' ')} is {value}, was {', '.join(before[name]) or 'unknown'}"
        for name, value in found.items()
    )
    yield Finding(
        reason="silent_change",
        layer="introspected",
        config=config,
        basis=basis,
        components=("generator",),
        severity="warning",
        moves="suspect",
        about="generator",
        message=f"{pipeline}: the generator changed, declared config unchanged: {told}; retrieval cannot "
        "show what that does to the best k: sweep with judged answers, or accept the depth in use",
        evidence={"before": before, "now": found},
        next_command=f"resweep sweep {pipeline}",
        onset_ts=min(facts[name].new[value].first_ts for name, value in found.items()),
    )
