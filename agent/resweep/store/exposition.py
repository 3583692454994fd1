"""The store's numbers as a snapshot: counters from the running totals, gauges from the state.

Read afresh each time, from a few dozen rows, so that any agent on the store exposes the same. Label values
come in the order of the exporters' catalog.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

import msgspec
from sqlalchemy import Connection, or_, select

from resweep.domain.errors import StoreError
from resweep.domain.event import UNKNOWN
from resweep.domain.snapshot import Sample, Snapshot, window_samples
from resweep.domain.verdict import VERDICT_STATES, Flag, TunedK, VerdictState, worst
from resweep.store.configs import read_configs
from resweep.store.names import label
from resweep.store.operations import GAUGES
from resweep.store.part import Part
from resweep.store.payload import unpack_total
from resweep.store.rows import ConfigSeen
from resweep.store.schema import configs, flags, gauges, jobs, maintenance, pipelines, totals, verdicts
from resweep.store.tuned import read_tuned

OTHER = "other"
PARTS = ("embedder", "chunker", "reranker", "generator")
CASE_STATES = ("candidate", "in_review", "labelled", "needs_look", "unanswerable", "rejected")
SPLITS = ("tune", "holdout", "quarantined")
_NAMING = ("model", "name", "id", "class", "type", "kind")  # keys that name a part, best first
_flag_decoder = msgspec.json.Decoder(Flag)


@dataclass(frozen=True, slots=True)
class Living:
    """The configs with traffic of late. `own` have series of their own, by (pipeline, config).

    `pipelines` are those whose name labels series of counters.
    """

    own: Mapping[tuple[str, str], ConfigSeen]
    bases: Mapping[tuple[str, str], bool]  # (pipeline, basis) of a living config: has own series?
    pipelines: frozenset[str]

    def basis(self, pipeline: str, basis: str) -> str | None:
        """Return a basis as a label: itself, `other` where no own config has it, None where none lives."""
        own = self.bases.get((pipeline, basis))
        return None if own is None else basis if own else OTHER


class ExpositionPart(Part):
    """The snapshot that exporters render."""

    _last: Snapshot | None = None

    def snapshot(self) -> Snapshot:
        """Return the numbers to expose.

        Where the store cannot be read these are the last ones that could, marked as incomplete.
        """
        now = self._clock.now()
        try:
            with self._db.read() as connection:
                samples = tuple(self._samples(connection, now))
        except StoreError:
            last = self._last or Snapshot(ts=now)
            return Snapshot(ts=last.ts, samples=last.samples, complete=False)
        self._last = Snapshot(ts=now, samples=samples)
        return self._last

    def _samples(self, connection: Connection, now: float) -> Iterator[Sample]:
        living = self._living(connection, now)
        yield from _counters(connection, living)
        tuned = read_tuned(connection)
        for (pipeline, config), seen in living.own.items():
            yield from _config(pipeline, config, seen, tuned)
        yield from _verdicts(connection, living)
        yield from self._flags(connection, living, now)
        yield from _measured(connection, living)
        yield from _maintenance(connection, living, now)
        yield from _jobs(connection)

    def _living(self, connection: Connection, now: float) -> Living:
        alive = configs.c.retired_at.is_(None) & (configs.c.last_active > now - self._settings.retire_after_s)
        own = {
            (seen.record.pipeline, seen.record.config): seen
            for seen in read_configs(connection, where=alive & (configs.c.slot == "own"))
        }
        places = select(pipelines.c.name, configs.c.basis, configs.c.slot).distinct()
        bases: dict[tuple[str, str], bool] = {}
        named: set[str] = set()
        for pipeline, basis, slot in connection.execute(places.join(configs).where(alive)):
            bases[pipeline, basis] = bases.get((pipeline, basis), False) or slot == "own"
            if slot != "pool":
                named.add(pipeline)
        return Living(own, bases, frozenset(named))

    def _flags(self, connection: Connection, living: Living, now: float) -> Iterator[Sample]:
        shown = or_(flags.c.cleared_ts.is_(None), flags.c.cleared_ts > now - self._settings.cleared_visible_s)
        values: dict[tuple[str, ...], float] = {}
        for document in connection.execute(select(flags.c.document).where(shown)).scalars():
            flag = _flag_decoder.decode(document)
            at = _flag_labels(flag, living)
            if at is None:
                continue
            for component in flag.components or (UNKNOWN,):
                series: tuple[str, ...] = (*at, flag.reason, component)
                values[series] = max(values.get(series, 0.0), float(flag.cleared_ts is None))
        for series, value in values.items():
            yield Sample("resweep_sweep_required", series, value)


def _flag_labels(flag: Flag, living: Living) -> tuple[str, str, str] | None:
    pipeline = label(flag.pipeline)
    basis = living.basis(pipeline, flag.basis)
    if basis is None:
        return None
    config = flag.config if (pipeline, flag.config) in living.own else OTHER
    return pipeline, config, basis


def _counters(connection: Connection, living: Living) -> Iterator[Sample]:
    names = {row.id: row.name for row in connection.execute(select(pipelines.c.id, pipelines.c.name))}
    for row in connection.execute(select(totals)):
        pipeline = names.get(row.pipeline_id, OTHER)
        alive = pipeline in living.pipelines or row.pipeline_id == 0
        if (pipeline, row.series) in living.own or (alive and row.series == OTHER):
            yield from window_samples(pipeline, row.series, unpack_total(row.payload))


def _config(pipeline: str, config: str, seen: ConfigSeen, tuned: Iterable[TunedK]) -> Iterator[Sample]:
    record = seen.record
    parts = tuple(describe(record.document.get(part)) for part in PARTS)
    yield Sample("resweep_config_info", (pipeline, config, record.basis, *parts), 1)
    k = _context_k(seen)
    if k is not None:
        yield Sample("resweep_context_k", (pipeline, config), k)
    chosen = [t for t in tuned if t.pipeline == pipeline and t.basis == record.basis]
    if chosen:
        yield Sample("resweep_tuned_context_k", (pipeline, config), chosen[-1].context_k)


def _context_k(seen: ConfigSeen) -> float | None:
    record = seen.record
    for k in (record.document.get("context_k"), record.observed.get("k"), record.default_k):
        if isinstance(k, int | float) and not isinstance(k, bool):
            return k
    return None


def describe(part: object) -> str:
    """Return a part of a config in at most 64 characters: its model or name, else its plain settings."""
    if part is None:
        return "none"
    if isinstance(part, Mapping):
        named = next((part[key] for key in _NAMING if isinstance(part.get(key), str)), None)
        part = named or " ".join(
            f"{k}={v}" for k, v in sorted(part.items()) if isinstance(v, str | int | float)
        )
    return label(str(part)[:64])


def _verdicts(connection: Connection, living: Living) -> Iterator[Sample]:
    states: dict[tuple[str, str], list[VerdictState]] = defaultdict(list)
    query = select(verdicts.c.pipeline, verdicts.c.basis, verdicts.c.state).where(verdicts.c.in_force)
    for pipeline, basis, state in connection.execute(query):
        shown = living.basis(pipeline, basis)
        if shown is not None:
            states[pipeline, shown].append(state)
    for at, found in states.items():
        state = worst(found)
        for one in VERDICT_STATES:
            yield Sample("resweep_verdict", (*at, one), float(one == state))
        yield Sample("resweep_tuned_k_valid", at, float(state == "valid"))


def _measured(connection: Connection, living: Living) -> Iterator[Sample]:
    """Yield what jobs measured last; of pipelines alive the numbers of cases and sweeps from 0."""
    values: dict[tuple[str, tuple[str, ...]], float] = {}
    for pipeline in living.pipelines:
        for state in CASE_STATES:
            for split in SPLITS:
                values["resweep_labelled_cases", (pipeline, state, split)] = 0.0
        values["resweep_review_queue_oldest_seconds", (pipeline,)] = 0.0
        values["resweep_last_sweep_timestamp_seconds", (pipeline,)] = 0.0
    for metric, labels, value in connection.execute(select(gauges.c.metric, gauges.c.labels, gauges.c.value)):
        at = tuple(msgspec.json.decode(labels, type=list[str]))
        if _shown(metric, at, living):
            values[metric, at] = value
    for (metric, at), value in values.items():
        yield Sample(metric, at, value)


def _shown(metric: str, at: tuple[str, ...], living: Living) -> bool:
    if "config" in GAUGES[metric]:
        return (at[0], at[1]) in living.own
    return at[0] in living.pipelines


def _maintenance(connection: Connection, living: Living, now: float) -> Iterator[Sample]:
    lasts = maintenance.c.ended.is_(None) & or_(maintenance.c.until.is_(None), maintenance.c.until > now)
    working = set(connection.execute(select(maintenance.c.pipeline).where(lasts)).scalars())
    for pipeline in sorted(living.pipelines):
        yield Sample("resweep_maintenance", (pipeline,), float(pipeline in working))


def _jobs(connection: Connection) -> Iterator[Sample]:
    for name, succeeded in connection.execute(select(jobs.c.name, jobs.c.succeeded)):
        yield Sample("resweep_job_last_success_timestamp_seconds", (label(name),), succeeded or 0.0)
