"""Following resweep.lock: what was merged there is adopted, what it says differently is a flag.

The store decides at run time. An entry that the store does not have at all was accepted by a review of the
file, and is taken in. Where both have a record and differ, nobody can know who is right: a flag says so until
`resweep lock pull` or `push` settles it.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from itertools import groupby
from pathlib import Path

from resweep.domain.errors import ResweepError
from resweep.domain.event import UNKNOWN
from resweep.domain.verdict import Flag
from resweep.schedule.desk import Desk
from resweep.schedule.due import Due
from resweep.store.exchange import Disagreement, disagreements, push
from resweep.store.lockfile import LockFile, read_lock
from resweep.store.sql import SqlStore

log = logging.getLogger("resweep.schedule")

ABOUT = "lock"  # the last part of the keys of these flags


class LockWatch:
    """Compares the lock file that `find` finds with the store.

    `path` is the file followed, None where there is none; `trouble` is why it could not be read.
    """

    def __init__(self, store: SqlStore, desk: Desk, find: Callable[[], Path | None]) -> None:
        self._store = store
        self._desk = desk
        self._find = find
        self.path: Path | None = None
        self.trouble: str | None = None

    def run(self, run: Due | None = None) -> None:
        """Look once. A file that cannot be read is told of, and changes nothing."""
        self.path = path = self._find()
        try:
            lock = read_lock(path) if path else LockFile()
        except ResweepError as error:
            self._tell(str(error))
            return
        self._tell(None)
        self._adopt(lock)
        found = disagreements(lock.entries, self._store.tuned())
        self._desk.hold(ABOUT, [self._flag(list(some), path) for some in _by_basis(found)])

    def _tell(self, trouble: str | None) -> None:
        if trouble and trouble != self.trouble:
            log.warning("the lock file is not followed: %s", trouble)
        self.trouble = trouble

    def _flag(self, told: list[Disagreement], path: Path | None) -> Flag:
        pipeline, basis = told[0].pipeline, told[0].basis
        configs = [c.config for c in self._store.configs(pipeline) if c.basis == basis]
        newer = any(one.name == "tuned_at" and str(one.in_store) > str(one.in_lock) for one in told)
        told = sorted(
            told, key=lambda one: one.name not in ("context_k", "candidate_k")
        )  # what matters first
        return Flag(
            key=f"{pipeline}:contradiction:{basis}:{ABOUT}",
            pipeline=pipeline,
            config=configs[-1] if configs else UNKNOWN,
            basis=basis,
            reason="contradiction",
            layer="declared",
            components=("depth",),
            severity="warning",
            message=f"resweep.lock and the store disagree on {told[0]}; the store decides until "
            "`resweep lock push` (the file is right) or `resweep lock pull` (the store is right)",
            opened_ts=0.0,
            evidence={"lock": str(path), "differences": [str(one) for one in told]},
            next_command="resweep lock pull" if newer else "resweep lock push",
        )

    def _adopt(self, lock: LockFile) -> None:
        stored = self._store.tuned()
        known = {(t.pipeline, t.basis, t.epoch) for t in stored}
        missing = [r for r in push(lock, stored).records if (r.pipeline, r.basis, r.epoch) not in known]
        if missing:
            self._store.record_all_tuned(missing)
            log.info("took %d tuned depths over from the lock file", len(missing))


def _by_basis(found: tuple[Disagreement, ...]) -> Iterator[Iterator[Disagreement]]:
    """Yield the disagreements of each pipeline and basis."""
    for _, some in groupby(found, key=lambda one: (one.pipeline, one.basis)):
        yield some
