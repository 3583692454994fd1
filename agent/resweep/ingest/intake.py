"""The one way by which batches reach the store, from the spool as over HTTP."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from typing import Protocol

from resweep.domain.batch import Batch

log = logging.getLogger("resweep.ingest")


class Applies(Protocol):
    """What a store offers to an intake."""

    def apply(self, batch: Batch) -> bool:
        """Apply a batch once; False where (writer, seq) was applied before."""


class Intake:
    """Applies a batch once, and tells `heard` of each batch that was new.

    `applied`, `duplicates` and `refused` count batches since the start.
    """

    def __init__(self, store: Applies, heard: Callable[[Batch], None] = lambda batch: None) -> None:
        self._store = store
        self._heard = heard
        self._lock = threading.Lock()
        self.applied = 0
        self.duplicates = 0
        self.refused = 0

    def take(self, batch: Batch) -> bool:
        """Apply a batch; False where it was applied before.

        Raises InputError for a batch that cannot be counted, StoreError where the store refuses.
        """
        new = self._store.apply(batch)
        with self._lock:
            self.applied += new
            self.duplicates += not new
        if new:
            self._tell(batch)
        return new

    def _tell(self, batch: Batch) -> None:
        """Pass a batch on. It is applied by now, so whatever fails here must not make it look refused."""
        try:
            self._heard(batch)
        except Exception:
            log.exception("batch %d of %s was counted, but not judged", batch.seq, batch.writer)

    def refuse(self) -> None:
        """Count a batch that could not be used."""
        with self._lock:
            self.refused += 1
