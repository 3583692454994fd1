"""Suggestions of a model beside the judgments of people. They count for nothing by themselves."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from sqlalchemy import ColumnElement, RowMapping, case, delete, func, insert, select

from resweep.domain.case import OPEN_STATES, Agreement, Suggestion
from resweep.domain.event import Hit
from resweep.domain.measures import RELEVANT_GRADE
from resweep.store.cases import decode_hits
from resweep.store.names import label, plain
from resweep.store.part import Part
from resweep.store.schema import cases, judgments, lists, suggestions

REASON_MAX = 500  # characters
LOOKED_AT = 20  # cases at the head of the queue of which one look reads the lists


class ToSuggest(NamedTuple):
    """A case with passages that a model has not seen yet."""

    case_id: str
    query: str
    hits: Sequence[Hit]


class SuggestionsPart(Part):
    """Keeping suggestions."""

    def unsuggested(self, depth: int, after: float = 0.0) -> tuple[Sequence[ToSuggest], float | None]:
        """Return the next cases in queue order whose first passages a model has not seen.

        `after` is where the look before ended; with them comes where this one ended, None for the end of the
        queue. Passages without text are left out, and a text that comes twice is asked about once.
        """
        head = (
            select(cases.c.id, cases.c.query, cases.c.place, lists.c.payload)
            .join(lists, lists.c.case_id == cases.c.id)
            .where(cases.c.state.in_(OPEN_STATES), cases.c.query.is_not(None), cases.c.place > after)
            .order_by(cases.c.place)
            .limit(LOOKED_AT)
        )
        with self._db.read() as connection:
            rows = connection.execute(head).all()
            seen = select(suggestions.c.case_id, suggestions.c.passage_id, suggestions.c.text_hash).where(
                suggestions.c.case_id.in_([row.id for row in rows])
            )
            known = {(r.case_id, r.passage_id, r.text_hash) for r in connection.execute(seen)}
        found = [ToSuggest(r.id, r.query, _unseen(r.id, r.payload, depth, known)) for r in rows]
        end = rows[-1].place if len(rows) == LOOKED_AT else None
        return [one for one in found if one.hits], end

    def suggest(self, case_id: str, new: Iterable[Suggestion]) -> None:
        """Keep suggestions for passages of a case, in place of earlier ones; none of a case that went."""
        with self._db.write() as connection:
            if connection.execute(select(cases.c.id).where(cases.c.id == case_id)).scalar() is None:
                return
            for one in new:
                at = (suggestions.c.case_id == case_id) & (suggestions.c.passage_id == one.passage_id)
                connection.execute(delete(suggestions).where(at))
                connection.execute(
                    insert(suggestions).values(
                        case_id=case_id,
                        passage_id=plain("a passage id", one.passage_id, 400),
                        grade=one.grade,
                        text_hash=one.text_hash,
                        judge=one.judge[:200],
                        reason=one.reason[:REASON_MAX],
                        ts=one.ts,
                    )
                )

    def agreement(self, pipeline: str) -> Agreement:
        """Return how often people agree with the suggestions for a pipeline's cases."""
        same = (judgments.c.grade >= RELEVANT_GRADE) == (suggestions.c.grade >= RELEVANT_GRADE)
        blind = judgments.c.ts < suggestions.c.ts
        query = (
            select(
                func.count().label("n"),
                _sum(same).label("agree"),
                _sum(blind).label("blind"),
                _sum(blind & same).label("blind_agree"),
            )
            .select_from(suggestions)
            .join(
                judgments,
                (judgments.c.case_id == suggestions.c.case_id)
                & (judgments.c.passage_id == suggestions.c.passage_id),
            )
            .join(cases, cases.c.id == suggestions.c.case_id)
            .where(
                cases.c.pipeline == label(pipeline),
                judgments.c.case_id.in_(select(suggestions.c.case_id)),  # few of all judgments
            )
        )
        with self._db.read() as connection:
            if connection.execute(select(suggestions.c.case_id).limit(1)).first() is None:
                return Agreement()
            row = connection.execute(query).mappings().one()
        return Agreement(**{name: int(value or 0) for name, value in row.items()})


def _sum(condition: ColumnElement[bool]) -> ColumnElement[int]:
    return func.sum(case((condition, 1), else_=0))


def _unseen(case_id: str, payload: bytes, depth: int, known: set[tuple[str, str, str | None]]) -> list[Hit]:
    texts: set[str] = set()
    found: list[Hit] = []
    for hit in decode_hits(payload)[:depth]:
        if not hit.text or hit.text in texts:
            continue
        texts.add(hit.text)
        if (case_id, hit.id, hit.text_hash) not in known:
            found.append(hit)
    return found


def suggestion_of(row: RowMapping) -> Suggestion:
    """Return a stored suggestion."""
    return Suggestion(**{name: row[name] for name in Suggestion.__struct_fields__})
