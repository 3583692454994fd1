"""Canaries on their timetable: what is due is leased to a recorder, what comes back is judged and remembered.

Everything remembered lies in the store, so a restart, another leader, or somebody who accepts the system as
it is finds the same state.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from resweep.detect.canary import answers, book, embedder, quality
from resweep.detect.canary.book import System
from resweep.domain.batch import ConfigRecord
from resweep.domain.clock import Clock
from resweep.domain.event import Hit
from resweep.domain.fingerprint import depths
from resweep.domain.values import label
from resweep.domain.verdict import TunedK
from resweep.domain.work import Work, WorkAnswer, WorkKind
from resweep.schedule.desk import Desk
from resweep.store.canaries import CanaryQuery, CanaryRun, Epoch
from resweep.store.sql import SqlStore

log = logging.getLogger("resweep.schedule")

RECALL, EVIDENCE = "resweep_canary_recall_ratio", "resweep_drift_evidence"
_encoder = msgspec.msgpack.Encoder()
_decoder = msgspec.msgpack.Decoder(System)


@dataclass(frozen=True, slots=True, kw_only=True)
class CanarySettings:
    """How often canaries run, in seconds: `every_s` as a rule, `confirm_s` after a failure or in doubt.

    `texts` are embedded and at most `queries` live queries frozen; `file` holds questions of the user's.
    `lease_s` is how long a recorder may take for one piece of work; it asks again after `poll_s`
    and makes at most `per_second` calls.
    """

    every_s: float = 3600.0
    confirm_s: float = 300.0
    texts: int = 20
    queries: int = 30
    file: str | None = None
    lease_s: float = 300.0
    poll_s: float = 10.0
    per_second: float = 5.0
    probes_per_hour: float = 20.0
    probe_depth: int = 40


def load_system(store: SqlStore, pipeline: str, basis: str) -> System:
    """Return what the canaries of a system remember; a new one where nothing is."""
    payload = store.system(pipeline, basis)
    if payload is not None:
        try:
            return _decoder.decode(payload)
        except msgspec.MsgspecError as error:
            log.warning("canaries of %s, basis %s begin anew: %s", pipeline, basis, error)
    return System(pipeline=label(pipeline), basis=basis)


def save_system(store: SqlStore, system: System, run: CanaryRun | None = None) -> None:
    """Save what the canaries of a system remember."""
    store.save_system(system.pipeline, system.basis, _encoder.encode(system), run)


def settle(store: SqlStore, desk: Desk, now: float) -> None:
    """Bring flags and gauges in line with what the canaries of every system find at `now` (unix s)."""
    alive: dict[str, set[str]] = {}
    for verdict in desk.verdicts(now):
        alive.setdefault(verdict.pipeline, set()).add(verdict.basis)
    tuned, epochs = store.tuned(), store.epochs()
    gauges: dict[str, dict[tuple[str, ...], float]] = {RECALL: {}, EVIDENCE: {}}
    for pipeline, basis in store.systems():
        system = load_system(store, pipeline, basis)
        if basis not in alive.get(pipeline, {basis}):  # its config retired: no flag hangs on it
            desk.found(pipeline, basis, "active", [])
            continue
        accepted = accepted_digests(system, tuned, epochs)
        desk.found(pipeline, basis, "active", list(book.findings(system, accepted)))
        _measure(system, accepted, gauges)
    for metric, values in gauges.items():
        store.set_gauges(metric, values)


def accepted_digests(system: System, tuned: Sequence[TunedK], epochs: Sequence[Epoch]) -> set[str]:
    """Return the digests of the embedders that a depth in force was tuned with."""
    mine = {t.epoch: t for t in tuned if _is_of(t, system)}
    told = {str(d) for t in mine.values() if (d := t.observed.get("canary_digest"))}
    return told | {e.digest for e in epochs if _is_of(e, system) and e.epoch in mine}


def _is_of(one: TunedK | Epoch, system: System) -> bool:
    return (one.pipeline, one.basis) == (system.pipeline, system.basis)


def accept_system(store: SqlStore, record: TunedK, now: float) -> None:
    """Take the system under a newly tuned depth for the right one, and note its embedder as its epoch's."""
    if store.system(record.pipeline, record.basis) is None:
        return
    system = load_system(store, record.pipeline, record.basis)
    book.accept(system, now)
    save_system(store, system)
    if system.embedder.present is not None:
        store.note_epoch(record.pipeline, record.basis, record.epoch, system.embedder.present)


def facts_now(store: SqlStore, record: ConfigRecord, now: float) -> dict[str, object]:
    """Return what is observed of the system that a config runs on now, for the record of a tuned depth."""
    facts = dict(record.observed)
    if store.system(record.pipeline, record.basis) is not None:
        state = load_system(store, record.pipeline, record.basis).embedder
        embedder.accept(state, now)
        baseline = state.baseline(state.present)
        if baseline is not None:
            facts |= {"canary_digest": baseline.digest, "dimensions": baseline.dimensions}
    return facts


def is_due(system: System, kind: WorkKind, now: float, settings: CanarySettings) -> bool:
    """Whether a canary of a kind should run; a clock that was set back makes it due."""
    tried = system.tried.get(kind)
    if tried is None or tried > now:
        return True
    wait = settings.every_s
    if system.doubted or system.failures.get(kind):
        wait = min(wait, settings.confirm_s)
    return now - tried >= wait


class Examiner:
    """Takes the answers to canaries into the state of their system."""

    def __init__(self, store: SqlStore, desk: Desk, clock: Clock) -> None:
        self._store = store
        self._desk = desk
        self._clock = clock

    def take(self, work: Work, answer: WorkAnswer, questions: Mapping[str, CanaryQuery]) -> None:
        """Judge one answered canary. Nothing is concluded from a run that broke off."""
        now = self._clock.now()
        system = load_system(self._store, work.pipeline, work.basis)
        if not system.config or not list(book.findings(system, self._accepted(system))):
            system.config = work.config  # an open flag keeps the config it opened on
        trouble = _trouble(answer)
        system.tried[work.kind] = now
        system.trouble = trouble
        if trouble:
            system.failures[work.kind] = system.failures.get(work.kind, 0) + 1
            save_system(self._store, system)
            return
        system.failures.pop(work.kind, None)
        system.ran[work.kind] = now
        shown = self._look(system, work, answer, questions, now)
        run = CanaryRun(
            pipeline=system.pipeline,
            basis=system.basis,
            config=work.config,
            kind=work.kind,
            ts=now,
            shown=shown,
        )
        save_system(self._store, system, run)
        if work.kind == "embed":
            self._note_epochs(system)
        settle(self._store, self._desk, now)
        self._desk.sit()

    def _accepted(self, system: System) -> set[str]:
        return accepted_digests(system, self._store.tuned(system.pipeline), self._store.epochs())

    def _look(
        self,
        system: System,
        work: Work,
        answer: WorkAnswer,
        questions: Mapping[str, CanaryQuery],
        now: float,
    ) -> Mapping[str, object]:
        if work.kind == "embed":
            vectors = {one.id: one.vector for one in answer.vectors}
            shown = _plain(embedder.look(system.embedder, vectors, now))
            book.follow(system, self._accepted(system))
            return shown
        hits = {one.id: one.hits for one in answer.retrieved}
        answers.keep_only(system.answers, set(questions))
        system.run = answers.look(system.answers, hits, now)
        return {**_plain(system.run), "quality": self._judge(system, work, hits, questions, now)}

    def _judge(
        self,
        system: System,
        work: Work,
        hits: Mapping[str, Sequence[Hit]],
        questions: Mapping[str, CanaryQuery],
        now: float,
    ) -> Mapping[str, object] | None:
        relevant = {i: q.relevant for i, q in questions.items() if i in hits and any(q.relevant.values())}
        if not relevant:
            return None
        k = self._depth(work) or max(len(found) for found in hits.values()) or 1
        rankings = {i: [_name(hit, named) for hit in hits[i]] for i, named in relevant.items()}
        wanted = {i: {p for p, grade in named.items() if grade >= 1} for i, named in relevant.items()}
        return _plain(quality.look(system.quality, rankings, wanted, k, now))

    def _depth(self, work: Work) -> int | None:
        """The context depth in use."""
        records = [c for c in self._store.configs(work.pipeline) if c.config == work.config]
        for record in records:
            for k in (depths(record.document)[0], record.observed.get("k"), record.default_k):
                if isinstance(k, int) and not isinstance(k, bool) and k > 0:
                    return k
        return None

    def _note_epochs(self, system: System) -> None:
        """Note with which embedder each tuned depth belongs together, and which of them runs now."""
        mine = [t for t in self._store.tuned(system.pipeline) if t.basis == system.basis]
        noted = {e.epoch for e in self._store.epochs() if _is_of(e, system)}
        state = system.embedder
        for record in mine:
            if record.epoch in noted:
                continue
            told = record.observed.get("canary_digest")
            if isinstance(told, str):
                self._store.note_epoch(system.pipeline, system.basis, record.epoch, told)
            elif record is mine[-1] and state.reference and state.present == state.reference:
                # tuned before canaries ran: the first embedder they saw is the one it was tuned with
                self._store.note_epoch(system.pipeline, system.basis, record.epoch, state.reference)
        self._store.present_epoch(system.pipeline, system.basis, state.present)


def _trouble(answer: WorkAnswer) -> str:
    errors = [answer.error, *(v.error for v in answer.vectors), *(r.error for r in answer.retrieved)]
    return next((error for error in errors if error), "")


def _name(hit: Hit, relevant: Mapping[str, int]) -> str:
    """A passage as judgments name it: by id, or by the hash of its text."""
    return hit.text_hash if hit.text_hash in relevant and hit.text_hash is not None else hit.id


def _plain(value: Any) -> dict[str, object]:
    found: dict[str, object] = msgspec.to_builtins(value)
    return found


def _measure(system: System, accepted: set[str], gauges: Mapping[str, dict[tuple[str, ...], float]]) -> None:
    at = (system.pipeline, system.config)
    gauges[EVIDENCE][(*at, "active")] = max(-99.0, book.evidence(system, accepted))
    for k, value in system.quality.recall_at.items():
        gauges[RECALL][(*at, str(k))] = value
