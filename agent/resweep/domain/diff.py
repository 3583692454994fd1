"""What changed between two configs, what it means, and how to say it."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias, cast

from resweep.domain import paths
from resweep.domain.basis import ABSENT, IN_BASIS, IN_CONFIG, Absent, kept
from resweep.domain.canonical import Plain, jcs, sorted_keys
from resweep.domain.invalidation import UNKNOWN_PATH, Effect, InvalidationRules, PathEffect, Peak
from resweep.domain.paths import Path
from resweep.domain.verdict import Component

MAX_COMPONENTS = 2

# What explains a change of the answers best comes first.
_IMPORTANCE: tuple[Component, ...] = (
    *("embedder", "chunker", "index", "reranker", "filter", "generator", "prompt"),
    *("corpus", "depth", "traffic", "outcome", "unknown"),
)
_OTHER_WAY: Mapping[Peak, Peak] = {"down": "up", "up": "down"}
_PEAK_WORDS: Mapping[Peak, str] = {
    "down": "the peak should move down",
    "up": "the peak should move up",
    "unknown": "the peak may move either way",
    "none": "the peak should stay",
}
_OFF = (ABSENT, None, False, 0, "", "none", "off", "false", "disabled")
_LONGEST = 60  # characters of a value in a sentence
_PLAIN_WORD = re.compile(r"[\w./:@+-]+")

Value: TypeAlias = "Plain | Absent"


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """One path that differs. `before` or `after` is None where there was or is nothing.

    `peak` is the way the best context_k is expected to move with this very change.
    """

    path: str
    before: Plain
    after: Plain
    effect: Effect
    component: Component
    peak: Peak
    because: str


def diff(
    old: Mapping[str, object], new: Mapping[str, object], rules: InvalidationRules | None = None
) -> tuple[Change, ...]:
    """Return what differs between two canonical documents, by path.

    No change has the effect `invalidates` exactly where both have one basis_hash; none `invalidates` or
    `depth` exactly where both have one config_hash. Lists are compared as wholes, but for lists of as many
    mappings.
    """
    before, after = (cast("dict[str, Plain]", dict(document)) for document in (old, new))
    return tuple(_Diff(rules or InvalidationRules.load_default()).walk(before, after, ()))


class _Diff:
    def __init__(self, rules: InvalidationRules) -> None:
        self._rules = rules

    def walk(self, before: Value, after: Value, path: Path) -> Iterator[Change]:
        if _same(before, after):
            return
        if isinstance(before, dict) and isinstance(after, dict):
            yield from self._members(before, after, path)
        elif (rows := _rows(before, after)) is not None:
            for place, pair in enumerate(rows):
                yield from self.walk(*pair, (*path, place))
        elif self._is_mixed_section(before, after, path):
            yield from self._section(before, after, path)
        else:
            yield self._change(before, after, path)

    def _members(self, before: dict[str, Plain], after: dict[str, Plain], path: Path) -> Iterator[Change]:
        for key in sorted_keys({*before, *after}):
            yield from self.walk(before.get(key, ABSENT), after.get(key, ABSENT), (*path, key))

    def _is_mixed_section(self, before: Value, after: Value, path: Path) -> bool:
        """Say whether a section came or went of which not all counts."""
        section = after if before is ABSENT else before if after is ABSENT else None
        return isinstance(section, dict) and not _same(self._kept(section, path, IN_BASIS), section)

    def _section(self, before: Value, after: Value, path: Path) -> Iterator[Change]:
        """Tell what of a section came or went that counts, as one, and the rest leaf by leaf."""
        section, came = (after, True) if before is ABSENT else (before, False)
        counting = self._kept(section, path, IN_BASIS)
        if counting is not ABSENT:
            yield self._change(*self._turned(counting, came), path)
        rest = [
            self._change(*self._turned(value, came), leaf)
            for leaf, value in _leaves(section, path)
            if self._rules.effect_of(leaf).effect != "invalidates"
        ]
        yield from rest
        shell = self._kept(section, path, IN_CONFIG)  # a depth given as a section that says nothing
        if counting is ABSENT is not shell and all(change.effect == "inert" for change in rest):
            yield self._change(*self._turned(shell, came), path)

    @staticmethod
    def _turned(value: Value, came: bool) -> tuple[Value, Value]:
        return (ABSENT, value) if came else (value, ABSENT)

    def _kept(self, value: Value, path: Path, counts: frozenset[Effect]) -> Value:
        return ABSENT if value is ABSENT else kept(value, path, self._rules, counts)

    def _change(self, before: Value, after: Value, path: Path) -> Change:
        found = self._effect(before, after, path)
        return Change(
            path=paths.text(path),
            before=None if before is ABSENT else before,
            after=None if after is ABSENT else after,
            effect=found.effect,
            component=found.component,
            peak=_direction(found.peak, before, after),
            because=found.because,
        )

    def _effect(self, before: Value, after: Value, path: Path) -> PathEffect:
        """Return the effect of what differs; for a container that may be the effect of something in it."""
        effect = self._weight(before, after, path)
        own = self._rules.effect_of(path)
        if own.effect == effect:
            return own
        leaves = (leaf for value in (before, after) for leaf, _ in _leaves(value, path))
        within = [found for found in map(self._rules.effect_of, leaves) if found.effect == effect]
        unknown = PathEffect(effect=effect, component="unknown", peak="unknown", because=UNKNOWN_PATH.because)
        return min(within, key=lambda found: _IMPORTANCE.index(found.component), default=unknown)

    def _weight(self, before: Value, after: Value, path: Path) -> Effect:
        if not _same(self._kept(before, path, IN_BASIS), self._kept(after, path, IN_BASIS)):
            return "invalidates"
        if not _same(self._kept(before, path, IN_CONFIG), self._kept(after, path, IN_CONFIG)):
            return "depth"
        return "inert"


def _same(before: Value, after: Value) -> bool:
    if before is ABSENT or after is ABSENT:
        return before is after
    return before == after and jcs(before) == jcs(after)  # the latter since True == 1


def _rows(before: Value, after: Value) -> list[tuple[Plain, Plain]] | None:
    """Return the pairs of two lists of as many mappings, None for anything else."""
    if not isinstance(before, list) or not isinstance(after, list) or len(before) != len(after):
        return None
    return list(zip(before, after, strict=True)) if all(isinstance(x, dict) for x in before + after) else None


def _leaves(value: Value, path: Path) -> Iterator[tuple[Path, Plain]]:
    """Return what a value holds in the end, numbers, text and empty containers, each with its path."""
    members: Iterable[tuple[str | int, Plain]] = ()
    if isinstance(value, dict):
        members = value.items()
    elif isinstance(value, list):
        members = enumerate(value)
    for step, item in members:
        if isinstance(item, (dict, list)) and item:
            yield from _leaves(item, (*path, step))
        else:
            yield (*path, step), item


def _direction(peak: Peak, before: Value, after: Value) -> Peak:
    """Turn a rule's peak, which speaks of growth, to the change at hand."""
    if peak not in _OTHER_WAY:
        return peak
    grows = _grows(before, after)
    if grows is None:
        return "unknown"
    return peak if grows else _OTHER_WAY[peak]


def _grows(before: Value, after: Value) -> bool | None:
    was_on, is_on = before not in _OFF, after not in _OFF
    if was_on != is_on:
        return is_on
    if isinstance(before, (int, float)) and isinstance(after, (int, float)):
        return after > before
    return None


def components(changes: Iterable[Change]) -> tuple[Component, ...]:
    """Return at most two components that changes touch, the most telling first; inert ones do not count."""
    every = list(changes)
    weighty = [change for change in every if change.effect == "invalidates"]
    depths = [change for change in every if change.effect == "depth"]
    named = {change.component for change in weighty or depths}
    return tuple(sorted(named, key=_IMPORTANCE.index)[:MAX_COMPONENTS])


def in_words(changes: Sequence[Change], most: int = 6) -> str:
    """Say what changed, what matters first: `embedder.model changed from m1 to m2 (the peak may ...)`."""
    if not changes:
        return "nothing changed"
    order: Sequence[Effect] = ("invalidates", "depth", "inert")
    told = sorted(changes, key=lambda change: order.index(change.effect))
    more = f"; and {len(told) - most} more" if len(told) > most else ""
    return "; ".join(f"{_event(change)} ({_meaning(change)})" for change in told[:most]) + more


def _event(change: Change) -> str:
    if change.before is None:
        return f"{change.path} was added: {_shown(change.after)}"
    if change.after is None:
        return f"{change.path} was removed, it was {_shown(change.before)}"
    before, after = _shown(change.before), _shown(change.after)
    if before == after:  # what differs lies beyond what is shown
        sizes = (len(jcs(change.before)), len(jcs(change.after)))
        return f"{change.path} changed, from {sizes[0]} to {sizes[1]} bytes: {before}"
    return f"{change.path} changed from {before} to {after}"


def _meaning(change: Change) -> str:
    if change.effect == "invalidates":
        return f"{_PEAK_WORDS[change.peak]}: {change.because}"
    return f"{change.effect}: {change.because}"


def _shown(value: Plain) -> str:
    plain = isinstance(value, str) and _PLAIN_WORD.fullmatch(value)
    text = str(value) if plain else json.dumps(value, ensure_ascii=False)
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"
