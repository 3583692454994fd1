"""What the API does with the store: plain functions of decoded input, run in threads."""

from __future__ import annotations

from collections.abc import Iterator
from http import HTTPStatus
from typing import Any, NamedTuple, Protocol

import msgspec

from resweep.domain.batch import decode_batch
from resweep.domain.errors import InputError, UsageError
from resweep.domain.event import Feedback
from resweep.domain.invalidation import InvalidationRules
from resweep.domain.verdict import Flag, TunedK
from resweep.ingest.events import read_lines
from resweep.ingest.jsonlines import feedback_of
from resweep.schedule.canaries import accept_system, settle
from resweep.schedule.desk import Desk
from resweep.serve import accepting, views
from resweep.serve.accepting import Words
from resweep.serve.agent import Desks
from resweep.serve.body import RequestError
from resweep.store.intake import check_feedback
from resweep.store.names import label, unseen
from resweep.store.sql import SqlStore

Answer = dict[str, object]
FEEDBACK_SCHEMA = "resweep.feedback/1"
EVENTS_SCHEMA = "resweep.events/1"
ACCEPT_SCHEMA = "resweep.accept/1"
MAINTENANCE_SCHEMA = "resweep.maintenance/1"
ITEMS_MAX = 10_000  # feedback in one body


class Bench(Protocol):
    """A store and the judge over it: those of an agent that leads, or opened for one command."""

    @property
    def store(self) -> SqlStore:
        """The store."""

    @property
    def desk(self) -> Desk:
        """The judge's desk."""


def decoded(body: bytes) -> Any:
    """Return a JSON body. Raises RequestError with 400 where it is none."""
    try:
        return msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise RequestError(
            HTTPStatus.BAD_REQUEST, f"the body is no JSON: {error}", expected="one JSON document"
        ) from None


def flags(bench: Bench, pipeline: str | None, every: bool, now: float) -> Answer:
    """Return the flags of all pipelines or one."""
    found = bench.store.flags(pipeline, open_only=not every)
    return views.flags_object(found, bench.store.acks(pipeline), now)


class Said(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """What a person says of a flag."""

    by: Words = ""
    because: Words = ""


def say_of_flag(bench: Bench, key: str, action: str, raw: object) -> Answer:
    """Note an acknowledgement; or that a flag's cause is gone, which clears it until it is found anew."""
    try:
        said = msgspec.convert(raw, Said)
    except msgspec.ValidationError as error:
        raise RequestError(HTTPStatus.BAD_REQUEST, str(error), expected='{"by": …, "because": …}') from None
    flag = _open_flag(bench, key)
    store = bench.store
    store.ack_flag(flag, said.by, said.because, action="resolve" if action == "resolve" else "ack")
    store.record_audit(said.by, f"flag.{action}", key, {"because": said.because})
    if action == "resolve" and bench.desk.resolve(key):
        bench.desk.sit()
    latest = [ack for ack in store.acks(flag.pipeline) if ack.key == key][-1]
    return views.flag_object(flag, latest)


def _open_flag(bench: Bench, key: str) -> Flag:
    flag = next((f for f in bench.store.flags() if f.key == key), None)
    if flag is None:
        raise RequestError(
            HTTPStatus.NOT_FOUND,
            f"no open flag has the key {key!r:.200}",
            do="`resweep flags list` and GET /v1/flags show keys",
        )
    return flag


class Item(NamedTuple):
    """One piece of feedback, or why it is none."""

    feedback: Feedback | None
    error: str = ""


def take_feedback(bench: Bench, body: bytes, now: float) -> tuple[Answer, int]:
    """Count feedback; each piece is answered for. 400 where none of it could be used."""
    items = [_feedback(raw, now) for raw in _objects(body)]
    if not items:
        raise RequestError(HTTPStatus.BAD_REQUEST, "the body is empty", expected="feedback as JSON")
    good = [item.feedback for item in items if item.feedback is not None]
    new = bench.store.add_feedback(good) if good else 0
    results = [
        {"index": index, "ok": item.feedback is not None} | ({"error": item.error} if item.error else {})
        for index, item in enumerate(items)
    ]
    told: Answer = {
        "schema": FEEDBACK_SCHEMA,
        "accepted": len(good),
        "new": new,
        "rejected": len(items) - len(good),
        "results": results,
    }
    return told, HTTPStatus.OK if good else HTTPStatus.BAD_REQUEST


def _objects(body: bytes) -> Iterator[object]:
    """Yield the objects of a body: one, a list of them, or one a line (bytes where a line is no JSON)."""
    try:
        whole = msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        parts: list[object] = [_line(line) for line in body.splitlines() if line.strip()]
    else:
        parts = whole if isinstance(whole, list) else [whole]
    if len(parts) > ITEMS_MAX:
        raise RequestError(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, f"more than {ITEMS_MAX} pieces in one body")
    yield from parts


def _line(line: bytes) -> object:
    try:
        return msgspec.json.decode(line)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return line


def _feedback(raw: object, now: float) -> Item:
    if not isinstance(raw, dict):
        return Item(None, "expected a JSON object")
    try:
        one = feedback_of({"ts": now, **raw})
        check_feedback([one], now)
    except InputError as error:
        return Item(None, str(error))
    return Item(one)


def take_batch(desks: Desks, body: bytes) -> Answer:
    """Apply one batch of a recorder, once. Raises InputError for what is none."""
    try:
        return {"applied": desks.intake.take(decode_batch(body))}
    except InputError:
        desks.intake.refuse()
        raise


def take_events(desks: Desks, body: bytes, rules: InvalidationRules, now: float) -> tuple[Answer, int]:
    """Count event lines; a body that came before changes nothing. 400 where no line could be used."""
    lines = read_lines(body, rules, now)
    usable = bool(lines.batch.windows or lines.batch.configs or lines.batch.feedback)
    told: Answer = {
        "schema": EVENTS_SCHEMA,
        "applied": desks.intake.take(lines.batch) if usable else False,
        "events": lines.events,
        "configs": len(lines.batch.configs),
        "feedback": len(lines.batch.feedback),
        "bad_lines": lines.bad_lines,
        "bad": [{"line": bad.line, "reason": bad.reason} for bad in lines.bad],
        "unknown_fields": dict(lines.unknown_fields),
    }
    return told, HTTPStatus.OK if usable else HTTPStatus.BAD_REQUEST


def tuned(bench: Bench, now: float) -> Answer:
    """Return the tuned depths in force."""
    return {
        "schema": ACCEPT_SCHEMA,
        "ts": now,
        "tuned": [accepting.tuned_object(record) for record in bench.store.tuned()],
    }


def accept(bench: Bench, raw: object, rules: InvalidationRules, now: float) -> Answer:
    """Record an accepted depth, and let the judge see it at once."""
    wish = accepting.acceptance(raw)
    record = accepting.accepted(wish, bench.store, now, rules, bench.desk.verdicts(now))
    details = {"context_k": record.context_k, "basis": record.basis, "because": record.because}
    accept_system(bench.store, record, now)
    return _adopt(bench, [record], wish.by, "accept", details)


def push(bench: Bench, raw: object) -> Answer:
    """Record tuned depths as they are, from a reviewed lock file."""
    records = accepting.records(raw)
    return _adopt(bench, records, "", "lock.push", {"records": len(records)})


def _adopt(bench: Bench, records: list[TunedK], by: str, action: str, details: dict[str, object]) -> Answer:
    bench.store.record_all_tuned(records)
    settle(bench.store, bench.desk, bench.desk.now())
    subject = ", ".join(sorted({record.pipeline for record in records}))
    bench.store.record_audit(by, action, subject, details)
    changes = bench.desk.sit()
    running = {v.pipeline: v.basis for v in reversed(bench.desk.verdicts(bench.desk.now()))}
    return {
        "schema": ACCEPT_SCHEMA,
        "tuned": [accepting.tuned_object(record) for record in records],
        "running": {r.pipeline: running.get(r.pipeline) for r in records},
        "cleared": [change.flag.key for change in changes if change.kind == "cleared"],
    }


class Work(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """Announced work on a pipeline, or its end. `seconds` bounds it."""

    pipeline: str
    action: str = "start"
    seconds: float | None = None
    because: Words = ""
    by: Words = ""


def maintenances(bench: Bench, now: float) -> Answer:
    """Return announced work, and the pipelines that are under it now."""
    every = bench.store.maintenances()
    lasting = {one.pipeline for one in every if one.ended is None and (one.until is None or one.until > now)}
    return {
        "schema": MAINTENANCE_SCHEMA,
        "now": sorted(lasting),
        "all": [msgspec.to_builtins(one) for one in every],
    }


def maintain(bench: Bench, raw: object, now: float) -> Answer:
    """Announce work, or end it; the judge sees it at once."""
    try:
        work = msgspec.convert(raw, Work)
    except msgspec.ValidationError as error:
        raise RequestError(HTTPStatus.BAD_REQUEST, str(error), expected='{"pipeline": …}') from None
    if work.action == "start":
        until = None if work.seconds is None else now + _positive(work.seconds)
        bench.store.start_maintenance(work.pipeline, work.by, work.because, until)
    elif work.action != "end":
        raise UsageError(f"action: expected start or end; got {work.action!r}")
    elif not bench.store.end_maintenance(work.pipeline):
        raise UsageError(f"no work on {work.pipeline!r} is announced: nothing to end")
    bench.store.record_audit(work.by, f"maintenance.{work.action}", work.pipeline, {"because": work.because})
    bench.desk.sit()
    return maintenances(bench, now) | {"notes": list(_unseen(bench, work.pipeline))}


def _unseen(bench: Bench, pipeline: str) -> Iterator[str]:
    """Yield a note on a pipeline nobody has seen: new, or a slip, which would page in spite of the work."""
    names = bench.store.pipelines()
    if label(pipeline) not in names:
        yield unseen(pipeline, names)


def _positive(seconds: float) -> float:
    if not 0 < seconds <= 366 * 86400:
        raise UsageError(f"seconds: expected more than 0 and at most a year; got {seconds}")
    return seconds
