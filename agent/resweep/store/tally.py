"""Counts on their way into the store: into minute, hour and day windows, and into the running totals.

Every count goes into all three spans at once, so a window that arrives late is in the right hour and day
whatever was removed meanwhile, and retention is a plain deletion. Totals never fall: they feed counters.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Any

from sqlalchemy import BindParameter, Connection, bindparam, insert, select, update

from resweep.domain.snapshot import DROP_REASONS, ERROR_CLASSES
from resweep.domain.window import Window
from resweep.store.configs import Ref
from resweep.store.part import chunks
from resweep.store.payload import COLUMNS, pack, pack_total, unpack, unpack_total
from resweep.store.schema import totals, windows
from resweep.store.settings import StoreSettings

MINUTE, HOUR, DAY = 1, 60, 1440
SPANS = (MINUTE, HOUR, DAY)
_Key = tuple[int, int, int]  # config id, span, first minute


class Tally:
    """Adds up what one transaction counts, and writes it once."""

    def __init__(self, now: float, settings: StoreSettings) -> None:
        self._oldest = {
            MINUTE: now / 60 - settings.minutes_days * DAY,
            HOUR: now / 60 - settings.hours_days * DAY,
            DAY: float("-inf"),
        }
        self._windows: dict[_Key, Window] = {}
        self._totals: dict[tuple[int, str], Window] = defaultdict(lambda: Window("", "", 0))

    def count(self, ref: Ref, window: Window) -> None:
        """Count a window; its feedback is left out, since feedback is counted from its own records."""
        counts = {name: n for name, n in window.counts.items() if not name.startswith("feedback:")}
        part = Window("", "", window.minute, counts, window.histograms, window.groups)
        self._spread(ref.id, part)
        self._totals[ref.series].merge(Window("", "", 0, _exposed(counts), window.histograms))

    def born(self, ref: Ref) -> None:
        """Let a config's series exist, at 0 if nothing was counted."""
        self._totals[ref.series].merge(Window("", "", 0))

    def first_feedback(self, ref: Ref, kind: str) -> None:
        """Count one feedback in the counters, which never fall."""
        self._totals[ref.series].add(f"feedback:{kind}")

    def feedback_stands(self, config_id: int, minute: int, kind: str, amount: int) -> None:
        """Count in the windows one feedback that stands (1), or one that was overruled (-1)."""
        self._spread(config_id, Window("", "", minute, {f"feedback:{kind}": amount}))

    def _spread(self, config_id: int, part: Window) -> None:
        for span in SPANS:
            start = part.minute - part.minute % span
            if start + span <= self._oldest[span]:
                continue
            at = (config_id, span, start)
            if at not in self._windows:
                self._windows[at] = Window("", "", start)
            self._windows[at].merge(part)

    def write(self, connection: Connection) -> None:
        """Merge everything into the rows that exist, and insert the rest."""
        self._write_windows(connection)
        self._write_totals(connection)

    def _write_windows(self, connection: Connection) -> None:
        stored = _stored(connection, self._windows)
        fresh: list[dict[str, Any]] = []
        changed: list[dict[str, Any]] = []
        for (config_id, span, start), window in self._windows.items():
            old = stored.get((config_id, span, start))
            if old is not None:
                old.merge(window)
                window = old
            row = {"b_config": config_id, "b_span": span, "b_start": start} | _row(window)
            (changed if old is not None else fresh).append(row)
        if fresh:
            connection.execute(_INSERT, fresh)
        if changed:
            connection.execute(_UPDATE, changed)

    def _write_totals(self, connection: Connection) -> None:
        for (pipeline_id, series), increment in self._totals.items():
            at = (totals.c.pipeline_id == pipeline_id) & (totals.c.series == series)
            payload = connection.execute(select(totals.c.payload).where(at)).scalar()
            if payload is None:
                row = {"pipeline_id": pipeline_id, "series": series, "payload": pack_total(increment)}
                connection.execute(insert(totals).values(row))
            elif increment.counts or increment.histograms:
                total = unpack_total(payload)
                total.merge(increment)
                connection.execute(update(totals).where(at).values(payload=pack_total(total)))


_VALUES: dict[str, BindParameter[Any]] = {name: bindparam(f"v_{name}") for name in (*COLUMNS, "payload")}
_INSERT = insert(windows).values(
    config_id=bindparam("b_config"), span=bindparam("b_span"), start=bindparam("b_start"), **_VALUES
)
_UPDATE = (
    update(windows)
    .where(
        windows.c.config_id == bindparam("b_config"),
        windows.c.span == bindparam("b_span"),
        windows.c.start == bindparam("b_start"),
    )
    .values(**_VALUES)
)


def _row(window: Window) -> dict[str, Any]:
    window.counts = {name: n for name, n in window.counts.items() if n > 0}
    return {f"v_{name}": value for name, value in pack(window).items()}


def _stored(connection: Connection, keys: Iterable[_Key]) -> dict[_Key, Window]:
    """Return the rows that exist already, in few queries: by config or by start, of whichever are fewer."""
    found: dict[_Key, Window] = {}
    for span in SPANS:
        mine = [(config_id, start) for config_id, at, start in keys if at == span]
        fixed, listed = windows.c.config_id, windows.c.start
        if len({start for _, start in mine}) < len({config_id for config_id, _ in mine}):
            fixed, listed = listed, fixed
            mine = [(start, config_id) for config_id, start in mine]
        wanted: dict[int, list[int]] = defaultdict(list)
        for one, other in mine:
            wanted[one].append(other)
        for one, others in wanted.items():
            for some in chunks(others):
                query = select(windows).where(windows.c.span == span, fixed == one, listed.in_(some))
                for row in connection.execute(query).mappings():
                    found[row["config_id"], span, row["start"]] = unpack(row, "", "", row["start"])
    return found


def _exposed(counts: Mapping[str, int]) -> dict[str, int]:
    """Bring values that have no series of their own to one that has, so that no count is lost."""
    total: dict[str, int] = {}
    for name, n in counts.items():
        prefix, colon, value = name.partition(":")
        if colon and prefix == "error" and value not in ERROR_CLASSES:
            name = "error:other"
        elif colon and prefix == "dropped" and value not in DROP_REASONS:
            name = "dropped:invalid"
        total[name] = total.get(name, 0) + n
    return total
