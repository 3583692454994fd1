"""Which of many patterns, in order, is the first to match a path.

A few hundred patterns over a config's paths would be slow one by one, and slow as one expression too. They
are told apart by how they begin: `part.…` by that step, `**.x` and `**.x.**` by a single step of the path.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import chain

from resweep.domain import paths
from resweep.domain.paths import Patterns

Placed = Sequence[tuple[str, int]]


class Matcher:
    """Patterns with the place of the rule each belongs to; the lowest place that matches wins."""

    def __init__(self, placed: Placed) -> None:
        ends, anywhere, rest = [], [], []
        for pattern, place in placed:
            steps = pattern.split(".")
            if len(steps) == 2 and steps[0] == "**" != steps[1]:
                ends.append((steps[1], place))
            elif len(steps) == 3 and steps[0] == steps[2] == "**" != steps[1]:
                anywhere.append((steps[1], place))
            else:
                rest.append((pattern, place))
        self._ends, self._anywhere = _OneStep(ends), _OneStep(anywhere)
        self._by_first = _ByFirstStep(rest)

    def first(self, seen: Sequence[str]) -> int | None:
        """Return the lowest place of a pattern that matches a path's steps, or None."""
        if not seen:
            return None
        found = chain(
            (self._by_first.first(seen), self._ends.first(seen[-1])), map(self._anywhere.first, seen)
        )
        return lowest(found)


def lowest(places: Iterable[int | None]) -> int | None:
    """Return the lowest of some places, None where there is none."""
    return min((place for place in places if place is not None), default=None)


class _Group:
    """Patterns compiled when first used."""

    def __init__(self, placed: Placed) -> None:
        self._placed = placed
        self._patterns: Patterns | None = None

    def first(self, seen: Sequence[str]) -> int | None:
        if self._patterns is None:
            self._patterns = Patterns(pattern for pattern, _ in self._placed)
        found = self._patterns.first(paths.subject(seen))
        return None if found is None else self._placed[found][1]


class _OneStep:
    """Patterns for a single step; remembers its answers, since few names make up most configs."""

    _REMEMBERED = 8192

    def __init__(self, placed: Placed) -> None:
        self._group = _Group(placed)
        self._known: dict[str, int | None] = {}

    def first(self, step: str) -> int | None:
        if step not in self._known:
            if len(self._known) >= self._REMEMBERED:
                self._known.clear()
            self._known[step] = self._group.first((step,))
        return self._known[step]


class _ByFirstStep:
    """Patterns told apart by their first step where it is literal."""

    def __init__(self, placed: Placed) -> None:
        literal: dict[str, list[tuple[str, int]]] = {}
        wild = []
        for pattern, place in placed:
            first, _, rest = pattern.partition(".")
            if "*" in first or "?" in first:
                wild.append((pattern, place))
            else:
                literal.setdefault(paths.snake(first), []).append((rest, place))
        self._literal = {first: _Rest(group) for first, group in literal.items()}
        self._wild = _Group(wild)

    def first(self, seen: Sequence[str]) -> int | None:
        literal = self._literal.get(seen[0])
        return lowest((literal.first(seen[1:]) if literal else None, self._wild.first(seen)))


class _Rest:
    """What follows a literal first step; nothing may follow."""

    def __init__(self, placed: Placed) -> None:
        self._alone = lowest(place for rest, place in placed if rest in ("", "**"))
        self._group = _Group([(rest, place) for rest, place in placed if rest])

    def first(self, seen: Sequence[str]) -> int | None:
        return self._group.first(seen) if seen else self._alone
