"""What of a document counts: without inert paths, and without the depths that a sweep chooses."""

from __future__ import annotations

from enum import Enum

from resweep.domain.canonical import Plain
from resweep.domain.invalidation import Effect, InvalidationRules
from resweep.domain.paths import Path


class Absent(Enum):
    """Stands for what is not there, where `None` is a value."""

    ABSENT = "absent"


ABSENT = Absent.ABSENT
IN_CONFIG: frozenset[Effect] = frozenset({"invalidates", "depth"})
IN_BASIS: frozenset[Effect] = frozenset({"invalidates"})


def kept(value: Plain, path: Path, rules: InvalidationRules, counts: frozenset[Effect]) -> Plain | Absent:
    """Return what of a value at a path has an effect that counts, or `ABSENT`.

    A section that nothing is left of goes too, where every pipeline has such a section or the rules call it
    inert. Any other stays, empty: `openai: {timeout: 3}` and `cohere: {timeout: 3}` are not the same.
    """
    if isinstance(value, dict):
        members = ((key, kept(item, (*path, key), rules, counts)) for key, item in value.items())
        found = {key: item for key, item in members if item is not ABSENT}
        return found if found or not _goes_empty(path, rules, counts) else ABSENT
    if isinstance(value, list) and value:
        items = (kept(item, (*path, place), rules, counts) for place, item in enumerate(value))
        left = [item for item in items if item is not ABSENT]
        return left if left or not _is_left_out(path, rules, counts) else ABSENT
    return ABSENT if _is_left_out(path, rules, counts) else value


def _goes_empty(path: Path, rules: InvalidationRules, counts: frozenset[Effect]) -> bool:
    return rules.says_nothing_empty(path) or _is_left_out(path, rules, counts)


def _is_left_out(path: Path, rules: InvalidationRules, counts: frozenset[Effect]) -> bool:
    return rules.effect_of(path).effect not in counts
