"""A small retriever with known changes, and its traffic, for tests of passive detection."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

from resweep.detect.passive.engine import PassiveEngine
from resweep.domain.event import Hit, RetrievalEvent
from resweep.domain.sample import query_key
from resweep.domain.verdict import Flag

START = 1_796_000_000.0
CONFIG = "0123456789ab"
SALT = b"test"


class World:
    """80 questions asked of 600 passages, three a source; answers are the nearest eight by cosine.

    `seed` above 0 is another embedder. `score`, `name` and `tokens` dress the hits; sources in `gone` are
    missing.
    """

    def __init__(
        self,
        seed: int = 0,
        *,
        questions: int = 80,
        depth: int = 8,
        score: Callable[[float], float] = float,
        name: Callable[[int], str] = "p{}".format,
        tokens: Callable[[int], int] = lambda i: 100 + i % 29,
        gone: frozenset[int] = frozenset(),
    ) -> None:
        self.questions, self.depth = questions, depth
        self.dress = (score, name, tokens)
        self.gone = gone
        rng = np.random.default_rng(3)
        asked, stored = rng.normal(size=(questions, 16)), rng.normal(size=(600, 16))
        stored += 0.6 * np.repeat(rng.normal(size=(200, 16)), 3, axis=0)
        if seed:
            turn = np.random.default_rng(seed).normal(size=(2, 16, 16)) / 4
            asked, stored = asked + 0.6 * asked @ turn[0], stored + 0.6 * stored @ turn[1]
        unit = stored / np.linalg.norm(stored, axis=1)[:, None]
        self.scores = (asked / np.linalg.norm(asked, axis=1)[:, None]) @ unit.T
        self.answers = [self._answer(q) for q in range(questions)]

    def _answer(self, question: int) -> tuple[Hit, ...]:
        order = [int(i) for i in np.argsort(-self.scores[question]) if int(i) // 3 not in self.gone]
        return tuple(self._hit(question, i) for i in order[: self.depth])

    def _hit(self, question: int, i: int) -> Hit:
        score, name, tokens = self.dress
        value = score(round(float(self.scores[question, i]), 6))
        return Hit(name(i), value, source=f"s{i // 3}", tokens=tokens(i), score_state="ok")


class Lab:
    """Worlds, their traffic, and what an engine says of it."""

    salt = SALT
    start = START
    config = CONFIG

    @staticmethod
    def world(seed: int = 0, **how: Any) -> World:
        """Return a world."""
        return World(seed, **how)

    def traffic(
        self,
        world: World,
        n: int,
        *,
        rate: float = 600.0,
        start: float = START,
        first: int = 0,
        keyed: bool = True,
        questions: range | None = None,
    ) -> Iterator[tuple[int, RetrievalEvent]]:
        """Yield (number, event) of `n` events at `rate` an hour."""
        rng = np.random.default_rng(first + 1)
        pool = np.array(list(questions or range(world.questions)))
        weights = 1 / np.arange(1, len(pool) + 1) ** 0.5
        drawn = rng.choice(pool, size=n, p=weights / weights.sum())
        times = start + np.cumsum(rng.exponential(3600 / rate, size=n))
        for i, (question, ts) in enumerate(zip(drawn, times, strict=True), first):
            hits = world.answers[question]
            key = query_key(f"question {question}", None, SALT) if keyed else None
            yield i, RetrievalEvent(f"e{i}", float(ts), "p", CONFIG, 8, len(hits), hits, query_key=key)

    def feed(self, engine: PassiveEngine, events: Iterator[tuple[int, RetrievalEvent]]) -> float:
        """Feed events to an engine; return the time of the last."""
        ts = START
        for number, event in events:
            engine.observe(number, event)
            ts = event.ts
        return ts

    def flags(self, engine: PassiveEngine) -> list[Flag]:
        """Return the newest state of every flag."""
        return list({changed.flag.key: changed.flag for changed in engine.drain()}.values())

    def change(
        self,
        before: World,
        after: World,
        *,
        n: int = 16_000,
        then: int = 600,
        rate: float = 600.0,
        keyed: bool = True,
    ) -> list[Flag]:
        """Return the flags of `n` events before a change of system and `then` after it."""
        engine = PassiveEngine("p", salt=SALT)
        last = self.feed(engine, self.traffic(before, n, rate=rate, keyed=keyed))
        end = self.feed(engine, self.traffic(after, then, rate=rate, start=last, first=n, keyed=keyed))
        engine.advance(end + 60)
        return self.flags(engine)


@pytest.fixture(scope="session")
def lab() -> Lab:
    """Worlds and traffic."""
    return Lab()
