"""Work that several processes or machines share: a PostgreSQL table of calls, taken with SKIP LOCKED.

Each row is one call by its key. A worker takes a row, makes the call and leaves the answer there for all; who
comes for a row that another has in hand goes on to the next. A row whose worker died is free again when its
time is up. The database's clock alone counts.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from sqlalchemy import (
    Column,
    Connection,
    Float,
    Index,
    LargeBinary,
    MetaData,
    String,
    Table,
    Text,
    cast,
    func,
    select,
    true,
    update,
)
from sqlalchemy.dialects.postgresql import insert

from resweep.domain.errors import UsageError
from resweep.domain.turn import Turn
from resweep.store.engine import Database
from resweep.store.failures import translated
from resweep.store.settings import StoreSettings

FAILED_S = 600.0  # for which a call that failed for good is not made again, by any worker
KEPT_S = 90 * 86_400.0
_CHUNK = 1000

_metadata = MetaData()
work = Table(
    "resweep_sweep_work",
    _metadata,
    Column("key", String(64), primary_key=True),
    Column("value", LargeBinary),
    Column("error", Text),
    Column("at", Float(53), nullable=False, server_default="0"),
    Column("taken_by", String(32)),
    Column("taken_until", Float(53), nullable=False, server_default="0"),
    Index("ix_resweep_sweep_work_at", "at"),
)
_now = cast(func.extract("epoch", func.clock_timestamp()), Float(53))


class SharedAnswers:
    """Answers by key, shared by all workers that name one database.

    Answers older than `max_age_s` count as not there. Raises UsageError for a database that is not PostgreSQL
    and StoreError where it cannot be used.
    """

    shared = True

    def __init__(self, url: str, max_age_s: float | None = None) -> None:
        self._db = Database(url, StoreSettings())
        if self._db.sqlite:
            raise UsageError(f"expected postgresql://HOST/NAME to share work; got {self._db.where}")
        self._me = uuid.uuid4().hex
        with self._db.write() as connection:
            _metadata.create_all(connection)
            now = float(connection.execute(select(_now)).scalar_one())
            connection.execute(work.delete().where(work.c.at.between(1.0, now - KEPT_S)))
        self._oldest = 0.0 if max_age_s is None else now - max_age_s

    def get(self, key: str, *, ever: bool = False) -> bytes | None:
        """Return the answer of a key, None where there is none young enough; `ever`: of any age."""
        young = true() if ever else work.c.at >= self._oldest
        with self._db.read() as connection:
            found = connection.execute(select(work.c.value).where(work.c.key == key, young)).scalar()
        return None if found is None else bytes(found)

    def put(self, key: str, value: bytes) -> None:
        """Leave an answer; it is there for all when this returns."""
        told = {"value": value, "error": None, "at": _now, "taken_by": None, "taken_until": 0.0}
        with self._begin() as connection:
            wish = insert(work).values(key=key, **told)
            connection.execute(wish.on_conflict_do_update(index_elements=["key"], set_=told))

    def known(self, keys: Iterable[str]) -> int:
        """Return how many different keys of these have an answer."""
        wanted, known = sorted(set(keys)), 0
        for start in range(0, len(wanted), _CHUNK):
            some = work.c.key.in_(wanted[start : start + _CHUNK])
            there = some & work.c.value.is_not(None) & (work.c.at >= self._oldest)
            with self._db.read() as connection:
                known += connection.execute(select(func.count()).where(there)).scalar_one()
        return known

    def take(self, key: str, for_s: float, *, ever: bool = False) -> Turn:
        """Return whose turn a call is, and take it for `for_s` seconds where it is nobody's."""
        mine = work.c.key == key
        with self._begin() as connection:
            connection.execute(insert(work).values(key=key).on_conflict_do_nothing())
            row = connection.execute(
                select(work, _now.label("now")).where(mine).with_for_update(skip_locked=True)
            ).one_or_none()
            if row is None:
                return Turn("elsewhere")
            if row.value is not None and (ever or row.at >= self._oldest):
                return Turn("there", bytes(row.value))
            if row.error is not None and row.at >= row.now - FAILED_S:
                return Turn("failed", error=row.error)
            if row.taken_until > row.now and row.taken_by != self._me:
                return Turn("elsewhere")
            connection.execute(update(work).where(mine).values(taken_by=self._me, taken_until=_now + for_s))
        return Turn("mine")

    def fail(self, key: str, error: str) -> None:
        """Tell all that a call failed for good; it is nobody's any more."""
        told = {"error": error, "at": _now, "taken_by": None, "taken_until": 0.0}
        with self._begin() as connection:
            connection.execute(update(work).where(work.c.key == key, work.c.value.is_(None)).values(told))

    def release(self, keys: Iterable[str]) -> None:
        """Give back what this worker took and did not answer."""
        own = work.c.key.in_(list(keys)) & (work.c.taken_by == self._me) & work.c.value.is_(None)
        with self._begin() as connection:
            connection.execute(update(work).where(own).values(taken_by=None, taken_until=0.0))

    def close(self) -> None:
        """Close the connections."""
        self._db.close()

    @contextmanager
    def _begin(self) -> Iterator[Connection]:
        with translated(self._db.where), self._db.engine.begin() as connection:
            yield connection
