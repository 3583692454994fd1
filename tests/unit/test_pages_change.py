"""When a config took over: for the first time, or back again."""

from __future__ import annotations

from resweep.domain.batch import ConfigRecord
from resweep.domain.invalidation import InvalidationRules
from resweep.domain.window import Window
from resweep.serve.pages.change import AWAY, ConfigChange, last_change
from resweep.store.rows import ConfigSeen

RULES = InvalidationRules.load_default()


def seen(config: str, first: float, last: float) -> ConfigSeen:
    """Return a config that answered from the minute `first` to the minute `last`."""
    return ConfigSeen(
        record=ConfigRecord(pipeline="bot", config=config, basis=config, document={"embedder": config}),
        declared=True,
        parent=None,
        first_seen=first * 60,
        last_seen=last * 60,
        last_active=last * 60,
        slot="own",
        retired_at=None,
    )


def traffic(*told: tuple[str, int, int]) -> list[Window]:
    """Return windows of (config, minute, retrievals)."""
    return [Window("bot", config, minute, {"retrievals": n}) for config, minute, n in told]


def change(a: ConfigSeen, b: ConfigSeen, running: str, windows: list[Window]) -> ConfigChange:
    """Return how the running config took over."""
    found = last_change([a, b], running, RULES, windows)
    assert found is not None
    return found


def test_a_new_config_took_over_when_it_first_answered() -> None:
    """Also while the old one still answers: a rollout has an onset, and that is the moment."""
    found = change(
        seen("a", 0, 30), seen("b", 20, 90), "b", traffic(("a", 19, 99), ("b", 20, 5), ("a", 21, 40))
    )
    assert (found.at, found.returned) == (20 * 60, False)


def test_a_config_older_than_the_other_came_back() -> None:
    """It took over when the other was last seen."""
    found = change(seen("a", 0, 90), seen("b", 20, 40), "a", [])
    assert (found.at, found.returned) == (40 * 60, True)


def test_a_younger_config_came_back_where_the_older_answered_alone_for_long() -> None:
    """a, then b, then a again, then b: the last change is the second coming of b."""
    windows = traffic(("b", 21, 30), ("a", 40, AWAY - 10), ("a", 41, 10), ("b", 60, 30))
    found = change(seen("a", 0, 59), seen("b", 20, 90), "b", windows)
    assert (found.at, found.returned) == (59 * 60, True)


def test_a_rollout_in_which_both_answer_is_no_return() -> None:
    """However long it takes."""
    windows = traffic(*((c, m, AWAY - 1) for m in range(21, 59) for c in "ab"))
    assert not change(seen("a", 0, 59), seen("b", 20, 90), "b", windows).returned
