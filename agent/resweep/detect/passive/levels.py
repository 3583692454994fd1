"""Levels: the means of a block against their own season, as one number.

For each stream and each window of the last 1..96 blocks the mean residual is set against its own spread over
windows of that length in the reference, less a dead zone nobody should be woken for. The predictive
density is Student's t with as many degrees of freedom as the reference holds windows, so a short reference
is believed little. The e-value of a window is the ratio of a wider t to that one; the layer's
evidence is their mean over streams, summed over onsets with the part of the budget each spends: an alarm
at M >= 1. Sources: e-detectors (Shin, Ramdas, Rinaldo 2022); Bayarri and Berger on predictive e-values.
"""

from __future__ import annotations

from math import log
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from resweep.detect.passive.features import GROUPS, INDEX, STREAMS, Block
from resweep.detect.passive.season import DAY, WEEK, design, fit, left_out

Array = NDArray[np.float64]

WINDOWS = (1, 2, 4, 8, 16, 32, 64, 96)
WIDER = 6.0  # the alternative's scale, in SD of the null
MEMORY = 28 * DAY
LAG = 2 * DAY  # the newest days wait before they become reference
REFIT = 2 * DAY  # between references once the week is known; daily before
DEAD_SHARE = 0.03
SHARE_FLOOR = 0.02  # variance that a share has at least: one that was always 0 or 1 may move a little
# Read for the cause, never for the alarm: latency alone is nobody's alarm, and rounding renames every shape.
QUIET = ("latency", "answers_fresh", "pairs_new", "shapes_new", "query_words", "words_new")
LEAST_COUNT = 8.0  # expected votes of a query group in a window, below which its share is too skewed to test
DEAD_STAGE = (0.3, 0.2, 0.05)  # dead zone in SD between queries: first days, first fortnight, later
_QUIET = [INDEX[name] for name in QUIET]
_CONTINUOUS = len(
    [
        s
        for s in STREAMS
        if s
        in ("top", "gap", "spread", "tail", "tokens", "context", "count", "latency", "sources", "query_words")
        or s.endswith("_spread")
    ]
)
_GROUP_0 = INDEX["group_0"]
MIX = len(STREAMS)  # column of the mix statistic among the evidences


class Finding(NamedTuple):
    """Evidence over its threshold: the window that explains most, and every stream's effect in it."""

    onset_ts: float
    onset_number: int
    window: int
    log_evidence: float
    loudest: str
    effects: Array  # SD between queries, per stream
    scores: Array  # predictive t values, per stream, the mix last
    before: Array  # expected mean per stream
    after: Array  # observed mean per stream


class Reference(NamedTuple):
    """What was learnt of the blocks without change."""

    stage: int
    beta: Array
    between: Array  # wander variance per stream
    within: Array  # variance between queries per stream
    spread: Array  # variance of a window's z, windows x streams
    freedom: Array  # degrees of freedom per window
    mix_mean: Array  # log of the mix statistic per window: mean
    mix_sd: Array
    shown: Array  # streams that are observed
    fitted: float


class Levels:
    """The level layer of one (pipeline, config)."""

    def __init__(self, budget_days: float, holidays: tuple[int, ...] = ()) -> None:
        self.budget_days = budget_days
        self.holidays = holidays
        self.blocks: list[Block] = []
        self.rest: list[Array] = []  # residuals of the newest blocks against the season of their time
        self.reference: Reference | None = None
        self.log_m = -99.0
        self.muted = np.zeros(len(STREAMS) + 1, dtype=bool)
        self.muted[_QUIET] = True
        self.since = 0.0  # residuals before this time are not looked at
        self.frozen: Reference | None = None
        self.after: list[Block] = []  # blocks since the freeze
        self.peaks: dict[int, float] = {}  # day -> highest log M

    def add(self, block: Block) -> Finding | None:
        """Take one closed block, in time order; return a finding where it completes one."""
        self.blocks.append(block)
        if self.frozen is not None:
            self.after = [*self.after[1 - WINDOWS[-1] :], block]
        cutoff = block.ts - MEMORY - LAG
        while self.blocks[0].ts < cutoff:
            del self.blocks[0]
        self._refit(block.ts)
        if self.reference is None:
            return None
        self.rest.append(self._residual(block, self.reference))
        del self.rest[: -WINDOWS[-1]]
        return self._judge(self.reference)

    @property
    def stage(self) -> int:
        """-1: learning, 0: provisional, 1: with the hour, 2: with the weekday."""
        return -1 if self.reference is None else self.reference.stage

    def _refit(self, ts: float) -> None:
        wait = DAY if self.stage < 2 else REFIT
        if self.reference is not None and ts - self.reference.fitted < wait:
            return
        age = ts - self.blocks[0].ts
        lag = min(LAG, max(0.0, (age - DAY) / 4))
        usable = [b for b in self.blocks if b.ts <= ts - lag]
        if len(usable) < 12 or usable[-1].ts - usable[0].ts < 0.9 * DAY:
            return
        self.reference = learn(usable, ts, self.holidays)
        newest = self.blocks[-WINDOWS[-1] :]
        if not self.rest:
            self.since = max(self.since, usable[-1].ts)
        else:
            kept = newest[:-1][-len(self.rest) :]
            self.rest = list(self._residuals(kept, self.reference))

    def _residual(self, block: Block, reference: Reference) -> Array:
        return np.asarray(self._residuals([block], reference)[0], dtype=np.float64)

    def _residuals(self, blocks: list[Block], reference: Reference) -> Array:
        x = design(np.array([b.ts for b in blocks]), reference.stage, self.holidays)
        return np.asarray(np.array([b.mean for b in blocks]) - x @ reference.beta, dtype=np.float64)

    def _judge(self, reference: Reference) -> Finding | None:
        recent = [b for b in self.blocks[-len(self.rest) :] if b.ts > self.since]
        if len(recent) < 2:
            return None
        rest = np.array(self.rest[-len(recent) :])
        n = np.array([b.n for b in recent], dtype=float)
        values, sums = windows(rest, n, reference)
        evidence = self._evidence(values, sums, reference)
        evidence[:, _GROUP_0:MIX][self._sparse(recent, reference, len(values))] = -99.0
        duration = max(60.0, (recent[-1].ts - recent[0].ts) / (len(recent) - 1))
        log_m, best = self._fold(evidence, duration)
        self.log_m = log_m
        day = int(recent[-1].ts // DAY)
        if day not in self.peaks:
            self.peaks = {d: peak for d, peak in self.peaks.items() if d > day - 28}
        self.peaks[day] = max(self.peaks.get(day, -99.0), log_m)
        if log_m < 0:
            return None
        return self._finding(best, values, recent, rest, reference)

    def _evidence(self, values: Array, sums: Array, reference: Reference) -> Array:
        """Log e-values, windows x (streams + mix); windows of one block say nothing alone."""
        used = len(values)
        dead = dead_zone(reference) * sums
        z = np.maximum(0.0, np.abs(values) - dead) / np.sqrt(reference.spread[:used])
        freedom = reference.freedom[:used, None]
        out = log_e(z / np.sqrt(1 + 1 / freedom), freedom)
        out[:, ~reference.shown.astype(bool)] = -99.0
        mix = mix_statistic(values, reference)
        t = np.maximum(0.0, (mix - reference.mix_mean[:used]) / reference.mix_sd[:used] - 0.5)
        both = np.hstack([out, log_e(t, reference.freedom[:used])[:, None]])
        if not reference.shown[_GROUP_0:].all():
            both[:, MIX] = -99.0
        both[:, self.muted] = -99.0
        if reference.stage < 2:  # the week's own mix is not known yet
            both[:, _GROUP_0:] = -99.0
        both[0] = -99.0
        return both

    def _sparse(self, recent: list[Block], reference: Reference, used: int) -> NDArray[np.bool_]:
        """Which query groups are expected too seldom in which window."""
        shares = np.clip(reference.beta[0, _GROUP_0:], 0.0, 1.0)
        votes = np.cumsum([b.n for b in reversed(recent)])
        counts = np.array([votes[min(w, len(votes)) - 1] for w in WINDOWS[:used]], dtype=float)
        return np.asarray(counts[:, None] * shares < LEAST_COUNT)

    def _fold(self, evidence: Array, duration: float) -> tuple[float, tuple[int, int]]:
        """Return log M and the (window, stream) that says most."""
        weights = [max(1, WINDOWS[i] - (WINDOWS[i - 1] if i else 0)) for i in range(len(evidence))]
        start = duration / (self.budget_days * DAY)
        terms = evidence + np.log(np.array(weights) * start)[:, None] - log(stream_count(self))
        top = float(terms.max())
        best = np.unravel_index(int(terms.argmax()), terms.shape)
        return top + log(float(np.exp(terms - top).sum())), (int(best[0]), int(best[1]))

    def _finding(
        self, best: tuple[int, int], values: Array, recent: list[Block], rest: Array, reference: Reference
    ) -> Finding:
        length = min(WINDOWS[best[0]], len(recent))
        own = recent[-length:]
        n = np.array([b.n for b in own], dtype=float)[:, None]
        moved = np.nansum(rest[-length:] * n, axis=0) / n.sum()
        after = np.nansum(np.array([b.mean for b in own]) * n, axis=0) / n.sum()
        spread = np.sqrt(reference.spread[best[0]])
        scores = np.append(
            values[best[0]] / spread,
            (mix_statistic(values, reference)[best[0]] - reference.mix_mean[best[0]])
            / reference.mix_sd[best[0]],
        )
        loudest = "mix" if best[1] == MIX else STREAMS[best[1]]
        effects = moved / np.sqrt(np.maximum(reference.within, 1e-12))
        return Finding(
            own[0].ts, own[0].first, length, self.log_m, loudest, effects, scores, after - moved, after
        )

    def freeze(self, onset_ts: float) -> None:
        """After a finding: keep the reference apart and learn anew from what came after the onset."""
        if self.frozen is None:
            self.frozen = self.reference
        self.after = []
        self._restart([b for b in self.blocks if b.ts >= onset_ts])

    def _restart(self, blocks: list[Block]) -> None:
        self.blocks, self.rest, self.reference, self.log_m = blocks, [], None, -99.0

    def against_frozen(self, since: float = 0.0) -> Finding | None:
        """Set the newest blocks after a freeze, and after a time, against the reference from before it."""
        after = [b for b in self.after if b.ts >= since]
        if self.frozen is None or len(after) < 2:
            return None
        rest = self._residuals(after, self.frozen)
        n = np.array([b.n for b in after], dtype=float)
        values, sums = windows(rest, n, self.frozen)
        evidence = self._evidence(values, sums, self.frozen)
        evidence[:, _GROUP_0:MIX][self._sparse(after, self.frozen, len(values))] = -99.0
        log_m, best = self._fold(evidence, max(60.0, (after[-1].ts - after[0].ts) / (len(after) - 1)))
        return self._finding(best, values, after, rest, self.frozen)._replace(log_evidence=log_m)

    def thaw(self) -> None:
        """The old level is back: take its reference up again."""
        if self.frozen is not None:
            self._restart(self.blocks[-1:])
            self.reference, self.frozen, self.after = self.frozen, None, []

    def settle(self) -> None:
        """The change is accepted: forget the level from before it."""
        self.frozen, self.after = None, []

    def blank(self, names: tuple[str, ...]) -> None:
        """Forget what some streams were: they are learnt anew while the others go on."""
        columns = [INDEX[name] for name in names]
        for b in self.blocks:
            b.mean[columns] = np.nan
        for reference in (self.reference, self.frozen):
            if reference is not None:
                reference.shown[columns] = 0.0
        for rest in self.rest:
            rest[columns] = np.nan


def stream_count(levels: Levels) -> float:
    """Return over how many streams evidence is averaged."""
    return float((~levels.muted).sum())


def learn(blocks: list[Block], ts: float, holidays: tuple[int, ...] = ()) -> Reference:
    """Return the reference that some blocks without change give."""
    times = np.array([b.ts for b in blocks])
    span = times[-1] - times[0]
    stage = 0 if span < 3 * DAY else 1 if span < 14 * DAY else 2
    y = np.array([b.mean for b in blocks])
    shown = np.isfinite(y).mean(axis=0) > 0.5
    finite = np.isfinite(y)
    filler = np.where(finite, y, 0.0).sum(axis=0) / np.maximum(finite.sum(axis=0), 1)
    y = np.where(finite, y, filler)
    n = np.array([b.n for b in blocks], dtype=float)
    weight = n / (n + 100)
    x = design(times, stage, holidays)
    rest = left_out(times, x, y, weight, WEEK if stage == 2 else DAY)
    within = np.mean(np.array([b.variance for b in blocks]), axis=0)
    within[_CONTINUOUS:] = np.maximum(within[_CONTINUOUS:], SHARE_FLOOR)
    within = np.maximum(within, 1e-10)
    between = np.maximum(0.0, rest.var(axis=0) - within * np.mean(1 / n))
    partial = Reference(
        stage,
        fit(x, y, weight),
        between,
        within,
        np.ones((len(WINDOWS), len(STREAMS))),
        np.ones(len(WINDOWS)),
        np.zeros(len(WINDOWS)),
        np.ones(len(WINDOWS)),
        shown.astype(float),
        ts,
    )
    return _calibrated(partial, rest, n)


def _calibrated(reference: Reference, rest: Array, n: Array) -> Reference:
    """Fill in how far windows of each length stray in the reference itself."""
    spread, freedom = np.ones_like(reference.spread), np.full(len(WINDOWS), 3.0)
    mixes: list[Array] = []
    running = Running(rest, n, reference)
    for i, length in enumerate(WINDOWS):
        z = running.z(min(length, max(1, len(n) // 3)))
        # At least what independence gives, and three SD reach the widest window seen.
        widest = (np.abs(z).max(axis=0) / 3.2) ** 2
        spread[i] = np.maximum(np.maximum((z**2).mean(axis=0), widest), 0.8)
        # Overlapping windows tell 1.5 times what the same blocks cut apart would.
        freedom[i] = min(60.0, max(3.0, 1.5 * len(n) / length - 1))
        mixes.append(z)
    wide = reference._replace(spread=spread, freedom=freedom)
    logs = [np.log(_mix(z, wide.spread[i])) for i, z in enumerate(mixes)]
    mean = np.array([v.mean() for v in logs])
    sd = np.array([max(v.std(), (v.max() - v.mean()) / 3.2, 0.1) for v in logs])
    return wide._replace(mix_mean=mean, mix_sd=sd)


class Running:
    """Weighted sums of residuals from the first block on, from which any window's z is a difference."""

    def __init__(self, rest: Array, n: Array, reference: Reference) -> None:
        weight = 1 / (reference.between + reference.within / n[:, None])
        zero = np.zeros((1, rest.shape[1]))
        self.top = np.vstack([zero, np.cumsum(weight * rest, axis=0)])
        self.below = np.vstack([zero, np.cumsum(weight, axis=0)])

    def z(self, length: int) -> Array:
        """Return z of every window of `length` blocks: weighted sum over the root of the weights."""
        total = self.top[length:] - self.top[:-length]
        return np.asarray(total / np.sqrt(self.below[length:] - self.below[:-length]), dtype=np.float64)


def windows(rest: Array, n: Array, reference: Reference) -> tuple[Array, Array]:
    """Return z of the newest window of each length, and the root of its weights."""
    weight = 1 / (reference.between + reference.within / n[:, None])
    weight = np.where(np.isfinite(rest), weight, 0.0)
    top = np.cumsum((weight * np.nan_to_num(rest))[::-1], axis=0)
    below = np.cumsum(weight[::-1], axis=0)
    ends = [w - 1 for w in WINDOWS if w <= len(rest)]
    root = np.sqrt(np.maximum(below[ends], 1e-12))
    return np.asarray(top[ends] / root, dtype=np.float64), np.asarray(root, dtype=np.float64)


def dead_zone(reference: Reference) -> Array:
    """Return the mean shift per stream that nobody should be told of, in the stream's unit."""
    sd = DEAD_STAGE[reference.stage] * np.sqrt(reference.within)
    floor = np.zeros_like(sd)
    floor[_CONTINUOUS:_GROUP_0] = DEAD_SHARE
    return np.asarray(np.maximum(sd, floor), dtype=np.float64)


def log_e(t: Array, freedom: Array) -> Array:
    """Return the log ratio of a t density `WIDER` times as wide to the null's, at t."""
    half = (freedom + 1) / 2
    null = -half * np.log1p(t**2 / freedom)
    other = -half * np.log1p((t / WIDER) ** 2 / freedom) - log(WIDER)
    return np.asarray(other - null, dtype=np.float64)


def _mix(z: Array, spread: Array) -> Array:
    groups = slice(_GROUP_0, _GROUP_0 + GROUPS)
    return np.asarray((z[:, groups] ** 2 / spread[groups]).mean(axis=1) + 1e-9, dtype=np.float64)


def mix_statistic(values: Array, reference: Reference) -> Array:
    """Return the log mean square of the query groups' z, per window."""
    groups = slice(_GROUP_0, _GROUP_0 + GROUPS)
    squares = values[:, groups] ** 2 / reference.spread[: len(values), groups]
    return np.asarray(np.log(squares.mean(axis=1) + 1e-9), dtype=np.float64)
