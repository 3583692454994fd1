"""The store: one class put together from its parts, and the two things that touch several of them."""

from __future__ import annotations

from sqlalchemy import Connection, delete

from resweep.domain.batch import Batch
from resweep.domain.clock import Clock
from resweep.store import caseset, configs, events, feedback, ledger
from resweep.store.canaries import CanariesPart, drop_runs
from resweep.store.cases import CasesPart
from resweep.store.caseset import CaseSetPart
from resweep.store.engine import Database
from resweep.store.events import EventsPart
from resweep.store.exposition import ExpositionPart
from resweep.store.feedback import FeedbackPart
from resweep.store.intake import check_batch
from resweep.store.judgement import JudgementPart, drop_delivered
from resweep.store.migrate import migrate
from resweep.store.names import label
from resweep.store.operations import OperationsPart
from resweep.store.probes import ProbesPart, drop_probes
from resweep.store.reports import ReportsPart, drop_reports
from resweep.store.reviews import ReviewsPart
from resweep.store.rows import Swept
from resweep.store.schema import windows
from resweep.store.settings import DAY, StoreSettings
from resweep.store.suggestions import SuggestionsPart
from resweep.store.tally import HOUR, MINUTE, Tally
from resweep.store.tuned import TunedPart
from resweep.store.windows import WindowsPart


class SqlStore(
    WindowsPart,
    configs.ConfigsPart,
    EventsPart,
    FeedbackPart,
    TunedPart,
    JudgementPart,
    CanariesPart,
    ProbesPart,
    OperationsPart,
    CasesPart,
    ReviewsPart,
    CaseSetPart,
    SuggestionsPart,
    ReportsPart,
    ExpositionPart,
):
    """What the agent remembers, in SQLite or PostgreSQL.

    Every public method is one transaction. They may be called from any thread; writers queue up. Raises
    StoreFullError, StoreReadOnlyError, StoreBusyError or StoreError where the database refuses, and then
    has changed nothing.
    """

    def __init__(self, url: str, *, clock: Clock, settings: StoreSettings) -> None:
        super().__init__(Database(url, settings), clock, settings)
        try:
            migrate(self._db)
        except BaseException:
            self._db.close()
            raise

    @property
    def where(self) -> str:
        """The store's address, without a password."""
        return self._db.where

    def close(self) -> None:
        """Close all connections; the store is not used afterwards."""
        self._db.close()

    def apply(self, batch: Batch) -> bool:
        """Apply a batch once; False where (writer, seq) was applied before.

        Raises InputError for a batch with anything in it that cannot be counted; then none of it is.
        """
        now = self._clock.now()
        check_batch(batch, now)
        with self._db.write() as connection:
            if not ledger.claim(connection, batch.writer, batch.seq, now):
                return False
            self._count(connection, batch, now)
        return True

    def _count(self, connection: Connection, batch: Batch, now: float) -> None:
        tally = Tally(now, self._settings)
        refs = configs.sight(connection, _sightings(batch), now, self._settings)
        for ref in refs.values():
            tally.born(ref)
        for window in batch.windows:
            tally.count(refs[label(window.pipeline), window.config], window)
        kept = events.keep(connection, batch.events, refs)
        feedback.attach(connection, kept, (config for _, config in refs), tally, now)
        feedback.take(connection, batch.feedback, tally, now)
        tally.write(connection)

    def housekeep(self) -> Swept:
        """Retire silent configs and remove what is past its retention."""
        now, keep = self._clock.now(), self._settings
        with self._db.write() as connection:
            swept = Swept(
                configs_retired=configs.retire(connection, now, keep),
                windows=_drop_windows(connection, MINUTE, now - keep.minutes_days * DAY)
                + _drop_windows(connection, HOUR, now - keep.hours_days * DAY),
                events=events.trim(connection, now - keep.events_days * DAY, keep.events_max),
                cases=caseset.age(connection, now - keep.events_days * DAY),
                feedback_expired=feedback.expire(connection, now - keep.aside_days * DAY),
                writers=ledger.forget(connection, now - keep.writers_days * DAY),
                deliveries=drop_delivered(connection, now - keep.outbox_days * DAY),
            )
            feedback.age(connection, now - keep.events_days * DAY)
            drop_runs(connection, now - keep.hours_days * DAY)
            drop_reports(connection, now - keep.hours_days * DAY)
            drop_probes(connection, now - keep.events_days * DAY)
        if swept.events or swept.cases:
            self._db.forget()
        return swept


def _sightings(batch: Batch) -> dict[configs.Key, configs.Sighting]:
    """Return what a batch says of each config, declared ones first."""
    seen: dict[configs.Key, configs.Sighting] = {}
    for record in batch.configs:
        one = seen.setdefault((label(record.pipeline), record.config), configs.Sighting())
        one.record = record
        if record.first_ts:
            one.at(record.first_ts, traffic=False)
    for window in batch.windows:
        one = seen.setdefault((label(window.pipeline), window.config), configs.Sighting())
        one.at(window.minute * 60.0, traffic=window.get("retrievals") > 0)
    for event in batch.events:
        one = seen.setdefault((label(event.pipeline), event.config), configs.Sighting())
        one.at(event.ts, traffic=False)
    return seen


def _drop_windows(connection: Connection, span: int, before: float) -> int:
    over = (windows.c.span == span) & (windows.c.start + span <= before / 60)
    return connection.execute(delete(windows).where(over)).rowcount
