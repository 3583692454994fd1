"""Which events are sampled for labelling, with what probability: one design for all strata.

Every event has one permanent random number u, a hash of its id and the seed. A stratum s with rate r_s takes
the event where u < r_s; an event that qualifies for several is taken where u is below the largest of their
rates. So the inclusion probability for the union is exactly p = max over its strata of r_s, whoever decides
and however often. This is coordinated Poisson sampling (Brewer, Early and Joyce, "Selecting several samples
from a single population", Australian Journal of Statistics 14, 1972; Ohlsson, "Coordination of samples using
permanent random numbers", in Business Survey Methods, 1995). Weighting by 1/p is due to Horvitz and Thompson
(JASA 47, 1952).

The decision is a function of event, seed and plan alone. Rates in a plan follow from counts of traffic, never
from u, so the probabilities hold exactly given those counts.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from hashlib import blake2b
from math import log
from typing import NamedTuple

import msgspec

from resweep.domain.case import question_key, scope_of
from resweep.domain.event import RetrievalEvent
from resweep.domain.snapshot import STRATA

PLAN_SCHEMA = "resweep.plan/1"
HOUR = 3600
LOWEST = 0.05  # share of a config's own reference that counts as low confidence


def chance(event_id: str, seed: str) -> float:
    """Return the permanent random number of an event, uniform on [0, 1) in steps of 2^-53."""
    digest = blake2b(
        event_id.encode("utf-8", "surrogatepass"), digest_size=8, key=seed.encode()[:64]
    ).digest()
    return (int.from_bytes(digest, "big") >> 11) / (1 << 53)


class Signals(NamedTuple):
    """What the scores of one answer say of its confidence; higher is more confident but for direction.

    `top` and `last` are the first and the last returned score, as they came. `flat` is the entropy of the
    shares of (score - last score), over its maximum: 1 where nothing stands out.
    """

    top: float
    last: float
    flat: float


def signals(event: RetrievalEvent) -> Signals | None:
    """Return the confidence signals of a completed answer; None where it has no usable scores."""
    if event.error is not None or event.partial or event.truncated:
        return None
    scores = [hit.score for hit in event.hits[: event.returned] if hit.score is not None]
    if not scores:
        return None
    return Signals(scores[0], scores[-1], _flatness(scores))


def _flatness(scores: Sequence[float]) -> float:
    gains = [abs(score - scores[-1]) for score in scores[:-1]]
    total = sum(gains)
    if total <= 0.0 or len(gains) < 2:
        return 1.0
    shares = [gain / total for gain in gains if gain > 0.0]
    return -sum(share * log(share) for share in shares) / log(len(gains))


class Reference(msgspec.Struct, frozen=True, kw_only=True):
    """How confident a config's answers usually are: quantiles from lowest to highest of the three signals.

    `sign` is 1 where higher scores are better, else -1. `low` is the confidence (mean rank over the signals)
    below which `LOWEST` of the reference lies.
    """

    sign: int
    top: tuple[float, ...]
    margin: tuple[float, ...]
    peak: tuple[float, ...]
    low: float

    def confidence(self, found: Signals) -> float:
        """Return the mean rank in [0, 1] of top score, margin at the cutoff and peakedness."""
        ranks = (
            _rank(self.top, self.sign * found.top),
            _rank(self.margin, self.sign * (found.top - found.last)),
            _rank(self.peak, -found.flat),
        )
        return sum(ranks) / len(ranks)


def _rank(grid: Sequence[float], value: float) -> float:
    """Return the share of a reference below a value, by its evenly spaced quantiles."""
    place = bisect_left(grid, value)
    if place == 0:
        return 0.0
    if place == len(grid):
        return 1.0
    below, above = grid[place - 1], grid[place]
    return (place - 1 + (value - below) / (above - below)) / (len(grid) - 1)


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """What holds for the events of one pipeline with a time in [since, until) (unix s).

    `rates` and `counts` are by stratum: the rate, and how many events of the pool qualify (of `novel` an
    estimate). `shares` is what of the daily budget the hour may use, `forecast` the count that was expected
    before. `references` are by config. `novel` holds the ids of events found far from the labelled set among
    those whose number lies below the rate; `lost` the keys of questions whose canary was lost.
    """

    schema: str = PLAN_SCHEMA
    id: str = ""
    pipeline: str
    seed: str
    since: float
    until: float
    rates: Mapping[str, float] = {}
    counts: Mapping[str, float] = {}
    shares: Mapping[str, float] = {}
    forecast: Mapping[str, float] = {}
    references: Mapping[str, Reference] = {}
    far: float | None = None
    novel: tuple[str, ...] = ()
    lost: tuple[str, ...] = ()

    def named(self) -> Plan:
        """Return the plan under the name that its content gives it."""
        content = msgspec.json.encode(msgspec.structs.replace(self, id=""), order="deterministic")
        return msgspec.structs.replace(self, id=blake2b(content, digest_size=6).hexdigest())


class Pooled(NamedTuple):
    """One event of the pool that sampling draws from.

    `p` is the probability with which it came into the pool: 1, or the rate of the recorder's own sample.
    `question` is its key, None where the text is not known. `short` stands for empty or short, `negative`
    for negative feedback. `scope` is its filter or tenant values as text.
    """

    id: str
    ts: float
    config: str
    p: float
    question: str | None
    query: str | None
    found: Signals | None
    short: bool
    negative: bool = False
    user_key: str | None = None
    scope: str = ""


def pooled(event: RetrievalEvent, negative: bool = False) -> Pooled:
    """Return what sampling needs to know of an event."""
    completed = event.error is None and not event.partial and not event.truncated
    return Pooled(
        event.id,
        event.ts,
        event.config,
        event.p,
        question_key(event.query, event.filters) if event.query else None,
        event.query,
        signals(event),
        completed and (event.returned == 0 or event.returned < (event.asked or 0)),
        negative,
        event.user_key,
        scope_of(event.filters),
    )


def strata_of(one: Pooled, plan: Plan) -> tuple[str, ...]:
    """Return the strata an event qualifies for under a plan; `uniform` always."""
    qualifies = {
        "uniform": True,
        "low_confidence": _low(one, plan),
        "novel": one.id in plan.novel,
        "empty_or_short": one.short,
        "feedback": one.negative,
        "canary_lost": one.question is not None and one.question in plan.lost,
    }
    return tuple(stratum for stratum in STRATA if qualifies[stratum])


def _low(one: Pooled, plan: Plan) -> bool:
    reference = plan.references.get(one.config)
    if reference is None or one.found is None:
        return False
    return reference.confidence(one.found) < reference.low


class Decision(NamedTuple):
    """A sampled event: its probability (of the union, the pool's own included), its strata and the first."""

    p: float
    stratum: str
    strata: tuple[str, ...]


def decide(one: Pooled, plan: Plan) -> Decision | None:
    """Return how an event was sampled under a plan; None where it was not."""
    rates = plan.rates
    u = chance(one.id, plan.seed)
    if u >= max(rates.values(), default=0.0):
        return None
    strata = strata_of(one, plan)
    stratum = max(strata, key=lambda s: rates.get(s, 0.0))
    rate = rates.get(stratum, 0.0)
    return Decision(one.p * rate, stratum, strata) if u < rate else None
