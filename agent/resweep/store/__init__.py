"""The agent's database: the only writer of what resweep remembers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from resweep.domain.clock import Clock, SystemClock
from resweep.store.settings import StoreSettings

if TYPE_CHECKING:
    from resweep.store.sql import SqlStore

__all__ = ["StoreSettings", "open_store"]


def open_store(url: str, *, clock: Clock | None = None, settings: StoreSettings | None = None) -> SqlStore:
    """Open the store at a database URL, or at the path of an SQLite file; create or migrate it first.

    Raises StoreError (full, read-only, busy, or not a database) and NewerFormatError where a newer resweep
    has migrated it.
    """
    # Imported here so that a command that only reads the lock file does not load a database toolkit.
    from resweep.store.sql import SqlStore

    return SqlStore(url, clock=clock or SystemClock(), settings=settings or StoreSettings())
