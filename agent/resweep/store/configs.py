"""Pipelines and their configs: first and last seen, in which series they are counted, when they retire.

A config gets its series at first sight and keeps them until it has had no traffic for a while. Then its
series end; its total stays, so that a config that comes back goes on where it stopped. What is counted in
`other` is counted there alone, so nothing is ever counted twice or moved. Where all places are taken, a
config with traffic takes that of one that was declared and never answered: its series hold nothing but zeros.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import msgspec
from sqlalchemy import ColumnElement, Connection, RowMapping, bindparam, exists, insert, select, update

from resweep.domain.batch import ConfigRecord
from resweep.domain.errors import InputError
from resweep.store.names import label
from resweep.store.part import Part, chunks
from resweep.store.rows import ConfigSeen, Slot
from resweep.store.schema import configs, pipelines, windows
from resweep.store.settings import (
    OWN_CONFIGS_MAX,
    OWN_PIPELINES_MAX,
    PIPELINES_MAX,
    StoreSettings,
)

Key = tuple[str, str]  # pipeline, config
DOCUMENT_MAX = 256 * 1024  # bytes


@dataclass(frozen=True, slots=True)
class Ref:
    """Where a config's counts go."""

    id: int
    pipeline_id: int
    config: str
    slot: Slot

    @property
    def series(self) -> tuple[int, str]:
        """The running total it adds to: (pipeline id or 0, config id or `other`)."""
        if self.slot == "pool":
            return 0, "other"
        return self.pipeline_id, "other" if self.slot == "other" else self.config


@dataclass(slots=True)
class Sighting:
    """What one batch says of a config: its declaration, and from when to when it answered."""

    record: ConfigRecord | None = None
    first_ts: float | None = None
    last_ts: float | None = None
    traffic: bool = False

    def at(self, ts: float, *, traffic: bool) -> None:
        """Take a moment at which the config was in use."""
        self.first_ts = ts if self.first_ts is None else min(self.first_ts, ts)
        if traffic:
            self.last_ts = ts if self.last_ts is None else max(self.last_ts, ts)
            self.traffic = True


@dataclass(slots=True)
class _Places:
    """The series that are taken."""

    own: Counter[int] = field(default_factory=Counter)
    serving: set[int] = field(default_factory=set)

    def give(self, pipeline_id: int, settings: StoreSettings) -> Slot:
        """Return the next config's slot and take it."""
        slot = choose_slot(self.own, self.serving, pipeline_id, settings.series_configs)
        if slot == "own":
            self.own[pipeline_id] += 1
        if slot != "pool":
            self.serving.add(pipeline_id)
        return slot


def choose_slot(own: Mapping[int, int], serving: set[int], pipeline_id: int, most: int) -> Slot:
    """Return the slot of a config seen now, given the configs with own series by pipeline.

    `serving` are the pipelines that have series. At most `most` own configs a pipeline and 20 in all, at
    most 20 pipelines with an `other` of their own.
    """
    if own.get(pipeline_id, 0) < most and sum(own.values()) < OWN_CONFIGS_MAX:
        return "own"
    if pipeline_id in serving or len(serving) < OWN_PIPELINES_MAX:
        return "other"
    return "pool"


def sight(
    connection: Connection, seen: Mapping[Key, Sighting], now: float, settings: StoreSettings
) -> dict[Key, Ref]:
    """Make or refresh the rows of some configs and return where their counts go."""
    ids = _pipelines(connection, sorted({pipeline for pipeline, _ in seen}), now)
    retire(connection, now, settings)
    known = _known(connection, ids, {config for _, config in seen})
    census = _Census(connection, _places(connection), now, settings)
    refs = {key: census.take(ids[key[0]], key[1], one, known.get(key)) for key, one in seen.items()}
    census.write()
    return refs


def retire(connection: Connection, now: float, settings: StoreSettings) -> int:
    """End the series of configs without traffic; return how many."""
    silent = configs.c.last_active <= now - settings.retire_after_s
    return connection.execute(
        update(configs).where(configs.c.retired_at.is_(None), silent).values(retired_at=now, slot="")
    ).rowcount


def _pipelines(connection: Connection, names: Sequence[str], now: float) -> dict[str, int]:
    known = {row.name: row.id for row in connection.execute(select(pipelines.c.name, pipelines.c.id))}
    for name in names:
        if name in known:
            connection.execute(update(pipelines).where(pipelines.c.id == known[name]).values(last_seen=now))
            continue
        if len(known) >= PIPELINES_MAX:
            raise InputError(
                f"expected at most {PIPELINES_MAX} pipelines; got another one, {name!r}: name a pipeline for "
                f"a retrieval path, not for a user or a request"
            )
        made = connection.execute(insert(pipelines).values(name=name, first_seen=now, last_seen=now))
        known[name] = int((made.inserted_primary_key or (0,))[0])
    return {name: known[name] for name in names}


def _known(connection: Connection, ids: Mapping[str, int], wanted: set[str]) -> dict[Key, RowMapping]:
    names = {i: name for name, i in ids.items()}
    found: dict[Key, RowMapping] = {}
    for some in chunks(sorted(wanted)):
        query = select(configs).where(configs.c.pipeline_id.in_(names), configs.c.config.in_(some))
        for row in connection.execute(query).mappings():
            found[names[row["pipeline_id"]], row["config"]] = row
    return found


def _places(connection: Connection) -> _Places:
    places = _Places()
    query = select(configs.c.pipeline_id, configs.c.slot).where(configs.c.slot.in_(("own", "other")))
    for pipeline_id, slot in connection.execute(query):
        places.own[pipeline_id] += slot == "own"
        places.serving.add(pipeline_id)
    return places


class _Census:
    """Takes the configs of one batch down; what only moves a row's times is written in one go."""

    def __init__(self, connection: Connection, places: _Places, now: float, settings: StoreSettings) -> None:
        self._connection = connection
        self._places = places
        self._now = now
        self._settings = settings
        self._moved: list[dict[str, Any]] = []
        self._answering: set[int] = set()  # ids of configs whose first windows this batch writes

    def take(self, pipeline_id: int, config: str, seen: Sighting, row: RowMapping | None) -> Ref:
        """Return where a config's counts go."""
        if row is None:
            return self._insert(pipeline_id, config, seen, self._give(pipeline_id, seen))
        slot: Slot = row["slot"]
        changes = _changes(seen, row)
        if row["retired_at"] is not None and seen.traffic:
            slot = self._give(pipeline_id, seen)
            changes |= {"slot": slot, "retired_at": None}
        elif slot in ("other", "pool") and seen.traffic and self._never_answered(row["id"]):
            slot = self._give(pipeline_id, seen)
            changes |= {"slot": slot}
        if changes:
            self._connection.execute(update(configs).where(configs.c.id == row["id"]).values(changes))
        if seen.traffic:
            self._answering.add(row["id"])
            last = max(row["last_seen"], seen.last_ts or 0.0)
            self._moved.append({"b_id": row["id"], "last_seen": last, "last_active": self._now})
        return Ref(row["id"], pipeline_id, config, slot)

    def _give(self, pipeline_id: int, seen: Sighting) -> Slot:
        slot = self._places.give(pipeline_id, self._settings)
        if slot == "own" or not seen.traffic or not self._free_a_place(pipeline_id):
            return slot
        return self._places.give(pipeline_id, self._settings)

    def _free_a_place(self, pipeline_id: int) -> bool:
        """End the own series of a config that never answered; False where none is to be had."""
        silent = ~_ANSWERED & configs.c.id.not_in(self._answering)
        idle = select(configs.c.id, configs.c.pipeline_id).where(configs.c.slot == "own", silent)
        if self._places.own.get(pipeline_id, 0) >= self._settings.series_configs:
            idle = idle.where(configs.c.pipeline_id == pipeline_id)
        row = self._connection.execute(idle.order_by(configs.c.last_active, configs.c.id).limit(1)).first()
        if row is None:
            return False
        self._connection.execute(update(configs).where(configs.c.id == row.id).values(slot="pool"))
        self._places.own[row.pipeline_id] -= 1
        return True

    def _never_answered(self, config_id: int) -> bool:
        query = select(configs.c.id).where(configs.c.id == config_id, ~_ANSWERED)
        return self._connection.execute(query).first() is not None

    def write(self) -> None:
        """Write what was put off."""
        if self._moved:
            self._connection.execute(_MOVE, self._moved)

    def _insert(self, pipeline_id: int, config: str, seen: Sighting, slot: Slot) -> Ref:
        parent = self._connection.execute(
            select(configs.c.id)
            .where(configs.c.pipeline_id == pipeline_id)
            .order_by(configs.c.last_seen.desc(), configs.c.id.desc())
            .limit(1)
        ).scalar()
        first = min(self._now, seen.first_ts) if seen.first_ts else self._now
        made = self._connection.execute(
            insert(configs).values(
                pipeline_id=pipeline_id,
                config=config,
                parent_id=parent,
                first_seen=first,
                last_seen=seen.last_ts or first,
                last_active=self._now,
                slot=slot,
                **(_declared(seen.record) if seen.record else _UNDECLARED),
            )
        )
        config_id = int((made.inserted_primary_key or (0,))[0])
        if seen.traffic:
            self._answering.add(config_id)
        return Ref(config_id, pipeline_id, config, slot)


_ANSWERED = exists().where(windows.c.config_id == configs.c.id)  # hour and day windows outlive the minutes
_MOVE = (
    update(configs)
    .where(configs.c.id == bindparam("b_id"))
    .values(last_seen=bindparam("last_seen"), last_active=bindparam("last_active"))
)


def _changes(seen: Sighting, row: RowMapping) -> dict[str, Any]:
    """Return what a batch changes of a known config, but for its traffic."""
    told = _declared(seen.record) if seen.record is not None else {}
    changes = {name: value for name, value in told.items() if row[name] != value}
    if seen.first_ts and seen.first_ts < row["first_seen"]:
        changes["first_seen"] = seen.first_ts
    return changes


_UNDECLARED: dict[str, Any] = {
    "basis": "unknown",
    "document": "{}",
    "digest": "",
    "omitted": "[]",
    "opaque": "[]",
    "complete": False,
    "observed": "{}",
    "default_k": None,
    "declared": False,
}


def _declared(record: ConfigRecord) -> dict[str, Any]:
    return {
        "basis": record.basis,
        "document": _json(record, record.document),
        "digest": record.digest,
        "omitted": _json(record, record.omitted),
        "opaque": _json(record, record.opaque),
        "complete": record.complete,
        "observed": _json(record, record.observed),
        "default_k": record.default_k,
        "declared": True,
    }


_encoder = msgspec.json.Encoder(order="sorted")


def _json(record: ConfigRecord, value: object) -> str:
    try:
        body = _encoder.encode(value)
    except (TypeError, ValueError, OverflowError, RecursionError) as error:
        raise InputError(f"config {record.config}: expected plain data; got {error}") from None
    if len(body) > DOCUMENT_MAX:
        raise InputError(f"config {record.config}: expected at most {DOCUMENT_MAX} bytes; got {len(body)}")
    return body.decode()


class ConfigsPart(Part):
    """Reading pipelines and configs back."""

    def pipelines(self) -> Sequence[str]:
        """Return the names of the pipelines ever seen, sorted."""
        with self._db.read() as connection:
            return sorted(connection.execute(select(pipelines.c.name)).scalars())

    def configs(self, pipeline: str) -> Sequence[ConfigRecord]:
        """Return the configs of a pipeline in the order first seen."""
        return [seen.record for seen in self.configs_seen(pipeline)]

    def configs_seen(self, pipeline: str | None = None) -> Sequence[ConfigSeen]:
        """Return configs with their place among the others, in the order first seen."""
        with self._db.read() as connection:
            where = None if pipeline is None else pipelines.c.name == label(pipeline)
            return read_configs(connection, where)


def read_configs(connection: Connection, where: ColumnElement[bool] | None = None) -> list[ConfigSeen]:
    """Return configs in the order first seen."""
    parent = configs.alias("parent")
    query = (
        select(configs, pipelines.c.name.label("pipeline"), parent.c.config.label("parent"))
        .join(pipelines, configs.c.pipeline_id == pipelines.c.id)
        .outerjoin(parent, configs.c.parent_id == parent.c.id)
        .order_by(configs.c.first_seen, configs.c.id)
    )
    rows = connection.execute(query if where is None else query.where(where)).mappings()
    return [_seen(row) for row in rows]


def _seen(row: RowMapping) -> ConfigSeen:
    record = ConfigRecord(
        pipeline=row["pipeline"],
        config=row["config"],
        basis=row["basis"],
        document=msgspec.json.decode(row["document"]),
        digest=row["digest"],
        omitted=tuple(msgspec.json.decode(row["omitted"])),
        opaque=tuple(msgspec.json.decode(row["opaque"])),
        complete=row["complete"],
        observed=msgspec.json.decode(row["observed"]),
        default_k=row["default_k"],
        first_ts=row["first_seen"],
    )
    return ConfigSeen(
        record=record,
        declared=row["declared"],
        parent=row["parent"],
        first_seen=row["first_seen"],
        last_seen=row["last_seen"],
        last_active=row["last_active"],
        slot=row["slot"],
        retired_at=row["retired_at"],
    )
