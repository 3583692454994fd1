"""The review queue and the case page: questions people judge, one passage after the other.

Each judgment is saved when it is made. Forms work without a script; with one, only the passage is redrawn.
"""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from http import HTTPStatus
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl, urlencode

from starlette.concurrency import iterate_in_threadpool, run_in_threadpool
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response, StreamingResponse
from starlette.routing import Route

from resweep.domain.case import OPEN_STATES, OUTCOMES, Cell, Filter, Outcome
from resweep.domain.errors import UsageError
from resweep.label.progress import Progress, progress
from resweep.serve import casefiles, cases
from resweep.serve.agent import Desks
from resweep.serve.body import RequestError
from resweep.serve.casesapi import LINES, TYPES
from resweep.serve.pages import reading, render, words
from resweep.serve.pages.door import check_csrf, check_same_site
from resweep.serve.pages.reading import Reading
from resweep.serve.pages.session import Visitor
from resweep.store.caseset import Place

if TYPE_CHECKING:
    from resweep.serve.pages.routes import Pages

PAGE = 50
NEXT_SHOWN = 8
LEASE_S = 300.0
PACE_FROM = 10  # cases an hour from which a pace is told
KEPT = ("pipeline", "stratum", "state", "q", "second")
STATES: Mapping[str, tuple[str, tuple[str, ...]]] = {
    "": ("Waiting", OPEN_STATES),
    "needs_look": ("Needs another look", ("needs_look",)),
    "labelled": ("Labelled", ("labelled",)),
    "unanswerable": ("Unanswerable", ("unanswerable",)),
    "rejected": ("Rejected", ("rejected",)),
    "disputed": ("Disputed", ()),
    "all": ("All", ()),
}
GRADES: Mapping[str, float | None] = {"2": 2.0, "1": 1.0, "0": 0.0, "": None}


class Review:
    """The handlers of the labelled set's pages."""

    def __init__(self, pages: Pages) -> None:
        self.pages = pages

    def routes(self) -> Sequence[Route]:
        """Return the routes."""
        get, post = self.pages.shown, self.pages.sent
        return [
            Route("/review", get("reviewer", self.queue), methods=["GET"]),
            Route("/review/next", post("reviewer", self.next), methods=["POST"]),
            Route("/review/undo", post("reviewer", self.undo), methods=["POST"]),
            Route("/review/export", get("reviewer", self.export), methods=["GET"]),
            Route("/review/import", get("admin", self.take), methods=["POST"]),
            Route("/case/{id:str}", get("reviewer", self.case), methods=["GET"]),
            Route("/case/{id:str}/judge", post("reviewer", self.judge), methods=["POST"]),
            Route("/case/{id:str}/finish", post("reviewer", self.finish), methods=["POST"]),
            Route("/case/{id:str}/settle", post("admin", self.settle), methods=["POST"]),
            Route("/case/{id:str}/keep", post("reviewer", self.keep), methods=["POST"]),
        ]

    @property
    def desks(self) -> Desks:
        """What a leading agent works with."""
        return self.pages.desks()

    async def queue(self, request: Request, visitor: Visitor) -> Response:
        """Show a page of the queue."""

        def made() -> Response:
            query, store = dict(request.query_params), self.desks.store
            of, kept = filter_of(query), kept_of(query)
            cells = store.case_cells()
            rows = store.case_page(of, cases.wanted({"after": query.get("after", "")}).after, PAGE)
            last = rows[-1] if len(rows) == PAGE else None
            onward = urlencode(kept | {"after": f"{last.place!r}:{last.case_id}"}) if last else ""
            return render.page(
                "review.html",
                **self.pages.frame(visitor, "review", cells),
                **self.common(kept, cells),
                rows=rows,
                total=self.total(of, cells, len(rows), first=not query.get("after")),
                onward=onward,
                first=not query.get("after"),
                said=query.get("said", "")[:300],
            )

        return await run_in_threadpool(made)

    def total(self, of: Filter, cells: Sequence[Cell], shown: int, *, first: bool) -> int:
        """Return how many cases a filter has; a first page that is not full has them all."""
        if first and shown < PAGE:
            return shown
        return self.desks.store.case_count(of) if of.words or of.disputed else counted(cells, of)

    def common(self, kept: Mapping[str, str], cells: Sequence[Cell], pipeline: str = "") -> dict[str, Any]:
        """Return what queue and case page share: the filter, its choices, the progress of the pipeline."""
        names = sorted({cell.pipeline for cell in cells})
        pipeline = pipeline or kept.get("pipeline") or (names[0] if len(names) == 1 else "")
        return {
            "kept": kept,
            "keep": urlencode(kept),
            "names": names,
            "strata": sorted({cell.stratum for cell in cells}),
            "states": STATES,
            "progress": self.progress(pipeline, cells) if pipeline else None,
            "targets": targets(self.desks) if pipeline else {},
            "agreement": self.desks.store.agreement(pipeline) if pipeline else None,
        }

    def progress(self, pipeline: str, cells: Sequence[Cell]) -> Progress:
        """Return how far a pipeline's set is."""
        mine = [cell for cell in cells if cell.pipeline == pipeline]
        return progress(pipeline, mine, self.desks.cases.settings.wanted)

    async def case(self, request: Request, visitor: Visitor) -> Response:
        """Show a case to judge, and lease it for a while."""

        def made() -> Response:
            found = self.read(request.path_params["id"], visitor, open_it=True)
            return self.case_page(found, visitor, kept_of(dict(request.query_params)))

        return await run_in_threadpool(made)

    def read(self, case_id: str, visitor: Visitor, *, open_it: bool = False) -> Reading:
        """Return a case as a visitor may read it."""
        store = self.desks.store
        try:
            view = store.case(case_id, visitor.name)
        except UsageError as error:
            raise RequestError(HTTPStatus.NOT_FOUND, str(error)) from None
        if open_it and view.case.state in OPEN_STATES:
            store.open_case(case_id, visitor.name, LEASE_S)
        return reading.read(view, visitor.name, self.grades)

    @property
    def grades(self) -> int:
        """The highest grade that a reviewer may give."""
        return self.pages.agent.settings.label.grades

    def case_page(self, found: Reading, visitor: Visitor, kept: Mapping[str, str], **more: Any) -> Response:
        """Return the page of a case."""
        store, now = self.desks.store, self.pages.agent.clock.now()
        case = found.view.case
        after = Place(case.place, case.case_id)
        cells = store.case_cells()
        pace = store.reviewed_by(visitor.name, now - words.HOUR)
        values = {"asking": (), "written": None, "saved": "", "trouble": ""} | more
        status = HTTPStatus.CONFLICT if more.get("asking") else HTTPStatus.OK
        return render.page(
            "case.html",
            HTTPStatus.BAD_REQUEST if more.get("trouble") else status,
            **self.pages.frame(visitor, "review", cells),
            **self.common(kept, cells, case.pipeline),
            found=found,
            case=case,
            coming=store.case_page(filter_of(kept), after, NEXT_SHOWN),
            pace=pace if pace >= PACE_FROM else 0,
            address=address(case.case_id, kept),
            **values,
        )

    async def judge(self, request: Request, visitor: Visitor, fields: dict[str, str]) -> Response:
        """Save one judgment; all passages of one text get it."""
        case_id, kept = request.path_params["id"], kept_of(fields)

        def done() -> Response:
            rank, grade = fields.get("rank", ""), fields.get("grade", "")
            if grade not in GRADES or (GRADES[grade] or 0.0) > self.grades:
                raise RequestError(HTTPStatus.BAD_REQUEST, f"there is no grade {grade!r:.20}")
            found = self.read(case_id, visitor)
            if rank == "lost" and any(p.passage_id == fields.get("passage") for p in found.lost):
                self.desks.store.judge(case_id, visitor.name, fields["passage"], None)
                return to(address(case_id, kept))
            one = next((p for p in found.passages if str(p.rank) == rank), None)
            if one is None or fields.get("passage") != one.hit.id:
                raise RequestError(
                    HTTPStatus.CONFLICT, "the list of this case has changed meanwhile", do="reload the page"
                )
            for passage_id in one.ids:
                hash_ = one.hit.text_hash
                self.desks.store.judge(case_id, visitor.name, passage_id, GRADES[grade], hash_)
            if request.headers.get("hx-request") != "true":
                return to(f"{address(case_id, kept)}#r{rank}")
            found = self.read(case_id, visitor)
            one = next(p for p in found.passages if str(p.rank) == rank)
            now = self.pages.agent.clock.now()
            return render.page(
                "_judged.html",
                one=one,
                found=found,
                case=found.view.case,
                visitor=visitor,
                keep=urlencode(kept),
                kept=kept,
                saved=now,
            )

        return await run_in_threadpool(done)

    async def finish(self, request: Request, visitor: Visitor, fields: dict[str, str]) -> Response:
        """Be done with a case, or skip it, and go to the next; asks about passages that were passed over."""
        case_id, kept = request.path_params["id"], kept_of(fields)

        def done() -> Response:
            outcome = outcome_of(fields.get("outcome", ""))
            found = self.read(case_id, visitor)
            over, answer = found.skipped_over, fields.get("unjudged", "")
            if outcome == "labelled" and over and answer not in ("no", "leave"):
                return self.case_page(found, visitor, kept, asking=over, written=fields)
            if outcome == "labelled" and not found.judged:
                raise RequestError(
                    HTTPStatus.CONFLICT,
                    "nothing was judged here",
                    do="Judge at least one passage, say that it is unanswerable, or skip it.",
                )
            try:
                facts = reading.facts_in(fields.get("required", ""), found.passages)
            except UsageError as error:
                return self.case_page(found, visitor, kept, written=fields, trouble=str(error))
            for one in over if answer == "no" else ():
                for passage_id in one.ids:
                    self.desks.store.judge(case_id, visitor.name, passage_id, 0.0, one.hit.text_hash)
            self.desks.store.finish(
                case_id,
                visitor.name,
                outcome,
                reference_answer=said(fields, "reference_answer", found.reference_answer),
                notes=said(fields, "notes", found.notes),
                required=facts if facts or found.required else None,
            )
            return self.to_next(visitor, kept)

        return await run_in_threadpool(done)

    async def next(self, request: Request, visitor: Visitor, fields: dict[str, str]) -> Response:
        """Hand the next case out."""
        return await run_in_threadpool(self.to_next, visitor, kept_of(fields))

    def to_next(self, visitor: Visitor, kept: Mapping[str, str]) -> Response:
        """Return the way to the next case of the filter, or back to the queue where none is left."""
        second = bool(kept.get("second"))
        of = Filter(pipeline=kept.get("pipeline"), stratum=kept.get("stratum"), words=kept.get("q"))
        row = self.desks.store.claim(visitor.name, of, LEASE_S, second=second)
        if row is None:
            said = "Nothing is left for you here" + ("." if not kept else " under this filter.")
            return to("/review?" + urlencode({**kept, "said": said}))
        return to(address(row.case_id, kept))

    async def undo(self, request: Request, visitor: Visitor, fields: dict[str, str]) -> Response:
        """Take back what a person did last, on whatever case, and go there."""

        def done() -> Response:
            step = self._taken_back(visitor.name)
            if step is None:
                return to(fields.get("back") or "/review")
            case_id, passage = step
            rank = next((p.rank for p in self.read(case_id, visitor).passages if passage in p.ids), None)
            return to(address(case_id, kept_of(fields)) + (f"#r{rank}" if rank else ""))

        return await run_in_threadpool(done)

    def _taken_back(self, who: str) -> tuple[str, str] | None:
        """Undo the last step, and its twins on equal passages; return the case and the passage."""
        store = self.desks.store
        first = store.last_step(who)
        if first is None:
            return None
        case_id, step = first
        store.undo(who, case_id)
        passage = str(step.details.get("passage", ""))
        found = reading.read(store.case(case_id, who), who, self.grades)
        twins = next((set(p.ids) for p in found.passages if passage in p.ids), set())
        while (one := store.last_step(who)) is not None and one[0] == case_id:
            if str(one[1].details.get("passage", "")) not in twins or step.ts - one[1].ts > 1.0:
                break
            store.undo(who, case_id)
        return case_id, passage

    async def settle(self, request: Request, visitor: Visitor, fields: dict[str, str]) -> Response:
        """Say whose word counts where two differ."""
        case_id, lead = request.path_params["id"], fields.get("lead", "")

        def done() -> Response:
            self.desks.store.settle(case_id, visitor.name, lead)
            self.desks.store.record_audit(visitor.name, "case.settle", case_id, {"lead": lead})
            return to(address(case_id, kept_of(fields)))

        return await run_in_threadpool(done)

    async def keep(self, request: Request, visitor: Visitor, fields: dict[str, str]) -> Response:
        """Let a case outlive the events it came from, or not."""
        case_id, kept = request.path_params["id"], fields.get("kept") == "1"

        def done() -> Response:
            self.desks.store.keep_case(case_id, visitor.name, kept)
            self.desks.store.record_audit(visitor.name, "case.keep", case_id, {"kept": kept})
            return to(address(case_id, kept_of(fields)))

        return await run_in_threadpool(done)

    async def export(self, request: Request, visitor: Visitor) -> Response:
        """Send the cases of a filter as a file."""
        query, desks = dict(request.query_params), self.desks
        form = query.get("format", "jsonl")
        some = cases.with_lists(desks, filter_of({"state": "all"} | query), hits=form in ("run", "ragas"))
        parts = casefiles.checked_text(form, some)
        headers = {"content-disposition": f'attachment; filename="cases.{form}"'}
        told = (visitor.name, "cases.export", query.get("pipeline", ""), {"format": form})
        await run_in_threadpool(desks.store.record_audit, *told)
        kind = TYPES.get(form, LINES)
        return StreamingResponse(iterate_in_threadpool(parts), media_type=kind, headers=headers)

    async def take(self, request: Request, visitor: Visitor) -> Response:
        """Take cases from a file: `resweep.case/1` lines, CSV, TREC qrels or Ragas."""
        check_same_site(request)
        limit = self.pages.agent.settings.limits.body_bytes
        if int(request.headers.get("content-length", limit + 1)) > limit:
            raise RequestError(
                HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
                "the file is too large for this form",
                do="use `resweep cases import`, or raise limits.body_bytes",
            )
        async with request.form(max_files=1, max_fields=20) as form:
            check_csrf(visitor, {"csrf": str(form.get("csrf", ""))})
            file = form.get("file")
            if file is None or isinstance(file, str) or not file.filename:
                raise RequestError(HTTPStatus.BAD_REQUEST, "no file was chosen")
            body, name = await file.read(), Path(file.filename).name
            pipeline = str(form.get("pipeline", "")).strip() or None
        said = await run_in_threadpool(self._import, body, name, pipeline, visitor.name)
        return to("/review?" + urlencode({"pipeline": pipeline or "", "said": said}))

    def _import(self, body: bytes, name: str, pipeline: str | None, who: str) -> str:
        with tempfile.TemporaryDirectory(prefix="resweep-import-") as folder:
            path = Path(folder) / f"cases{Path(name).suffix[:8]}"
            path.write_bytes(body)
            read = casefiles.read(path, casefiles.Given(pipeline=pipeline))
        done = cases.taken(self.desks, read.lines, who)
        rows = "; ".join(f"row {bad.row}: {bad.reason}" for bad in read.bad[:3])
        left = f" {words.many(len(read.bad), 'row')} could not be used: {rows}." if read.bad else ""
        return f"{done['new']} new, {done['merged']} merged, {done['kept']} kept as they were.{left}"


def said(fields: Mapping[str, str], name: str, shown: str | None) -> str | None:
    """Return what a field says: None where it was empty and stayed so, which takes nothing away."""
    text = fields.get(name, "").strip()
    return text if text or (shown and name in fields) else None


def to(path: str) -> Response:
    """Return the way to another page of this site."""
    from resweep.serve.pages.routes import safe_path

    return RedirectResponse(safe_path(path), HTTPStatus.SEE_OTHER)


def address(case_id: str, kept: Mapping[str, str]) -> str:
    """Return the address of a case, with the filter it was reached by."""
    return f"/case/{case_id}" + (f"?{urlencode(kept)}" if kept else "")


def kept_of(fields: Mapping[str, str]) -> dict[str, str]:
    """Return the filter in a query string, or in the field `keep` of a form."""
    given = dict(parse_qsl(fields["keep"])) if "keep" in fields else fields
    return {name: given[name] for name in KEPT if given.get(name)}


def filter_of(query: Mapping[str, str]) -> Filter:
    """Return the filter that a query string means. Raises UsageError for a state that is none."""
    state = query.get("state", "")
    if state not in STATES:
        raise UsageError(f"state: expected one of {', '.join(filter(None, STATES))}; got {state!r:.40}")
    return Filter(
        pipeline=query.get("pipeline") or None,
        states=STATES[state][1],
        stratum=query.get("stratum") or None,
        disputed=True if state == "disputed" else None,
        words=query.get("q") or None,
    )


def counted(cells: Sequence[Cell], of: Filter) -> int:
    """Return how many cases a filter has that asks for nothing but pipeline, stratum and state."""
    return sum(
        cell.n
        for cell in cells
        if of.pipeline in (None, cell.pipeline)
        and of.stratum in (None, cell.stratum)
        and (not of.states or cell.state in of.states)
    )


def outcome_of(given: str) -> Outcome:
    """Return an outcome; raises RequestError for what is none."""
    found = next((one for one in OUTCOMES if one == given), None)
    if found is None:
        raise RequestError(HTTPStatus.BAD_REQUEST, f"there is no outcome {given!r:.40}")
    return found


def targets(desks: Desks) -> dict[str, int]:
    """Return how many labelled cases of each stratum make up the number that a sweep needs."""
    settings = desks.cases.settings
    whole = sum(settings.daily.values()) or 1.0
    return {name: round(settings.wanted * share / whole) for name, share in settings.daily.items()}
