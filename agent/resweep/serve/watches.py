"""What recorders say of themselves: a watched retriever that nobody calls, answers that show nothing.

Instrumentation that took no effect is silent by nature; an agent can tell, since a process that lives says
its configs again every few minutes (`record.outbox`), with or without traffic.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import NamedTuple

from resweep.domain.batch import Batch

UNCALLED_S = 900.0  # without a call, while the process lives
GONE_S = 1800.0  # not said again for so long: the process ended
CONFIGS_MAX = 1000

Key = tuple[str, str]  # pipeline, config


class Said(NamedTuple):
    """When this agent first and last heard of a config (unix s), and what its answers never carried."""

    first: float
    last: float
    missing: str


class Watches:
    """What was heard of each config since the agent started. Any thread may use it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._said: dict[Key, Said] = {}
        self._called: dict[Key, float] = {}

    def heard(self, batch: Batch, now: float) -> None:
        """Take note of the configs that a batch says and of those that it counts calls of."""
        with self._lock:
            for record in batch.configs:
                key = (record.pipeline, record.config)
                if key in self._said or len(self._said) < CONFIGS_MAX:
                    first = self._said[key].first if key in self._said else now
                    self._said[key] = Said(first, now, str(record.observed.get("missing") or ""))
            for window in batch.windows:
                key = (window.pipeline, window.config)
                if key in self._called or len(self._called) < CONFIGS_MAX:
                    self._called[key] = now

    def notes(self, now: float) -> Iterator[str]:
        """Yield what a person should look at, of the processes that live at `now` (unix s)."""
        with self._lock:
            alive = {key: one for key, one in self._said.items() if now - one.last < GONE_S}
            called = dict(self._called)
        for (pipeline, config), one in sorted(alive.items()):
            silent = now - called.get((pipeline, config), one.first)
            if silent >= UNCALLED_S:
                since = "" if (pipeline, config) in called else " so far"
                yield (
                    f"{pipeline} ({config}): watched, and not called for {silent / 60:.0f} min{since}: is it "
                    "the watched object that answers? See `resweep doctor MODULE:OBJECT 'a question'`"
                )
            if one.missing:
                yield (
                    f"{pipeline} ({config}): no answer carried {one.missing.replace(', ', ' or ')} so far: "
                    "name them with extract=… of watch()"
                )
