"""A retriever that is no vector search but answers like one, and changes on demand.

Each known question has a topic, eight passages and scores; a new question borrows the shape of a known one.
Everything comes from the seed. `World.events` yields `RetrievalEvent`s in time order.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from benchmarks.traffic.calendar import Calendar, wander
from resweep.domain.event import Hit, RetrievalEvent

START = 1_795_996_800  # a Monday, 00:00 UTC
K = 8
TOPICS, SOURCES, PER_SOURCE = 16, 600, 6
CONFIG = "0123456789ab"


@dataclass(frozen=True, kw_only=True)
class Scenario:
    """What the traffic is like, and what happens to it."""

    name: str
    calendar: Calendar = field(default_factory=Calendar)
    known: int = 3000  # questions that come again
    fresh: float = 0.35  # share of questions asked once
    anonymous: bool = False  # no query is recorded
    topic_wander: float = 0.25  # AR(1) of the topics' log-odds, by the hour
    churn: float = 0.01  # mean share of known questions with another answer each night
    flaky: float = 0.0  # share of calls in which an approximate index misses one passage
    ingests: tuple[tuple[int, float], ...] = ()  # (day, share of known questions with new passages)
    bursts: float = 0.0  # bursts of one question a day, a sixth to a third of an hour or three
    crawls: tuple[int, ...] = ()  # days on which a crawler adds as many new questions as there are calls
    tenants: int = 1  # each sees its own passages
    cache: float = 0.0  # share of repeats within the hour served from a cache (faster, same answer)
    empty: float = 0.01
    change: str | None = None
    size: float = 1.0
    at: int | None = None  # hour of the change

    def changed(self, change: str, size: float, at: int) -> Scenario:
        """Return the scenario with a change at an hour."""
        return replace(self, change=change, size=size, at=at, name=f"{self.name}+{change}")


class World:
    """One system under one scenario and seed."""

    def __init__(self, scenario: Scenario, seed: int) -> None:
        self.scenario = s = scenario
        self.rng = np.random.default_rng([seed, 1])
        fixed = np.random.default_rng([seed, 2])
        self.home = np.arange(SOURCES) % TOPICS
        self.topic = fixed.integers(0, TOPICS, s.known)
        self.popularity = 1 / np.arange(1, s.known + 1) ** 0.9
        self.level = fixed.normal(0, 0.3, TOPICS)[self.topic] + fixed.normal(0, 0.9, s.known)
        self.gaps = fixed.exponential(0.35, (s.known, K))
        self.sources = np.stack([fixed.choice(np.flatnonzero(self.home == t), K) for t in self.topic])
        self.places = fixed.integers(0, PER_SOURCE, (s.known, K))
        self.words = 100 + fixed.integers(0, 80, (SOURCES, PER_SOURCE))
        self.version = np.zeros(s.known, dtype=int)
        self.base = fixed.normal(0, 0.8, TOPICS)
        self.daily = fixed.normal(0, 0.5, TOPICS), fixed.uniform(0, 24, TOPICS), fixed.normal(0, 0.4, TOPICS)
        self.swapped = fixed.permutation(s.known)
        self.part = fixed.random(s.known) < (s.size if s.change == "embedder" else 1.0)
        self.gone = fixed.random(SOURCES) < (s.size if s.change == "filter" else 0.0)
        self.serial = 0
        self._cache: dict[tuple[int, int, bool], tuple[Hit, ...]] = {}

    def events(self, days: int, start_day: int = 0) -> Iterator[RetrievalEvent]:
        """Yield the events of so many days."""
        hours = days * 24
        volume = self.scenario.calendar.volume(hours, self.rng)
        mix = self._mix(hours)
        burst = (-1, 0.0, -1)
        for h in range(hours):
            if h % 24 == 3:
                self._night(h // 24)
            n = int(self.rng.poisson(volume[h]))
            burst = self._burst(h, burst)
            yield from self._hour(h, n, mix[h], burst)

    def _mix(self, hours: int) -> NDArray[np.float64]:
        h = np.arange(hours)
        amplitude, phase, rest = self.daily
        resting = self.scenario.calendar.resting(h // 24)[:, None]
        logits = self.base + amplitude * np.sin(2 * np.pi * (h[:, None] - phase) / 24) + rest * resting
        logits = logits + wander(hours, 0.9, self.scenario.topic_wander, self.rng, TOPICS)
        if self.scenario.change == "mix":
            logits[self.scenario.at :, int(np.argsort(self.base)[TOPICS // 2])] += self.scenario.size
        odds = np.exp(logits - logits.max(axis=1)[:, None])
        return np.asarray(odds / odds.sum(axis=1)[:, None])

    def _night(self, day: int) -> None:
        share = self.rng.gamma(1.0, self.scenario.churn) if self.scenario.churn else 0.0
        share = max([share, *(size for at, size in self.scenario.ingests if at == day)])
        hit = self.rng.random(self.scenario.known) < share
        self.version[hit] += 1
        if hit.any():
            self._cache = {key: hits for key, hits in self._cache.items() if not hit[key[0]]}

    def _burst(self, h: int, burst: tuple[int, float, int]) -> tuple[int, float, int]:
        if h < burst[2]:
            return burst
        rng = self.rng
        if rng.random() < self.scenario.bursts / 24:
            return (
                int(rng.integers(self.scenario.known)),
                rng.uniform(0.15, 0.35),
                h + 1 + int(rng.integers(3)),
            )
        return (-1, 0.0, -1)

    def _hour(
        self, h: int, n: int, mix: NDArray[np.float64], burst: tuple[int, float, int]
    ) -> Iterator[RetrievalEvent]:
        s, rng = self.scenario, self.rng
        usual = np.bincount(self.topic, self.popularity, TOPICS)
        weights = self.popularity * (mix / usual)[self.topic]
        crawler = n if h // 24 in s.crawls else 0
        questions = rng.choice(s.known, size=n + crawler, p=weights / weights.sum())
        new = rng.random(n + crawler) < s.fresh
        if crawler:
            new[n:] = True
            questions[n:] = rng.integers(0, s.known, crawler)
        if burst[0] >= 0:
            hit = rng.random(n + crawler) < burst[1]
            questions[hit], new[hit] = burst[0], False
        times = np.sort(rng.random(n + crawler)) * 3600 + h * 3600 + START
        after = s.at is not None and h >= s.at
        order = rng.permutation(n + crawler)
        for ts, q, fresh in zip(times, questions[order], new[order], strict=True):
            yield self._event(float(ts), int(q), bool(fresh), after)

    def _event(self, ts: float, q: int, fresh: bool, after: bool) -> RetrievalEvent:
        s, rng = self.scenario, self.rng
        self.serial += 1
        tenant = self.serial % s.tenants
        hits = self._novel(q, after) if fresh else self._answer(q, tenant, after)
        if s.flaky and len(hits) > 1 and rng.random() < s.flaky:
            lost = int(rng.integers(0, len(hits) - 1))
            hits = (*hits[:lost], *hits[lost + 1 :], hits[-1]._replace(id=f"x{int(rng.integers(999))}"))
        share = s.empty * (s.size if after and s.change == "empty" else 1.0)
        if rng.random() < share:
            hits = ()
        key = None if s.anonymous else (1 << 60) + self.serial if fresh else q * 64 + tenant
        latency = float(np.exp(rng.normal(-3, 0.3)))
        mixed = None if key is None else (key * 0x9E3779B97F4A7C15) & (1 << 64) - 1
        return RetrievalEvent(
            f"e{self.serial}", ts, "p", CONFIG, K, len(hits), hits, query_key=mixed, latency_s=latency
        )

    def _answer(self, q: int, tenant: int, after: bool) -> tuple[Hit, ...]:
        key = (q, tenant, after)
        found = self._cache.get(key)
        if found is None:
            rng = np.random.default_rng([q, int(self.version[q]), tenant])
            found = self._cache[key] = self._hits(q, after, rng)
        return found

    def _hits(self, q: int, after: bool, rng: np.random.Generator) -> tuple[Hit, ...]:
        s = self.scenario
        like = q
        if after and s.change == "embedder" and self.part[q]:
            like = self._relative(q)
        level = 0.6 * self.level[like] + 0.4 * self.level[q] if like != q else self.level[q]
        sources, places = self.sources[like].copy(), self.places[like].copy()
        if self.version[q]:
            slot = rng.integers(0, K - 2, 2)
            sources[slot] = rng.choice(np.flatnonzero(self.home == self.topic[q]), 2)
        return self._dressed(sources, places, level, self.gaps[like], after)

    def _relative(self, q: int) -> int:
        """Another question of the topic, whose answer an other embedder gives."""
        same = np.flatnonzero(self.topic == self.topic[q])
        return int(same[(np.searchsorted(same, q) + 1) % len(same)])

    def _novel(self, q: int, after: bool) -> tuple[Hit, ...]:
        rng = self.rng
        sources = np.array(self.sources[q])
        slot = rng.integers(0, K, 3)
        sources[slot] = self.sources[self._relative_any(q)][slot]
        level = 0.5 * self.level[q] + 0.8 * rng.normal()
        return self._dressed(sources, rng.integers(0, PER_SOURCE, K), level, rng.exponential(0.35, K), after)

    def _relative_any(self, q: int) -> int:
        return (q * 7 + int(self.rng.integers(50))) % self.scenario.known

    def _dressed(
        self,
        sources: NDArray[np.int_],
        places: NDArray[np.int_],
        level: float,
        gaps: NDArray[np.float64],
        after: bool,
    ) -> tuple[Hit, ...]:
        s = self.scenario
        raw = level - np.concatenate([[0.0], np.cumsum(gaps[1:])])
        if after and s.change == "level":
            raw = raw + s.size
        if after and s.change == "filter":
            lost = self.gone[sources]
            sources = np.where(lost, (sources + TOPICS * 7) % SOURCES, sources)
            raw = np.sort(raw - 0.5 * lost)[::-1]
        scores = 1 / (1 + np.exp(-0.5 * raw))
        chunked = after and s.change == "chunker"
        prefix, factor = ("c", 0.5) if chunked else ("p", 1.0)
        return tuple(
            Hit(
                f"{prefix}{source * PER_SOURCE + place}",
                round(float(score), 6),
                source=f"s{source}",
                tokens=int(self.words[source, place] * factor),
                score_state="ok",
            )
            for source, place, score in zip(sources, places, scores, strict=True)
        )
