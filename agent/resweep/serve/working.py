"""What the API says of canaries and probes, and the counter where recorders get work."""

from __future__ import annotations

from typing import Any

import msgspec

from resweep.domain.work import Leased, WorkAnswer, decode_answer, decode_offer
from resweep.schedule.canaries import load_system
from resweep.schedule.workdesk import WorkDesk
from resweep.store.sql import SqlStore

CANARIES_SCHEMA = "resweep.canaries/1"
RUNS = 50  # of each pipeline that are shown


def lease(desk: WorkDesk, offer: str) -> Leased:
    """Return the work leased to the recorder that makes an offer. Raises InputError for no offer."""
    return desk.lease(decode_offer(offer))


def take(desk: WorkDesk, work_id: str, body: bytes) -> dict[str, bool]:
    """Take an answer; it is not taken where its lease ended and another recorder has the work."""
    answer: WorkAnswer = msgspec.structs.replace(decode_answer(body), id=work_id)
    return {"taken": desk.answer(answer)}


def canaries_object(store: SqlStore, desk: WorkDesk, now: float) -> dict[str, object]:
    """Return `resweep.canaries/1`: what is wired, what each system remembers, and the last runs."""
    systems = [_system(store, pipeline, basis) for pipeline, basis in store.systems()]
    return {
        "schema": CANARIES_SCHEMA,
        "ts": now,
        "recorders": [{"writer": writer, **_plain(can)} for writer, can in desk.wired()],
        "systems": systems,
        "epochs": [_plain(epoch) for epoch in store.epochs()],
        "runs": [
            _plain(run) for pipeline in dict.fromkeys(p for p, _ in store.systems())
            for run in store.canary_runs(pipeline, RUNS)
        ],
        "given_up": desk.leases.given_up,
    }  # fmt: skip


def _system(store: SqlStore, pipeline: str, basis: str) -> dict[str, object]:
    system = load_system(store, pipeline, basis)
    state = system.embedder
    return {
        "pipeline": pipeline,
        "basis": basis,
        "config": system.config,
        "embedder": {
            "present": state.present,
            "reference": state.reference,
            "since": state.since_ts,
            "noise": state.noise,
            "known": [{"digest": b.digest, "dimensions": b.dimensions} for b in state.baselines],
        },
        "questions": len(store.canaries(pipeline)),
        "stored_answers": len(system.answers.stored),
        "recall_at": {str(k): value for k, value in system.quality.recall_at.items()},
        "ran": system.ran,
        "trouble": system.trouble,
    }


def _plain(value: Any) -> dict[str, Any]:
    found: dict[str, Any] = msgspec.to_builtins(value)
    return found
