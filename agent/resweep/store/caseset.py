"""The labelled set as a whole: pages of it, its numbers, in and out, and what has to be forgotten."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from sqlalchemy import Connection, RowMapping, delete, func, insert, or_, select, update

from resweep.domain.case import (
    CASE_STATES,
    OPEN_STATES,
    ORIGINS,
    SIDES,
    CaseLine,
    CaseRow,
    Cell,
    Draw,
    Filter,
    Judgment,
    case_id_of,
    filters_of,
    question_key,
    scope_of,
    side_of,
)
from resweep.domain.event import Hit
from resweep.domain.sampling import chance
from resweep.store.cases import (
    QUEUE,
    CaseDocument,
    decode_document,
    decode_hits,
    encode_document,
    remove_cases,
)
from resweep.store.names import label, plain
from resweep.store.part import Part, chunks
from resweep.store.quotes import take_words_out
from resweep.store.reviews import draw_of, row_of, where
from resweep.store.schema import cases, draws, judgments, lists, plans, reviews

PAGE_MAX = 500
IMPORTED_BY = "import"


class Place(NamedTuple):
    """Where a page ended: the next one begins after it."""

    place: float
    case_id: str


class Imported(NamedTuple):
    """What became of an imported case: `new`, `merged` into its question's case, or that `kept` as it was."""

    case_id: str
    outcome: str


class CaseSetPart(Part):
    """Reading and moving many cases at once."""

    def case_page(
        self, wanted: Filter | None = None, after: Place | None = None, limit: int = 50
    ) -> Sequence[CaseRow]:
        """Return the cases of a filter in queue order, those after a place; at most `PAGE_MAX`."""
        of = where(wanted or Filter())
        if after is not None:
            later = (cases.c.place == after.place) & (cases.c.id > after.case_id)
            of &= or_(cases.c.place > after.place, later)
        query = select(cases).where(of).order_by(cases.c.place, cases.c.id)
        with self._db.read() as connection:
            rows = connection.execute(query.limit(max(1, min(limit, PAGE_MAX)))).mappings().all()
        return [row_of(row) for row in rows]

    def case_count(self, wanted: Filter | None = None) -> int:
        """Return how many cases a filter has."""
        with self._db.read() as connection:
            query = select(func.count()).select_from(cases).where(where(wanted or Filter()))
            return connection.execute(query).scalar() or 0

    def case_cells(self, pipeline: str | None = None, *, by_plan: bool = False) -> Sequence[Cell]:
        """Return the numbers of cases by stratum, state and split (and plan)."""
        columns = [cases.c.pipeline, cases.c.stratum, cases.c.state, cases.c.split]
        if by_plan:
            columns.append(cases.c.plan)
        query = select(
            *columns,
            func.count().label("n"),
            func.sum(cases.c.weight).label("weight"),
            func.sum(cases.c.weight * cases.c.weight).label("squares"),
        ).where(where(Filter(pipeline=pipeline)))
        with self._db.read() as connection:
            rows = connection.execute(query.group_by(*columns).order_by(*columns)).mappings().all()
        return [Cell(**row) for row in rows]

    def oldest_waiting(self) -> Mapping[str, float]:
        """Return when the oldest case that waits for review was made (unix s), by pipeline."""
        query = select(cases.c.pipeline, func.min(cases.c.created)).where(cases.c.state.in_(OPEN_STATES))
        with self._db.read() as connection:
            return {row[0]: row[1] for row in connection.execute(query.group_by(cases.c.pipeline))}

    def newest_label(self, pipeline: str) -> float | None:
        """Return when a person was last done with a case of a pipeline (unix s), None for never."""
        query = (
            select(func.max(reviews.c.ts))
            .join(cases, cases.c.id == reviews.c.case_id)
            .where(cases.c.pipeline == label(pipeline), reviews.c.outcome != "skipped")
        )
        with self._db.read() as connection:
            return connection.execute(query).scalar()

    def case_lines(self, wanted: Filter | None = None) -> Iterator[CaseLine]:
        """Yield the cases of a filter as `resweep.case/1`, by id; judgments are those that count.

        One page is read at a time: what changes meanwhile may be seen or not.
        """
        last = ""
        while True:
            page = self.case_lines_after(wanted, last)
            yield from page
            if len(page) < PAGE_MAX:
                return
            last = page[-1].case_id

    def case_lines_after(
        self, wanted: Filter | None = None, last: str = "", limit: int = PAGE_MAX
    ) -> list[CaseLine]:
        """Return the first cases of a filter after an id, by id."""
        with self._db.read() as connection:
            return _page(connection, wanted or Filter(), last, limit)

    def hits_of(self, case_id: str) -> tuple[Hit, ...]:
        """Return the list that a case is judged on; empty where there is none."""
        with self._db.read() as connection:
            payload = connection.execute(select(lists.c.payload).where(lists.c.case_id == case_id)).scalar()
        return () if payload is None else decode_hits(payload)

    def import_cases(
        self, lines: Sequence[CaseLine], who: str, placed: Mapping[str, tuple[str, str]] | None = None
    ) -> Sequence[Imported]:
        """Take cases in, each with its judgments; return what became of each, in order.

        A case whose question is there already is merged: its judgments are taken where nobody has given
        theirs. What a person rejected stays rejected. `placed` gives cluster and split by question.
        """
        now, by = self._clock.now(), plain("a reviewer", f"{IMPORTED_BY}:{who}" if who else IMPORTED_BY)
        with self._db.write() as connection:
            incoming = _Import(connection, by, now, placed or {})
            return [incoming.take(line) for line in lines]

    def age_cases(self, before: float) -> int:
        """Remove the cases last seen before a time that nobody has had in hand; return how many."""
        with self._db.write() as connection:
            removed = age(connection, before)
        if removed:
            self._db.forget()
        return removed

    def delete_cases(self, case_ids: Sequence[str]) -> int:
        """Remove cases and everything said about them, for good; return how many."""
        with self._db.write() as connection:
            take_words_out(connection, case_ids)
            removed = remove_cases(connection, case_ids)
        self._db.forget()
        return removed


def age(connection: Connection, before: float) -> int:
    """Remove candidates of traffic last seen before a time, and plans that are not in force any more."""
    old = (cases.c.last_ts < before) & cases.c.touched.is_(False) & cases.c.kept.is_(False)
    old &= (cases.c.state == "candidate") & cases.c.origin.in_(("live", "feedback", "canary"))
    removed = remove_cases(connection, connection.execute(select(cases.c.id).where(old)).scalars().all())
    connection.execute(delete(plans).where(plans.c.since < before, plans.c.current.is_(False)))
    return removed


def _page(connection: Connection, wanted: Filter, last: str, limit: int) -> list[CaseLine]:
    query = select(cases).where(where(wanted), cases.c.id > last).order_by(cases.c.id).limit(limit)
    rows = connection.execute(query).mappings().all()
    ids = [row["id"] for row in rows]
    graded: dict[str, list[Judgment]] = {}
    drawn: dict[str, list[Draw]] = {}
    for some in chunks(ids):
        counts = (
            select(judgments)
            .join(cases, cases.c.id == judgments.c.case_id)
            .where(judgments.c.case_id.in_(some), judgments.c.reviewer == cases.c.lead)
            .order_by(judgments.c.grade.desc(), judgments.c.passage_id)
        )
        for row in connection.execute(counts).mappings():
            graded.setdefault(row["case_id"], []).append(
                Judgment(passage_id=row["passage_id"], grade=row["grade"], text_hash=row["text_hash"])
            )
        of = select(draws).where(draws.c.case_id.in_(some), draws.c.p.is_not(None)).order_by(draws.c.ts)
        for row in connection.execute(of).mappings():
            drawn.setdefault(row["case_id"], []).append(draw_of(row))
    return [_line(row, graded.get(row["id"], []), drawn.get(row["id"], [])) for row in rows]


def _line(row: RowMapping, graded: list[Judgment], drawn: list[Draw]) -> CaseLine:
    document = decode_document(row["document"])
    live = bool(drawn) or row["origin"] in ("live", "feedback")
    return CaseLine(
        case_id=row["id"],
        query=row["query"],
        filters=filters_of(document.scope),
        pipeline=row["pipeline"],
        stratum=row["stratum"],
        inclusion_probability=row["p"],
        weight=row["weight"] if live or row["weight"] else None,
        plan=row["plan"],
        state=row["state"],
        split=row["split"],
        judgments=graded,
        required=document.required,
        answerable=document.answerable,
        reference_answer=document.reference_answer,
        notes=document.notes,
        slices=document.slices,
        links=document.links,
        provenance=row["origin"],
        event_id=row["event_id"],
        config=row["config"],
        corpus_revision=document.corpus_revision,
        cluster=row["cluster"],
        seen=row["seen"],
        first_ts=row["first_ts"],
        last_ts=row["last_ts"],
        events=drawn,
    )


class _Import:
    """One import. Rows are written as they come, in one transaction."""

    def __init__(
        self, connection: Connection, by: str, now: float, placed: Mapping[str, tuple[str, str]]
    ) -> None:
        self._connection = connection
        self._by = by
        self._now = now
        self._placed = placed

    def take(self, line: CaseLine) -> Imported:
        """Take one case in."""
        pipeline = label(line.pipeline)
        key = line_key(line)
        at = (cases.c.pipeline == pipeline) & (cases.c.question == key)
        known = self._connection.execute(select(cases).where(at)).mappings().first()
        if known is None:
            case_id = self._insert(pipeline, key, line)
            self._judge(case_id, line)
            return Imported(case_id, "new")
        if known["lead"] is not None and known["lead"] != self._by:
            return Imported(known["id"], "kept")
        self._merge(known, line)
        self._judge(known["id"], line)
        return Imported(known["id"], "merged")

    def _insert(self, pipeline: str, key: str, line: CaseLine) -> str:
        case_id = self._free_id(pipeline, key, line)
        own = (line.cluster, line.split) if line.cluster and line.split in SIDES else (key, side_of(key))
        cluster, side = self._placed.get(key, own)
        judged = is_judged(line)
        ts = line.first_ts if line.first_ts is not None else self._now
        beside = (line.weight or 0.0) - sum(1.0 / draw.p for draw in line.events if draw.p)
        document = CaseDocument(
            required=line.required,
            answerable=line.answerable,
            reference_answer=line.reference_answer,
            notes=line.notes,
            slices=line.slices,
            links=line.links,
            corpus_revision=line.corpus_revision,
            scope=scope_of(line.filters),
            own_weight=beside if abs(beside) > 1e-9 else 0.0,
        )
        state = line.state if line.state in CASE_STATES else "labelled" if judged else "candidate"
        self._connection.execute(
            insert(cases).values(
                id=case_id,
                pipeline=pipeline,
                question=key,
                query=line.query,
                origin=line.provenance if line.provenance in ORIGINS else "imported",
                state="candidate" if state == "in_review" else state,
                split=side,
                cluster=cluster,
                stratum=line.stratum or "imported",
                plan=line.plan,
                p=line.inclusion_probability,
                weight=line.weight or 0.0,
                seen=max(1, line.seen),
                plain_seen=max(0, line.seen - len(line.events)),
                event_id=line.event_id,
                config=line.config,
                first_ts=ts,
                last_ts=line.last_ts if line.last_ts is not None else ts,
                created=self._now,
                updated=self._now,
                revision=0,
                place=chance(case_id, QUEUE),
                touched=judged,
                kept=False,
                disputed=False,
                skips=0,
                lead=self._by if judged else None,
                document=encode_document(document),
            )
        )
        self._draws(case_id, pipeline, line.events)
        return case_id

    def _free_id(self, pipeline: str, key: str, line: CaseLine) -> str:
        made = case_id_of(pipeline, key)
        given = line.case_id
        if not given or len(given) > 64:
            return made
        taken = self._connection.execute(select(cases.c.id).where(cases.c.id == given)).scalar()
        return made if taken else plain("a case id", given, 64)

    def _draws(self, case_id: str, pipeline: str, drawn: Iterable[Draw]) -> None:
        ids = [draw.event_id for draw in drawn]
        known: set[str] = set()
        for some in chunks(ids):
            known.update(
                self._connection.execute(select(draws.c.event_id).where(draws.c.event_id.in_(some))).scalars()
            )
        rows = [
            {
                "event_id": draw.event_id,
                "case_id": case_id,
                "pipeline": pipeline,
                "since": draw.ts - draw.ts % 3600.0,
                "ts": draw.ts,
                "stratum": draw.stratum,
                "strata": ",".join(draw.strata),
                "p": draw.p or None,
                "plan": draw.plan,
                "config": draw.config,
                "user_key": draw.user_key,
            }
            for draw in {d.event_id: d for d in drawn}.values()
            if draw.event_id not in known
        ]
        if rows:
            self._connection.execute(insert(draws), rows)

    def _merge(self, known: RowMapping, line: CaseLine) -> None:
        judged = is_judged(line)
        document = decode_document(known["document"])
        document.reference_answer = document.reference_answer or line.reference_answer
        document.notes = document.notes or line.notes
        document.required = document.required or line.required
        values: dict[str, Any] = {
            "document": encode_document(document),
            "plain_seen": known["plain_seen"] + 1,
            "seen": known["seen"] + 1,
            "updated": self._now,
        }
        if judged and known["state"] != "rejected":
            state = line.state if line.state in ("labelled", "unanswerable", "needs_look") else "labelled"
            values |= {"state": state, "lead": self._by, "touched": True}
        self._connection.execute(update(cases).where(cases.c.id == known["id"]).values(values))

    def _judge(self, case_id: str, line: CaseLine) -> None:
        if not is_judged(line):
            return
        best: dict[str, Judgment] = {}
        for one in line.judgments:
            held = best.get(one.passage_id)
            best[one.passage_id] = one if held is None or one.grade > held.grade else held
        mine = (judgments.c.case_id == case_id) & (judgments.c.reviewer == self._by)
        for row in self._connection.execute(select(judgments).where(mine)).mappings():
            held = best.get(row["passage_id"])
            if held is None or held.grade < row["grade"]:
                best[row["passage_id"]] = Judgment(
                    passage_id=row["passage_id"], grade=row["grade"], text_hash=row["text_hash"]
                )
        self._connection.execute(delete(judgments).where(mine))
        rows = [
            {
                "case_id": case_id,
                "reviewer": self._by,
                "passage_id": plain("a passage id", one.passage_id, 400),
                "grade": one.grade,
                "text_hash": one.text_hash,
                "anchor": "here",
                "ts": self._now,
            }
            for one in best.values()
        ]
        if rows:
            self._connection.execute(insert(judgments), rows)
        self._review(case_id, line)

    def _review(self, case_id: str, line: CaseLine) -> None:
        at = (reviews.c.case_id == case_id) & (reviews.c.reviewer == self._by)
        self._connection.execute(delete(reviews).where(at))
        outcome = line.state if line.state in ("unanswerable", "rejected") else "labelled"
        self._connection.execute(
            insert(reviews).values(
                case_id=case_id,
                reviewer=self._by,
                outcome=outcome,
                revision=0,
                place=0,
                ts=self._now,
                document="{}",
            )
        )


def line_key(line: CaseLine) -> str:
    """Return the key of an imported case's question; of one without text, its id stands for it."""
    return question_key(line.query, line.filters) if line.query else question_key(f"\x01id {line.case_id}")


def is_judged(line: CaseLine) -> bool:
    """Whether somebody was done with a case, as its line says."""
    if line.state is None:
        return bool(line.judgments) or line.answerable is False
    return line.state in ("labelled", "needs_look", "unanswerable", "rejected")
