"""What a recorded stream would have put into the labelled set.

Time is that of the events. An hour is planned when an event of a later hour arrives, from its own counts and
the plans before it; feedback of the next two days is still heard.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from resweep.domain.case import CaseLine, Draw, case_id_of, filters_of
from resweep.domain.event import Feedback, RetrievalEvent
from resweep.domain.sampling import HOUR, Plan, Pooled, pooled
from resweep.label.learning import Learnt, references
from resweep.label.nearby import Nearby
from resweep.label.planning import HISTORY, hour_of
from resweep.label.sampler import Known, Sampler
from resweep.label.splits import Placed, Question, place

HEARD_S = 48 * 3600.0  # how long feedback can still make a case of an event
BAD_WORD = ("negative", "not_found", "escalated")


@dataclass(slots=True)
class _Hour:
    pool: dict[str, Pooled] = field(default_factory=dict)
    plan: Plan | None = None
    questions: tuple[str, ...] = ()  # of the set, before the hour
    stale: bool = False


@dataclass(slots=True)
class _Traffic:
    """One pipeline: its open hours, the plans of the last day, what was learnt and what was drawn."""

    hours: dict[float, _Hour] = field(default_factory=dict)
    plans: dict[float, Plan] = field(default_factory=dict)
    learnt: Learnt = field(default_factory=Learnt)
    drawn: dict[str, str] = field(default_factory=dict)  # question -> text, by the hours planned so far
    latest: float = 0.0


class CaseRecorder:
    """Takes a stream in and gives the cases that sampling makes of it."""

    def __init__(self, sampler: Sampler | None = None) -> None:
        self.sampler = sampler or Sampler()
        self._traffic: dict[str, _Traffic] = {}
        self._where: dict[str, tuple[str, float]] = {}
        self._books: dict[str, CaseBook] = {}

    def take(self, event: RetrievalEvent) -> None:
        """Take one event; probes are no traffic."""
        if event.probe:
            return
        traffic = self._traffic.setdefault(event.pipeline, _Traffic())
        since = hour_of(event.ts)
        if since > traffic.latest:
            self._pass(event.pipeline, traffic, since)
        if since not in traffic.hours and since in traffic.plans:
            self._late(event, traffic.plans[since])
            return
        hour = traffic.hours.setdefault(since, _Hour())
        if event.id not in hour.pool:
            hour.pool[event.id] = pooled(event)
            hour.stale = True
            self._where[event.id] = (event.pipeline, since)

    def hear(self, feedback: Feedback) -> None:
        """Take one piece of feedback; only a bad word makes a candidate, a good one never labels."""
        at = self._where.get(feedback.event_id)
        if at is None or feedback.kind not in BAD_WORD:
            return
        hour = self._traffic[at[0]].hours.get(at[1])
        if hour is not None:
            hour.pool[feedback.event_id] = hour.pool[feedback.event_id]._replace(negative=True)
            hour.stale = True

    def finish(self) -> list[CaseLine]:
        """Settle all hours and return the cases, by pipeline and time of first being asked."""
        for pipeline, traffic in sorted(self._traffic.items()):
            self._plan_all(pipeline, traffic)
            for since in sorted(traffic.hours):
                self._settle(pipeline, traffic, since)
        return [case for _, book in sorted(self._books.items()) for case in book.lines()]

    def _pass(self, pipeline: str, traffic: _Traffic, now: float) -> None:
        """Let the stream reach a new hour: plan those before it, settle those two days old."""
        self._plan_all(pipeline, traffic)
        for since in sorted(traffic.hours):
            if since < now - HEARD_S:
                self._settle(pipeline, traffic, since)
        traffic.latest = now

    def _plan_all(self, pipeline: str, traffic: _Traffic) -> None:
        for since in sorted(since for since, hour in traffic.hours.items() if hour.stale):
            hour = traffic.hours[since]
            if hour.plan is None:
                hour.questions = tuple(traffic.drawn.values())
            hour.plan = self._planned(pipeline, traffic, since, hour)
            hour.stale = False
            traffic.plans[since] = hour.plan
            traffic.learnt.learn(hour.pool.values(), since + HOUR)
            for one, _ in self.sampler.draws(hour.pool.values(), hour.plan):
                if one.question and one.query:
                    traffic.drawn.setdefault(one.question, one.query)
        for old in sorted(traffic.plans)[: -2 * HISTORY]:
            if old not in traffic.hours:
                del traffic.plans[old]

    def _planned(self, pipeline: str, traffic: _Traffic, since: float, hour: _Hour) -> Plan:
        pool = list(hour.pool.values())
        held = hour.plan
        found = references(traffic.learnt.with_rows(pool)) if held is None else dict(held.references)
        known = Known(plans=tuple(traffic.plans.values()), references=found, questions=hour.questions)
        return self.sampler.plan(pipeline, since, pool, known, held)

    def _settle(self, pipeline: str, traffic: _Traffic, since: float) -> None:
        hour = traffic.hours.pop(since)
        assert hour.plan is not None
        book = self._books.setdefault(pipeline, CaseBook(pipeline, self.sampler.settings.holdout))
        for one, draw in self.sampler.draws(hour.pool.values(), hour.plan):
            book.fold(one, draw)
        for event_id in hour.pool:
            self._where.pop(event_id, None)

    def _late(self, event: RetrievalEvent, plan: Plan) -> None:
        book = self._books.setdefault(event.pipeline, CaseBook(event.pipeline, self.sampler.settings.holdout))
        for one, draw in self.sampler.draws([pooled(event)], plan):
            book.fold(one, draw)


class CaseBook:
    """The cases of one pipeline in the making: near-equal questions are one case, its weights added up."""

    def __init__(self, pipeline: str, holdout: float) -> None:
        self._pipeline = pipeline
        self._holdout = holdout
        self._nearby = Nearby()
        self._placed: dict[str, Placed] = {}
        self._cases: dict[str, CaseLine] = {}

    def fold(self, one: Pooled, draw: Draw) -> None:
        """Add one sampled event to the case of its question, or begin one."""
        key = self._key(one)
        case = self._cases.get(key)
        if case is None:
            self._cases[key] = self._begun(key, one, draw)
            return
        case.weight = (case.weight or 0.0) + 1.0 / draw.p
        case.seen += 1
        case.first_ts = min(case.first_ts or draw.ts, draw.ts)
        case.last_ts = max(case.last_ts or draw.ts, draw.ts)
        case.events.append(draw)

    def lines(self) -> list[CaseLine]:
        """Return the cases in the order of their first event."""
        return sorted(self._cases.values(), key=lambda case: (case.first_ts or 0.0, case.case_id))

    def _key(self, one: Pooled) -> str:
        if one.question is None or one.query is None:
            return f"event:{one.id}"
        if one.question not in self._cases:
            like = self._nearby.like(one.query, one.scope)
            return like[0] if like else one.question
        return one.question

    def _begun(self, key: str, one: Pooled, draw: Draw) -> CaseLine:
        placed = self._place(key, one)
        return CaseLine(
            case_id=case_id_of(self._pipeline, key),
            query=one.query,
            filters=filters_of(one.scope),
            pipeline=self._pipeline,
            stratum=draw.stratum,
            inclusion_probability=draw.p,
            weight=1.0 / draw.p,
            plan=draw.plan,
            state="candidate",
            split=placed.side,
            provenance="feedback" if draw.stratum == "feedback" else "live",
            event_id=draw.event_id,
            config=draw.config,
            cluster=placed.cluster,
            first_ts=draw.ts,
            last_ts=draw.ts,
            events=[draw],
        )

    def _place(self, key: str, one: Pooled) -> Placed:
        new = [Question(key, one.query or "", one.scope)]
        self._placed.update(place(new, self._placed, self._nearby, self._holdout))
        return self._placed[key]


def replay_cases(
    items: Iterable[RetrievalEvent | Feedback], sampler: Sampler | None = None
) -> list[CaseLine]:
    """Return what a recorded stream would have put into the labelled set."""
    recorder = CaseRecorder(sampler)
    for item in items:
        if isinstance(item, Feedback):
            recorder.hear(item)
        else:
            recorder.take(item)
    return recorder.finish()
