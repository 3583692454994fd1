"""The desk where recorders ask for work: canaries that are due, and probes of queries they sampled."""

from __future__ import annotations

import logging
import threading
import time
import uuid
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from resweep.detect.canary import texts
from resweep.domain.batch import Batch
from resweep.domain.clock import Clock
from resweep.domain.errors import ResweepError
from resweep.domain.values import label
from resweep.domain.work import Ask, Can, Leased, Offer, Work, WorkAnswer, WorkKind
from resweep.schedule.canaries import CanarySettings, Examiner, is_due, load_system, settle
from resweep.schedule.desk import Desk
from resweep.schedule.due import Due
from resweep.schedule.leases import Leases
from resweep.schedule.questions import frozen, labelled, read_questions
from resweep.store.canaries import CanaryQuery
from resweep.store.probes import Probe
from resweep.store.sql import SqlStore

log = logging.getLogger("resweep.schedule")

AT_ONCE = 4  # pieces of work for one recorder
OFFER_S = 120.0  # for which an offer is remembered, for those who ask what is wired
PROBES_WAITING = 256  # of one pipeline
PROBE_FRESH_S = 600.0  # recorders keep the arguments of a call not much longer
FREEZE_EVERY_S = 900.0  # between two looks for live queries to freeze
FREEZE_FROM_S = 6 * 3600.0  # how far back


@dataclass(slots=True)
class Budget:
    """A bucket that fills with so many probes an hour."""

    per_hour: float
    level: float = 1.0
    filled_at: float = 0.0
    waiting: deque[tuple[float, str, str, str]] = field(default_factory=lambda: deque(maxlen=PROBES_WAITING))

    def take(self, now: float) -> bool:
        """Take one, where there is one; `now` is monotonic."""
        earned = (now - self.filled_at) * self.per_hour / 3600.0
        self.level = min(max(1.0, self.per_hour / 6), self.level + earned)
        self.filled_at = now
        if self.level < 1.0:
            return False
        self.level -= 1.0
        return True


class WorkDesk:
    """Plans, leases and takes back work. All methods may be called from any thread."""

    def __init__(
        self,
        store: SqlStore,
        desk: Desk,
        settings: CanarySettings,
        clock: Clock,
        *,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self.settings = settings
        self.leases = Leases(settings.lease_s, monotonic)
        self._store = store
        self._desk = desk
        self._clock = clock
        self._monotonic = monotonic
        self._examiner = Examiner(store, desk, clock)
        self._lock = threading.RLock()
        self._budgets: dict[str, Budget] = {}
        self._offers: dict[tuple[str, str, str], tuple[float, Can]] = {}
        self._frozen_at: dict[str, float] = {}

    def lease(self, offer: Offer) -> Leased:
        """Return what a recorder shall do now."""
        with self._lock:
            now = self._monotonic()
            able = [can for can in offer.can if not can.resting]
            for can in offer.can:
                self._offers[offer.writer, label(can.pipeline), can.config] = (now, can)
            for can in able:
                self._plan(can, offer.writer, now)
            work = self.leases.take(offer.writer, lambda one: any(_fits(one, can) for can in able), AT_ONCE)
            pace = {"again_s": self.settings.poll_s, "pause_s": 1 / self.settings.per_second}
            return Leased(work=tuple(work), **pace)

    def answer(self, answer: WorkAnswer) -> bool:
        """Take an answer; False where the lease had ended and the work is another recorder's."""
        with self._lock:
            work = self.leases.done(answer.id, answer.writer)
            if work is None:
                return False
            if work.kind == "probe":
                self._keep_probe(work, answer)
            else:
                self._examiner.take(work, answer, self._questions(work.pipeline))
            return True

    def heard(self, batch: Batch) -> None:
        """Note sampled queries whose texts are kept: they may be probed by who sampled them."""
        if self.settings.probes_per_hour <= 0:
            return
        now = self._monotonic()
        with self._lock:
            for event in batch.events:
                if event.query and not event.probe and event.error is None:
                    budget = self._budget(label(event.pipeline), now)
                    budget.waiting.append((now, batch.writer, event.config, event.id))

    def run(self, run: Due | None = None) -> None:
        """Bring flags and gauges in line: somebody may have accepted a system, or a config retired."""
        settle(self._store, self._desk, self._clock.now())

    def wired(self) -> Sequence[tuple[str, Can]]:
        """Return what recorders offered lately, with their writer ids."""
        now = self._monotonic()
        with self._lock:
            self._offers = {at: one for at, one in self._offers.items() if now - one[0] <= OFFER_S}
            return [(writer, can) for (writer, _, _), (_, can) in sorted(self._offers.items())]

    def _plan(self, can: Can, writer: str, now: float) -> None:
        if can.canaries and ("embed" in can.kinds or "retrieve" in can.kinds):
            self._plan_canaries(can)
        if "probe" in can.kinds:
            self._plan_probe(can, writer, now)

    def _plan_canaries(self, can: Can) -> None:
        pipeline = label(can.pipeline)
        system, now = load_system(self._store, pipeline, can.basis), self._clock.now()
        kinds: tuple[WorkKind, ...] = ("embed", "retrieve")
        for kind in kinds:
            if kind not in can.kinds or not is_due(system, kind, now, self.settings):
                continue
            if self._is_under_way(kind, pipeline, can.basis):
                continue
            asks = texts.asks(count=self.settings.texts) if kind == "embed" else self._asks(pipeline)
            if asks:
                self.leases.put(_work(can, kind, asks))

    def _is_under_way(self, kind: str, pipeline: str, basis: str) -> bool:
        return self.leases.outstanding(
            lambda work: (work.kind, work.pipeline, work.basis) == (kind, pipeline, basis)
        )

    def _asks(self, pipeline: str) -> tuple[Ask, ...]:
        self._gather(pipeline)
        found = self._questions(pipeline)
        return tuple(Ask(id=one.id, text=one.query, kwargs=one.kwargs) for one in found.values())

    def _questions(self, pipeline: str) -> Mapping[str, CanaryQuery]:
        kept = {one.id: one for one in self._store.canaries(pipeline)}
        return kept | {one.id: one for one in labelled(self._store, pipeline)}

    def _gather(self, pipeline: str) -> None:
        """Bring the questions on record up to date; those of the labelled set are read where they are."""
        if self.settings.file is not None:
            try:
                self._store.set_canaries(pipeline, "file", read_questions(Path(self.settings.file), pipeline))
            except ResweepError as error:
                log.warning("canaries keep the questions they have: %s", error)
        self._freeze(pipeline)

    def _freeze(self, pipeline: str) -> None:
        known = [one for one in self._store.canaries(pipeline) if one.origin == "event"]
        now = self._monotonic()
        fresh = now - self._frozen_at.get(pipeline, float("-inf")) < FREEZE_EVERY_S
        if len(known) >= self.settings.queries or (fresh and known):
            return
        self._frozen_at[pipeline] = now
        ts = self._clock.now()
        events = list(self._store.events(pipeline, ts - FREEZE_FROM_S, ts + 1))
        held = {one.id: one for one in known}
        more = [one for one in frozen(events, self.settings.queries) if one.id not in held]
        if more:
            room = self.settings.queries - len(held)
            self._store.set_canaries(pipeline, "event", [*held.values(), *more[:room]])

    def _budget(self, pipeline: str, now: float) -> Budget:
        if pipeline not in self._budgets:
            self._budgets[pipeline] = Budget(self.settings.probes_per_hour, filled_at=now)
        return self._budgets[pipeline]

    def _plan_probe(self, can: Can, writer: str, now: float) -> None:
        budget = self._budget(label(can.pipeline), now)
        waiting, kept = list(budget.waiting), []
        for one in waiting:
            noted, sampled_by, config, event_id = one
            if now - noted > PROBE_FRESH_S:
                continue
            if (sampled_by, config) == (writer, can.config) and budget.take(now):
                work = _work(can, "probe", (), k=self.settings.probe_depth, event_id=event_id)
                self.leases.put(work, only=writer)
            else:
                kept.append(one)
        budget.waiting.clear()
        budget.waiting.extend(kept)

    def _keep_probe(self, work: Work, answer: WorkAnswer) -> None:
        event_id = work.event_id or ""
        if answer.error or not answer.retrieved or self._store.event(event_id) is None:
            return
        self._store.keep_probe(
            Probe(
                event_id=event_id,
                pipeline=work.pipeline,
                config=work.config,
                ts=self._clock.now(),
                k=work.k or 0,
                hits=answer.retrieved[0].hits,
            )
        )


def _work(
    can: Can, kind: WorkKind, asks: tuple[Ask, ...], *, k: int | None = None, event_id: str | None = None
) -> Work:
    return Work(
        id=uuid.uuid4().hex,
        kind=kind,
        pipeline=label(can.pipeline),
        config=can.config,
        basis=can.basis,
        asks=asks,
        k=k,
        event_id=event_id,
    )


def _fits(work: Work, can: Can) -> bool:
    """Whether a retriever can do a piece of work: canaries are of a basis, probes of one config."""
    same = work.basis == can.basis if work.kind != "probe" else work.config == can.config
    return work.kind in can.kinds and work.pipeline == label(can.pipeline) and same
