"""What every part of the store is given: the database, the clock and the settings."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TypeVar

from resweep.domain.clock import Clock
from resweep.store.engine import Database
from resweep.store.settings import StoreSettings

CHUNK = 400  # values in one IN (…): SQLite before 3.32 takes 999 parameters at most
T = TypeVar("T")


class Part:
    """Base of the parts; each public method of a part is one transaction and raises StoreError."""

    def __init__(self, database: Database, clock: Clock, settings: StoreSettings) -> None:
        self._db = database
        self._clock = clock
        self._settings = settings


def chunks(values: Sequence[T]) -> Iterator[Sequence[T]]:
    """Yield the values in runs short enough for one statement."""
    for start in range(0, len(values), CHUNK):
        yield values[start : start + CHUNK]
