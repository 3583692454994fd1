"""Sweeps that the agent runs by itself: when one is due, one at a time, and what became of the last ones.

A sweep measures and proposes. The tuned k stays what it is until a person accepts another.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

import msgspec

from resweep.domain.batch import ConfigRecord
from resweep.domain.clock import Clock, SystemClock
from resweep.domain.errors import UsageError
from resweep.domain.verdict import Flag
from resweep.schedule.desk import Desk
from resweep.schedule.due import Due
from resweep.store.sql import SqlStore

log = logging.getLogger("resweep.schedule")

STATE = "own-sweeps"
KEPT = 50  # runs that are remembered
ASKS_FOR_ONE = "resweep sweep"  # how the next command of a flag begins that a sweep answers

RunState = Literal["running", "done", "failed", "stopped"]


class SweepRun(msgspec.Struct, kw_only=True):
    """One sweep by the agent. Times are unix seconds; `told` is the last line it had to say.

    `config` and `basis` are those in charge when it began, `why` the reason of the flag or the person's name.
    """

    pipeline: str
    config: str
    basis: str
    why: str
    started: float
    state: RunState = "running"
    ended: float | None = None
    told: str = ""


class Ended(msgspec.Struct, kw_only=True):
    """How a sweep ended: its exit code, and its last line."""

    code: int
    told: str = ""


class Underway(Protocol):
    """A sweep in a process of its own."""

    def ended(self) -> Ended | None:
        """Return how it ended, None while it runs."""

    def stop(self) -> None:
        """End it; what was answered is kept."""


class Start(Protocol):
    """Starts a sweep of a config in a process of its own. Raises UsageError or OSError."""

    def __call__(self, config: ConfigRecord) -> Underway:
        """Return the sweep under way."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SweepWish:
    """Whose sweeps the agent runs: `by_itself` after flags that ask for one, else on request only.

    `rest_s` is the least number of seconds between two that it starts by itself.
    """

    pipeline: str
    by_itself: bool
    rest_s: float


class SweepDesk:
    """Starts sweeps and keeps account of them. All methods may be called from any thread."""

    def __init__(
        self, store: SqlStore, desk: Desk, wish: SweepWish | None, start: Start, clock: Clock | None = None
    ) -> None:
        self._store = store
        self._desk = desk
        self._wish = wish
        self._start = start
        self._clock = clock or SystemClock()
        self._lock = threading.Lock()
        self._under_way: Underway | None = None
        self._runs = _read(store.state(STATE))
        if self._runs and self._runs[-1].state == "running":  # of an agent that was killed
            self._close("stopped", "the agent ended meanwhile; what was answered is kept")

    def run(self, run: Due | None = None) -> None:
        """Note the end of the sweep under way; start one where a flag asks for it."""
        with self._lock:
            self._look()
            flag = self._asking()
            if flag is not None:
                self._begin(flag.reason)

    def ask(self, who: str) -> SweepRun:
        """Start a sweep now, on a person's word. Raises UsageError where that cannot be."""
        with self._lock:
            self._look()
            if self._wish is None:
                raise UsageError(
                    "expected sweep.retriever and sweep.pipeline in the agent's settings: what it would sweep"
                )
            if self._under_way is not None:
                raise UsageError(f"a sweep of {self._wish.pipeline} runs already; see GET /v1/sweeps")
            return self._begin(who)

    def runs(self) -> Sequence[SweepRun]:
        """Return the last runs, the newest first."""
        with self._lock:
            self._look()
            return [msgspec.structs.replace(one) for one in reversed(self._runs)]

    def stop(self) -> None:
        """End the sweep under way, if any."""
        with self._lock:
            self._look()
            if self._under_way is not None:
                self._under_way.stop()
                self._close("stopped", "the agent ended; what was answered is kept")

    def _asking(self) -> Flag | None:
        """Return the oldest flag that a sweep would answer and none has; None while one runs or rests."""
        wish = self._wish
        if wish is None or not wish.by_itself or self._under_way is not None:
            return None
        if self._runs and self._clock.now() - self._runs[-1].started < wish.rest_s:
            return None
        swept = [one["made_at"] for one in self._store.reports(wish.pipeline, limit=1)]
        config = self._in_charge()
        asking = [
            flag
            for flag in self._store.flags(wish.pipeline)
            if flag.next_command.startswith(ASKS_FOR_ONE)
            and config is not None
            and flag.basis == config.basis
            and not any(made >= flag.opened_ts for made in swept)
        ]
        return min(asking, key=lambda flag: flag.opened_ts, default=None)

    def _begin(self, why: str) -> SweepRun:
        """Start a sweep and note it, also where it could not be started."""
        wish, config = self._wish, self._in_charge()
        assert wish is not None
        if config is None:
            raise UsageError(f"{wish.pipeline} was not seen yet: there is no config to sweep")
        begun = SweepRun(
            pipeline=wish.pipeline,
            config=config.config,
            basis=config.basis,
            why=why,
            started=self._clock.now(),
        )
        self._runs = [*self._runs, begun][-KEPT:]
        try:
            self._under_way = self._start(config)
        except (UsageError, OSError) as error:
            self._close("failed", str(error))
            log.warning("could not sweep %s: %s", wish.pipeline, error)
        else:
            log.info("sweeping %s, config %s: %s", wish.pipeline, config.config, why)
            self._save()
        return begun

    def _look(self) -> None:
        ended = self._under_way.ended() if self._under_way is not None else None
        if ended is None:
            return
        self._under_way = None
        self._close("done" if ended.code == 0 else "failed", ended.told or f"exit code {ended.code}")
        level = logging.INFO if ended.code == 0 else logging.WARNING
        log.log(level, "the sweep of %s ended: %s", self._runs[-1].pipeline, self._runs[-1].told)

    def _close(self, state: RunState, told: str) -> None:
        last = self._runs[-1]
        last.state, last.told, last.ended = state, told[:1000], self._clock.now()
        self._save()

    def _save(self) -> None:
        self._store.save_state(STATE, msgspec.json.encode(self._runs))

    def _in_charge(self) -> ConfigRecord | None:
        assert self._wish is not None
        name = self._wish.pipeline
        configs = self._store.configs(name)
        verdicts = self._desk.verdicts(self._clock.now())
        config = next((v.config for v in verdicts if v.pipeline == name), None)
        return next((c for c in configs if c.config == config), configs[-1] if configs else None)


def _read(saved: bytes | None) -> list[SweepRun]:
    try:
        return msgspec.json.decode(saved, type=list[SweepRun]) if saved else []
    except msgspec.MsgspecError as error:
        log.warning("the account of own sweeps cannot be read and begins anew: %s", error)
        return []
