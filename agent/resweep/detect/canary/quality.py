"""Judged canaries: true recall of the live index, case by case, against what it was when it was accepted.

The reference is pinned, not rolling: recall is known in absolute terms, so a slow decline counts too. A case
is *lost* where its recall at the depth in use fell, *gained* where it rose.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from statistics import fmean

import msgspec

from resweep.detect.canary.chance import learnt, surprise
from resweep.detect.hysteresis import Hysteresis
from resweep.domain.measures import measure, rank_table

LEAST = 3  # judged cases that must come back
CHANCE = (0.02, 50.0, 0.2)  # share of cases lost from run to run by chance: prior, its weight, most
LEAST_DROP = 0.05  # of mean recall; less is not worth a page
OPEN_AT, CLOSE_AT = 3.0, 2.0
LOST_IN_A_ROW = 3  # runs after which a case counts as lost
DEPTHS = (1, 3, 5, 10, 20, 40)
NAMES = ("recall", "all_evidence", "mrr")


class Case(msgspec.Struct, frozen=True):
    """What one case was worth at the depth in use: recall, all evidence, reciprocal rank."""

    recall: float
    all_evidence: float
    mrr: float


class QualityState(msgspec.Struct):
    """What is remembered of one system's judged cases. `reference` is pinned at the last acceptance."""

    reference: dict[str, Case] = msgspec.field(default_factory=dict)
    last: dict[str, Case] = msgspec.field(default_factory=dict)
    lost: dict[str, int] = msgspec.field(default_factory=dict)  # runs in a row in which a case was lost
    recall_at: dict[int, float] = msgspec.field(default_factory=dict)  # mean of the last run, by depth
    k: int = 0
    lost_by_chance: int = 0
    compared: int = 0
    since_ts: float | None = None
    gate: Hysteresis = msgspec.field(default_factory=lambda: Hysteresis(OPEN_AT, CLOSE_AT))


class QualityRun(msgspec.Struct, frozen=True, kw_only=True):
    """What one run showed: cases compared, lost, gained; mean recall at `k` before and now.

    `surprise` is -log10 of the chance of losing so many more cases than were gained.
    """

    ts: float
    k: int
    compared: int
    lost: int = 0
    gained: int = 0
    before: float | None = None
    now: float | None = None
    surprise: float = 0.0


def look(
    state: QualityState,
    rankings: Mapping[str, Sequence[str]],
    relevant: Mapping[str, Collection[str]],
    k: int,
    ts: float,
) -> QualityRun:
    """Take one run's rankings (passage ids, best first) of judged cases; `k` is the depth in use."""
    judged = [id_ for id_ in sorted(rankings) if relevant.get(id_)]
    if state.k != k:  # another depth is another measure: what was known does not compare
        state.k, state.reference, state.lost, state.last = k, {}, {}, {}
    previous = state.last
    state.last, state.recall_at = _measured(judged, rankings, relevant, k)
    for id_, case in state.last.items():
        state.reference.setdefault(id_, case)
    if len(judged) < LEAST:
        return QualityRun(ts=ts, k=k, compared=len(judged))
    run = _compared(state, judged, ts)
    _settle(state, run, previous)
    return run


def accept(state: QualityState) -> None:
    """Take what the cases are worth now as the reference."""
    state.reference, state.lost = dict(state.last), {}
    state.gate, state.since_ts = Hysteresis(OPEN_AT, CLOSE_AT), None


def lost_cases(state: QualityState) -> list[str]:
    """Return the cases lost in several runs in a row."""
    return sorted(id_ for id_, runs in state.lost.items() if runs >= LOST_IN_A_ROW)


def _measured(
    judged: Sequence[str],
    rankings: Mapping[str, Sequence[str]],
    relevant: Mapping[str, Collection[str]],
    k: int,
) -> tuple[dict[str, Case], dict[int, float]]:
    if not judged:
        return {}, {}
    deepest = max(k, *(len(rankings[id_]) for id_ in judged))
    ks = sorted({k, *(depth for depth in DEPTHS if depth <= deepest)})
    table = rank_table([rankings[i] for i in judged], [dict.fromkeys(relevant[i], 1) for i in judged])
    values = measure(table, ks, NAMES).values
    at = ks.index(k)
    cases = {id_: Case(*(float(values[name][row][at]) for name in NAMES)) for row, id_ in enumerate(judged)}
    return cases, {depth: fmean(values["recall"][:, i].tolist()) for i, depth in enumerate(ks)}


def _compared(state: QualityState, judged: Sequence[str], ts: float) -> QualityRun:
    pairs = [(state.reference[id_].recall, state.last[id_].recall) for id_ in judged]
    lost, gained = sum(b > a for b, a in pairs), sum(b < a for b, a in pairs)
    before, now = fmean(b for b, _ in pairs), fmean(a for _, a in pairs)
    chance = learnt(state.lost_by_chance, state.compared, *CHANCE)
    enough = before - now >= LEAST_DROP
    return QualityRun(
        ts=ts,
        k=state.k,
        compared=len(pairs),
        lost=lost,
        gained=gained,
        before=before,
        now=now,
        surprise=surprise(len(pairs), lost - gained, chance) if enough else 0.0,
    )


def _settle(state: QualityState, run: QualityRun, previous: Mapping[str, Case]) -> None:
    for id_, case in state.last.items():
        fell = case.recall < state.reference[id_].recall
        state.lost[id_] = state.lost.get(id_, 0) + 1 if fell else 0
    state.lost = {id_: runs for id_, runs in state.lost.items() if runs and id_ in state.last}
    state.gate.step(run.surprise)
    if run.surprise >= OPEN_AT:
        state.since_ts = run.ts if state.since_ts is None else state.since_ts
    elif not state.gate.is_open:
        state.since_ts = None
        both = [(previous[id_].recall, case.recall) for id_, case in state.last.items() if id_ in previous]
        state.lost_by_chance += sum(
            before > now for before, now in both
        )  # since the last run: a lasting loss
        state.compared += len(both)  # is no chance
