"""The judge's desk: what comes in is told to the judge, what it says goes to the store.

The judge is a pure object in memory. Its state is saved with its flags in one transaction, and taken up
again after a restart; windows that the store holds and the state has not seen yet are told again first.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterable
from dataclasses import replace

import msgspec

from resweep.detect.finding import Finding
from resweep.detect.judge import Judge
from resweep.domain.batch import Batch
from resweep.domain.clock import Clock, SystemClock
from resweep.domain.verdict import Flag, FlagChange, Layer, Verdict
from resweep.domain.window import MINUTE
from resweep.schedule.due import Due
from resweep.store.names import label
from resweep.store.sql import SqlStore

log = logging.getLogger("resweep.schedule")

SAVE_EVERY_S = 60.0  # an unchanged verdict is written this often, with what the judge saw since
REBUILD_S = 2 * 3600.0  # how much of the past is told to a judge that remembers nothing


class DeskState(msgspec.Struct):
    """What is saved: the judge's own state, and up to when it was told everything (unix s)."""

    told_until: float
    judge: msgspec.Raw


class Desk:
    """Keeps one judge. All methods may be called from any thread."""

    def __init__(
        self, store: SqlStore, make_judge: Callable[[bytes | None], Judge], clock: Clock | None = None
    ) -> None:
        self._store = store
        self._clock = clock or SystemClock()
        self._lock = threading.RLock()
        self._make = make_judge
        self._unsaved: list[FlagChange] = []
        self._dirty = True
        self._saved_at = 0.0
        self.judge = make_judge(None)

    def open(self) -> None:
        """Take up the saved state, and tell the judge what the store holds beyond it."""
        with self._lock:
            now = self._clock.now()
            told_until = self._restore(now)
            self._refresh(now)
            for pipeline in self._store.pipelines():
                self._retell(pipeline, told_until, now)
            self._dirty = True

    def _retell(self, pipeline: str, told_until: float, now: float) -> None:
        for record in self._store.configs(pipeline):
            self.judge.config_seen(record)
        first = int(told_until // MINUTE) + 1  # of the minute in between the judge saw a part
        for window in self._store.windows(pipeline, first, int(now // MINUTE) + 1):
            self.judge.observe(window, min(now, float((window.minute + 1) * MINUTE)))

    def _restore(self, now: float) -> float:
        saved = self._store.judge_state()
        if saved is not None:
            try:
                state = msgspec.json.decode(saved, type=DeskState)
                self.judge = self._make(bytes(state.judge))
            except msgspec.MsgspecError as error:
                log.warning("the judge's saved state cannot be read and is made anew: %s", error)
            else:
                return state.told_until
        self.judge = self._make(None)
        return now - REBUILD_S

    def heard(self, batch: Batch) -> None:
        """Tell the judge of a batch that was applied; a clock that runs ahead is held to ours."""
        now = self._clock.now()
        with self._lock:
            for record in batch.configs:
                self.judge.config_seen(msgspec.structs.replace(record, pipeline=label(record.pipeline)))
            for window in sorted(batch.windows, key=lambda w: w.minute):
                known_as = msgspec.structs.replace(window, pipeline=label(window.pipeline))
                self.judge.observe(known_as, min(batch.ts, float((window.minute + 1) * MINUTE), now))
            self._dirty = True

    def sit(self, run: Due | None = None) -> list[FlagChange]:
        """Let time pass, and save where anything is new; return the changes of flags."""
        with self._lock:
            now = self._clock.now()
            self._refresh(now)
            self.judge.advance(now)
            changes = self.judge.drain()
            self._unsaved += changes
            if self._unsaved or self._dirty or now - self._saved_at >= SAVE_EVERY_S:
                self._save(now)
            for change in changes:
                log.info("flag %s: %s", change.kind, change.flag.message)
            return changes

    def merge(self, changes: Iterable[FlagChange]) -> None:
        """Take what layers outside the judge opened, sharpened or cleared; told at the next `sit`."""
        with self._lock:
            for change in changes:
                self.judge.merge(change)
                self._dirty = True

    def resolve(self, key: str) -> bool:
        """Clear a flag on a person's word; False where none such is open."""
        with self._lock:
            done = self.judge.resolve(key, self._clock.now())
            self._dirty = self._dirty or done
            return done

    def hold(self, about: str, flags: list[Flag]) -> None:
        """Keep exactly these flags open among those whose key ends with `about`: opened once, cleared once.

        For findings that no layer of the judge makes; their times are set here.
        """
        with self._lock:
            now = self._clock.now()
            held = {flag.key: flag for flag in self._store.flags() if flag.key.endswith(f":{about}")}
            wanted = {flag.key: flag for flag in flags}
            for key in held.keys() - wanted.keys():
                cleared = replace(held[key], cleared_ts=now)
                self._unsaved.append(FlagChange(flag=cleared, kind="cleared"))
            for key in wanted.keys() - held.keys():
                opened = replace(wanted[key], opened_ts=now, onset_ts=now)
                self._unsaved.append(FlagChange(flag=opened, kind="opened"))
            if self._unsaved:
                self._save(now)

    def now(self) -> float:
        """Return the desk's time, unix seconds."""
        return self._clock.now()

    def found(self, pipeline: str, basis: str, layer: Layer, findings: list[Finding]) -> None:
        """Keep open exactly what a layer outside the judge finds on one basis now; told at the next `sit`."""
        with self._lock:
            self.judge.hold(pipeline, basis, layer, findings, self._clock.now())

    def verdicts(self, now: float) -> list[Verdict]:
        """Return the verdicts at `now` (unix s); of a pipeline, that of its config in charge comes first."""
        with self._lock:
            return self.judge.verdicts(now)

    def _refresh(self, now: float) -> None:
        self.judge.set_tuned(self._store.tuned())
        self.judge.set_maintenance(self._store.in_maintenance(now))

    def _save(self, now: float) -> None:
        state = DeskState(told_until=now, judge=msgspec.Raw(self.judge.dump()))
        flags = [change.flag for change in self._unsaved]
        self._store.save_judgement(flags, self.judge.verdicts(now), msgspec.json.encode(state))
        self._unsaved, self._dirty, self._saved_at = [], False, now
