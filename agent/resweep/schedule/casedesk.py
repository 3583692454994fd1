"""The labelling desk: sampled events become cases, hour by hour, and imports find their place among them.

What is drawn follows from the store alone: the pool of an hour, the plans before it, and what was learnt. So
it may be decided again at any time, by whoever leads, with the same result.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterable, Iterator, Sequence

import msgspec

from resweep.domain.batch import Batch
from resweep.domain.case import REVIEWED_STATES, Candidate, CaseLine, CaseRow, Draw, case_id_of
from resweep.domain.clock import Clock, SystemClock
from resweep.domain.event import Hit, RetrievalEvent
from resweep.domain.sampling import HOUR, Plan, Pooled, pooled
from resweep.domain.window import MINUTE, Window
from resweep.label.anchors import anchored
from resweep.label.learning import Learnt, references
from resweep.label.nearby import Nearby
from resweep.label.novelty import Embedder
from resweep.label.planning import rounded_up
from resweep.label.sampler import Known, Sampler
from resweep.label.settings import LabelSettings
from resweep.label.splits import Placed, Question, place
from resweep.schedule.due import Due
from resweep.store.cases import PoolHour
from resweep.store.caseset import Imported, line_key
from resweep.store.reviews import Move
from resweep.store.sql import SqlStore

log = logging.getLogger("resweep.schedule")

HEARD_S = 49 * 3600.0  # hours this old are decided again, where late events or feedback came
PLANS_S = 3 * 86_400.0


class _Set:
    """The questions of one pipeline's set, found again by likeness."""

    def __init__(self) -> None:
        self.nearby = Nearby()
        self.placed: dict[str, Placed] = {}

    def refresh(self, store: SqlStore, pipeline: str) -> None:
        """Take in what others put into the set, and leave out what went."""
        rows = {row[0]: row for row in store.questions(pipeline)}
        for key in self.placed.keys() - rows.keys():
            self.nearby.remove(key)
        self.placed = {key: Placed(row[3], row[4]) for key, row in rows.items()}
        for key, query, scope, _, _ in rows.values():
            self.nearby.add(key, query, scope)

    def find(self, question: Question, holdout: float) -> tuple[str | None, Placed]:
        """Return the key of the near-equal question in the set, None for none, and the question's place."""
        held = self.placed.get(question.key)
        if held is not None:
            return None, held
        like = [key for key in self.nearby.like(question.query, question.scope) if key in self.placed]
        if like:
            return like[0], self.placed[like[0]]
        self.placed.update(place([question], self.placed, self.nearby, holdout))
        return None, self.placed[question.key]


class CaseDesk:
    """Makes cases. All methods may be called from any thread."""

    def __init__(
        self,
        store: SqlStore,
        settings: LabelSettings | None = None,
        clock: Clock | None = None,
        embed: Embedder | None = None,
    ) -> None:
        self._store = store
        self._sampler = Sampler(settings, embed)
        self._clock = clock or SystemClock()
        self._lock = threading.Lock()
        self._sets: dict[str, _Set] = {}
        self._fresh: set[str] = set()  # pipelines whose set was read in this run

    @property
    def settings(self) -> LabelSettings:
        """What labelling was told."""
        return self._sampler.settings

    def run(self, run: Due | None = None) -> int:
        """Decide the hours whose pool or feedback grew; return how many events came into the set."""
        now = self._clock.now()
        with self._lock:
            self._fresh.clear()
            came = sum(self._hour(hour, now) for hour in self._store.pool_hours(now - HEARD_S))
            self._deepen()
            return came

    def import_lines(self, lines: Sequence[CaseLine], who: str) -> Sequence[Imported]:
        """Take cases in, near-equal questions on one side of the split."""
        with self._lock:
            self._fresh.clear()
            by_pipeline: dict[str, list[CaseLine]] = {}
            for line in lines:
                by_pipeline.setdefault(line.pipeline or "", []).append(line)
            placed: dict[str, tuple[str, str]] = {}
            for pipeline, some in by_pipeline.items():
                placed.update(self._places(pipeline, some))
            return self._store.import_cases(lines, who, placed)

    def _places(self, pipeline: str, lines: Iterable[CaseLine]) -> dict[str, tuple[str, str]]:
        known = self._set(pipeline)
        new = [Question(line_key(line), line.query or "") for line in lines]
        found = place(new, known.placed, known.nearby, self.settings.holdout)
        known.placed.update(found)
        return {q.key: (known.placed[q.key].cluster, known.placed[q.key].side) for q in new}

    def _set(self, pipeline: str) -> _Set:
        found = self._sets.setdefault(pipeline, _Set())
        if pipeline not in self._fresh:
            # Reading 50,000 questions takes a while; an import of many parts is the only one to change them.
            if self._store.question_count(pipeline) != len(found.placed):
                found.refresh(self._store, pipeline)
            self._fresh.add(pipeline)
        return found

    def _hour(self, hour: PoolHour, now: float) -> int:
        plans = self._store.plans(hour.pipeline, hour.since - PLANS_S)
        held = next((plan for plan in plans if plan.since == hour.since), None)
        learnt = self._learnt(hour.pipeline)
        over = hour.since + HOUR <= now
        grown = held is None or _grown(hour, held)
        if not grown and (not over or learnt.until >= hour.since + HOUR):
            return 0
        events = {event.id: event for event in self._pool(hour)}
        bad = self._store.bad_words(hour.pipeline, hour.since, hour.since + HOUR)
        pool = [pooled(event, event.id in bad) for event in events.values()]
        self._look_again(hour.pipeline, pool, events)
        fresh = 0
        if grown:
            plan = held if held is not None and not over and _holds(hour, held) else None
            plan = plan or self._plan(hour, pool, plans, held, learnt, over)
            fresh = self._draw(plan, pool, events)
        if over:
            learnt.learn(pool, hour.since + HOUR)
            self._store.save_state(_state(hour.pipeline), msgspec.json.encode(learnt))
        return fresh

    def _look_again(self, pipeline: str, pool: Sequence[Pooled], events: dict[str, RetrievalEvent]) -> None:
        """Bring the lists of judged cases up to date where their question was asked of another config."""
        listed = self._store.listed(pipeline)
        for one in pool:
            at = listed.get(one.question or "")
            if at is None or at.state not in REVIEWED_STATES or at.state == "rejected":
                continue
            event = events[one.id]
            if event.hits and one.ts > at.ts and one.config != at.config:
                self.relist(at.case_id, event.hits, event.config, event.returned, event.ts)
                listed = {**listed, one.question or "": at._replace(config=event.config, ts=event.ts)}

    def _deepen(self) -> None:
        """Take the deeper lists in that probes brought."""
        for case_id, event_id in self._store.probed():
            probe, event = self._store.probe(event_id), self._store.event(event_id)
            if probe is not None and event is not None:
                self.relist(case_id, probe.hits, probe.config, event.returned, probe.ts)

    def relist(self, case_id: str, hits: Sequence[Hit], config: str, asked: int | None, ts: float) -> CaseRow:
        """Give a case another list to judge; its judgments go where their texts are now."""
        view = self._store.case(case_id)
        moves = [
            Move(
                a.judgment.reviewer,
                a.judgment.passage_id,
                a.anchor,
                None if a.to is None else a.to.id,
                a.judgment.text_hash if a.to is None else a.to.text_hash,
            )
            for a in anchored(view.judgments, view.hits, hits)
        ]
        return self._store.reanchor(case_id, moves, hits, config, asked, ts)

    def _pool(self, hour: PoolHour) -> Iterator[RetrievalEvent]:
        for event in self._store.events(hour.pipeline, hour.since, hour.since + HOUR):
            if not event.probe:
                yield event

    def _plan(
        self,
        hour: PoolHour,
        pool: Sequence[Pooled],
        plans: Sequence[Plan],
        held: Plan | None,
        learnt: Learnt,
        over: bool,
    ) -> Plan:
        settled = dict(held.references) if held is not None and over else {}
        known = Known(
            plans=plans,
            references=settled or references(learnt.with_rows(pool)),
            questions=[row[1] for row in self._store.questions(hour.pipeline, hour.since)],
        )
        return self._sampler.plan(hour.pipeline, hour.since, pool, known, held)

    def _draw(self, plan: Plan, pool: Sequence[Pooled], events: dict[str, RetrievalEvent]) -> int:
        drawn = [
            self._candidate(one, draw, events[one.id])
            for one, draw in self._sampler.draws(pool, plan)
            if one.question is not None
        ]
        fresh = self._store.sync_hour(plan, drawn)
        self._count(plan, [one.draw for one in drawn if one.draw and one.draw.event_id in fresh])
        return len(fresh)

    def _candidate(self, one: Pooled, draw: Draw, event: RetrievalEvent) -> Candidate:
        question = Question(one.question or "", one.query or "", one.scope)
        like, placed = self._set(event.pipeline).find(question, self.settings.holdout)
        return Candidate(
            pipeline=event.pipeline,
            question=question.key,
            query=one.query,
            draw=draw,
            origin="feedback" if draw.stratum == "feedback" else "live",
            like=like,
            cluster=placed.cluster,
            side=placed.side,
            scope=one.scope,
            hits=event.hits,
            asked=event.returned,
        )

    def _count(self, plan: Plan, fresh: Sequence[Draw]) -> None:
        """Count what each stratum brought in; the even sample is counted where it is made."""
        windows: dict[str, Window] = {}
        for draw in fresh:
            if draw.stratum != "uniform":
                at = Window(plan.pipeline, draw.config, int(plan.since // MINUTE))
                windows.setdefault(draw.config, at).add(f"sampled:{draw.stratum}")
        if windows:
            last = max(draw.event_id for draw in fresh)
            writer = f"label-{case_id_of(plan.id, last)}"
            self._store.apply(Batch(writer=writer, seq=0, ts=plan.until, windows=list(windows.values())))

    def _learnt(self, pipeline: str) -> Learnt:
        saved = self._store.state(_state(pipeline))
        if saved is None:
            return Learnt()
        try:
            return msgspec.json.decode(saved, type=Learnt)
        except msgspec.MsgspecError as error:
            log.warning("what was learnt of %s cannot be read and is learnt anew: %s", pipeline, error)
            return Learnt()


def _state(pipeline: str) -> str:
    return f"learnt:{case_id_of(pipeline, '')}"


def _grown(hour: PoolHour, plan: Plan) -> bool:
    return hour.events > plan.counts.get("uniform", 0.0) or hour.negative > plan.counts.get("feedback", 0.0)


def _holds(hour: PoolHour, plan: Plan) -> bool:
    """Whether a plan's rates still keep to the budget: they are made for counts rounded up."""
    return hour.events <= rounded_up(plan.counts.get("uniform", 0.0)) and hour.negative <= plan.counts.get(
        "feedback", 0.0
    )
