"""The last change of a pipeline's config: from which to which, when, and what differs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from resweep.domain.diff import Change, diff
from resweep.domain.invalidation import InvalidationRules
from resweep.domain.window import Window
from resweep.store.rows import ConfigSeen

ORDER = ("invalidates", "depth", "inert")
AWAY = 50  # answers in a row of the other config: at 10 % of the fleet, 1 rollout in 200 looks so by chance


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfigChange:
    """One config took over from another at `at` (unix s). `changes` has what matters most first.

    `returned` says that it had run before.
    """

    before: ConfigSeen
    after: ConfigSeen
    at: float
    changes: Sequence[Change]
    returned: bool = False

    @property
    def weighty(self) -> Sequence[Change]:
        """Those that count for a tuned k."""
        return [one for one in self.changes if one.effect != "inert"]


def between(
    before: ConfigSeen, after: ConfigSeen, at: float, rules: InvalidationRules, *, returned: bool = False
) -> ConfigChange:
    """Return a change from one config to another."""
    found = diff(before.record.document, after.record.document, rules)
    ordered = sorted(found, key=lambda change: ORDER.index(change.effect))
    return ConfigChange(before=before, after=after, at=at, changes=ordered, returned=returned)


def last_change(
    seen: Sequence[ConfigSeen], config: str | None, rules: InvalidationRules, traffic: Iterable[Window] = ()
) -> ConfigChange | None:
    """Return how `config` came to run; None where no other config is known.

    A config that came back took over when the other one was last seen. `traffic` tells, by its windows in
    order of time, whether it had been away.
    """
    after = next((one for one in seen if one.record.config == config), None)
    others = [one for one in seen if one.record.config != config]
    if after is None or not others:
        return None
    before = max(others, key=lambda one: one.last_seen)
    returned = after.first_seen < before.first_seen or _was_away(after, before, traffic)
    at = before.last_seen if returned else after.first_seen
    return between(before, after, at, rules, returned=returned)


def _was_away(after: ConfigSeen, before: ConfigSeen, traffic: Iterable[Window]) -> bool:
    """Whether `before` answered `AWAY` times in a row with nothing from `after`, which was there already."""
    alone = 0
    for window in traffic:
        if window.minute * 60 <= after.first_seen:
            continue
        if window.config == after.record.config and window.get("retrievals"):
            alone = 0
        elif window.config == before.record.config:
            alone += window.get("retrievals")
        if alone >= AWAY:
            return True
    return False
