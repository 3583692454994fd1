"""Adaptive depth: rules that stop a list early, joined with & (both must want more) and | (either may).

`min_score(0.4) & at_most(10) | at_least(1)` keeps passages while the score holds and there are no more than
ten, but never fewer than one. A rule reads one ranked list and says how many of its passages it keeps and
why it stopped; it is judged by that number, never by a fixed k it might stand for.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

from resweep.domain.errors import UsageError
from resweep.sweep.lists import RankedList

END = "end of the list"


class Stop(NamedTuple):
    """How many passages a rule keeps, and why it stopped there."""

    kept: int
    reason: str


class Rule:
    """A stop rule. `lower_is_better` says that scores are distances."""

    def __call__(self, ranked: RankedList, lower_is_better: bool = False) -> Stop:
        """Return how many passages of the list to keep."""
        raise NotImplementedError

    def __and__(self, other: Rule) -> Rule:
        return Both(self, other)

    def __or__(self, other: Rule) -> Rule:
        return Either(self, other)


@dataclass(frozen=True, slots=True)
class Both(Rule):
    """Keeps a passage while both rules do: the smaller count."""

    one: Rule
    other: Rule

    def __str__(self) -> str:
        return f"{_inside(self.one)} & {_inside(self.other)}"

    def __call__(self, ranked: RankedList, lower_is_better: bool = False) -> Stop:
        """Return the earlier of the two stops."""
        return min(self.one(ranked, lower_is_better), self.other(ranked, lower_is_better), key=_kept)


@dataclass(frozen=True, slots=True)
class Either(Rule):
    """Keeps a passage while either rule does: the larger count."""

    one: Rule
    other: Rule

    def __str__(self) -> str:
        return f"{self.one} | {self.other}"

    def __call__(self, ranked: RankedList, lower_is_better: bool = False) -> Stop:
        """Return the later of the two stops."""
        return max(self.one(ranked, lower_is_better), self.other(ranked, lower_is_better), key=_kept)


def _kept(stop: Stop) -> int:
    return stop.kept


def _inside(rule: Rule) -> str:
    return f"({rule})" if isinstance(rule, Either) else str(rule)


@dataclass(frozen=True, slots=True)
class MinScore(Rule):
    """Stops before the first score worse than `limit`; a passage without a score is no reason to stop."""

    limit: float

    def __str__(self) -> str:
        return f"min_score({self.limit:g})"

    def __call__(self, ranked: RankedList, lower_is_better: bool = False) -> Stop:
        """Return the passages before the first worse than the limit."""
        for place, score in enumerate(ranked.scores):
            if score is not None and (score > self.limit if lower_is_better else score < self.limit):
                return Stop(place, f"score {'above' if lower_is_better else 'below'} {self.limit:g}")
        return Stop(len(ranked.ids), END)


@dataclass(frozen=True, slots=True)
class ScoreGap(Rule):
    """Stops after the passage followed by a fall of more than `gap` in score."""

    gap: float

    def __str__(self) -> str:
        return f"score_gap({self.gap:g})"

    def __call__(self, ranked: RankedList, lower_is_better: bool = False) -> Stop:
        """Return the passages before the first gap."""
        for place, (here, next_one) in enumerate(pairwise(ranked.scores), 1):
            if here is not None and next_one is not None:
                fall = next_one - here if lower_is_better else here - next_one
                if fall > self.gap:
                    return Stop(place, f"score gap above {self.gap:g}")
        return Stop(len(ranked.ids), END)


@dataclass(frozen=True, slots=True)
class TokenBudget(Rule):
    """Keeps the longest prefix of at most `tokens` tokens; a passage of unknown length counts 0."""

    tokens: int

    def __str__(self) -> str:
        return f"token_budget({self.tokens})"

    def __call__(self, ranked: RankedList, lower_is_better: bool = False) -> Stop:
        """Return the passages within the budget."""
        spent = 0
        for place, size in enumerate(ranked.tokens):
            spent += size or 0
            if spent > self.tokens:
                return Stop(place, f"budget of {self.tokens} tokens")
        return Stop(len(ranked.ids), END)


@dataclass(frozen=True, slots=True)
class Sources(Rule):
    """Stops once `sources` different known sources are in."""

    sources: int

    def __str__(self) -> str:
        return f"sources({self.sources})"

    def __call__(self, ranked: RankedList, lower_is_better: bool = False) -> Stop:
        """Return the passages up to the one that completes the sources."""
        seen: set[str] = set()
        for place, source in enumerate(ranked.sources, 1):
            if source is not None:
                seen.add(source)
            if len(seen) >= self.sources:
                return Stop(place, f"{self.sources} sources")
        return Stop(len(ranked.ids), END)


@dataclass(frozen=True, slots=True)
class AtMost(Rule):
    """Stops after `k` passages; with & a ceiling."""

    k: int

    def __str__(self) -> str:
        return f"at_most({self.k})"

    def __call__(self, ranked: RankedList, lower_is_better: bool = False) -> Stop:
        """Return the first k passages."""
        return Stop(self.k, f"{self.k} passages") if len(ranked.ids) > self.k else Stop(len(ranked.ids), END)


@dataclass(frozen=True, slots=True)
class AtLeast(AtMost):
    """The first `k` passages; with | a floor."""

    def __str__(self) -> str:
        return f"at_least({self.k})"


RULES: dict[str, tuple[Callable[..., Rule], type[int] | type[float]]] = {
    "min_score": (MinScore, float),
    "score_gap": (ScoreGap, float),
    "token_budget": (TokenBudget, int),
    "sources": (Sources, int),
    "at_most": (AtMost, int),
    "at_least": (AtLeast, int),
}


def parse_rule(text: str) -> Rule:
    """Return the rule that a text such as `min_score(0.4) & at_most(10) | at_least(1)` states.

    Raises UsageError, with what may be written instead.
    """
    try:
        return _built(ast.parse(text.strip(), mode="eval").body)
    except (SyntaxError, ValueError, RecursionError):
        raise UsageError(
            f"expected rules among {', '.join(f'{name}(number)' for name in RULES)}, joined with & and |; "
            f"got `{text}`"
        ) from None


def _built(node: ast.expr) -> Rule:
    """Build a rule from its syntax; nothing is evaluated."""
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitAnd | ast.BitOr):
        left, right = _built(node.left), _built(node.right)
        return left & right if isinstance(node.op, ast.BitAnd) else left | right
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and len(node.args) == 1:
        build, kind = RULES.get(node.func.id, (None, float))
        number = ast.literal_eval(node.args[0])
        if build is not None and isinstance(number, int | float) and kind(number) == number:
            return build(kind(number))
    raise ValueError


def distances(lists: Iterable[RankedList]) -> bool:
    """Return whether scores are distances: they rise down the lists more often than they fall."""
    rises = falls = 0
    for here, next_one in _steps(lists):
        rises += next_one > here
        falls += next_one < here
    return rises > falls


def _steps(lists: Iterable[RankedList]) -> Iterator[tuple[float, float]]:
    for ranked in lists:
        for here, next_one in pairwise(ranked.scores):
            if here is not None and next_one is not None:
                yield here, next_one
