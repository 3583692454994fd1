"""Calls that cost something: made once, a few at a time, again where they fail, within a budget."""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from resweep.domain.errors import BudgetSpentError, InputError, ResweepError
from resweep.domain.turn import Turn
from resweep.sweep.cache import Kept

HOPELESS = 5  # first answers that are all failures end the work
FAILED_SHARE = 0.05  # of all answers; with more than this no mean is worth printing
LEASE_S = 30.0  # for which a call is another's beyond the time it may take, before somebody else makes it
UNBOUNDED_S = 600.0  # that a call without a time limit is believed to take
LOOK_AGAIN_S = 0.1  # between looks at what another worker has in hand
POSTPONED_MOST = 10  # times that a server may ask to wait before it counts as failing


class CallFailedError(ResweepError):
    """A call that failed. `again` is False where trying again cannot help.

    `after_s`: the server refused the call for now, and asks to wait so long. `taken`: tokens in and out of an
    answer that came, and was paid for, but cannot be used.
    """

    def __init__(
        self,
        message: str,
        *,
        again: bool = True,
        after_s: float | None = None,
        taken: tuple[int, int] = (0, 0),
    ) -> None:
        super().__init__(message)
        self.again = again
        self.after_s = after_s
        self.taken = taken


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """How calls are made: `concurrency` at a time, `attempts` each, waiting `backoff_s` and then twice that.

    A call that the server puts off is no attempt: it is made again when the server says, ten times at most.
    A call that takes longer than `timeout_s` is given up and counts as failed (its thread is left to end by
    itself). `max_calls`, `max_tokens` and `max_usd` bound what one sweep may take; None: no bound. A call
    under way may go over by what it takes itself.
    """

    concurrency: int = 4
    attempts: int = 3
    backoff_s: float = 0.5
    timeout_s: float | None = 30.0
    max_calls: int | None = None
    max_tokens: int | None = None
    max_usd: float | None = None
    sleep: Callable[[float], object] | None = None  # None: real time, cut short where the work ends
    clock: Callable[[], float] = time.perf_counter


class Ask(NamedTuple):
    """One thing to ask: its key, and the call that answers it with bytes that can be kept.

    `taken` reads tokens in and out of an answer, `usd` says what so many cost. `ever`: the answer follows
    from the key alone, so that one of any age will do.
    """

    key: str
    call: Callable[[], bytes]
    taken: Callable[[bytes], tuple[int, int]] | None = None
    usd: Callable[[int, int], float] | None = None
    ever: bool = False


@dataclass(slots=True)
class Progress:
    """How far the work is. `calls` are attempts paid for, `cached` answers that were there already."""

    total: int = 0
    done: int = 0
    cached: int = 0
    calls: int = 0
    failed: int = 0
    retried: int = 0
    tokens_in: int = 0
    tokens_out: int = 0
    usd: float = 0.0


Watcher = Callable[[Progress], None]


class _Caller:
    """Makes calls on a thread of its own, so that one that hangs can be left behind."""

    def __init__(self) -> None:
        self._inbox: queue.SimpleQueue[Any] | None = None

    def __call__(self, call: Callable[[], bytes], timeout_s: float | None) -> bytes:
        if timeout_s is None:
            return call()
        if self._inbox is None:
            self._inbox = queue.SimpleQueue()
            threading.Thread(target=self._serve, args=(self._inbox,), daemon=True).start()
        answers: queue.SimpleQueue[tuple[bytes | None, BaseException | None]] = queue.SimpleQueue()
        self._inbox.put((call, answers))
        try:
            value, error = answers.get(timeout=timeout_s)
        except queue.Empty:
            self.close()
            raise TimeoutError(f"no answer within {timeout_s:g} s") from None
        if error is not None:
            raise error
        return value or b""

    def close(self) -> None:
        """Let the thread end after what it is at."""
        if self._inbox is not None:
            self._inbox.put(None)
            self._inbox = None

    @staticmethod
    def _serve(inbox: queue.SimpleQueue[Any]) -> None:
        while (item := inbox.get()) is not None:
            call, answers = item
            try:
                answers.put((call(), None))
            except BaseException as error:  # noqa: BLE001 - whoever waits raises it
                answers.put((None, error))


@dataclass(slots=True)
class Calls:
    """Makes calls through a cache, within one budget for all of them together.

    `progress` counts; `watch` is told of it on the thread that called `run`. `errors` holds the last
    message of what failed for good, by key.
    """

    cache: Kept
    policy: Policy = field(default_factory=Policy)
    watch: Watcher | None = None
    progress: Progress = field(default_factory=Progress)
    errors: dict[str, str] = field(default_factory=dict)
    _seen: set[str] = field(default_factory=set)
    _fruitless: int = 0  # failures before the first success of a run; -1 once there was one
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def run(self, asks: Sequence[Ask]) -> dict[str, bytes]:
        """Return the answers by key; what failed for good is in `errors`.

        Equal keys are asked once. Raises BudgetSpentError where the budget does not suffice, and InputError
        where the first answers are all failures, or too many of all.
        """
        unique = {ask.key: ask for ask in asks}
        fresh = unique.keys() - self._seen
        self._seen |= fresh
        self.progress.total += len(fresh)
        found: dict[str, bytes] = {}
        waiting = []
        for ask in unique.values():
            value = self.cache.get(ask.key, ever=ask.ever)
            if value is None:
                waiting.append(ask)
            else:
                found[ask.key] = value
        self.progress.cached += len(found.keys() & fresh)
        self.progress.done += len(found.keys() & fresh)
        self._tell()
        for ask, value in self._made(waiting):
            if value is not None:
                found[ask.key] = value
        self._check(unique)
        return found

    def _made(self, waiting: Sequence[Ask]) -> Iterator[tuple[Ask, bytes | None]]:
        """Yield each ask with its answer as it comes, None where it failed."""
        todo: queue.SimpleQueue[Ask] = queue.SimpleQueue()
        for ask in waiting:
            todo.put(ask)
        came: queue.SimpleQueue[tuple[Ask, bytes | None, BaseException | None]] = queue.SimpleQueue()
        stop, self._fruitless = threading.Event(), 0
        workers = [
            threading.Thread(target=self._work, args=(todo, came, stop), daemon=True)
            for _ in range(min(self.policy.concurrency, len(waiting)))
        ]
        for worker in workers:
            worker.start()
        succeeded = False
        try:
            for number in range(1, len(waiting) + 1):
                ask, value, error = came.get()
                if error is not None:
                    stop.set()
                    self._end(workers, came)
                    raise self._spent() if isinstance(error, BudgetSpentError) else error
                succeeded = succeeded or value is not None
                self.progress.done += 1
                self._tell()
                if not succeeded and number >= min(HOPELESS, len(waiting)):
                    raise InputError(
                        f"expected answers; the first {number} all failed, the last with: "
                        f"{self.errors[ask.key]}: mend that and run again"
                    )
                yield ask, value
        except KeyboardInterrupt:
            stop.set()
            self._end(workers, came)
            raise
        finally:
            stop.set()

    def _work(
        self, todo: queue.SimpleQueue[Ask], came: queue.SimpleQueue[Any], stop: threading.Event
    ) -> None:
        caller = _Caller()
        try:
            while not stop.is_set():
                try:
                    ask = todo.get_nowait()
                except queue.Empty:
                    return
                try:
                    turn = self.cache.take(ask.key, self._lease(0.0), ever=ask.ever)
                    if turn.whose == "elsewhere":
                        todo.put(ask)
                        stop.wait(LOOK_AGAIN_S)
                        continue
                    value = self._answer(ask, caller, stop) if turn.whose == "mine" else self._told(ask, turn)
                except BaseException as error:  # noqa: BLE001 - raised where `run` waits
                    came.put((ask, None, error))
                    return
                with self._lock:
                    came.put((ask, value, None))
                    self._fruitless = self._fruitless + 1 if value is None and self._fruitless >= 0 else -1
                    if self._fruitless >= HOPELESS:
                        stop.set()
        finally:
            caller.close()

    def _told(self, ask: Ask, turn: Turn) -> bytes | None:
        """Return what another worker made of a call meanwhile."""
        with self._lock:
            if turn.value is None:
                self.errors[ask.key] = turn.error
                self.progress.failed += 1
            else:
                self.progress.cached += 1
        return turn.value

    def _lease(self, rest_s: float) -> float:
        return rest_s + (self.policy.timeout_s or UNBOUNDED_S) + LEASE_S

    def _answer(self, ask: Ask, caller: _Caller, stop: threading.Event) -> bytes | None:
        """Make a call until it is answered or failed for good; give it back where the work ends before."""
        try:
            value = self._tried(ask, caller, stop)
        except BaseException:
            self.cache.release([ask.key])
            raise
        if value is None and stop.is_set():
            self.cache.release([ask.key])
        elif value is None:
            self.cache.fail(ask.key, self.errors[ask.key])
        return value

    def _tried(self, ask: Ask, caller: _Caller, stop: threading.Event) -> bytes | None:
        wait, left, postponed = self.policy.backoff_s, self.policy.attempts, 0
        while True:
            self._pay(retry=left < self.policy.attempts or postponed > 0)
            try:
                value = caller(ask.call, self.policy.timeout_s)
            except Exception as error:  # noqa: BLE001 - a user's retriever or model may raise anything
                self.errors[ask.key] = f"{type(error).__name__}: {error}"[:500]
                self._count(ask, getattr(error, "taken", (0, 0)))
                after = getattr(error, "after_s", None)
                if after is not None and postponed < POSTPONED_MOST:
                    postponed += 1
                else:
                    left -= 1
                if not left or not getattr(error, "again", True) or self._rested(ask.key, after, wait, stop):
                    break
                wait *= 1 if after is not None else 2
                continue
            self.cache.put(ask.key, value)
            self.errors.pop(ask.key, None)
            self._count(ask, ask.taken(value) if ask.taken else (0, 0))
            return value
        with self._lock:
            self.progress.failed += 1
        return None

    def _rested(self, key: str, after: float | None, wait: float, stop: threading.Event) -> bool:
        """Wait for the next attempt; return whether the work ended meanwhile."""
        seconds = wait if after is None else after
        self.cache.take(key, self._lease(seconds))
        if self.policy.sleep is None:
            return stop.wait(seconds)
        self.policy.sleep(seconds)
        return stop.is_set()

    def _count(self, ask: Ask, taken: tuple[int, int]) -> None:
        """Count what an answer took, usable or not."""
        usd = ask.usd(*taken) if ask.usd else 0.0
        with self._lock:
            self.progress.tokens_in += taken[0]
            self.progress.tokens_out += taken[1]
            self.progress.usd += usd

    def _pay(self, *, retry: bool) -> None:
        with self._lock:
            if self._over():
                raise BudgetSpentError
            self.progress.calls += 1
            self.progress.retried += retry

    def _end(self, workers: Sequence[threading.Thread], came: queue.SimpleQueue[Any]) -> None:
        """Wait for the calls under way: they are paid for, and their answers are kept."""
        for worker in workers:
            worker.join(self.policy.timeout_s)
        while not came.empty():
            self.progress.done += came.get()[1] is not None

    def _over(self) -> str:
        """Return which budget is spent, "" for none."""
        policy, so_far = self.policy, self.progress
        for limit, used, what in (
            (policy.max_calls, so_far.calls, "calls"),
            (policy.max_tokens, so_far.tokens_in + so_far.tokens_out, "tokens"),
            (policy.max_usd, so_far.usd, "USD"),
        ):
            if limit is not None and used >= limit:
                return f"{limit:g} {what}" if what == "USD" else f"{limit} {what}"
        return ""

    def _spent(self) -> BudgetSpentError:
        return BudgetSpentError(
            f"expected to need at most {self._over()}; they are spent, {self.progress.done} of "
            f"{self.progress.total} answers are kept: raise the budget and run again to go on"
        )

    def _check(self, asked: Collection[str]) -> None:
        failed = [error for key, error in self.errors.items() if key in asked]
        if len(failed) > max(1.0, FAILED_SHARE * len(asked)):
            raise InputError(
                f"expected answers; {len(failed)} of {len(asked)} failed for good, the last with: "
                f"{failed[-1]}: mend that and run again; what was answered is kept"
            )

    def _tell(self) -> None:
        if self.watch is not None:
            self.watch(self.progress)
