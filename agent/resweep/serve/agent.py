"""The agent put together: store, intake, judge and jobs, alive while this process leads."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from resweep.domain.batch import Batch
from resweep.domain.clock import Clock, SystemClock
from resweep.domain.errors import LeaseHeldError, ResweepError
from resweep.domain.snapshot import Sample, Snapshot
from resweep.ingest.intake import Intake
from resweep.ingest.spool import Spool
from resweep.record.work import Worker
from resweep.schedule.desk import Desk
from resweep.schedule.leading import Leadership
from resweep.schedule.ledger import StoreLedger
from resweep.schedule.lockwatch import LockWatch
from resweep.schedule.passive import PassiveDesk
from resweep.schedule.runner import Runner
from resweep.schedule.sweepdesk import SweepDesk
from resweep.schedule.workdesk import WorkDesk
from resweep.schedule.workfolder import WorkFolder
from resweep.serve.exemplars import Exemplars
from resweep.serve.jobs import Outlets, Workplace, jobs_of, lock_finder
from resweep.serve.ownsweep import OwnSweep, wish_of
from resweep.serve.ownwork import own_worker
from resweep.serve.parts import (
    canary_settings,
    case_desk,
    judge_maker,
    passive_settings,
    rules_of,
    store_settings,
    version,
)
from resweep.serve.places import Address, Places, forget_address, read_address, write_address
from resweep.serve.spans import SpanTally
from resweep.serve.watches import Watches
from resweep.settings import Settings
from resweep.store import open_store
from resweep.store.lease import Lease
from resweep.store.sql import SqlStore

log = logging.getLogger("resweep.serve")


@dataclass(frozen=True, slots=True, kw_only=True)
class Desks(Workplace):
    """What an agent works with while it leads: the workplace of its jobs, what runs them, where they send."""

    runner: Runner
    outlets: Outlets
    own: Worker | None = None


class NotLeadingError(ResweepError):
    """This agent stands by; another one answers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Health:
    """Whether the agent lives (restart it where not) and is ready, with the reasons where not.

    `notes` are what a person should look at; they make nothing unready.
    """

    live: bool
    ready: bool
    state: str
    troubles: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


class Agent:
    """One agent process. `start` leads or stands by; `stop` ends within two seconds.

    `address` is written down for the commands of the same home while this agent leads.
    """

    def __init__(
        self, settings: Settings, where: Places, clock: Clock | None = None, address: Address | None = None
    ) -> None:
        self.settings = settings
        self.where = where
        self._address = address
        self.clock = clock or SystemClock()
        self.started = self.clock.now()
        self.rules = rules_of(settings)
        self.spans = SpanTally()
        self.watches = Watches()
        self.exemplars = Exemplars()
        self._desks: Desks | None = None
        self._lease = Lease(where.store)
        self.leadership = Leadership(self._lease, begin=self._begin, end=self._end, look=self._look)

    def start(self) -> None:
        """Lead, or stand by where that is wanted.

        Raises LeaseHeldError where another agent leads and this one was not told to stand by, StoreError
        where the store cannot be used.
        """
        if not self.leadership.lead_now():
            holder = self._lease.holder() or "another process"
            if not self.settings.agent.standby:
                raise _led(self.where, holder)
            log.info("standing by: the agent with %s leads", holder)
        self.leadership.start()

    def stop(self) -> None:
        """End the jobs, save what the judge saw, and give the lease up."""
        self.leadership.stop()

    @property
    def leading(self) -> bool:
        """Whether this agent leads now."""
        return self._desks is not None

    def leader(self) -> str:
        """Return who leads, in words, with its address where that is known."""
        try:
            holder = self._lease.holder() or "nobody yet"
        except ResweepError:
            return "unknown"
        address = read_address(self.where)
        return f"{holder}, at {address.listening}" if address and f"pid {address.pid} " in holder else holder

    def desks(self) -> Desks:
        """Return what a leading agent works with. Raises NotLeadingError on one that stands by."""
        if self._desks is None:
            raise NotLeadingError(f"this agent stands by; the one that leads is {self.leader()}")
        return self._desks

    def take(self, batch: Batch) -> bool:
        """Apply a batch once; False where it was applied before."""
        return self.desks().intake.take(batch)

    def snapshot(self) -> Snapshot:
        """Return the numbers to expose: the store's, and the agent's own."""
        desks = self._desks
        own = tuple(self._own_samples(desks))
        if desks is None:
            return Snapshot(ts=self.clock.now(), samples=own)
        stored = desks.store.snapshot()
        samples = (*self.exemplars.beside(stored.samples), *own)
        return Snapshot(ts=stored.ts, samples=samples, complete=stored.complete)

    def health(self) -> Health:
        """Return the agent's health; quick, and without the store."""
        desks = self._desks
        if desks is None:
            trouble = self.leadership.trouble
            told = (trouble,) if trouble else ()
            return Health(live=self.leadership.alive(), ready=not told, state="standby", troubles=told)
        live = desks.runner.alive() and self.leadership.alive()
        troubles = tuple(_troubles(desks, live))
        notes = (*self.watches.notes(self.clock.now()), *self.spans.notes())
        return Health(live=live, ready=not troubles, state="leader", troubles=troubles, notes=notes)

    def _begin(self) -> None:
        store = open_store(self.where.store, clock=self.clock, settings=store_settings(self.settings))
        try:
            self._desks = self._open(store)
        except BaseException:
            store.close()
            raise
        if self._address is not None:
            write_address(self.where, self._address)

    def _open(self, store: SqlStore) -> Desks:
        desk = Desk(store, judge_maker(self.settings, self.rules), self.clock)
        desk.open()
        work = WorkDesk(store, desk, canary_settings(self.settings), self.clock)
        passive = PassiveDesk(store, self.clock, passive_settings(self.settings))
        passive.open()
        intake = Intake(store, lambda batch: self._heard(batch, desk, work, passive))
        at_most = self.settings.limits.spool_files
        spool = Spool(self.where.spool, intake, clock=self.clock, at_most=at_most)
        outlets = Outlets.of(self.settings, self, self.clock)
        watch = LockWatch(store, desk, lock_finder(self.settings))
        folder = WorkFolder(self.where.spool / "work", work)
        cases = case_desk(self.settings, store, self.clock)
        start = OwnSweep(settings=self.settings, where=self.where, rules=self.rules)
        sweeps = SweepDesk(store, desk, wish_of(self.settings), start, self.clock)
        at = Workplace(
            store=store,
            desk=desk,
            passive=passive,
            intake=intake,
            spool=spool,
            watch=watch,
            work=work,
            work_folder=folder,
            cases=cases,
            sweeps=sweeps,
        )
        own = own_worker(self.settings.canary, store, desk, work)
        jobs = tuple(jobs_of(self.settings, at, outlets, self.clock))
        runner = Runner(jobs, StoreLedger(store), clock=self.clock, leads=lambda: self._lease.held)
        runner.start()
        if own is not None:
            own.start()
        return Desks(
            own=own,
            store=store,
            desk=desk,
            passive=passive,
            intake=intake,
            spool=spool,
            watch=watch,
            work=work,
            work_folder=folder,
            cases=cases,
            sweeps=sweeps,
            runner=runner,
            outlets=outlets,
        )

    def _heard(self, batch: Batch, desk: Desk, work: WorkDesk, passive: PassiveDesk) -> None:
        """Tell everybody of a batch that was applied."""
        self.watches.heard(batch, self.clock.now())
        self.exemplars.heard(batch.events)
        desk.heard(batch)
        work.heard(batch)
        passive.heard(batch)

    def _end(self) -> None:
        desks, self._desks = self._desks, None
        if desks is None:
            return
        desks.spool.end()
        if desks.own is not None:
            desks.own.stop()
        _quietly("the sweep under way", desks.sweeps.stop)
        forget_address(self.where)
        if not desks.runner.stop():
            log.warning("a job still runs; its next run covers what it leaves undone")
        if self._lease.held:
            _quietly("what was learnt", desks.passive.save)
            _quietly("the judge's state", desks.desk.sit)
        _quietly("exporters", desks.outlets.close)
        _quietly("the store", desks.store.close)

    def _look(self) -> None:
        desks = self._desks
        if desks is not None:
            desks.runner.revive()

    def _own_samples(self, desks: Desks | None) -> Iterator[Sample]:
        yield Sample("resweep_leader", (), float(desks is not None))
        yield Sample("resweep_agent_info", (version(),), 1.0)
        if desks is None:
            return
        intake = desks.intake
        counts = {"applied": intake.applied, "duplicate": intake.duplicates, "refused": intake.refused}
        for outcome, count in counts.items():
            yield Sample("resweep_ingest_batches_total", (outcome,), float(count))
        yield from self.spans.samples()
        for job in desks.runner.states():
            yield Sample("resweep_job_runs_total", (job.name, "ok"), float(job.runs - job.failures))
            yield Sample("resweep_job_runs_total", (job.name, "failed"), float(job.failures))
            yield Sample("resweep_job_late_runs_total", (job.name,), float(job.late))
            yield Sample("resweep_job_skipped_runs_total", (job.name,), float(job.skipped))
            yield Sample("resweep_job_last_lateness_seconds", (job.name,), job.lateness_s)


def _troubles(desks: Desks, live: bool) -> Iterator[str]:
    if not live:
        yield "the scheduler gave no sign of life lately"
    stale = set(desks.runner.stale())
    for job in desks.runner.states():
        if job.name in stale:
            yield f"job {job.name} has not succeeded lately" + (f": {job.error}" if job.error else "")


def _quietly(what: str, function: Callable[[], object]) -> None:
    try:
        function()
    except Exception as error:  # noqa: BLE001  (the agent ends; the rest has to be closed too)
        log.warning("could not finish %s: %s", what, error)


def check_led(where: Places) -> None:
    """Raise LeaseHeldError where another agent leads on the store."""
    holder = Lease(where.store).holder()
    if holder is not None:
        raise _led(where, holder)


def _led(where: Places, holder: str) -> LeaseHeldError:
    return LeaseHeldError(
        f"expected to lead on {where.store}; the agent with {holder} does: stop it, start this one with "
        "--standby (and a --listen of its own) to take over when it ends, or give this one a home of its own"
    )
