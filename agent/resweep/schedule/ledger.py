"""Job states on record in the store."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from resweep.schedule.job import JobState
from resweep.store.rows import JobRow
from resweep.store.sql import SqlStore


class StoreLedger:
    """A ledger whose states the next process finds, on this host or another."""

    def __init__(self, store: SqlStore) -> None:
        self._store = store

    def load_jobs(self) -> Mapping[str, JobState]:
        """Return the states on record, by name; raises StoreError."""
        return {row.name: _state(row) for row in self._store.jobs()}

    def save_job(self, state: JobState) -> None:
        """Put one state on record; raises StoreError."""
        self._store.save_job(JobRow(**msgspec.structs.asdict(state)))


def _state(row: JobRow) -> JobState:
    values = {name: getattr(row, name) for name in JobState.__struct_fields__}
    return JobState(**values | {"lateness_s": row.lateness_s or 0.0})
