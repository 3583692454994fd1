"""The last change of a pipeline's config: from which to which, when, and what differs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from resweep.domain.diff import Change, diff
from resweep.domain.invalidation import InvalidationRules
from resweep.store.rows import ConfigSeen

ORDER = ("invalidates", "depth", "inert")


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfigChange:
    """One config took over from another at `at` (unix s). `changes` has what matters most first."""

    before: ConfigSeen
    after: ConfigSeen
    at: float
    changes: Sequence[Change]

    @property
    def weighty(self) -> Sequence[Change]:
        """Those that count for a tuned k."""
        return [one for one in self.changes if one.effect != "inert"]


def between(before: ConfigSeen, after: ConfigSeen, at: float, rules: InvalidationRules) -> ConfigChange:
    """Return a change from one config to another."""
    found = diff(before.record.document, after.record.document, rules)
    ordered = sorted(found, key=lambda change: ORDER.index(change.effect))
    return ConfigChange(before=before, after=after, at=at, changes=ordered)


def last_change(
    seen: Sequence[ConfigSeen], config: str | None, rules: InvalidationRules
) -> ConfigChange | None:
    """Return how `config` came to run; None where no other config is known.

    A config that came back took over when the other one was last seen.
    """
    after = next((one for one in seen if one.record.config == config), None)
    others = [one for one in seen if one.record.config != config]
    if after is None or not others:
        return None
    before = max(others, key=lambda one: one.last_seen)
    returned = after.first_seen < before.first_seen
    return between(before, after, before.last_seen if returned else after.first_seen, rules)
