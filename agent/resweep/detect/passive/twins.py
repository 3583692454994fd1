"""Twins: the same question asked again must get the same answer.

Each sampled query is compared with its own answer of 12 hours ago or more. Who asks what, and how often,
does not enter: the share of changed answers moves only when the system does. Evidence: `evidence.Rise`.
"""

from __future__ import annotations

from collections import deque
from math import ceil, isnan, log, log1p, sqrt
from typing import NamedTuple

import msgspec

from resweep.detect.passive.compare import Outcome, compare
from resweep.detect.passive.evidence import DAY, Rise, Shares
from resweep.detect.passive.settings import PassiveSettings
from resweep.detect.passive.vocabulary import trim
from resweep.domain.sample import Record

TRACE = 400  # votes kept for attribution
ENOUGH = 30  # twins with the same answer that rule a change of system out
SOON = DAY / 4  # in which twice as many came before


class Twin(msgspec.Struct, gc=False):
    """What is held of one query: an answer 12 h old or older, a younger one, one from before a change."""

    first: float
    young_ts: float
    young: bytes | None
    old_ts: float = 0.0
    old: bytes | None = None
    before: bytes | None = None
    vote: int = -1
    period: int = -1
    flipped: bool = False


class Vote(NamedTuple):
    """One comparison: when, which query, what became of its answer, and both answers packed."""

    ts: float
    number: int
    key: int
    outcome: Outcome
    before: bytes
    after: bytes


class TwinAlarm(NamedTuple):
    """Evidence that went over its threshold, with the votes since the onset that explains most."""

    outcome: Outcome | None  # None: novelty
    onset_ts: float
    onset_number: int
    n: int
    hits: int
    log_evidence: float
    expected: float  # the learnt share


class Spread:
    """SD of the top score, taken over six hours at a time: what comes after a change must not widen it."""

    def __init__(self) -> None:
        self.sd = 0.0
        self._n = 0
        self._mean = 0.0
        self._squares = 0.0
        self._period = -1

    def add(self, ts: float, value: float) -> None:
        """Add one score; NaN is left out."""
        if isnan(value):
            return
        period = int(ts // (DAY / 4))
        if period != self._period:
            self._close(period)
        self._n += 1
        delta = value - self._mean
        self._mean += delta / self._n
        self._squares += delta * (value - self._mean)
        if self.sd == 0.0 and self._n >= 50:
            self.sd = sqrt(self._squares / self._n)

    def _close(self, period: int) -> None:
        self._period = period
        if self._n < 100:
            return
        new = sqrt(self._squares / self._n)
        # A quarter of the way, and never more than a tenth wider at once.
        self.sd = new if self.sd == 0.0 else min(1.1 * self.sd, 0.75 * self.sd + 0.25 * new)
        self._n, self._mean, self._squares = 0, 0.0, 0.0

    def restart(self) -> None:
        """Learn from nothing: after a change the score may have another scale."""
        self.sd, self._n, self._mean, self._squares = 0.0, 0, 0.0, 0.0


class Twins:
    """The twin layer of one (pipeline, config)."""

    def __init__(self, settings: PassiveSettings) -> None:
        self.settings = settings
        self.started: float | None = None
        self.once: dict[int, tuple[float, bytes]] = {}
        self.known: dict[int, Twin] = {}
        self.top = Spread()
        self.churn = {
            Outcome.CHANGED: Shares(prior=0.01, spread=1.0),
            Outcome.SCORES: Shares(prior=0.01, spread=1.0),
            Outcome.RENUMBERED: Shares(prior=0.005, spread=1.0),
        }
        budget = settings.budget_twins_days
        self.rises = {
            Outcome.CHANGED: Rise(budget, settings.least_twins),
            Outcome.SCORES: Rise(4 * budget, 0.3),
            Outcome.RENUMBERED: Rise(4 * budget, 0.3),
        }
        # A fortnight: while the layer is young every question is new to it, which is no fact of the traffic.
        self.novelty = Shares(prior=0.3, spread=0.3, floor=0.02, memory=56)
        self.rise_novelty = Rise(settings.budget_shares_days, settings.least_novelty)
        self.votes: deque[Vote] = deque(maxlen=TRACE)
        self.armed_from = 0.0
        self.novel_quiet_until = 0.0
        self.quiet_until = 0.0
        self.returned = 0.0  # log evidence that the answers are those before the change again
        self.open_share: float | None = None
        self.open_tolerance = 0.0  # in the scale of the answers before an open change

    def process(self, record: Record) -> TwinAlarm | None:
        """Take one sampled record, in time order; return an alarm where it completes one."""
        if self.started is None:
            self.started = record.ts
        new = record.key not in self.known and record.key not in self.once
        twin = self._held(record)
        old = twin is not None and twin.first <= record.ts - self.settings.held
        alarm = self._vote_novel(record, new) if new or old else None
        if twin is None:
            return alarm
        return self._vote(record, twin) or alarm

    def _held(self, record: Record) -> Twin | None:
        """Return what is held of a query, None for a new one, and hold its answer."""
        key = record.key
        twin = self.known.get(key)
        if twin is not None:
            return twin
        once = self.once.pop(key, None)
        if once is None:
            self.once[key] = (record.ts, record.answer)
            trim(self.once, self.settings.answers_once)
            return None
        twin = self.known[key] = Twin(once[0], once[0], once[1])
        trim(self.known, self.settings.answers_known)
        return twin

    def answer(self, key: int) -> bytes | None:
        """Return the answer held of a query, None where there is none."""
        twin = self.known.get(key)
        if twin is not None:
            return twin.young if twin.young is not None else twin.old
        once = self.once.get(key)
        return None if once is None else once[1]

    @property
    def tolerance(self) -> float:
        """Score differences up to this are rounding."""
        return self.settings.tolerance_sd * self.top.sd

    def _vote(self, record: Record, twin: Twin) -> TwinAlarm | None:
        ts = record.ts
        if twin.before is not None and self.open_share is not None:
            self._note_return(record, twin)
        if twin.young is None:
            twin.young, twin.young_ts = record.answer, ts
        elif twin.young_ts <= ts - self.settings.held:
            twin.old, twin.old_ts = twin.young, twin.young_ts
            twin.young, twin.young_ts = record.answer, ts
            self.known[record.key] = self.known.pop(record.key)  # the least recently used goes first
        if twin.old is None:
            return None
        outcome = compare(twin.old, record.answer, self.tolerance)
        self.votes.append(Vote(ts, record.number, record.key, outcome, twin.old, record.answer))
        return self._count(record, twin, outcome, nights=max(1, ceil((ts - twin.old_ts) / DAY - 0.5)))

    def _count(self, record: Record, twin: Twin, outcome: Outcome, nights: float) -> TwinAlarm | None:
        self._learn(record.ts, twin, outcome, nights)
        if not self._armed(record.ts):
            return None
        previous, alarm = twin.vote, None
        for kind, rise in self.rises.items():
            twin.vote = rise.vote(record.ts, record.number, outcome == kind, previous, nights)
            if outcome == kind and rise.weigh(self.churn[kind].null(), self.churn[kind].nights) >= 0:
                alarm = alarm or self._alarm(kind, rise, self.churn[kind])
        return alarm

    def _learn(self, ts: float, twin: Twin, outcome: Outcome, nights: float) -> None:
        period = int(ts // (DAY / 4))
        if period == twin.period:
            return
        twin.period = period
        for kind, shares in self.churn.items():
            shares.add(ts, outcome == kind, nights)

    def _armed(self, ts: float) -> bool:
        """Whether enough was seen to judge; the first time, evidence starts from nothing."""
        if self.armed_from:
            return True
        assert self.started is not None
        seen = self.churn[Outcome.CHANGED]
        if (
            ts - self.started < self.settings.learning
            or seen.votes + seen.current.n < self.settings.least_votes
        ):
            return False
        self.armed_from = ts
        for shares in self.churn.values():
            shares.close()
        return True

    def _alarm(self, kind: Outcome | None, rise: Rise, shares: Shares) -> TwinAlarm:
        null = shares.null()
        best = rise.best(null, shares.nights)
        assert best is not None
        return TwinAlarm(kind, best.ts, best.number, best.n, best.hits, rise.log_m, null.mean)

    def _vote_novel(self, record: Record, new: bool) -> TwinAlarm | None:
        """Vote on whether the query is new: a fact of the traffic, not of the system.

        A query first seen within 12 h has no vote, so that a burst of one new question counts once.
        """
        assert self.started is not None
        since = record.ts - self.started
        if since < self.settings.held or record.ts < self.novel_quiet_until:
            return None
        self.novelty.add(record.ts, new)
        if since < self.settings.learning or self.novelty.votes < self.settings.least_votes:
            return None
        self.rise_novelty.vote(record.ts, record.number, new, -1)
        if new and self.rise_novelty.weigh(self.novelty.null()) >= 0:
            return self._alarm(None, self.rise_novelty, self.novelty)
        return None

    def _note_return(self, record: Record, twin: Twin) -> None:
        """Gather evidence that a changed answer is again what it was before the change."""
        assert twin.before is not None
        assert self.open_share is not None
        outcome = compare(twin.before, record.answer, self.open_tolerance)
        self.votes.append(Vote(record.ts, record.number, record.key, outcome, twin.before, record.answer))
        same = outcome is not Outcome.CHANGED
        if not twin.flipped:
            twin.flipped = not same
            return
        expected = max(0.1, self.open_share / 2)
        step = log1p(-0.02) - log1p(-expected) if same else log(0.02 / expected)
        self.returned = max(0.0, self.returned + step)

    @property
    def back(self) -> bool:
        """Whether the answers from before an open change have come back."""
        return self.returned > log(1000.0)

    def rebase(self, onset_ts: float, share: float) -> None:
        """After an alarm: keep the answers from before the onset apart and learn anew from now on."""
        changed = {vote.key for vote in self.votes if vote.ts >= onset_ts and vote.outcome is Outcome.CHANGED}
        for key, twin in self.known.items():
            stale = twin.young if twin.young_ts < onset_ts else None
            twin.before = twin.before or twin.old or stale
            twin.flipped = key in changed
            twin.old, twin.vote = None, -1
            if stale is not None:
                twin.young = None
        if self.open_share is None:
            self.open_tolerance = self.tolerance
        self.open_share, self.returned = share, 0.0
        self.top.restart()
        self._forget()

    def settle(self) -> None:
        """The change is gone or accepted: drop what was kept from before it."""
        for twin in self.known.values():
            twin.young = twin.before
            twin.before, twin.flipped, twin.old, twin.vote = None, False, None, -1
        self.open_share, self.returned = None, 0.0
        self.top.restart()
        self._forget()

    def _forget(self) -> None:
        for rise in self.rises.values():
            rise.reset()
        for shares in self.churn.values():
            shares.forget()
        self.once.clear()

    def accept(self, ts: float) -> None:
        """After a harmless change: compare no answer with one from before it."""
        for twin in self.known.values():
            twin.old, twin.young, twin.vote = None, None, -1
        self._forget()
        self.quiet_until = ts

    def rebase_novelty(self, ts: float, onset_ts: float) -> None:
        """After a novelty alarm: say nothing more of it for a day."""
        self.rise_novelty.reset()
        self.novelty.forget()
        self.novel_quiet_until = ts + DAY

    def known_collapsed(self, alarm: TwinAlarm) -> bool:
        """Whether known questions stopped coming, rather than new ones being asked beside them."""
        known = alarm.n - alarm.hits
        return alarm.n >= 8 and known < 0.15 * alarm.n * (1 - alarm.expected)

    def speaks_for_same(self, onset_ts: float) -> bool:
        """Whether enough twins since an onset had the same answer to rule a change of system out."""
        newest = self._newest(onset_ts)
        changed = sum(v.outcome is Outcome.CHANGED for v in newest.values())
        return len(newest) >= ENOUGH and changed <= 0.05 * len(newest)

    def will_speak(self, onset_ts: float) -> bool:
        """Whether twins since an onset are too few yet, and soon will be enough, as questions repeat."""
        if not self.armed_from or len(self._newest(onset_ts)) >= ENOUGH:
            return False
        before = [v.ts for v in self.votes if v.ts < onset_ts]
        return len(before) >= 2 * ENOUGH and before[-1] - before[-2 * ENOUGH] < SOON

    def _newest(self, onset_ts: float) -> dict[int, Vote]:
        return {v.key: v for v in self.votes if v.ts >= onset_ts}

    @property
    def log_m(self) -> float:
        """Log evidence over threshold that answers changed."""
        return self.rises[Outcome.CHANGED].log_m

    @property
    def peak(self) -> float:
        """Its highest value of the last 28 days."""
        return max(self.rises[Outcome.CHANGED].peaks.values(), default=-99.0)
