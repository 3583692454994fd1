"""A sweep of a live retriever: each question asked as seldom as the retriever allows.

Where the list at a smaller depth is the beginning of the list at a larger one, one retrieval at the greatest
depth serves them all. That is checked on some of the cases, never assumed: a retriever that reranks what it
was asked for, or that does not repeat itself, is asked at every depth on its own. In a grid every
candidate depth is asked for anew: a reranker that saw twenty candidates says nothing of one that saw five.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import msgspec
import numpy as np

from resweep.domain.errors import BudgetSpentError, InputError, UsageError
from resweep.domain.measures import check_depths
from resweep.sweep.answered import Checking, answer_all, check_affordable, with_answers, with_weights
from resweep.sweep.answers import NO_COST, AnswerCost, Answering
from resweep.sweep.cache import Kept, key_of
from resweep.sweep.calls import Ask, Calls, Policy, Watcher
from resweep.sweep.engine import Sweep, sweep_lists
from resweep.sweep.evidence import Cell
from resweep.sweep.lists import Case, Lists, RankedList
from resweep.sweep.settings import Latency, SweepSettings
from resweep.sweep.usefulness import Place, Weighing, places_of, weigh, weighing_cost

SAMPLE = 20  # cases on which it is checked that lists are beginnings of one another
P50_LEAST, P95_LEAST = 20, 100  # calls at a depth before these are told of it
_SCHEMA = "resweep.answers/1"


class Question(NamedTuple):
    """What a retriever is asked: `candidate_k` None where the sweep has no grid, `filters` None for none."""

    query: str
    context_k: int
    candidate_k: int | None = None
    filters: Mapping[str, object] | None = None


def question_of(case: Case, context_k: int, candidate_k: int | None) -> Question:
    """Return a case as a retriever is asked it: its words, and the filters that they came with."""
    return Question(case.query or "", context_k, candidate_k, case.filters)


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """A live retriever. `version` names it and all that its answers depend on: config, corpus revision.

    `takes_depth` is False for one that returns as many passages as it likes.
    """

    ask: Callable[[Question], RankedList]
    version: str
    takes_depth: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """What is to be swept. `candidate_ks` empty: one list per question, no grid."""

    cases: Sequence[Case]
    ks: Sequence[int]
    candidate_ks: Sequence[int] = ()
    sample: int = SAMPLE

    def rows(self) -> dict[int | None, tuple[int, ...]]:
        """Return the context depths to ask for by candidate depth; impossible cells are never run.

        Raises UsageError for depths below 1.
        """
        ks = tuple(check_depths(self.ks).tolist())
        if not self.candidate_ks:
            return {None: ks}
        candidates = check_depths(self.candidate_ks).tolist()
        return {c: tuple(k for k in ks if k <= c) for c in candidates if ks[0] <= c}

    def asked(self) -> list[Case]:
        """Return the cases to ask for: those somebody judged. Raises InputError for one without a query."""
        judged = [case for case in self.cases if case.kind != "unjudged"]
        mute = [case.case_id for case in judged if not case.query]
        if mute:
            raise InputError(
                f"expected the text of every query, got none for {len(mute)} of {len(judged)} cases "
                f"('{mute[0]}', ...): give a BEIR folder, resweep.case/1, or --queries FILE"
            )
        return judged

    def checked(self) -> list[Case]:
        """Return the cases on which prefixes are checked, spread evenly over all."""
        judged = self.asked()
        if len(judged) <= self.sample:
            return judged
        return [judged[i * len(judged) // self.sample] for i in range(self.sample)]


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """What a sweep will cost, before it starts: `least` calls where lists are prefixes, `most` where not.

    Retries come on top. `cached` answers are there already and cost nothing.
    """

    cases: int
    least: int
    most: int
    cached: int


class _Answer(msgspec.Struct, array_like=True):
    """A ranked list as it is kept, with the seconds it took."""

    seconds: float
    ids: list[str]
    scores: list[float | None]
    sources: list[str | None]
    tokens: list[int | None]
    text_hashes: list[str | None]
    texts: list[str | None]


_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(_Answer).decode


@dataclass(slots=True, kw_only=True)
class Gathered:
    """The lists of a live retriever: `runs` by candidate depth, `own` for cells asked for by themselves.

    `nested` says whether lists were prefixes, which `checked` cases with passages at every depth showed (the
    fewest of any candidate depth). `errors` says what failed for good, by case id.
    """

    runs: dict[int, Lists] = field(default_factory=dict)
    own: dict[Cell, Lists] = field(default_factory=dict)
    latency: dict[Cell, Latency] = field(default_factory=dict)
    nested: bool = True
    checked: int | None = None
    errors: dict[str, str] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)

    def cells(self, wanted: Wanted) -> dict[Cell, Lists]:
        """Return the lists of every cell that can be measured: neither impossible nor beyond all lists."""
        found = {}
        for candidate_k, lists in self.runs.items():
            for k in check_depths(wanted.ks).tolist():
                cell = Cell(candidate_k, k)
                mine = self.own.get(cell, lists)
                if k <= _longest(mine) and (k <= candidate_k or not wanted.candidate_ks):
                    found[cell] = mine
        return found


def key_for(target: Target, question: Question) -> str:
    """Return the key under which an answer is kept: equal questions to an equal version share it."""
    under = (dict(question.filters),) if question.filters else ()
    return key_of(_SCHEMA, target.version, question.query, question.context_k, question.candidate_k, *under)


def estimate_calls(target: Target, wanted: Wanted, cache: Kept) -> Estimate:
    """Return what the sweep will cost, less what is answered already."""
    least: set[str] = set()
    most: set[str] = set()
    everyone, some = wanted.asked(), wanted.checked()
    for candidate_k, ks in wanted.rows().items():
        for k in ks if target.takes_depth else ks[-1:]:
            keys = {key_for(target, question_of(case, k, candidate_k)) for case in everyone}
            sample = {key_for(target, question_of(case, k, candidate_k)) for case in some}
            most |= keys
            least |= keys if k == ks[-1] else sample
    there = {key for key in most if cache.get(key) is not None}
    return Estimate(cases=len(everyone), least=len(least - there), most=len(most - there), cached=len(there))


def check_budget(estimates: Sequence[Estimate], calls: Calls) -> None:
    """Raise BudgetSpentError where the budget of calls cannot suffice for all of these together.

    Where others share the work nobody knows how much of it falls to this worker.
    """
    if calls.cache.shared:
        return
    most, so_far = calls.policy.max_calls, calls.progress.calls
    least = so_far + sum(one.least for one in estimates)
    if most is not None and least > most:
        told = f"of which {so_far} are spent" if so_far else "nothing was asked"
        raise BudgetSpentError(
            f"expected a budget of at least {least} calls ({estimates[0].cases} cases), got {most}; {told}: "
            "raise it, or sweep fewer cases"
        )


def gather_live(target: Target, wanted: Wanted, calls: Calls) -> Gathered:
    """Return the lists of every cell, asking as seldom as the retriever allows.

    Raises BudgetSpentError before anything is asked where the budget cannot suffice, and InputError where the
    retriever does not answer.
    """
    check_budget([estimate_calls(target, wanted, calls.cache)], calls)
    gathered = Gathered()
    for candidate_k, ks in wanted.rows().items():
        _Row(target, wanted, calls, candidate_k, ks, gathered).run()
    _note(gathered, target, wanted)
    return gathered


@dataclass(slots=True)
class _Row:
    """One candidate depth with its context depths."""

    target: Target
    wanted: Wanted
    calls: Calls
    candidate_k: int | None
    ks: tuple[int, ...]
    into: Gathered

    def run(self) -> None:
        some, everyone = self.wanted.checked(), self.wanted.asked()
        deepest = self.ks[-1]
        nested = True
        if self.target.takes_depth and len(self.ks) > 1:
            at = {k: self.ask(some, k) for k in self.ks}
            seen = [c.case_id for c in some if all(c.case_id in at[k] for k in self.ks)]
            seen = [case_id for case_id in seen if at[deepest][case_id].ids]
            # where nothing could be compared, nothing is known to be nested
            nested = bool(seen) and all(_is_prefix(at[k], at[deepest], k) for k in self.ks)
            self.into.checked = min(len(seen), len(seen) if self.into.checked is None else self.into.checked)
        lists = self.used(everyone, deepest)
        row = self.candidate_k or (deepest if self.target.takes_depth else _longest(lists))
        self.into.runs[row] = lists
        if not nested:
            self.into.nested = False
            for k in self.ks[:-1]:
                self.into.own[Cell(row, k)] = self.used(everyone, k)

    def used(self, cases: Sequence[Case], k: int) -> dict[str, RankedList]:
        """Return the lists at one depth that are measured; what failed is noted as missing."""
        lists = self.ask(cases, k)
        for case in cases:
            if case.case_id not in lists:
                key = key_for(self.target, question_of(case, k, self.candidate_k))
                self.into.errors[case.case_id] = self.calls.errors.get(key, "no answer")
        return lists

    def ask(self, cases: Sequence[Case], k: int) -> dict[str, RankedList]:
        """Return the lists at one depth by case id, in the order of the cases, without what failed."""
        questions = {case.case_id: question_of(case, k, self.candidate_k) for case in cases}
        keys = {case_id: key_for(self.target, question) for case_id, question in questions.items()}
        asks = [Ask(keys[case_id], self._call(question)) for case_id, question in questions.items()]
        found = self.calls.run(asks)
        lists, seconds = {}, []
        for case in cases:
            raw = found.get(keys[case.case_id])
            if raw is None:
                continue
            answer = _decode(raw)
            seconds.append(answer.seconds)
            lists[case.case_id] = _as_list(answer, case.query, k if self.target.takes_depth else None)
        self._time(k, seconds)
        return lists

    def _call(self, question: Question) -> Callable[[], bytes]:
        def call() -> bytes:
            clock = self.calls.policy.clock
            started = clock()
            ranked = self.target.ask(question)
            return _encode(_as_answer(ranked, clock() - started))

        return call

    def _time(self, k: int, seconds: Sequence[float]) -> None:
        if len(seconds) >= P50_LEAST and self.target.takes_depth:
            p50, p95 = np.quantile(np.array(seconds), (0.5, 0.95)).tolist()
            told = Latency(p50, p95 if len(seconds) >= P95_LEAST else None)
            self.into.latency[Cell(self.candidate_k or self.ks[-1], k)] = told


def _as_answer(ranked: RankedList, seconds: float) -> _Answer:
    return _Answer(
        seconds,
        list(ranked.ids),
        list(ranked.scores),
        list(ranked.sources),
        list(ranked.tokens),
        list(ranked.text_hashes),
        list(ranked.texts),
    )


def _as_list(answer: _Answer, query: str | None, most: int | None) -> RankedList:
    """Return a kept answer as a list, cut to what was asked for: some retrievers return more."""
    return RankedList(
        ids=answer.ids[:most],
        scores=answer.scores[:most],
        sources=answer.sources[:most],
        tokens=answer.tokens[:most],
        text_hashes=answer.text_hashes[:most],
        query=query,
        texts=answer.texts[:most],
    )


def _longest(lists: Lists) -> int:
    return max((len(ranked.ids) for ranked in lists.values()), default=0) or 1


def _is_prefix(shorter: Lists, longer: Lists, k: int) -> bool:
    """Return whether every list at depth k is the beginning of the list at the greatest depth."""
    return all(
        list(ranked.ids) == list(longer[case_id].ids[:k])
        for case_id, ranked in shorter.items()
        if case_id in longer
    )


def _note(gathered: Gathered, target: Target, wanted: Wanted) -> None:
    if not target.takes_depth:
        gathered.notes.append(
            "the retriever takes no depth: it was asked once, and its lists were cut at every depth"
        )
    elif gathered.checked and gathered.nested:
        gathered.notes.append(
            f"each question was retrieved once at the greatest depth and cut at each smaller one; on "
            f"{gathered.checked} cases the lists at every depth were checked to be beginnings of the longest"
        )
    elif gathered.checked == 0:
        gathered.notes.append(
            "whether lists are beginnings of the longest could not be checked, for none of the cases tried "
            "brought passages at every depth: every depth was retrieved by itself"
        )
    elif not gathered.nested:
        gathered.notes.append(
            "lists at smaller depths are not beginnings of the longest: every depth was retrieved by itself"
        )
    if wanted.candidate_ks:
        gathered.notes.append("every candidate depth was retrieved anew, never sliced out of a deeper one")
    for case_id, error in gathered.errors.items():
        gathered.notes.append(f"case {case_id} failed for good and counts as missing: {error}")


def sweep_live(
    target: Target,
    wanted: Wanted,
    settings: SweepSettings | None = None,
    *,
    cache: Kept,
    policy: Policy | None = None,
    watch: Watcher | None = None,
    first_stage: Target | None = None,
    pipeline: str | None = None,
    basis_hash: str | None = None,
    notes: Sequence[str] = (),
    answering: Answering | None = None,
    check: Checking | None = None,
    weighing: Weighing | None = None,
) -> Sweep:
    """Return the sweep of a live retriever; retrieval alone, or with `answering` the answers too.

    With `weighing` a model says of each passage whether it is useful, which gives Ragas' context precision.

    `first_stage` is what answers before the reranker; it is asked once at the greatest depth. `watch` is
    told of the progress after every answer. `check` holds a person's verdicts on some of the answers. Raises
    UsageError for what cannot be meant, InputError where cases or retriever cannot be used, BudgetSpentError
    where the budget does not suffice.
    """
    settings = settings or SweepSettings()
    if not wanted.rows():
        raise UsageError("expected a candidate_k of at least the smallest context_k, got none")
    calls = Calls(cache, policy or Policy(), watch)
    stages = [(target, wanted)]
    if first_stage is not None:
        stages.append((first_stage, _only(wanted, max((*wanted.ks, *wanted.candidate_ks)))))
    check_budget([estimate_calls(*stage, cache) for stage in stages], calls)
    gathered, *others = [gather_live(*stage, calls) for stage in stages]
    before = next(iter(others[0].runs.values())) if others else None
    cells = gathered.cells(wanted)
    places: list[Place] = []
    passages = NO_COST
    if weighing is not None:
        places, passages = _to_weigh(wanted.cases, cells, weighing, calls, alone=answering is None)
    answers = answer_all(wanted.cases, cells, answering, calls, passages) if answering else None
    weights = weigh(wanted.cases, places, weighing, calls) if weighing else None
    swept = sweep_lists(
        wanted.cases,
        gathered.runs,
        wanted.ks,
        _timed(settings, gathered.latency),
        grid=bool(wanted.candidate_ks),
        own=gathered.own,
        extra={**(answers.extra() if answers else {}), **(weights.extra() if weights else {})},
        first_stage=before,
        pipeline=pipeline,
        basis_hash=basis_hash,
        notes=[*notes, *gathered.notes],
    )
    if weighing is not None and weights is not None:
        swept = with_weights(swept, weights, weighing)
    if answering is None or answers is None:
        return swept
    return with_answers(swept, answers, answering, wanted.cases, settings, check)


def _to_weigh(
    cases: Sequence[Case], cells: Mapping[Cell, Lists], weighing: Weighing, calls: Calls, *, alone: bool
) -> tuple[list[Place], AnswerCost]:
    """Return the passages to weigh and what that takes; raise where they are all, and cannot be afforded."""
    places = places_of(cases, cells)
    if not places:
        raise InputError(
            "expected cases with a `reference_answer`, got none: there is nothing to weigh passages by; add "
            "references, or leave --ragas out"
        )
    cost = weighing_cost(places, weighing, calls.cache)
    if weighing.tell is not None:
        weighing.tell(cost)
    if alone:
        check_affordable(NO_COST, cost, calls)
    return places, cost


def _only(wanted: Wanted, depth: int) -> Wanted:
    return Wanted(cases=wanted.cases, ks=(depth,), sample=wanted.sample)


def _timed(settings: SweepSettings, latency: Mapping[Cell, Latency]) -> SweepSettings:
    from dataclasses import replace

    return replace(settings, latency={**latency, **settings.latency})
