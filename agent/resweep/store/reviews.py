"""People at work on cases: claims, judgments, opinions, and taking them back.

Everything a person says is kept under their name. Two people on one case overwrite nothing: the first to be
done gives the word that counts, a later one is a second opinion, and where they differ the case is disputed
until somebody says whose word counts.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import msgspec
from sqlalchemy import ColumnElement, Connection, RowMapping, and_, delete, func, insert, or_, select, update

from resweep.domain.case import (
    OPEN_STATES,
    OUTCOMES,
    Anchor,
    CaseRow,
    CaseView,
    Draw,
    Filter,
    Graded,
    Outcome,
    Review,
    Step,
)
from resweep.domain.errors import InputError, UsageError
from resweep.domain.event import Hit
from resweep.domain.measures import RELEVANT_GRADE
from resweep.store.cases import decode_document, decode_hits, encode_document, keep_list
from resweep.store.names import label, plain
from resweep.store.part import Part
from resweep.store.schema import cases, draws, history, judgments, lists, probes, reviews, suggestions
from resweep.store.suggestions import suggestion_of

CLAIM_S = 15 * 60.0
GRADE_MAX = 10.0
TEXT_MAX = 20_000  # characters of an answer or a note
_COLUMNS = tuple(name for name in CaseRow.__struct_fields__ if name != "case_id")


class _Said(msgspec.Struct, kw_only=True, omit_defaults=True):
    """What a reviewer wrote beside the grades."""

    reference_answer: str | None = None
    notes: str | None = None
    required: list[list[str]] | None = None


_said = msgspec.json.Decoder(_Said)
_steps = msgspec.json.Decoder(dict[str, Any])


class Move(NamedTuple):
    """Where one reviewer's judgment of a passage belongs now; `to` is None where its text is gone."""

    reviewer: str
    passage_id: str
    anchor: Anchor
    to: str | None
    text_hash: str | None = None


class Listed(NamedTuple):
    """The list that a case is judged on: its case's id and state, its config, depth and time (unix s)."""

    case_id: str
    state: str
    config: str
    depth: int
    ts: float


class ReviewsPart(Part):
    """Working on cases."""

    def claim(
        self, who: str, wanted: Filter | None = None, seconds: float = CLAIM_S, *, second: bool = False
    ) -> CaseRow | None:
        """Hand the next case of the queue out, to nobody else for so many seconds; None where none is left.

        Whoever holds a claim gets the same case again. With `second`, cases that somebody else has judged
        once. The queue is in random order, so that what is reviewed first stands for the rest.
        """
        now, who = self._clock.now(), plain("a reviewer", who)
        free = or_(cases.c.claimed_until.is_(None), cases.c.claimed_until <= now, cases.c.claimed_by == who)
        mine = select(reviews.c.case_id).where(reviews.c.reviewer == who)
        of = where(wanted or Filter()) & free & cases.c.id.not_in(mine)
        states = ("labelled", "unanswerable") if second else OPEN_STATES
        of &= cases.c.state.in_(states) & cases.c.query.is_not(None)
        if second:
            of &= _opinions() == 1
        own_first = func.coalesce(cases.c.claimed_by, "") != who
        with self._db.write() as connection:
            query = select(cases).where(of).order_by(own_first, cases.c.place, cases.c.id).limit(1)
            row = connection.execute(query).mappings().first()
            if row is None:
                return None
            _claim(connection, row, who, now + seconds)
            return row_of(_case(connection, row["id"]))

    def open_case(self, case_id: str, who: str, seconds: float = CLAIM_S) -> bool:
        """Claim a case by its id; False where somebody else has it in hand (who blocks nobody)."""
        now = self._clock.now()
        with self._db.write() as connection:
            row = _case(connection, case_id)
            taken = row["claimed_by"] not in (None, who) and (row["claimed_until"] or 0.0) > now
            if not taken:
                _claim(connection, row, plain("a reviewer", who), now + seconds)
        return not taken

    def release(self, case_id: str, who: str) -> None:
        """Give a claim back."""
        at = (cases.c.id == case_id) & (cases.c.claimed_by == who)
        with self._db.write() as connection:
            connection.execute(update(cases).where(at).values(claimed_by=None, claimed_until=None))
            unread = (cases.c.id == case_id) & cases.c.claimed_by.is_(None) & (cases.c.state == "in_review")
            connection.execute(update(cases).where(unread).values(state="candidate"))

    def judge(
        self,
        case_id: str,
        who: str,
        passage_id: str,
        grade: float | None,
        text_hash: str | None = None,
    ) -> int:
        """Grade one passage, or take the grade back with None; return the case's revision.

        Saying the same twice changes nothing. Raises InputError for a grade outside [0, 10].
        """
        if grade is not None and not 0.0 <= grade <= GRADE_MAX:
            raise InputError(f"expected a grade from 0 to {GRADE_MAX:g}; got {grade}")
        plain("a passage id", passage_id, 400)
        plain("a reviewer", who)
        now = self._clock.now()
        with self._db.write() as connection:
            case = _case(connection, case_id)
            before = _grade(connection, case_id, who, passage_id)
            after = None if grade is None else {"grade": grade, "text_hash": text_hash}
            if (before or {}).get("grade") == grade:
                return int(case["revision"])
            _set_grade(connection, case_id, who, passage_id, after, now)
            details = {"passage": passage_id, "before": before, "after": after}
            _note(connection, case_id, who, "judge", details, now)
            return _changed(connection, case, now)

    def finish(
        self,
        case_id: str,
        who: str,
        outcome: Outcome,
        *,
        reference_answer: str | None = None,
        notes: str | None = None,
        required: Sequence[Sequence[str]] | None = None,
    ) -> CaseRow:
        """Be done with a case, or skip it; return it as it stands then.

        The first to be done gives the word that counts, whoever holds the claim; a later word is kept as
        another opinion. What is None stays as it was, an empty text or list takes it away. Raises InputError
        for an outcome that is none.
        """
        if outcome not in OUTCOMES:
            raise InputError(f"expected an outcome in {', '.join(OUTCOMES)}; got {outcome!r}")
        said = _Said(
            reference_answer=_short(reference_answer),
            notes=_short(notes),
            required=None if required is None else [list(f) for f in required],
        )
        now, who = self._clock.now(), plain("a reviewer", who)
        with self._db.write() as connection:
            case = _case(connection, case_id)
            before = _review(connection, case_id, who)
            _set_review(connection, case, who, outcome, said, now)
            details = {"outcome": outcome, "before": before, "state": case["state"], "lead": case["lead"]}
            _note(connection, case_id, who, "finish", details, now)
            _settle(connection, case, who, outcome, said, now)
            return row_of(_case(connection, case_id))

    def settle(self, case_id: str, who: str, lead: str) -> CaseRow:
        """Say whose word on a disputed case counts. Raises UsageError where that person gave none."""
        now = self._clock.now()
        with self._db.write() as connection:
            case, review = _case(connection, case_id), _review(connection, case_id, lead)
            if review is None or review["outcome"] == "skipped":
                raise UsageError(f"{lead!r} gave no word on case {case_id!r}: name one of its reviewers")
            details = {
                "lead": lead,
                "before": case["lead"],
                "state": case["state"],
                "disputed": case["disputed"],
            }
            _note(connection, case_id, plain("a reviewer", who), "settle", details, now)
            _lead(connection, case, lead, review["outcome"], _said.decode(review["document"]), now)
            connection.execute(update(cases).where(cases.c.id == case_id).values(disputed=False))
            _changed(connection, case, now)
            return row_of(_case(connection, case_id))

    def keep_case(self, case_id: str, who: str, kept: bool = True) -> None:
        """Let a case outlive the deletion of the events it came from, or not."""
        now = self._clock.now()
        with self._db.write() as connection:
            case = _case(connection, case_id)
            if case["kept"] != kept:
                connection.execute(update(cases).where(cases.c.id == case_id).values(kept=kept, touched=True))
                _note(connection, case_id, who, "keep", {"before": case["kept"], "after": kept}, now)

    def last_step(self, who: str) -> tuple[str, Step] | None:
        """Return what `undo` would take back of a person, with the case id; None for nothing."""
        of = (history.c.who == who) & history.c.action.in_(tuple(_UNDO)) & history.c.undone.is_(False)
        with self._db.read() as connection:
            query = select(history).where(of).order_by(history.c.id.desc()).limit(1)
            row = connection.execute(query).mappings().first()
        return None if row is None else (row["case_id"], _step(row))

    def undo(self, who: str, case_id: str | None = None) -> Step | None:
        """Take back what a person did last, on one case or any; return what it was, None for nothing."""
        now = self._clock.now()
        of = (history.c.who == who) & history.c.action.in_(tuple(_UNDO)) & history.c.undone.is_(False)
        if case_id is not None:
            of &= history.c.case_id == case_id
        with self._db.write() as connection:
            query = select(history).where(of).order_by(history.c.id.desc()).limit(1)
            row = connection.execute(query).mappings().first()
            if row is None:
                return None
            case = _case(connection, row["case_id"])
            _UNDO[row["action"]](connection, case, who, _steps.decode(row["document"]), now)
            connection.execute(update(history).where(history.c.id == row["id"]).values(undone=True))
            _changed(connection, case, now)
            return _step(row)

    def case(self, case_id: str, who: str | None = None) -> CaseView:
        """Return a case with what `who` may see: the others' words only once done. None sees all.

        Raises UsageError where there is none.
        """
        with self._db.read() as connection:
            row = _case(connection, case_id)
            graded = connection.execute(_of(judgments, case_id).order_by(judgments.c.ts)).mappings().all()
            words = connection.execute(_of(reviews, case_id).order_by(reviews.c.place)).mappings().all()
            drawn = connection.execute(_of(draws, case_id).order_by(draws.c.ts)).mappings().all()
            steps = connection.execute(_of(history, case_id).order_by(history.c.id)).mappings().all()
            listed = connection.execute(_of(lists, case_id)).mappings().first()
            said = connection.execute(_of(suggestions, case_id)).mappings().all()
        done = {w["reviewer"] for w in words if w["outcome"] != "skipped"}
        sees_all = who is None or who in done or not done
        shown = (
            {w["reviewer"] for w in words} | {g["reviewer"] for g in graded}
            if who is None or who in done
            else {who}
        )
        document = decode_document(row["document"])
        hits = decode_hits(listed["payload"]) if listed else ()
        texts = {(hit.id, hit.text_hash) for hit in hits}
        return CaseView(
            case=row_of(row),
            hits=hits,
            suggestions=tuple(suggestion_of(s) for s in said if (s["passage_id"], s["text_hash"]) in texts),
            asked=listed["asked"] if listed else None,
            listed_at=listed["ts"] if listed else None,
            judgments=tuple(_graded(g) for g in graded if g["reviewer"] in shown),
            reviews=tuple(review_of(w) for w in words if w["reviewer"] in shown),
            draws=tuple(draw_of(d) for d in drawn),
            history=tuple(_step(s) for s in steps if s["who"] in shown or s["action"] not in _UNDO),
            required=tuple(tuple(f) for f in document.required) if sees_all else (),
            reference_answer=document.reference_answer if sees_all else None,
            notes=document.notes if sees_all else None,
            slices=document.slices,
            links=tuple(document.links),
            corpus_revision=document.corpus_revision,
        )

    def reanchor(
        self,
        case_id: str,
        moves: Sequence[Move],
        hits: Sequence[Hit],
        config: str,
        asked: int | None,
        ts: float,
    ) -> CaseRow:
        """Give a case another list, and its judgments where their texts are now; nothing is dropped.

        A labelled case needs a look where a judgment was lost, or where nobody judged a passage of the list.
        """
        now = self._clock.now()
        with self._db.write() as connection:
            case = _case(connection, case_id)
            for move in moves:
                _move(connection, case_id, move)
            keep_list(connection, case_id, hits, config, asked, ts)
            moved = [[m.reviewer, m.passage_id, m.to, m.anchor] for m in moves if m.anchor != "here"]
            if moved:
                _note(connection, case_id, "resweep", "reanchor", {"moved": moved, "config": config}, now)
            if case["state"] == "labelled" and _unfinished(connection, case_id, hits):
                values = {"state": "needs_look", "claimed_by": None, "claimed_until": None}
                connection.execute(update(cases).where(cases.c.id == case_id).values(values))
            return row_of(_case(connection, case_id))

    def repairs(self, pipeline: str | None = None) -> Sequence[tuple[str, Graded]]:
        """Return the judgments whose text was not found again, with the id of their case."""
        query = (
            select(judgments)
            .join(cases, cases.c.id == judgments.c.case_id)
            .where(where(Filter(pipeline=pipeline)), judgments.c.anchor == "lost")
            .order_by(judgments.c.case_id, judgments.c.passage_id)
        )
        with self._db.read() as connection:
            return [(r["case_id"], _graded(r)) for r in connection.execute(query).mappings()]

    def listed(self, pipeline: str) -> Mapping[str, Listed]:
        """Return where the lists of a pipeline's cases come from, by the key of their question."""
        query = (
            select(cases.c.question, cases.c.id, cases.c.state, lists.c.config, lists.c.depth, lists.c.ts)
            .join(lists, lists.c.case_id == cases.c.id)
            .where(cases.c.pipeline == label(pipeline))
        )
        with self._db.read() as connection:
            return {r.question: Listed(*r[1:]) for r in connection.execute(query)}

    def probed(self, limit: int = 200) -> Sequence[tuple[str, str]]:
        """Return (case id, event id) of cases whose event was asked again, deeper than their list."""
        query = (
            select(cases.c.id, cases.c.event_id)
            .join(probes, probes.c.event_id == cases.c.event_id)
            .join(lists, lists.c.case_id == cases.c.id)
            .where(probes.c.k > lists.c.depth, probes.c.ts > lists.c.ts)
            .limit(limit)
        )
        with self._db.read() as connection:
            return [(r.id, r.event_id) for r in connection.execute(query)]

    def reviewed_by(self, who: str, since_ts: float = 0.0) -> int:
        """Return how many cases a person was done with since a time."""
        of = (reviews.c.reviewer == who) & (reviews.c.ts >= since_ts) & (reviews.c.outcome != "skipped")
        with self._db.read() as connection:
            return connection.execute(select(func.count()).select_from(reviews).where(of)).scalar() or 0


def _move(connection: Connection, case_id: str, move: Move) -> None:
    at = _grade_at(case_id, move.reviewer, move.passage_id)
    if move.to is None or move.to == move.passage_id:
        connection.execute(update(judgments).where(at).values(anchor=move.anchor))
        return
    held = _grade(connection, case_id, move.reviewer, move.to)
    if held is not None:  # two old passages are one now: the higher grade stands
        row = _grade(connection, case_id, move.reviewer, move.passage_id)
        if row is not None and row["grade"] > held["grade"]:
            there = _grade_at(case_id, move.reviewer, move.to)
            connection.execute(update(judgments).where(there).values(grade=row["grade"]))
        connection.execute(delete(judgments).where(at))
        return
    values = {"passage_id": move.to, "anchor": move.anchor, "text_hash": move.text_hash}
    connection.execute(update(judgments).where(at).values(values))


def _unfinished(connection: Connection, case_id: str, hits: Sequence[Hit]) -> bool:
    rows = connection.execute(_of(judgments, case_id)).mappings().all()
    judged = {row["passage_id"] for row in rows if row["anchor"] != "lost"}
    return any(row["anchor"] == "lost" for row in rows) or any(hit.id not in judged for hit in hits)


def where(wanted: Filter) -> ColumnElement[bool]:
    """Return the condition of a filter."""
    of: list[ColumnElement[bool]] = [cases.c.id.is_not(None)]
    if wanted.pipeline is not None:
        of.append(cases.c.pipeline == label(wanted.pipeline))
    if wanted.states:
        of.append(cases.c.state.in_(wanted.states))
    for name in ("stratum", "split", "origin", "cluster"):
        value = getattr(wanted, name)
        if value is not None:
            of.append(cases.c[name] == value)
    if wanted.disputed is not None:
        of.append(cases.c.disputed.is_(wanted.disputed))
    query = func.lower(cases.c.query)
    of.extend(query.contains(word.lower(), autoescape=True) for word in (wanted.words or "").split())
    return and_(*of)


def row_of(row: RowMapping) -> CaseRow:
    """Return a case as it stands in the queue."""
    return CaseRow(case_id=row["id"], **{name: row[name] for name in _COLUMNS})


def review_of(row: RowMapping) -> Review:
    """Return a reviewer's word."""
    said = _said.decode(row["document"])
    return Review(
        reviewer=row["reviewer"],
        outcome=row["outcome"],
        revision=row["revision"],
        place=row["place"],
        ts=row["ts"],
        reference_answer=said.reference_answer,
        notes=said.notes,
        required=tuple(tuple(fact) for fact in said.required or ()),
    )


def draw_of(row: RowMapping) -> Draw:
    """Return a draw; p is 0 for one that fell out of its hour's draw."""
    return Draw(
        event_id=row["event_id"],
        ts=row["ts"],
        p=row["p"] or 0.0,
        plan=row["plan"],
        stratum=row["stratum"],
        strata=tuple(s for s in row["strata"].split(",") if s),
        config=row["config"],
        user_key=row["user_key"],
    )


def _graded(row: RowMapping) -> Graded:
    return Graded(**{name: row[name] for name in Graded.__struct_fields__})


def _step(row: RowMapping) -> Step:
    return Step(
        id=row["id"],
        ts=row["ts"],
        who=row["who"],
        action=row["action"],
        undone=row["undone"],
        details=_steps.decode(row["document"]),
    )


def _short(text: str | None) -> str | None:
    if text is not None and len(text) > TEXT_MAX:
        raise InputError(f"expected at most {TEXT_MAX} characters; got {len(text)}")
    return text


def _of(table: Any, case_id: str) -> Any:
    return select(table).where(table.c.case_id == case_id)


def _opinions() -> ColumnElement[int]:
    return (
        select(func.count())
        .select_from(reviews)
        .where(reviews.c.case_id == cases.c.id, reviews.c.outcome != "skipped")
        .scalar_subquery()
    )


def _case(connection: Connection, case_id: str) -> RowMapping:
    row = connection.execute(select(cases).where(cases.c.id == case_id)).mappings().first()
    if row is None:
        raise UsageError(f"there is no case {case_id[:64]!r}")
    return row


def _claim(connection: Connection, row: RowMapping, who: str, until: float) -> None:
    state = "in_review" if row["state"] == "candidate" else row["state"]
    values = {"claimed_by": who, "claimed_until": until, "state": state, "touched": True}
    connection.execute(update(cases).where(cases.c.id == row["id"]).values(values))


def _grade(connection: Connection, case_id: str, who: str, passage_id: str) -> dict[str, Any] | None:
    at = _grade_at(case_id, who, passage_id)
    row = connection.execute(select(judgments.c.grade, judgments.c.text_hash).where(at)).mappings().first()
    return None if row is None else dict(row)


def _grade_at(case_id: str, who: str, passage_id: str) -> ColumnElement[bool]:
    return and_(
        judgments.c.case_id == case_id,
        judgments.c.reviewer == who,
        judgments.c.passage_id == passage_id,
    )


def _set_grade(
    connection: Connection, case_id: str, who: str, passage_id: str, to: Mapping[str, Any] | None, now: float
) -> None:
    connection.execute(delete(judgments).where(_grade_at(case_id, who, passage_id)))
    if to is not None:
        connection.execute(
            insert(judgments).values(
                case_id=case_id,
                reviewer=who,
                passage_id=passage_id,
                grade=to["grade"],
                text_hash=to.get("text_hash"),
                anchor="here",
                ts=now,
            )
        )


def _note(
    connection: Connection, case_id: str, who: str, action: str, details: Mapping[str, Any], now: float
) -> None:
    document = msgspec.json.encode(details).decode()
    connection.execute(
        insert(history).values(
            case_id=case_id, ts=now, who=who, action=action, undone=False, document=document
        )
    )


def _changed(connection: Connection, case: RowMapping, now: float) -> int:
    revision = case["revision"] + 1
    values = {"revision": revision, "updated": now, "touched": True}
    connection.execute(update(cases).where(cases.c.id == case["id"]).values(values))
    return int(revision)


def _review(connection: Connection, case_id: str, who: str) -> dict[str, Any] | None:
    at = (reviews.c.case_id == case_id) & (reviews.c.reviewer == who)
    row = connection.execute(select(reviews).where(at)).mappings().first()
    return None if row is None else dict(row)


def _set_review(
    connection: Connection, case: RowMapping, who: str, outcome: Outcome, said: _Said, now: float
) -> None:
    at = (reviews.c.case_id == case["id"]) & (reviews.c.reviewer == who)
    connection.execute(delete(reviews).where(at))
    others = (reviews.c.case_id == case["id"]) & (reviews.c.outcome != "skipped")
    place = connection.execute(select(func.count()).select_from(reviews).where(others)).scalar() or 0
    connection.execute(
        insert(reviews).values(
            case_id=case["id"],
            reviewer=who,
            outcome=outcome,
            revision=case["revision"],
            place=place,
            ts=now,
            document=msgspec.json.encode(said).decode(),
        )
    )


def _settle(
    connection: Connection, case: RowMapping, who: str, outcome: Outcome, said: _Said, now: float
) -> None:
    """Let a word count, or keep it as another opinion; end the claim of whoever gave it."""
    if outcome == "skipped":
        skips = cases.c.skips + 1
        state = "candidate" if case["state"] == "in_review" else case["state"]
        connection.execute(update(cases).where(cases.c.id == case["id"]).values(skips=skips, state=state))
    elif case["lead"] in (None, who):
        _lead(connection, case, who, outcome, said, now)
    if case["claimed_by"] == who:
        connection.execute(
            update(cases).where(cases.c.id == case["id"]).values(claimed_by=None, claimed_until=None)
        )
    disputed = _disputed(connection, case["id"])
    connection.execute(update(cases).where(cases.c.id == case["id"]).values(disputed=disputed))
    _changed(connection, case, now)


def _lead(
    connection: Connection, case: RowMapping, who: str, outcome: Outcome, said: _Said, now: float
) -> None:
    document = decode_document(case["document"])
    if said.reference_answer is not None:
        document.reference_answer = said.reference_answer or None
    if said.notes is not None:
        document.notes = said.notes or None
    if said.required is not None:
        document.required = said.required
    document.answerable = outcome != "unanswerable" if outcome != "rejected" else None
    connection.execute(
        update(cases)
        .where(cases.c.id == case["id"])
        .values(state=outcome, lead=who, document=encode_document(document), updated=now)
    )


def _disputed(connection: Connection, case_id: str) -> bool:
    """Whether two who are done differ in the outcome, or in what is relevant among what both judged."""
    of = (reviews.c.case_id == case_id) & (reviews.c.outcome != "skipped")
    words = connection.execute(select(reviews.c.reviewer, reviews.c.outcome).where(of)).all()
    if len({w.outcome for w in words}) > 1:
        return True
    done = {w.reviewer for w in words}
    verdicts: dict[str, set[bool]] = {}
    for row in connection.execute(_of(judgments, case_id)).mappings():
        if row["reviewer"] in done:
            verdicts.setdefault(row["passage_id"], set()).add(row["grade"] >= RELEVANT_GRADE)
    return any(len(found) > 1 for found in verdicts.values())


def _undo_judge(
    connection: Connection, case: RowMapping, who: str, details: Mapping[str, Any], now: float
) -> None:
    _set_grade(connection, case["id"], who, details["passage"], details["before"], now)
    connection.execute(
        update(cases).where(cases.c.id == case["id"]).values(disputed=_disputed(connection, case["id"]))
    )


def _undo_finish(
    connection: Connection, case: RowMapping, who: str, details: Mapping[str, Any], now: float
) -> None:
    at = (reviews.c.case_id == case["id"]) & (reviews.c.reviewer == who)
    connection.execute(delete(reviews).where(at))
    before = details["before"]
    if before is not None:
        connection.execute(insert(reviews).values(before))
    values: dict[str, Any] = {"disputed": _disputed(connection, case["id"])}
    if (case["lead"] == who and details["lead"] != who) or details["outcome"] == "skipped":
        values |= {"lead": details["lead"], "state": _reopened(details["state"])}
    elif before is not None and case["lead"] == who:
        values |= {"state": before["outcome"]}
    if details["outcome"] == "skipped":
        values["skips"] = max(0, case["skips"] - 1)
    connection.execute(update(cases).where(cases.c.id == case["id"]).values(values))


def _reopened(state: str) -> str:
    return "candidate" if state == "in_review" else state


def _undo_settle(
    connection: Connection, case: RowMapping, who: str, details: Mapping[str, Any], now: float
) -> None:
    values = {"lead": details["before"], "state": details["state"], "disputed": details["disputed"]}
    connection.execute(update(cases).where(cases.c.id == case["id"]).values(values))


def _undo_keep(
    connection: Connection, case: RowMapping, who: str, details: Mapping[str, Any], now: float
) -> None:
    connection.execute(update(cases).where(cases.c.id == case["id"]).values(kept=details["before"]))


_UNDO = {"judge": _undo_judge, "finish": _undo_finish, "settle": _undo_settle, "keep": _undo_keep}
