"""Which batches were applied: per writer, ranges of sequence numbers.

Numbers that never come (a recorder gave samples up to save windows) leave a gap and cost one range, however
many batches follow; a late one fills its gap.
"""

from __future__ import annotations

from sqlalchemy import Connection, delete, insert, select

from resweep.store.schema import batches


def claim(connection: Connection, writer: str, seq: int, now: float) -> bool:
    """Note a batch as applied; False where it was."""
    ranges = connection.execute(
        select(batches.c.first_seq, batches.c.last_seq).where(
            batches.c.writer == writer, batches.c.first_seq <= seq + 1, batches.c.last_seq >= seq - 1
        )
    ).all()
    if any(first <= seq <= last for first, last in ranges):
        return False
    first = min([seq, *(r.first_seq for r in ranges)])
    last = max([seq, *(r.last_seq for r in ranges)])
    for touching in ranges:
        connection.execute(
            delete(batches).where(batches.c.writer == writer, batches.c.first_seq == touching.first_seq)
        )
    connection.execute(insert(batches).values(writer=writer, first_seq=first, last_seq=last, seen_at=now))
    return True


def forget(connection: Connection, before: float) -> int:
    """Drop the ranges of writers that were last heard of before a time; return how many."""
    heard = select(batches.c.writer).where(batches.c.seen_at >= before)
    return connection.execute(delete(batches).where(batches.c.writer.not_in(heard))).rowcount
