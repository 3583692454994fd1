"""What cases forget when the events they came from have to go."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec
from sqlalchemy import Connection, delete, select, update

from resweep.domain.event import RetrievalEvent
from resweep.store.cases import remove_cases
from resweep.store.part import chunks
from resweep.store.quotes import take_words_out
from resweep.store.schema import cases, draws, events, suggestions

_decoder = msgspec.msgpack.Decoder(RetrievalEvent)


def forget_draws(connection: Connection, event_ids: Sequence[str]) -> int:
    """Let the cases forget events: those made of nothing else go, unless a person keeps them.

    A case that others asked too takes the words of one of those, and loses the weight of what went. Returns
    how many cases went.
    """
    gone: list[str] = []
    for some in chunks(event_ids):
        query = select(draws.c.case_id).where(draws.c.event_id.in_(some)).distinct()
        touched = connection.execute(query).scalars().all()
        kept = set(
            connection.execute(select(cases.c.id).where(cases.c.id.in_(touched), cases.c.kept)).scalars()
        )
        mine = draws.c.case_id.in_(kept) & draws.c.event_id.in_(some)
        connection.execute(update(draws).where(mine).values(user_key=None))
        connection.execute(delete(draws).where(draws.c.event_id.in_(some), draws.c.case_id.not_in(kept)))
        lost = [c for c in touched if c not in kept]
        take_words_out(connection, lost)
        gone += [c for c in lost if not _reworded(connection, c, set(some))]
    return remove_cases(connection, gone)


def _reworded(connection: Connection, case_id: str, gone: set[str]) -> bool:
    """Let a case speak with the words of an event that stays; False where there is none."""
    case = connection.execute(select(cases).where(cases.c.id == case_id)).mappings().one()
    left = (
        connection.execute(select(draws).where(draws.c.case_id == case_id).order_by(draws.c.ts))
        .mappings()
        .all()
    )
    values: dict[str, Any] = {
        "weight": sum(1.0 / row["p"] for row in left if row["p"]),
        "seen": case["plain_seen"] + len(left),
    }
    if case["event_id"] in gone:
        words = next((text for row in left if (text := _words(connection, row["event_id"]))), None)
        if words is None:
            return False
        values |= {"query": words, "event_id": left[0]["event_id"]}
        # a model's reason may quote the words that went
        connection.execute(delete(suggestions).where(suggestions.c.case_id == case_id))
    connection.execute(update(cases).where(cases.c.id == case_id).values(values))
    return bool(left) or bool(case["plain_seen"])


def _words(connection: Connection, event_id: str) -> str | None:
    payload = connection.execute(select(events.c.payload).where(events.c.id == event_id)).scalar()
    return None if payload is None else _decoder.decode(payload).query


def drawn_for(connection: Connection, user_key: str) -> set[str]:
    """Return the ids of the events of one user that cases were made of, kept or not any more."""
    query = select(draws.c.event_id).where(draws.c.user_key == user_key)
    return set(connection.execute(query).scalars())
