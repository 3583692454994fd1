"""The labelling desk: sampled events become cases, hour by hour, and imports find their place among them.

What is drawn follows from the store alone: the pool of an hour, the plans before it, and what was learnt. So
it may be decided again at any time, by whoever leads, with the same result.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import msgspec

from resweep.domain.batch import Batch
from resweep.domain.case import (
    REVIEWED_STATES,
    SIDES,
    Candidate,
    CaseLine,
    CaseRow,
    Draw,
    case_id_of,
    scope_of,
)
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
from resweep.label.splits import Placed, Question, declared, place
from resweep.schedule.due import Due
from resweep.schedule.questions import lost_questions
from resweep.store.cases import PoolHour
from resweep.store.caseset import Imported, line_key
from resweep.store.reviews import Move
from resweep.store.sql import SqlStore

log = logging.getLogger("resweep.schedule")

HEARD_S = 49 * 3600.0  # hours this old are decided again, where late events or feedback came
PLANS_S = 3 * 86_400.0
RUN_S = 6.0  # a run works for about so long; the next one goes on
SLICE = 200  # cases of one transaction: others write in between


class _Set:
    """The questions of one pipeline's set, found again by likeness."""

    def __init__(self) -> None:
        self.nearby = Nearby()
        self.placed: dict[str, Placed] = {}
        self.whole = False

    def refresh(self, store: SqlStore, pipeline: str, goes_on: Callable[[], bool]) -> bool:
        """Take in what others put into the set, and leave out what went; False where time ran out."""
        rows = {row[0]: row for row in store.questions(pipeline)}
        for key in self.placed.keys() - rows.keys():
            self.nearby.remove(key)
        self.placed = {key: Placed(row[3], row[4]) for key, row in rows.items()}
        self.whole = False
        for key, query, scope, _, _ in rows.values():
            if not goes_on():
                return False
            self.nearby.add(key, query, scope)
        self.whole = True
        return True

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


@dataclass(slots=True)
class _Begun:
    """An hour whose draws are brought into the set, slice by slice; its plan is published with the last."""

    plan: Plan
    pool: Sequence[Pooled]
    events: Mapping[str, RetrievalEvent]
    known: frozenset[str]  # events of the hour that were in the set before
    standing: set[str]  # events whose draws are as the plan says
    left: list[tuple[Pooled, Draw]]
    over: bool


class CaseDesk:
    """Makes cases. All methods may be called from any thread.

    Work is done in slices, and a run ends after `run_s`: what is left the next one does. A crash in between
    loses nothing, since an hour counts as decided once its plan is published.
    """

    def __init__(
        self,
        store: SqlStore,
        settings: LabelSettings | None = None,
        clock: Clock | None = None,
        embed: Embedder | None = None,
        *,
        run_s: float = RUN_S,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._store = store
        self._sampler = Sampler(settings, embed)
        self._clock = clock or SystemClock()
        self._lock = threading.Lock()
        self._sets: dict[str, _Set] = {}
        self._fresh: set[str] = set()  # pipelines whose set was read in this run
        self._run_s = run_s
        self._monotonic = monotonic
        self._until = 0.0
        self._begun: _Begun | None = None

    @property
    def settings(self) -> LabelSettings:
        """What labelling was told."""
        return self._sampler.settings

    def run(self, run: Due | None = None) -> int:
        """Decide the hours whose pool or feedback grew; return how many events came into the set."""
        now = self._clock.now()
        with self._lock:
            self._fresh.clear()
            self._until = self._monotonic() + self._run_s
            came = self._go_on()
            hours = iter(self._store.pool_hours(now - HEARD_S))
            while self._begun is None and self._goes_on() and (hour := next(hours, None)) is not None:
                came += self._hour(hour, now)
            if self._begun is None:
                self._deepen()
            return came

    def _goes_on(self) -> bool:
        return self._monotonic() < self._until

    def import_lines(self, lines: Sequence[CaseLine], who: str) -> Sequence[Imported]:
        """Take cases in, near-equal questions on one side of the split."""
        done: list[Imported] = []
        for start in range(0, len(lines), SLICE):
            with self._lock:
                self._fresh.clear()
                done += self._import(lines[start : start + SLICE], who)
        return done

    def _import(self, lines: Sequence[CaseLine], who: str) -> Sequence[Imported]:
        by_pipeline: dict[str, list[CaseLine]] = {}
        for line in lines:
            by_pipeline.setdefault(line.pipeline or "", []).append(line)
        placed: dict[str, tuple[str, str]] = {}
        for pipeline, some in by_pipeline.items():
            placed.update(self._places(pipeline, some))
        return self._store.import_cases(lines, who, placed)

    def _places(self, pipeline: str, lines: Iterable[CaseLine]) -> dict[str, tuple[str, str]]:
        """Return where questions belong. A side that a line names stands, unless it would leak."""
        known = self._set(pipeline)
        new: dict[str, CaseLine] = {}
        for line in lines:
            new.setdefault(line_key(line), line)
        questions = {
            key: Question(key, line.query or "", scope_of(line.filters)) for key, line in new.items()
        }
        for key, line in new.items():
            side = next((side for side in SIDES if side == line.split), None)
            if line.cluster and side is not None and key not in known.placed:
                at = declared(questions[key], Placed(line.cluster, side), known.placed, known.nearby)
                known.placed[key] = at
        known.placed.update(place(questions.values(), known.placed, known.nearby, self.settings.holdout))
        return {key: (known.placed[key].cluster, known.placed[key].side) for key in new}

    def _set(self, pipeline: str) -> _Set:
        """Return the whole set of a pipeline, however long reading it takes."""
        found = self._sets.setdefault(pipeline, _Set())
        self._read(pipeline, found, lambda: True)
        return found

    def _read(self, pipeline: str, known: _Set, goes_on: Callable[[], bool]) -> bool:
        """Bring a set up to date; False where time ran out. It is read anew only where its number changed."""
        if pipeline in self._fresh:
            return True
        changed = not known.whole or self._store.question_count(pipeline) != len(known.placed)
        if changed and not known.refresh(self._store, pipeline, goes_on):
            return False
        self._fresh.add(pipeline)
        return True

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
        if not grown:
            self._learn(hour.pipeline, pool, hour.since + HOUR)
            return 0
        plan = held if held is not None and not over and _holds(hour, held) else None
        plan = plan or self._plan(hour, pool, plans, held, learnt, over)
        self._begin(plan, pool, events, over)
        return self._go_on()

    def _learn(self, pipeline: str, pool: Sequence[Pooled], until: float) -> None:
        learnt = self._learnt(pipeline)
        learnt.learn(pool, until)
        self._store.save_state(_state(pipeline), msgspec.json.encode(learnt))

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
        lost = held.lost if held is not None and over else lost_questions(self._store, hour.pipeline)
        known = Known(
            plans=plans,
            references=settled or references(learnt.with_rows(pool)),
            questions=[row[1] for row in self._store.questions(hour.pipeline, hour.since)],
            lost=lost,
        )
        return self._sampler.plan(hour.pipeline, hour.since, pool, known, held)

    def _begin(
        self, plan: Plan, pool: Sequence[Pooled], events: Mapping[str, RetrievalEvent], over: bool
    ) -> None:
        held = self._store.drawn(plan.pipeline, plan.since)
        every = [(one, draw) for one, draw in self._sampler.draws(pool, plan) if one.question is not None]
        standing = {draw.event_id for _, draw in every if held.get(draw.event_id) == (draw.plan, draw.p)}
        left = [(one, draw) for one, draw in every if draw.event_id not in standing]
        self._begun = _Begun(plan, pool, events, frozenset(held), standing, left, over)

    def _go_on(self) -> int:
        """Bring the next draws of the hour at hand into the set; publish its plan with the last of them."""
        at, came = self._begun, 0
        if at is None:
            return 0
        known = self._sets.setdefault(at.plan.pipeline, _Set())
        if at.left and not self._read(at.plan.pipeline, known, self._goes_on):
            return 0
        while len(at.left) > SLICE:
            some, at.left = at.left[:SLICE], at.left[SLICE:]
            self._store.enqueue(self._candidates(at, some))
            at.standing.update(draw.event_id for _, draw in some)
            came += self._came(at, some)
            if not self._goes_on():
                return came
        self._store.sync_hour(at.plan, self._candidates(at, at.left), at.standing)
        came += self._came(at, at.left)
        if at.over:
            self._learn(at.plan.pipeline, at.pool, at.plan.until)
        self._begun = None
        return came

    def _candidates(self, at: _Begun, some: Sequence[tuple[Pooled, Draw]]) -> list[Candidate]:
        return [self._candidate(one, draw, at.events[one.id]) for one, draw in some]

    def _came(self, at: _Begun, some: Sequence[tuple[Pooled, Draw]]) -> int:
        fresh = [draw for _, draw in some if draw.event_id not in at.known]
        self._count(at.plan, fresh)
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
