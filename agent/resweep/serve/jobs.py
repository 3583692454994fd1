"""What the leading agent does on a timetable."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from resweep.domain.clock import Clock
from resweep.domain.errors import ResweepError, UsageError
from resweep.domain.snapshot import SnapshotSource
from resweep.ingest.intake import Intake
from resweep.ingest.spool import Spool
from resweep.schedule.casedesk import CaseDesk
from resweep.schedule.desk import Desk
from resweep.schedule.due import Due, Every
from resweep.schedule.job import Job
from resweep.schedule.labelwatch import LabelWatch
from resweep.schedule.lockwatch import LockWatch
from resweep.schedule.passive import PassiveDesk
from resweep.schedule.suggestdesk import SuggestDesk
from resweep.schedule.sweepdesk import SweepDesk
from resweep.schedule.workdesk import WorkDesk
from resweep.schedule.workfolder import WorkFolder
from resweep.settings import Settings
from resweep.store.lockfile import find_lock
from resweep.store.sql import SqlStore

if TYPE_CHECKING:
    from resweep_exporters.otlp import OtlpExporter
    from resweep_exporters.webhook import WebhookExporter

log = logging.getLogger("resweep.serve")

INGEST_S = 1.0
JUDGE_S = 5.0
WEBHOOK_S = 2.0
LOCK_S = 60.0
CANARIES_S = 60.0  # between two looks at what they remember; when they run is theirs to say
WORK_S = 1.0  # between two looks into the folder of recorders without HTTP
TIDY_S = 3600.0
LABELLED_S = 60.0
SUGGEST_S = 10.0
SWEEPS_S = 15.0
CALLS_AT_ONCE = 20  # webhook calls of one run
NEVER_S = 10 * 365 * 86400.0  # a call that was refused for good is not made again


class ExportFailedError(ResweepError):
    """A push of metrics was not taken."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outlets:
    """Where flags and numbers go besides the pages; None where it is not set up."""

    otlp: OtlpExporter | None = None
    webhook: WebhookExporter | None = None

    @classmethod
    def of(cls, settings: Settings, source: SnapshotSource, clock: Clock) -> Outlets:
        """Return the outlets that the settings ask for. Raises UsageError for one that cannot be."""
        return cls(otlp=_otlp(settings, source), webhook=_webhook(settings, clock))

    def close(self) -> None:
        """Let go of connections."""
        if self.otlp is not None:
            self.otlp.stop()
        if self.webhook is not None:
            self.webhook.close()


def _otlp(settings: Settings, source: SnapshotSource) -> OtlpExporter | None:
    if settings.otlp.endpoint is None:
        return None
    from resweep_exporters.otlp import OtlpExporter  # loads the SDK, which few agents need

    return OtlpExporter(source, settings.otlp.endpoint, timeout=settings.otlp.timeout_s)


def _webhook(settings: Settings, clock: Clock) -> WebhookExporter | None:
    hook = settings.webhook
    if hook.url is None:
        return None
    if hook.secret is None:
        raise UsageError(
            "expected RESWEEP_WEBHOOK_SECRET beside webhook.url; it signs the calls: set a random text that "
            "the receiver knows too"
        )
    from resweep_exporters.webhook import WebhookExporter

    return WebhookExporter(
        hook.url,
        hook.secret,
        format=hook.format,
        token=hook.token or "",
        ref=hook.ref,
        allow_private=hook.allow_private,
        timeout=hook.timeout_s,
        clock=clock,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Workplace:
    """What the jobs of a leading agent work on."""

    store: SqlStore
    desk: Desk
    passive: PassiveDesk
    intake: Intake
    spool: Spool
    watch: LockWatch
    work: WorkDesk
    work_folder: WorkFolder
    cases: CaseDesk
    sweeps: SweepDesk


def lock_finder(settings: Settings) -> Callable[[], Path | None]:
    """Return what finds the lock file to follow: that of the settings, else the nearest one upward."""
    named, start = settings.agent.lock_file, Path.cwd()
    return lambda: Path(named) if named else find_lock(start)


def jobs_of(settings: Settings, at: Workplace, outlets: Outlets, clock: Clock) -> Iterator[Job]:
    """Yield the jobs of an agent with these parts."""
    yield Job(name="ingest", timetable=Every(INGEST_S), run=lambda run: _ignore(at.spool.run()))
    yield Job(name="judge", timetable=Every(JUDGE_S), run=lambda run: _ignore(at.desk.sit()))
    yield Job(name="passive", timetable=Every(JUDGE_S), run=lambda run: at.desk.merge(at.passive.sit()))
    yield Job(name="housekeeping", timetable=Every(TIDY_S), run=lambda run: _ignore(at.store.housekeep()))
    yield Job(name="lock-file", timetable=Every(LOCK_S), run=at.watch.run)
    yield Job(name="canaries", timetable=Every(CANARIES_S), run=at.work.run)
    yield Job(name="work", timetable=Every(WORK_S), run=at.work_folder.run)
    watch = LabelWatch(at.store, at.desk, clock)
    every = Every(settings.label.every_s)
    yield Job(name="cases", timetable=every, run=lambda run: _ignore(at.cases.run(run)))
    yield from _suggesting(settings, at.store, clock)
    yield Job(name="labelled-set", timetable=Every(LABELLED_S), run=watch.run)
    yield Job(name="sweeps", timetable=Every(SWEEPS_S), run=at.sweeps.run)
    if outlets.webhook is not None:
        caller = Caller(at.store, outlets.webhook, clock)
        yield Job(name="webhook", timetable=Every(WEBHOOK_S), run=caller.run)
    if outlets.otlp is not None:
        pusher = Pusher(outlets.otlp)
        yield Job(name="otlp", timetable=Every(settings.otlp.interval_s), run=pusher.run, vital=False)


def _suggesting(settings: Settings, store: SqlStore, clock: Clock) -> Iterator[Job]:
    if settings.label.judge:
        from resweep.serve.suggesters import suggester  # loads an HTTP client

        desk = SuggestDesk(store, suggester(settings.label), clock)
        every = Every(SUGGEST_S)
        yield Job(name="suggestions", timetable=every, run=lambda run: _ignore(desk.run(run)), vital=False)


def _ignore(result: object) -> None:
    """Drop what a body returns: a job only ends or raises."""


class Pusher:
    """Pushes the metrics once a run."""

    def __init__(self, exporter: OtlpExporter) -> None:
        self._exporter = exporter

    def run(self, run: Due) -> None:
        """Push; raises ExportFailedError where the collector did not take it. The next makes up for it."""
        if not self._exporter.export_once():
            raise ExportFailedError("the collector did not take the metrics")


class Caller:
    """Makes the webhook calls that wait in the store's outbox."""

    def __init__(self, store: SqlStore, exporter: WebhookExporter, clock: Clock) -> None:
        self._store = store
        self._exporter = exporter
        self._clock = clock

    def run(self, run: Due) -> None:
        """Call for each delivery that is due; what was not taken is tried again later, or never."""
        for delivery in self._store.due_deliveries(CALLS_AT_ONCE):
            came = self._exporter.deliver(delivery.flag, delivery.change, delivery.attempts)
            if came.outcome == "delivered":
                self._store.delivered(delivery.id)
                continue
            wait = NEVER_S if came.retry_after is None else came.retry_after
            self._store.delivery_failed(delivery.id, came.why, self._clock.now() + wait)
            log.warning("webhook for flag %s: %s (%s)", delivery.flag.key, came.outcome, came.why)
