"""Evidence that a share has risen: one sum of likelihood ratios over possible onsets.

Each vote is one distinct query (or passage) that did or did not change. For an onset s, x of the n
votes since s are hits; a vote counts once per onset. Under the null the share is one draw of a beta
distribution *common to all votes since s* (a night's ingest moves many answers together, so votes are not
independent), fitted to past periods; under the alternative it is one of a few larger shares. The ratio of
the two is an e-value. M = sum over onsets of w_s times that ratio, with w_s the part of the budget spent
by the time between onsets: an alarm at M >= 1 is expected at most once a budget of time.
Sources: Shin, Ramdas, Rinaldo, "E-detectors" (2022); Shiryaev-Roberts mixture over onsets.
"""

from __future__ import annotations

from math import exp, lgamma, log, log1p, sqrt

import msgspec

DAY = 86_400.0
ALTERNATIVES = (0.1, 0.2, 0.4, 0.7, 0.95)  # of the way from the null's mean to 1
CANDIDATES = 24
LEAST_HITS = 8  # an onset with fewer hits says nothing yet
LOG_CAP = 60.0  # no single onset says more than this


class Null(msgspec.Struct, frozen=True):
    """Beta distribution of a share in a period without change: mean in (0, 1), variance."""

    mean: float
    variance: float

    def shapes(self, stretch: float = 1.0) -> tuple[float, float]:
        """Return (a, b) with the mean stretched (older references had more nights to change in)."""
        mean = min(0.9, self.mean * stretch)
        variance = min(self.variance * stretch * stretch, 0.8 * mean * (1 - mean))
        total = mean * (1 - mean) / variance - 1
        return mean * total, (1 - mean) * total


class Period(msgspec.Struct):
    """Votes and hits of one past period; `nights` sums what each vote had time to change in."""

    n: int = 0
    hits: int = 0
    nights: float = 0.0


class Onset(msgspec.Struct):
    """One possible time of change: what was voted since."""

    ts: float
    number: int
    vote: int  # index of the first vote that counts
    weight: float
    n: int = 0
    hits: int = 0
    nights: float = 0.0


def log_beta(a: float, b: float) -> float:
    """Return the logarithm of the beta function."""
    return lgamma(a) + lgamma(b) - lgamma(a + b)


def log_ratio(
    n: int, hits: int, null: Null, stretch: float, least: float, steps: tuple[float, ...] = ALTERNATIVES
) -> float:
    """Return the log likelihood ratio of a raised share against the null.

    `least` is the smallest rise (absolute) anyone should be told of: shares below null mean + least are
    given no alternative, so evidence cannot pile up on a small persistent share.
    """
    a, b = null.shapes(stretch)
    mean = a / (a + b)
    if hits <= n * (mean + least / 2):  # at most 1 there: no need to compute it
        return 0.0
    under = log_beta(a + hits, b + n - hits) - log_beta(a, b)
    shares = [p for p in (mean + (1 - mean) * f for f in steps) if p >= mean + least]
    if not shares:
        return 0.0
    over = [hits * log(p) + (n - hits) * log1p(-p) for p in shares]
    top = max(over)
    return min(LOG_CAP, top + log(sum(exp(o - top) for o in over) / len(over)) - under)


class Shares(msgspec.Struct):
    """Past periods of one share, and the null they give.

    `prior` is the mean expected before anything was seen, `spread` the SD of shares between periods as a
    multiple of their mean before it was learnt. `memory` periods are kept.
    """

    prior: float
    spread: float
    floor: float = 0.003
    memory: int = 112
    noise: float = 6.0  # sampling variances that the widest past period must exceed to count as wide
    sure: float = 0.0  # standard errors by which the variance between periods must exceed chance
    past: list[Period] = msgspec.field(default_factory=list)
    current: Period = msgspec.field(default_factory=Period)
    period: int = -1
    known: Null | None = None  # the null, until another period closes
    votes: int = 0  # that the closed periods hold
    nights: float = 1.0  # per vote in the past: older references than that had more nights to change in

    def add(self, ts: float, hit: bool, nights: float = 1.0) -> None:
        """Count one vote in its six hours."""
        period = int(ts // (DAY / 4))
        if period != self.period:
            self.close()
            self.period = period
        self.current.n += 1
        self.current.hits += hit
        self.current.nights += nights

    def count(self, ts: float, n: int, hits: int) -> None:
        """Count many votes at once."""
        period = int(ts // (DAY / 4))
        if period != self.period:
            self.close()
            self.period = period
        self.current.n += n
        self.current.hits += hits
        self.current.nights += n

    def close(self) -> None:
        """End the running period; one with few votes goes on into the next."""
        if self.current.n >= 20:
            self.past.append(self.current)
            self.current = Period()
            self.known = None
            del self.past[: -self.memory]
            self.votes = sum(p.n for p in self.past)

    def forget(self) -> None:
        """Drop the running period: it holds a change, and a reference must not learn it."""
        self.current = Period()

    def null(self) -> Null:
        """Return the distribution of the share in a period without change."""
        if self.known is None:
            self.known = self._fit()
        return self.known

    def _fit(self) -> Null:
        # The newest day waits, or a change would make itself usual while evidence gathers.
        past = self.past[: len(self.past) - min(4, len(self.past) // 3)]
        weights = [min(p.n, 200) for p in past]
        rates = [p.hits / p.n for p in past]
        self.nights = sum(p.nights for p in past) / sum(p.n for p in past) if past else 1.0
        own = 50.0  # the prior counts as so many votes
        total = own + sum(weights)
        mean = (own * self.prior + sum(w * r for w, r in zip(weights, rates, strict=True))) / total
        mean = min(0.9, max(mean, self.floor))
        return Null(mean, self._variance(mean, past, weights))

    def _variance(self, mean: float, past: list[Period], weights: list[int]) -> float:
        """Between-period variance: what was seen beyond binomial noise, shrunk to the prior's."""
        prior = (self.spread * mean) ** 2
        if not weights:
            return prior
        squares = [(p.hits / p.n - mean) ** 2 for p in past]
        noise = [mean * (1 - mean) / p.n for p in past]
        beyond = sum(w * (s - e) for w, s, e in zip(weights, squares, noise, strict=True))
        error = sqrt(2 * sum((w * e) ** 2 for w, e in zip(weights, noise, strict=True)))
        learnt = max(0.0, (beyond - self.sure * error) / sum(weights))
        if len(weights) >= 4:  # three SD reach the widest period seen, less its own noise
            widest = max(s - self.noise * e for s, e in zip(squares, noise, strict=True))
            learnt = max(learnt, widest / 9)
        return (8 * prior + len(weights) * learnt) / (8 + len(weights))


class Rise(msgspec.Struct):
    """Running evidence that a share rose. `budget_days` days without change per false alarm."""

    budget_days: float
    least: float
    onsets: list[Onset] = msgspec.field(default_factory=list)
    votes: int = 0
    since: float = 0.0  # when the last onset was opened
    fresh: int = 0  # votes since the last onset was opened
    log_m: float = -99.0
    peaks: dict[int, float] = msgspec.field(default_factory=dict)  # day -> highest log M, 28 days
    every: int = 10  # votes between onsets
    steps: tuple[float, ...] = ALTERNATIVES
    relative: float = 0.0  # the rise must also be this multiple of the null's mean

    def vote(self, ts: float, number: int, hit: bool, previous: int, nights: float = 1.0) -> int:
        """Count a vote and return its index; `previous` is the index of the same voter's last vote or -1."""
        index = self.votes
        self.votes += 1
        if not self.onsets or self.fresh >= self.every:
            self._open(ts, number, index)
        self.fresh += 1
        for onset in reversed(self.onsets):
            if onset.vote <= previous:
                break
            onset.n += 1
            onset.hits += hit
            onset.nights += nights
        return index

    def count(self, ts: float, number: int, n: int, hits: int) -> None:
        """Count many votes of different voters at once."""
        index = self.votes
        self.votes += n
        if not self.onsets or ts - self.since >= 900.0:
            self._open(ts, number, index)
        for onset in self.onsets:
            onset.n += n
            onset.hits += hits
            onset.nights += n

    def _open(self, ts: float, number: int, index: int) -> None:
        passed = min(ts - self.since, DAY) if self.since else 3600.0
        self.since, self.fresh = ts, 0
        self.onsets.append(Onset(ts, number, index, max(passed, 1.0) / (self.budget_days * DAY)))
        if len(self.onsets) > CANDIDATES:
            self._thin(index)

    def _thin(self, index: int) -> None:
        """Drop the onset whose neighbours are, by age, nearest; its weight goes to the next younger."""
        o = self.onsets
        ages = [index - x.vote + 10 for x in o]
        drop = min(range(1, len(o) - 2), key=lambda i: ages[i - 1] / ages[i + 1])
        o[drop + 1].weight += o[drop].weight
        del o[drop]

    def weigh(self, null: Null, usual: float = 1.0) -> float:
        """Return log M under a null, and remember its peak. To be called after a hit.

        `usual` is how many nights a vote's reference was old when the null was learnt.
        """
        share = null.mean + self.least / 2  # below it a ratio is at most 1: not worth computing
        terms = [
            log(o.weight) + self._ratio(o, null, usual)
            for o in self.onsets
            if o.hits >= LEAST_HITS and o.hits > o.n * share
        ]
        if not terms:
            self.log_m = -99.0
            return self.log_m
        top = max(terms)
        self.log_m = top + log(sum(exp(t - top) for t in terms))
        self._note_peak(int(self.onsets[-1].ts // DAY))
        return self.log_m

    def _note_peak(self, day: int) -> None:
        if day not in self.peaks:
            self.peaks = {d: peak for d, peak in self.peaks.items() if d > day - 28}
        self.peaks[day] = max(self.peaks.get(day, -99.0), self.log_m)

    def _ratio(self, onset: Onset, null: Null, usual: float) -> float:
        return log_ratio(
            onset.n,
            onset.hits,
            null,
            max(1.0, onset.nights / onset.n / usual),
            max(self.least, self.relative * null.mean),
            self.steps,
        )

    def best(self, null: Null, usual: float = 1.0) -> Onset | None:
        """Return the onset that explains most, None before any vote."""
        return max(
            self.onsets,
            key=lambda o: (self._ratio(o, null, usual) if o.hits >= LEAST_HITS else -99.0, o.vote),
            default=None,
        )

    def expire(self, ts: float, age: float) -> None:
        """Forget onsets older than `age` seconds: references have rolled on since."""
        while self.onsets and self.onsets[0].ts < ts - age:
            del self.onsets[0]

    def reset(self) -> None:
        """Start afresh after an alarm."""
        self.onsets.clear()
        self.log_m, self.fresh, self.since = -99.0, 0, 0.0
