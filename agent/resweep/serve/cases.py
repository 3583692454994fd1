"""What the API does with the labelled set: plain functions of decoded input, run in threads."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from http import HTTPStatus
from typing import Any, NamedTuple, Protocol

import msgspec

from resweep.domain.case import CaseLine, CaseView, Filter, Outcome
from resweep.domain.errors import UsageError
from resweep.label.formats.caselines import trouble
from resweep.label.progress import Progress, progress
from resweep.label.weights import factors, reweighted
from resweep.schedule.casedesk import CaseDesk
from resweep.serve.body import RequestError
from resweep.serve.casefiles import CaseWithList, to_wire
from resweep.store.caseset import Place
from resweep.store.reviews import CLAIM_S
from resweep.store.sql import SqlStore

Answer = dict[str, object]
CASES_SCHEMA = "resweep.cases/1"
CASE_VIEW_SCHEMA = "resweep.case-view/1"
PROGRESS_SCHEMA = "resweep.cases-progress/1"
IMPORT_SCHEMA = "resweep.cases-import/1"
FORGET_SCHEMA = "resweep.forget/1"
LINES_SCHEMA = "resweep.cases-lines/1"
REPAIRS_SCHEMA = "resweep.cases-repairs/1"
AUDIT_SCHEMA = "resweep.audit/1"
PAGE = 50
AUDIT = 200
LINES_PAGE = 200
IMPORT_MAX = 10_000  # cases in one body


class Labelling(Protocol):
    """A store and the labelling desk over it."""

    @property
    def store(self) -> SqlStore:
        """The store."""

    @property
    def cases(self) -> CaseDesk:
        """The labelling desk."""


class Wanted(NamedTuple):
    """What of the queue is asked for."""

    filter: Filter
    after: Place | None = None
    limit: int = PAGE


def wanted(query: Mapping[str, str]) -> Wanted:
    """Return what a query string asks for. Raises UsageError for what cannot be meant."""
    states = tuple(part for part in query.get("state", "").split(",") if part)
    disputed = query.get("disputed")
    of = Filter(
        pipeline=query.get("pipeline") or None,
        states=states,
        stratum=query.get("stratum") or None,
        split=query.get("split") or None,
        origin=query.get("origin") or None,
        cluster=query.get("cluster") or None,
        disputed=None if disputed in (None, "") else disputed not in ("0", "false"),
        words=query.get("q") or None,
    )
    return Wanted(of, _place(query.get("after", "")), _whole(query.get("limit", ""), PAGE))


def _place(text: str) -> Place | None:
    if not text:
        return None
    place, colon, case_id = text.partition(":")
    try:
        return Place(float(place), case_id if colon else "")
    except ValueError:
        raise UsageError(f"after: expected what `next` of the page before says; got {text!r:.60}") from None


def _whole(text: str, otherwise: int) -> int:
    if not text:
        return otherwise
    if not text.isdecimal() or not 0 < int(text) <= 500:
        raise UsageError(f"limit: expected a number from 1 to 500; got {text!r:.20}")
    return int(text)


def page(at: Labelling, query: Mapping[str, str]) -> Answer:
    """Return one page of the queue, in its order, and how to ask for the next."""
    asked = wanted(query)
    rows = at.store.case_page(asked.filter, asked.after, asked.limit)
    last = rows[-1] if len(rows) == asked.limit else None
    return {
        "schema": CASES_SCHEMA,
        "cases": [msgspec.to_builtins(row) for row in rows],
        "next": None if last is None else f"{last.place!r}:{last.case_id}",
        "count": at.store.case_count(asked.filter),
    }


def one(at: Labelling, case_id: str, by: str) -> Answer:
    """Return a case with what `by` may see of it; without a name, with what nobody has said."""
    return view_object(_view(at, case_id, by))


def _view(at: Labelling, case_id: str, by: str) -> CaseView:
    try:
        return at.store.case(case_id, by)
    except UsageError as error:
        raise RequestError(HTTPStatus.NOT_FOUND, str(error), do="see GET /v1/cases") from None


def view_object(view: CaseView) -> Answer:
    """Return a case as `resweep.case-view/1`; hits are objects, in rank order."""
    told: Answer = msgspec.to_builtins(view)
    told["hits"] = [dict(zip(hit._fields, hit, strict=True)) for hit in view.hits]
    return {"schema": CASE_VIEW_SCHEMA, **told}


class Claim(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """Who asks for the next case, out of which; `second` for a second opinion."""

    by: str
    pipeline: str | None = None
    stratum: str | None = None
    state: str | None = None
    q: str | None = None
    second: bool = False
    seconds: float = CLAIM_S


def claim(at: Labelling, raw: object) -> Answer:
    """Hand the next case out; `case` is null where none is left."""
    asked = _as(raw, Claim)
    if not 1 <= asked.seconds <= 86_400:
        raise UsageError(f"seconds: expected 1 to 86400; got {asked.seconds}")
    of = Filter(
        pipeline=asked.pipeline,
        stratum=asked.stratum,
        states=(asked.state,) if asked.state else (),
        words=asked.q,
    )
    row = at.store.claim(asked.by, of, asked.seconds, second=asked.second)
    return {
        "schema": CASE_VIEW_SCHEMA,
        "case": None if row is None else one(at, row.case_id, asked.by),
    }


class Grade(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """A grade for one passage; null takes it back."""

    by: str
    passage_id: str
    grade: float | None
    text_hash: str | None = None


class Confirm(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """Who takes the suggestion for a passage as their own judgment."""

    by: str
    passage_id: str


class Done(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """A reviewer's word on a case."""

    by: str
    outcome: Outcome = "labelled"
    reference_answer: str | None = None
    notes: str | None = None
    required: list[list[str]] | None = None


class By(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """Who acts."""

    by: str


class Settle(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """Whose word on a disputed case counts."""

    by: str
    lead: str


class Keep(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """Whether a case outlives the deletion of its events."""

    by: str
    kept: bool = True


ACTIONS = ("judge", "confirm", "finish", "settle", "keep", "open", "release", "delete")


def act(at: Labelling, case_id: str, action: str, raw: object) -> Answer:
    """Do one thing to a case; the answer is the case as it stands, for who did it."""
    if action not in ACTIONS:
        raise RequestError(
            HTTPStatus.NOT_FOUND, f"there is no {action!r:.40} of a case", expected=", ".join(ACTIONS)
        )
    _view(at, case_id, "")  # 404 before anything else
    by, extra = _ACT[action](at, case_id, raw)
    if action == "delete":
        return {"schema": CASE_VIEW_SCHEMA, "deleted": case_id}
    return one(at, case_id, by) | extra


def _judge(at: Labelling, case_id: str, raw: object) -> tuple[str, Answer]:
    said = _as(raw, Grade)
    at.store.judge(case_id, said.by, said.passage_id, said.grade, said.text_hash)
    return said.by, {}


def _confirm(at: Labelling, case_id: str, raw: object) -> tuple[str, Answer]:
    """Say the same of a passage as its suggestion: from then on it is that person's own judgment."""
    said = _as(raw, Confirm)
    view = at.store.case(case_id, said.by)
    one = next((s for s in view.suggestions if s.passage_id == said.passage_id), None)
    if one is None:
        raise UsageError(f"nothing was suggested for passage {said.passage_id!r:.80} of the list")
    at.store.judge(case_id, said.by, one.passage_id, one.grade, one.text_hash)
    return said.by, {}


def _finish(at: Labelling, case_id: str, raw: object) -> tuple[str, Answer]:
    said = _as(raw, Done)
    at.store.finish(
        case_id,
        said.by,
        said.outcome,
        reference_answer=said.reference_answer,
        notes=said.notes,
        required=said.required,
    )
    return said.by, {}


def _settle(at: Labelling, case_id: str, raw: object) -> tuple[str, Answer]:
    said = _as(raw, Settle)
    at.store.settle(case_id, said.by, said.lead)
    at.store.record_audit(said.by, "case.settle", case_id, {"lead": said.lead})
    return said.by, {}


def _keep(at: Labelling, case_id: str, raw: object) -> tuple[str, Answer]:
    said = _as(raw, Keep)
    at.store.keep_case(case_id, said.by, said.kept)
    at.store.record_audit(said.by, "case.keep", case_id, {"kept": said.kept})
    return said.by, {}


def _open(at: Labelling, case_id: str, raw: object) -> tuple[str, Answer]:
    said = _as(raw, By)
    return said.by, {"yours": at.store.open_case(case_id, said.by)}


def _release(at: Labelling, case_id: str, raw: object) -> tuple[str, Answer]:
    said = _as(raw, By)
    at.store.release(case_id, said.by)
    return said.by, {}


def _delete(at: Labelling, case_id: str, raw: object) -> tuple[str, Answer]:
    said = _as(raw, By)
    at.store.delete_cases([case_id])
    at.store.record_audit(said.by, "case.delete", case_id)
    return said.by, {}


_ACT = {
    "judge": _judge,
    "confirm": _confirm,
    "finish": _finish,
    "settle": _settle,
    "keep": _keep,
    "open": _open,
    "release": _release,
    "delete": _delete,
}


class Undo(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """Who takes back what they did last, on one case or any."""

    by: str
    case_id: str | None = None


def undo(at: Labelling, raw: object) -> Answer:
    """Take the last step of a person back; `undone` is null where there is none."""
    asked = _as(raw, Undo)
    step = at.store.undo(asked.by, asked.case_id)
    return {"schema": CASE_VIEW_SCHEMA, "undone": None if step is None else msgspec.to_builtins(step)}


def progress_of(at: Labelling, pipeline: str) -> Progress:
    """Return how far a pipeline's set is."""
    return progress(pipeline, at.store.case_cells(pipeline), at.cases.settings.wanted)


def progress_object(at: Labelling, pipeline: str | None) -> Answer:
    """Return `resweep.cases-progress/1` of one pipeline, or of all that have cases."""
    names = [pipeline] if pipeline else sorted({cell.pipeline for cell in at.store.case_cells()})
    oldest = at.store.oldest_waiting()
    return {
        "schema": PROGRESS_SCHEMA,
        "pipelines": [
            {
                **asdict(found),
                "missing": found.missing,
                "oldest_waiting_ts": oldest.get(found.pipeline),
                "suggestions": msgspec.to_builtins(at.store.agreement(found.pipeline)),
            }
            for found in (progress_of(at, name) for name in names)
        ],
    }


def repairs(at: Labelling, pipeline: str | None) -> Answer:
    """Return the judgments whose text no list holds any more: what a new chunking left for people."""
    found = at.store.repairs(pipeline)
    return {
        "schema": REPAIRS_SCHEMA,
        "repairs": [{"case_id": case_id, **msgspec.to_builtins(one)} for case_id, one in found],
    }


def audit(at: Labelling, limit: str) -> Answer:
    """Return the audit trail, the newest first."""
    entries = at.store.audit_log(_whole(limit, AUDIT))
    return {"schema": AUDIT_SCHEMA, "entries": [asdict(one) for one in entries]}


def carried(at: Labelling, of: Filter) -> Iterator[CaseLine]:
    """Yield cases with the weight they carry: as sampled, times sampled/reviewed."""
    by = factors(at.store.case_cells(of.pipeline, by_plan=True))
    yield from reweighted(at.store.case_lines(of), by)


def with_lists(at: Labelling, of: Filter, *, hits: bool) -> Iterator[CaseWithList]:
    """Yield cases with the lists that they are judged on, where those are wanted."""
    for case in carried(at, of):
        yield CaseWithList(case, at.store.hits_of(case.case_id) if hits else ())


def lines_page(at: Labelling, query: Mapping[str, str]) -> Answer:
    """Return a page of whole cases; `after` is the case id that the last one ended with."""
    asked = wanted({name: value for name, value in query.items() if name != "after"})
    hits = query.get("hits", "") not in ("", "0")
    by = factors(at.store.case_cells(asked.filter.pipeline, by_plan=True))
    if not query.get("after"):
        at.store.record_audit("api", "cases.export", asked.filter.pipeline or "", {"format": "lines"})
    some = at.store.case_lines_after(asked.filter, query.get("after", ""), LINES_PAGE)
    full = [CaseWithList(c, at.store.hits_of(c.case_id) if hits else ()) for c in reweighted(some, by)]
    return {
        "schema": LINES_SCHEMA,
        "lines": [to_wire(each) for each in full],
        "next": some[-1].case_id if len(some) == LINES_PAGE else None,
    }


class Import(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """Cases to take in, and who brings them."""

    lines: list[msgspec.Raw]
    by: str = ""


def take(at: Labelling, body: bytes) -> Answer:
    """Take cases in; each is answered for."""
    try:
        asked = msgspec.json.decode(body, type=Import)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise RequestError(
            HTTPStatus.BAD_REQUEST, str(error), expected='{"lines": [resweep.case/1, …], "by": …}'
        ) from None
    if len(asked.lines) > IMPORT_MAX:
        raise RequestError(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, f"more than {IMPORT_MAX} cases in one body")
    good: list[CaseLine] = []
    bad: list[Answer] = []
    for row, raw in enumerate(asked.lines, 1):
        try:
            case = msgspec.json.decode(raw, type=CaseLine, strict=False)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            bad.append({"row": row, "reason": f"expected a resweep.case/1 object; {error}"})
            continue
        reason = trouble(case)
        if reason:
            bad.append({"row": row, "reason": reason})
        else:
            good.append(case)
    return taken(at, good, asked.by) | {"bad": bad}


def taken(at: Labelling, cases: Sequence[CaseLine], by: str) -> Answer:
    """Take cases in that were read already; `new`, `merged` and `kept` are counted."""
    done = at.cases.import_lines(cases, by)
    counts = {name: sum(d.outcome == name for d in done) for name in ("new", "merged", "kept")}
    at.store.record_audit(by, "cases.import", "", {"cases": len(cases), **counts})
    return {"schema": IMPORT_SCHEMA, **counts}


class Forget(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """Whose retrievals, or which, are to be forgotten; `before` is a unix time."""

    events: list[str] = []
    user_key: str | None = None
    before: float | None = None
    by: str = ""


def forget(at: Labelling, raw: object) -> Answer:
    """Delete events by id, by user key or by age, and all made of them that no reviewer keeps.

    The audit trail says that it was done, and how many went, not whose they were.
    """
    asked = _as(raw, Forget)
    if not asked.events and not asked.user_key and asked.before is None:
        raise UsageError("expected `events` (ids), `user_key` or `before` (unix s); got none of them")
    removed = at.store.delete_events(asked.events) if asked.events else 0
    if asked.user_key:
        removed += at.store.delete_user(asked.user_key)
    if asked.before is not None:
        removed += at.store.delete_older(asked.before)
    what = [name for name in ("events", "user_key", "before") if getattr(asked, name)]
    at.store.record_audit(asked.by, "forget", ", ".join(what), {"events": removed})
    return {"schema": FORGET_SCHEMA, "events": removed}


def _as(raw: object, kind: Any) -> Any:
    try:
        return msgspec.convert(raw, kind)
    except msgspec.ValidationError as error:
        fields = ", ".join(f'"{name}": …' for name in kind.__struct_fields__)
        raise RequestError(HTTPStatus.BAD_REQUEST, str(error), expected=f"{{{fields}}}") from None
