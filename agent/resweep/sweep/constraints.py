"""What a depth must meet: small conditions on one cell's numbers, joined with & and |.

`floor("recall", 0.75) & ceiling("prompt_tokens", 4096)`, or as text `recall >= 0.75 & prompt_tokens <= 4096`.
A condition on a slice reads `recall[language=de] >= 0.7`; `recall.low >= 0.7` asks it of the lower end of the
interval. `&` binds before `|`.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from resweep.domain.errors import UsageError

QUANTITIES: tuple[str, ...] = (
    "prompt_tokens",
    "cost_usd",
    "latency_p50_s",
    "latency_p95_s",
    "context_k",
    "candidate_k",
)
STATISTICS: tuple[str, ...] = ("mean", "low", "high", "median", "q10", "q25", "share_above")
_BOUND = re.compile(
    r"\s*(?P<name>[a-z_0-9]+?)(?:\.(?P<statistic>[a-z_0-9]+))?\s*(?:\[(?P<slice>[^\]]+)\])?"
    r"\s*(?P<sign>>=|<=)\s*(?P<limit>[-+0-9.eE]+)\s*"
)


class Numbers(Protocol):
    """What a constraint may ask of one cell of the grid."""

    def number(self, name: str, statistic: str, part: str | None) -> float | None:
        """Return a measure's statistic (of a slice `name=value`, or of all), or a quantity; None: no data."""


class Met(NamedTuple):
    """Whether a constraint holds, and the numbers in words."""

    ok: bool
    text: str


class Constraint:
    """A condition on one cell; call it with the cell's numbers. Joins with & and |."""

    def __call__(self, numbers: Numbers) -> Met:
        """Return whether the cell meets this."""
        raise NotImplementedError

    def __and__(self, other: Constraint) -> Constraint:
        return All((*self.parts(All), *other.parts(All)))

    def __or__(self, other: Constraint) -> Constraint:
        return AnyOf((*self.parts(AnyOf), *other.parts(AnyOf)))

    def parts(self, kind: type[All] | type[AnyOf]) -> tuple[Constraint, ...]:
        """Return what this joins where it is a `kind`, else itself: a & b & c is one list."""
        return self.joined if isinstance(self, All | AnyOf) and isinstance(self, kind) else (self,)


@dataclass(frozen=True, slots=True)
class Bound(Constraint):
    """A floor or a ceiling: `sign` is ">=" or "<=". No data does not meet it."""

    name: str
    sign: str
    limit: float
    statistic: str = "mean"
    part: str | None = None

    def __str__(self) -> str:
        statistic = "" if self.statistic == "mean" else f".{self.statistic}"
        part = f"[{self.part}]" if self.part else ""
        return f"{self.name}{statistic}{part} {self.sign} {self.limit:g}"

    def __call__(self, numbers: Numbers) -> Met:
        """Return whether the number is on the right side of the limit."""
        value = numbers.number(self.name, self.statistic, self.part)
        if value is None:
            return Met(False, f"{self} cannot be told: no data")
        # A mean of 0.8 exactly may come out as 0.7999999999999999.
        slack = 1e-9 * max(1.0, abs(self.limit))
        ok = value >= self.limit - slack if self.sign == ">=" else value <= self.limit + slack
        return Met(ok, f"{self} {'holds' if ok else 'fails'} ({value:.4g})")


@dataclass(frozen=True, slots=True)
class All(Constraint):
    """Every one of several conditions."""

    joined: tuple[Constraint, ...]

    def __str__(self) -> str:
        return " & ".join(map(str, self.joined))

    def __call__(self, numbers: Numbers) -> Met:
        """Return whether all hold; the text says which fail, or all that hold."""
        met = [constraint(numbers) for constraint in self.joined]
        failed = [one.text for one in met if not one.ok]
        return Met(not failed, "; ".join(failed or [one.text for one in met]))


@dataclass(frozen=True, slots=True)
class AnyOf(Constraint):
    """At least one of several conditions."""

    joined: tuple[Constraint, ...]

    def __str__(self) -> str:
        return " | ".join(map(str, self.joined))

    def __call__(self, numbers: Numbers) -> Met:
        """Return whether any holds; the text says the first that does, or all that fail."""
        met = [constraint(numbers) for constraint in self.joined]
        held = [one.text for one in met if one.ok]
        return Met(bool(held), held[0] if held else " and ".join(one.text for one in met))


def named_in(constraint: Constraint) -> list[str]:
    """Return the measures and quantities that a constraint asks for."""
    if isinstance(constraint, All | AnyOf):
        return [name for part in constraint.joined for name in named_in(part)]
    return [constraint.name] if isinstance(constraint, Bound) else []


def floor(name: str, limit: float, *, statistic: str = "mean", part: str | None = None) -> Bound:
    """Return the condition that a measure reach `limit`, over all cases or one slice (`name=value`)."""
    return Bound(name, ">=", limit, statistic, part)


def ceiling(name: str, limit: float, *, statistic: str = "mean", part: str | None = None) -> Bound:
    """Return the condition that a measure or quantity stay at or below `limit`."""
    return Bound(name, "<=", limit, statistic, part)


def parse_constraint(text: str, measures: Collection[str]) -> Constraint:
    """Return the constraint that a text such as `recall >= 0.75 & prompt_tokens <= 4096` states.

    `measures` are the names known. Raises UsageError, with what may be written instead.
    """
    either = [_all(part, measures) for part in text.split("|")]
    return either[0] if len(either) == 1 else AnyOf(tuple(either))


def _all(text: str, measures: Collection[str]) -> Constraint:
    every = [_bound(part, measures) for part in text.split("&")]
    return every[0] if len(every) == 1 else All(tuple(every))


def _bound(text: str, measures: Collection[str]) -> Bound:
    found = _BOUND.fullmatch(text)
    if found is None:
        raise UsageError(f"expected a constraint such as `recall >= 0.75`, got `{text.strip()}`")
    name, statistic = found["name"], found["statistic"] or "mean"
    if name not in measures and name not in QUANTITIES:
        known = ", ".join((*sorted(measures), *QUANTITIES))
        raise UsageError(f"expected a constraint on one of {known}; got `{name}`")
    if statistic not in STATISTICS:
        raise UsageError(f"expected one of {', '.join(STATISTICS)} after `{name}.`, got `{statistic}`")
    try:
        limit = float(found["limit"])
    except ValueError:
        raise UsageError(f"expected a number in `{text.strip()}`, got `{found['limit']}`") from None
    return Bound(name, found["sign"], limit, statistic, found["slice"])
