"""The panel: answers to the same few questions, hour after hour, for the layers that compare answers.

A question belongs to the panel of an hour where its key is among the smallest of that hour. Which ones these
are depends on the keys alone, so that replicas and hours hold the same questions; what is said here is never
the question, only hashes of its answer.
"""

from __future__ import annotations

from resweep.domain.batch import Panel
from resweep.domain.event import RetrievalEvent
from resweep.domain.sample import SAMPLE_SIZE, BottomK, Hashes, event_key, record_of

HOUR_MINUTES = 60
ANY = 1 << 64  # keys are below it
CONFIGS_MAX = 64  # whose panels are kept at once
Key = tuple[str, str]  # pipeline, config


class _Hour:
    """The smallest keys of one config's hour."""

    __slots__ = ("hour", "sample")

    def __init__(self, hour: int, size: int) -> None:
        self.hour = hour
        self.sample = BottomK(size)


class Panels:
    """Panels of every config. One thread at a time may use it."""

    def __init__(self, salt: bytes, size: int = SAMPLE_SIZE) -> None:
        self._salt = salt
        self._size = size
        self._hashes = Hashes()
        self._hours: dict[Key, _Hour] = {}
        self._pending: dict[tuple[str, str, int], Panel] = {}

    def wants(self, pipeline: str, config: str, minute: int, key: int | None) -> bool:
        """Whether a question of that key, asked in that unix minute, belongs to the panel.

        One that is not known is wanted while there is room for any.
        """
        bound = self._hour(pipeline, config, minute).sample.bound
        return (ANY - 1 if key is None else key) < bound

    def take(self, event: RetrievalEvent, minute: int) -> None:
        """Take an answer of the panel; `event` has its id, and its query key where the question is known."""
        key = event.query_key
        record = record_of(
            event, -1, event_key(event.id, self._salt) if key is None else key, key is not None, self._hashes
        )
        hour = self._hour(event.pipeline, event.config, minute)
        if record.key >= hour.sample.bound:
            return
        hour.sample.add(record)
        at = (event.pipeline, event.config, minute)
        panel = self._pending.get(at)
        if panel is None:
            panel = Panel(pipeline=event.pipeline, config=event.config, minute=minute)
            self._pending[at] = panel
        panel.records.append(record)

    def drain(self) -> list[Panel]:
        """Return what was taken since the last call."""
        pending, self._pending = self._pending, {}
        return list(pending.values())

    def _hour(self, pipeline: str, config: str, minute: int) -> _Hour:
        number = minute // HOUR_MINUTES
        found = self._hours.get((pipeline, config))
        if found is None or found.hour != number:
            while len(self._hours) >= CONFIGS_MAX:
                del self._hours[next(iter(self._hours))]
            found = self._hours[pipeline, config] = _Hour(number, self._size)
        return found
