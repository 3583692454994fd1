"""Cases coming in: one row a question, however often and by however many threads it is put there."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import Any

import msgspec
from sqlalchemy import Connection, Integer, RowMapping, cast, delete, func, insert, select, update

from resweep.domain.case import Candidate, Draw, Side, case_id_of, side_of
from resweep.domain.event import Hit
from resweep.domain.sampling import Plan, chance
from resweep.store.names import label
from resweep.store.part import Part, chunks
from resweep.store.schema import (
    cases,
    configs,
    draws,
    events,
    feedback,
    history,
    judgments,
    lists,
    pipelines,
    plans,
    reviews,
    suggestions,
)

LIST_MAX = 1 << 20  # bytes of one case's list
QUEUE = "queue"  # the seed of the order in the queue: another than that of the sample
_hits_encoder = msgspec.msgpack.Encoder()
_hits_decoder = msgspec.msgpack.Decoder(tuple[Hit, ...])
_plan_encoder = msgspec.json.Encoder(order="deterministic")
_plan_decoder = msgspec.json.Decoder(Plan)
BAD_WORD = ("negative", "not_found", "escalated")


class CaseDocument(msgspec.Struct, kw_only=True, omit_defaults=True):
    """What a case carries and nobody searches by.

    `own_weight` is what it stands for beside its draws: that of a case from another store.
    """

    required: list[list[str]] = []
    answerable: bool | None = None
    reference_answer: str | None = None
    notes: str | None = None
    slices: dict[str, str] = {}
    corpus_revision: str | None = None
    scope: str = ""
    links: list[str] = []
    own_weight: float = 0.0


_documents = msgspec.json.Decoder(CaseDocument)


class PoolHour(msgspec.Struct, frozen=True, kw_only=True):
    """One hour of sampled events: when it began (unix s), how many there are, how many got a bad word."""

    pipeline: str
    since: float
    events: int
    negative: int


class CasesPart(Part):
    """Putting cases in."""

    def enqueue(self, new: Iterable[Candidate]) -> dict[str, str]:
        """Put questions into the set; return the case id of each by its key.

        A question that is there, in whatever state, is seen once more and stays as it is.
        """
        now = self._clock.now()
        with self._db.write() as connection:
            found = {one.question: _fold(connection, one, now) for one in new}
            _recount(connection, set(found.values()), now)
        return found

    def drawn(self, pipeline: str, since: float) -> dict[str, tuple[str, float | None]]:
        """Return plan and probability of the draws of an hour, by event id."""
        with self._db.read() as connection:
            held = _held(connection, label(pipeline), since)
        return {event_id: (row["plan"], row["p"]) for event_id, row in held.items()}

    def sync_hour(
        self, plan: Plan, drawn: Sequence[Candidate], standing: Collection[str] = frozenset()
    ) -> frozenset[str]:
        """Publish an hour's plan, and bring the set in line with what it draws, in one transaction.

        `standing` are events that it draws, too, and that are in the set as it says. What the plan draws no
        longer goes, unless a person has had its case in hand: then it stays and stands for no traffic.
        Returns the ids of the events that are new in the set.
        """
        now, name = self._clock.now(), label(plan.pipeline)
        with self._db.write() as connection:
            _publish(connection, plan, name, now)
            held = _held(connection, name, plan.since)
            wanted = {one.draw.event_id: one for one in drawn if one.draw is not None}
            held = {e: row for e, row in held.items() if e not in standing}
            gone = [held[e] for e in held.keys() - wanted.keys()]
            changed = {row["case_id"] for row in held.values()}
            fresh: set[str] = set()
            for event_id, one in wanted.items():
                if event_id in held:
                    _redraw(connection, one.draw)
                    continue
                changed.add(_fold(connection, one, now))
                fresh.add(event_id)
            _withdraw(connection, gone)
            _recount(connection, changed, now)
        return frozenset(fresh)

    def pool_hours(self, since_ts: float) -> Sequence[PoolHour]:
        """Return the hours from a time on that have sampled events, oldest first."""
        number = events.c.ts / 3600.0
        hour = cast(number, Integer) if self._db.sqlite else func.floor(number)
        bad = (
            select(feedback.c.event_id)
            .where(feedback.c.kind.in_(BAD_WORD), feedback.c.voted)
            .distinct()
            .subquery()
        )
        query = (
            select(
                pipelines.c.name,
                hour.label("since"),
                func.count().label("events"),
                func.count(bad.c.event_id).label("negative"),
            )
            .select_from(events)
            .join(configs, events.c.config_id == configs.c.id)
            .join(pipelines, configs.c.pipeline_id == pipelines.c.id)
            .outerjoin(bad, bad.c.event_id == events.c.id)
            .where(events.c.ts >= since_ts)
            .group_by(pipelines.c.name, hour)
            .order_by(hour, pipelines.c.name)
        )
        with self._db.read() as connection:
            return [
                PoolHour(pipeline=r.name, since=float(r.since) * 3600.0, events=r.events, negative=r.negative)
                for r in connection.execute(query)
            ]

    def bad_words(self, pipeline: str, since_ts: float, until_ts: float) -> set[str]:
        """Return the ids of events with a time in [since, until) that got a bad word which stands."""
        query = (
            select(feedback.c.event_id)
            .join(events, events.c.id == feedback.c.event_id)
            .where(
                feedback.c.kind.in_(BAD_WORD),
                feedback.c.voted,
                events.c.ts >= since_ts,
                events.c.ts < until_ts,
            )
        )
        with self._db.read() as connection:
            return set(connection.execute(query).scalars())

    def plans(self, pipeline: str, since_ts: float = 0.0) -> Sequence[Plan]:
        """Return the plans in force of the hours from a time on, oldest first."""
        query = (
            select(plans.c.document)
            .where(plans.c.pipeline == label(pipeline), plans.c.since >= since_ts, plans.c.current)
            .order_by(plans.c.since)
        )
        with self._db.read() as connection:
            return [_plan_decoder.decode(d) for d in connection.execute(query).scalars()]

    def plan(self, plan_id: str) -> Plan | None:
        """Return a plan by its id, in force or not."""
        with self._db.read() as connection:
            found = connection.execute(select(plans.c.document).where(plans.c.id == plan_id)).scalar()
        return None if found is None else _plan_decoder.decode(found)

    def question_count(self, pipeline: str) -> int:
        """Return how many cases of a pipeline have text."""
        of = (cases.c.pipeline == label(pipeline)) & cases.c.query.is_not(None)
        with self._db.read() as connection:
            return connection.execute(select(func.count()).select_from(cases).where(of)).scalar() or 0

    def questions(
        self, pipeline: str, before_ts: float | None = None
    ) -> Sequence[tuple[str, str, str, str, Side]]:
        """Return (key, text, scope, cluster, split) of the cases with text, first asked before a time."""
        query = select(
            cases.c.question, cases.c.query, cases.c.document, cases.c.cluster, cases.c.split
        ).where(cases.c.pipeline == label(pipeline), cases.c.query.is_not(None))
        if before_ts is not None:
            query = query.where(cases.c.first_ts < before_ts)
        with self._db.read() as connection:
            rows = connection.execute(query.order_by(cases.c.first_ts, cases.c.id)).all()
        return [(r.question, r.query, _scope(r.document), r.cluster, r.split) for r in rows]


def _scope(document: str) -> str:
    return _documents.decode(document).scope


def _fold(connection: Connection, one: Candidate, now: float) -> str:
    """Fold a candidate into the case of its question, or make one; return its id."""
    pipeline = label(one.pipeline)
    known = _known(connection, pipeline, one)
    case_id = known if known is not None else _begin(connection, pipeline, one, now)
    if one.draw is None:
        seen = cases.c.plain_seen + 1
        connection.execute(update(cases).where(cases.c.id == case_id).values(plain_seen=seen, last_ts=now))
    else:
        row = _draw_row(one.draw) | {"case_id": case_id, "pipeline": pipeline}
        if not _redraw(connection, one.draw):
            connection.execute(insert(draws).values(row))
    return case_id


def _known(connection: Connection, pipeline: str, one: Candidate) -> str | None:
    for key in dict.fromkeys((one.question, one.like or one.question)):
        at = (cases.c.pipeline == pipeline) & (cases.c.question == key)
        found = connection.execute(select(cases.c.id).where(at)).scalar()
        if found is not None:
            return str(found)
    return None


def _begin(connection: Connection, pipeline: str, one: Candidate, now: float) -> str:
    case_id = case_id_of(pipeline, one.question)
    draw = one.draw
    ts = draw.ts if draw else now
    document = CaseDocument(slices=dict(one.slices), corpus_revision=one.corpus_revision, scope=one.scope)
    connection.execute(
        insert(cases).values(
            id=case_id,
            pipeline=pipeline,
            question=one.question,
            query=one.query,
            origin=one.origin,
            state="candidate",
            split=one.side or side_of(one.cluster or one.question),
            cluster=one.cluster or one.question,
            stratum=draw.stratum if draw else one.origin,
            weight=0.0,
            seen=0,
            plain_seen=0,
            config=draw.config if draw else None,
            first_ts=ts,
            last_ts=ts,
            created=now,
            updated=now,
            revision=0,
            place=chance(case_id, QUEUE),
            touched=False,
            kept=False,
            disputed=False,
            skips=0,
            document=encode_document(document),
        )
    )
    if one.hits:
        keep_list(connection, case_id, one.hits, draw.config if draw else "", one.asked, ts)
    return case_id


def keep_list(
    connection: Connection, case_id: str, hits: Sequence[Hit], config: str, asked: int | None, ts: float
) -> None:
    """Give a case its list to judge, as deep as there is room for."""
    payload = _hits_encoder.encode(tuple(hits))
    while len(payload) > LIST_MAX:
        hits = hits[: len(hits) // 2]
        payload = _hits_encoder.encode(tuple(hits))
    connection.execute(delete(lists).where(lists.c.case_id == case_id))
    connection.execute(
        insert(lists).values(
            case_id=case_id, ts=ts, config=config, asked=asked, depth=len(hits), payload=payload
        )
    )


def encode_document(document: CaseDocument) -> str:
    """Return a case's document as it is stored."""
    return msgspec.json.encode(document).decode()


def decode_document(text: str) -> CaseDocument:
    """Return a stored document."""
    return _documents.decode(text)


def decode_hits(payload: bytes) -> tuple[Hit, ...]:
    """Return a stored list."""
    return _hits_decoder.decode(payload)


def _draw_row(draw: Draw) -> dict[str, Any]:
    return {
        "event_id": draw.event_id,
        "since": draw.ts - draw.ts % 3600.0,
        "ts": draw.ts,
        "stratum": draw.stratum,
        "strata": ",".join(draw.strata),
        "p": draw.p,
        "plan": draw.plan,
        "config": draw.config,
        "user_key": draw.user_key,
    }


def _redraw(connection: Connection, draw: Draw | None) -> bool:
    """Bring a draw up to date; False where there is none of this event."""
    if draw is None:
        return False
    row = _draw_row(draw)
    return bool(
        connection.execute(update(draws).where(draws.c.event_id == draw.event_id).values(row)).rowcount
    )


def _held(connection: Connection, pipeline: str, since: float) -> dict[str, RowMapping]:
    query = select(draws).where(draws.c.pipeline == pipeline, draws.c.since == since)
    return {row["event_id"]: row for row in connection.execute(query).mappings()}


def _publish(connection: Connection, plan: Plan, pipeline: str, now: float) -> None:
    of = (plans.c.pipeline == pipeline) & (plans.c.since == plan.since)
    connection.execute(update(plans).where(of, plans.c.current).values(current=False))
    at = plans.c.id == plan.id
    if not connection.execute(update(plans).where(at).values(current=True)).rowcount:
        connection.execute(
            insert(plans).values(
                id=plan.id,
                pipeline=pipeline,
                since=plan.since,
                published=now,
                current=True,
                document=_plan_encoder.encode(plan).decode(),
            )
        )


def _withdraw(connection: Connection, gone: Sequence[RowMapping]) -> None:
    """Take draws back whose hour's rate fell; those of cases in hand stay, for no traffic."""
    for row in gone:
        touched = connection.execute(
            select(cases.c.touched | cases.c.kept).where(cases.c.id == row["case_id"])
        ).scalar()
        at = draws.c.event_id == row["event_id"]
        if touched:
            connection.execute(update(draws).where(at).values(p=None))
        else:
            connection.execute(delete(draws).where(at))


def _recount(connection: Connection, case_ids: set[str], now: float) -> None:
    """Let the cases follow from their draws; one that nobody asked or touched any more goes."""
    for some in chunks(sorted(case_ids)):
        found: dict[str, list[RowMapping]] = {case_id: [] for case_id in some}
        query = select(draws).where(draws.c.case_id.in_(some)).order_by(draws.c.ts, draws.c.event_id)
        for row in connection.execute(query).mappings():
            found[row["case_id"]].append(row)
        about = select(cases).where(cases.c.id.in_(some))
        for case in connection.execute(about).mappings().all():
            _recount_one(connection, case, found[case["id"]], now)


def _recount_one(connection: Connection, case: RowMapping, drawn: Sequence[RowMapping], now: float) -> None:
    at = cases.c.id == case["id"]
    if not drawn and not case["plain_seen"] and not case["touched"] and not case["kept"]:
        remove_cases(connection, [case["id"]])
        return
    values: dict[str, Any] = {
        "seen": case["plain_seen"] + len(drawn),
        "weight": decode_document(case["document"]).own_weight
        + sum(1.0 / row["p"] for row in drawn if row["p"]),
        "updated": now,
    }
    first = next((row for row in drawn if row["p"]), None)
    if first is not None:
        values |= {name: first[name] for name in ("event_id", "stratum", "plan", "p", "config")}
    if drawn:
        values["first_ts"] = min(case["first_ts"], drawn[0]["ts"]) if case["plain_seen"] else drawn[0]["ts"]
        values["last_ts"] = max(case["last_ts"], drawn[-1]["ts"])
    connection.execute(update(cases).where(at).values(values))


def remove_cases(connection: Connection, case_ids: Sequence[str]) -> int:
    """Remove cases and everything that belongs to them; return how many."""
    removed = 0
    for some in chunks(case_ids):
        for table in (judgments, suggestions, reviews, lists, draws):
            connection.execute(delete(table).where(table.c.case_id.in_(some)))
        connection.execute(delete(history).where(history.c.case_id.in_(some)))
        removed += connection.execute(delete(cases).where(cases.c.id.in_(some))).rowcount
    return removed
