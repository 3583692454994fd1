"""Retrieval canaries: the same questions again and again, each answer compared with the one stored before.

They are twins on a schedule: nothing about the traffic can move them, so a change is the system's. The
stored answers roll forward with every quiet run, so that a corpus that grows every night is followed; from
the first doubtful run on they stand still until it is clear what happened.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import isnan
from statistics import pstdev

import msgspec

from resweep.detect.canary.chance import learnt, surprise
from resweep.detect.hysteresis import Hysteresis
from resweep.detect.passive.attribution import Cause, cause
from resweep.detect.passive.compare import Outcome, compare
from resweep.detect.passive.traces import TwinTraces, twin_traces
from resweep.detect.passive.twins import Vote
from resweep.detect.passive.vocabulary import Seen, Vocabulary
from resweep.domain.event import Hit
from resweep.domain.sample import Hashes, pack_answer, unpack_answer

LEAST = 3  # questions that must come back
CHURN = (0.03, 30.0, 0.3)  # share of answers that change from run to run: prior, its weight in answers, most
DAY = 86_400.0
DAYS = 28  # whose worst runs are remembered
WORSE = 1.5  # times the worst of them that a night may be without a word
WEEK = 7 * DAY  # before that, a night may change this share:
FIRST = 0.3
MOST = 0.6  # of answers, however restless the corpus
LEAST_SHARE = 0.15  # of answers changed; less is not worth a flag, however sure
OPEN_AT, CLOSE_AT = 3.0, 2.0  # surprise
TOLERANCE_SD = 0.05  # of the top score: moves below it are rounding
STANDS = 0.1  # share of scores of the same question and passage that may move when only the corpus changed
_REMEMBERED = 1 << 16


class Stored(msgspec.Struct, frozen=True):
    """One answer as it was: packed hits and when, unix seconds."""

    answer: bytes
    ts: float


class AnswersRun(msgspec.Struct, frozen=True, kw_only=True):
    """What one run showed: answers compared, changed, with other scores only, with other ids only.

    `surprise` is -log10 of the chance of so many changed answers, or more, at the learnt churn.
    """

    ts: float
    compared: int
    changed: int = 0
    rescored: int = 0
    renumbered: int = 0
    churn: float = 0.0
    surprise: float = 0.0


class AnswersState(msgspec.Struct):
    """What is remembered of one system's answers."""

    stored: dict[str, Stored] = msgspec.field(default_factory=dict)  # by question
    last: dict[str, Stored] = msgspec.field(default_factory=dict)
    changed: int = 0  # answers that changed from one quiet run to the next
    compared: int = 0
    runs: int = 0
    first_ts: float | None = None
    worst: dict[int, float] = msgspec.field(default_factory=dict)  # share changed in a quiet run, by unix day
    since_ts: float | None = None  # the first of the doubtful runs in a row
    renumbered: AnswersRun | None = None  # the run that found the same passages under other ids
    gate: Hysteresis = msgspec.field(default_factory=lambda: Hysteresis(OPEN_AT, CLOSE_AT))


def look(state: AnswersState, answers: Mapping[str, Sequence[Hit]], ts: float) -> AnswersRun:
    """Take one run's answers by question; return what it showed and bring the state up to date."""
    hashes = Hashes()
    packed = {id_: Stored(pack_answer(tuple(hits), hashes), ts) for id_, hits in answers.items()}
    state.last = packed
    common = [id_ for id_ in packed if id_ in state.stored]
    if len(common) < LEAST:
        if len(packed) >= LEAST and not state.gate.is_open:
            state.stored = {**state.stored, **packed}
        return AnswersRun(ts=ts, compared=0)
    state.first_ts = ts if state.first_ts is None else state.first_ts
    run = _compared(state, common, ts)
    _settle(state, run, packed)
    _follow_reingest(state, run)
    return run


def accept(state: AnswersState) -> None:
    """Take the answers as they are now for the right ones."""
    state.stored = {**state.stored, **state.last}
    state.gate = Hysteresis(OPEN_AT, CLOSE_AT)
    state.since_ts = state.renumbered = None


def keep_only(state: AnswersState, questions: set[str]) -> None:
    """Forget questions that are canaries no longer."""
    state.stored = {id_: one for id_, one in state.stored.items() if id_ in questions}
    state.last = {id_: one for id_, one in state.last.items() if id_ in questions}


def explained(state: AnswersState) -> tuple[Cause, TwinTraces] | None:
    """Return the cause that the last run's changed answers speak for, with the traces behind it."""
    votes = _votes(state)
    if not votes:
        return None
    traces = twin_traces(votes, 0.0, _vocabularies(state), tolerance(state))
    return cause(traces), traces


def is_reingest(traces: TwinTraces) -> bool:
    """Whether passages were added or replaced and nothing else moved: an ingest, larger than usual.

    Scores of the same question and passage stand still, in the same order, most passages are still there, and
    the score at the cut did not fall as it does where passages are lost or filtered away.
    """
    stands = traces.same_pair_moved is not None and traces.same_pair_moved < STANDS
    kept = traces.ids_jaccard > 0.3 and (traces.order_kept or 0.0) > 0.95 and traces.order_only < 0.1
    whole = 0.95 <= traces.count_ratio <= 1.05 and (traces.cut_moved or 0.0) > -0.3
    return stands and kept and whole and (traces.copies or 0.0) < 0.3


def usual_share(state: AnswersState, ts: float) -> float:
    """Return the share of answers that a run may change without a word.

    A corpus changes by night, and one night several times as much as another: so the worst of the last four
    weeks counts, not the mean. In the first week little is known, and much is allowed.
    """
    mean = learnt(state.changed, state.compared, *CHURN)
    young = FIRST if state.first_ts is None or ts - state.first_ts < WEEK else 0.0
    return min(MOST, max(mean, young, WORSE * max(state.worst.values(), default=0.0)))


def tolerance(state: AnswersState) -> float:
    """Return the move of a score that is rounding: 0.05 SD of the stored top scores."""
    tops = [a.scores[0] for s in state.stored.values() if (a := unpack_answer(s.answer)).scores]
    known = [score for score in tops if not isnan(score)]
    return max(1e-6, TOLERANCE_SD * pstdev(known)) if len(known) > 1 else 1e-6


def _compared(state: AnswersState, common: Sequence[str], ts: float) -> AnswersRun:
    allowed = tolerance(state)
    outcomes = [compare(state.stored[i].answer, state.last[i].answer, allowed) for i in common]
    changed = outcomes.count(Outcome.CHANGED)
    churn = usual_share(state, ts)
    enough = changed >= max(2, LEAST_SHARE * len(common))
    return AnswersRun(
        ts=ts,
        compared=len(common),
        changed=changed,
        rescored=outcomes.count(Outcome.SCORES),
        renumbered=outcomes.count(Outcome.RENUMBERED),
        churn=churn,
        surprise=surprise(len(common), changed, churn) if enough else 0.0,
    )


def _settle(state: AnswersState, run: AnswersRun, packed: Mapping[str, Stored]) -> None:
    was_open = state.gate.is_open
    state.gate.step(run.surprise)
    state.runs += 1
    if run.renumbered >= max(LEAST, run.compared / 2):
        state.renumbered = run
    if run.surprise >= OPEN_AT:
        state.since_ts = run.ts if state.since_ts is None else state.since_ts
        return
    if state.gate.is_open or was_open:
        if not state.gate.is_open:
            state.since_ts = None
        return
    state.since_ts = None
    state.changed += run.changed
    state.compared += run.compared
    state.stored = {**state.stored, **packed}
    _note_worst(state, run)


def _note_worst(state: AnswersState, run: AnswersRun) -> None:
    day = int(run.ts // DAY)
    share = run.changed / run.compared
    state.worst = {d: w for d, w in state.worst.items() if day - d < DAYS}
    state.worst[day] = max(share, state.worst.get(day, 0.0))


def _follow_reingest(state: AnswersState, run: AnswersRun) -> None:
    """After a day of a re-ingest, its answers are the ones to compare with; it was a night like others."""
    if not state.gate.is_open or state.since_ts is None or run.ts - state.since_ts < DAY:
        return
    found = explained(state)
    if found is not None and is_reingest(found[1]):
        _note_worst(state, run)
        accept(state)


def _votes(state: AnswersState) -> list[Vote]:
    allowed = tolerance(state)
    both = [(at, id_) for at, id_ in enumerate(sorted(state.last)) if id_ in state.stored]
    return [
        Vote(state.last[id_].ts, -1, at, compare(before, after, allowed), before, after)
        for at, id_ in both
        for before, after in [(state.stored[id_].answer, state.last[id_].answer)]
    ]


def _vocabularies(state: AnswersState) -> tuple[Vocabulary, Vocabulary]:
    """The passages and sources of the stored answers, known before; those of the last run, seen since."""
    ids, sources = Vocabulary(_REMEMBERED), Vocabulary(_REMEMBERED)
    for ts, answers in ((-1.0, state.stored), (0.0, state.last)):
        for one in answers.values():
            answer = unpack_answer(one.answer)
            for id_, source in zip(answer.ids, answer.sources, strict=True):
                _see(ids, id_, ts)
                _see(sources, source, ts)
    return ids, sources


def _see(vocabulary: Vocabulary, item: int, ts: float) -> None:
    seen = vocabulary.items.setdefault(item, Seen(ts, ts))
    seen.last = max(seen.last, ts)
