"""One recorder per sink and process: rings in, windows out, on a thread of its own."""

from __future__ import annotations

import _thread
import logging
import threading
import weakref
from collections import Counter
from collections.abc import Iterable, Mapping
from contextlib import suppress
from time import monotonic, perf_counter
from typing import TYPE_CHECKING

from msgspec import structs

from resweep.domain.batch import ConfigRecord
from resweep.domain.clock import Clock, SystemClock
from resweep.domain.event import Feedback
from resweep.domain.ports import Sink
from resweep.domain.snapshot import Sample, Snapshot
from resweep.domain.values import label
from resweep.domain.window import MINUTE
from resweep.record.call import Ring, let_go
from resweep.record.exposure import OWN_CONFIGS, Totals, process_samples
from resweep.record.failure import spare_the_interrupt
from resweep.record.folding import Folding
from resweep.record.ids import Ids
from resweep.record.outbox import WARN_S, Loss, Outbox

if TYPE_CHECKING:
    from resweep.record.adapters.base import Facts
    from resweep.record.spans import Spans
    from resweep.record.watching import Watch
    from resweep.record.work import Worker

RING_BYTES = 16 << 20
FLUSH_S = 1.0
SAMPLE_RATE = 0.05
SAMPLE_PER_MINUTE = 60
_HURRY_S = 0.02
_NOTES_MAX = 10_000
_NOTED_MAX = 256  # names of counts in a window, before a new value of a fact is one of the others
_ANSWER_FACTS = ("response_model", "system_fingerprint")
RECORDS_MAX = 8192  # that wait at once, whatever they weigh
_RECORDS_FIRST = 256  # until the first fold has told what a record weighs
_RECORDS_LEAST = 16
_BACKLOG = ((600, 60.0), (60, 10.0))  # own files that wait, and the seconds between batches then
_log = logging.getLogger("resweep")


class Recorder:
    """Takes calls from any thread, folds them, and hands batches to its sink.

    `ring_bytes` bounds what waiting records keep alive; `flush_s` is how often batches are handed over and
    so what a killed process may lose. `salt` veils queries; equal salts join queries across processes.
    """

    def __init__(
        self,
        sink: Sink,
        *,
        salt: bytes = b"",
        clock: Clock | None = None,
        ring_bytes: int = RING_BYTES,
        flush_s: float = FLUSH_S,
        sample_rate: float = SAMPLE_RATE,
        sample_per_minute: int = SAMPLE_PER_MINUTE,
        own_configs: int = OWN_CONFIGS,
        spans: Spans | None = None,
    ) -> None:
        self.sink = sink
        self.spans = spans
        self.exposes = bool(getattr(sink, "exposes", False))
        self.clock = clock or SystemClock()
        self.ids = Ids(self.clock.now)
        self.configs: dict[tuple[str, str], ConfigRecord] = {}
        self.watches: weakref.WeakSet[Watch] = weakref.WeakSet()
        self._salt = salt
        self._ring_bytes = ring_bytes
        self._flush_s = flush_s
        self._sampling = (sample_rate, sample_per_minute)
        self._own_configs = own_configs
        if getattr(sink, "samples_all", False):
            self._sampling = (1.0, 1 << 30)
        self._inline = bool(getattr(sink, "synchronous", False))
        self.ring = Ring(_RECORDS_FIRST)  # the same for good: wrapped functions hold on to it
        self.worker: Worker | None = None
        self._start_over()

    def _start_over(self) -> None:
        """Begin with nothing counted: at the start, and in a forked child, whose parent keeps its own."""
        self.ring.halt(_RECORDS_FIRST)
        self.running = self._inline
        if self.running:
            self.ring.resize(_RECORDS_FIRST)
        self._calls = 0
        self._stumbled_at = -WARN_S
        self._lock = threading.Lock()  # the thread
        self._fold_lock = threading.Lock()
        self._send_lock = threading.Lock()
        self._awake = threading.Event()
        self._thread: threading.Thread | None = None
        self._stop = False
        self._requests: list[threading.Event] = []
        self._folding = Folding(self.ids, self._salt, *self._sampling, self.spans)
        if self.exposes:
            self._folding.panels = None
        self._outbox = Outbox(self.sink)
        self._totals = Totals(self._own_configs)
        self._feedback: list[Feedback] = []
        self._notes: list[tuple[str, str, str, int]] = []
        for pipeline, config in self.configs:
            self._totals.see(pipeline, config)

    def after_fork(self) -> None:
        """Be a new writer in a forked child."""
        self.ids.restart()
        if self.spans is not None:
            self.spans.after_fork()
        for watch in list(self.watches):
            watch.renumber()
        self._start_over()

    # --- called by the code on a request -------------------------------------------------------------

    def wake(self) -> None:
        """Ask for folding now; there may be no thread for it yet, or none any more after a fork."""
        if self.running:
            self._awake.set()
        else:
            self.ensure_running()

    def made_room(self) -> bool:
        """Whether the ring, found full, has room now: only where nothing runs in the background."""
        if self._inline:
            self._step(deliver=False)
        return self._inline

    @property
    def writer(self) -> str:
        """The id under which batches are handed over; another one in a forked child."""
        return self._outbox.writer

    # --- set up and feedback -------------------------------------------------------------------------

    def add(self, watch: Watch) -> None:
        """Take a watched retriever in: its config is announced and its series exist at 0."""
        self.watches.add(watch)
        key = (watch.pipeline, watch.config)
        if key not in self.configs and len(self.configs) < 1000:
            self.configs[key] = watch.record
            with self._fold_lock:
                self._totals.see(*key)
            self._outbox.hold_configs()

    def rate(self, feedback: Feedback) -> None:
        """Take feedback on any event, of this process or another."""
        if len(self._feedback) < 10_000:
            self._feedback.append(feedback)
        else:
            self._folding.dropped["sink_failed"] += 1
        self.ensure_running()

    def note(self, watch: Watch, facts: Mapping[str, object]) -> None:
        """Take facts of an answer in: what the generator was is observed, its prompt's tokens are summed."""
        tokens = facts.get("prompt_tokens")
        if type(tokens) is int and 0 <= tokens < 1 << 31:
            self._count_note(watch, "prompt_tokens_n", 1)
            self._count_note(watch, "prompt_tokens_sum", tokens)
        observed = {name: label(facts[name]) for name in _ANSWER_FACTS if isinstance(facts.get(name), str)}
        if observed:
            self.observe(watch, observed)
            for name, value in observed.items():
                self._count_note(watch, f"fact:{name}:{value}", 1)

    def _count_note(self, watch: Watch, name: str, times: int) -> None:
        if len(self._notes) < _NOTES_MAX:
            self._notes.append((watch.pipeline, watch.config, name, times))

    def observe(self, watch: Watch, facts: Mapping[str, object]) -> None:
        """Say a config again where facts about it changed."""
        key = (watch.pipeline, watch.config)
        record = self.configs.get(key)
        if record is not None and any(record.observed.get(name) != value for name, value in facts.items()):
            self.configs[key] = structs.replace(record, observed={**record.observed, **facts})
            self._outbox.hold_configs()

    def refuse(self, reason: str) -> None:
        """Count something that could not be used."""
        self._folding.dropped[reason] += 1

    # --- folding -------------------------------------------------------------------------------------

    def ensure_running(self) -> None:
        """Start the folding thread where there is none: at the first call, and anew in a forked child."""
        if self._thread is not None or self._inline or self._stop:
            return
        with self._lock:
            if self._thread is not None:
                return
            thread = threading.Thread(target=self._run, name="resweep-fold", daemon=True)
            try:
                thread.start()
            except RuntimeError:  # the interpreter is ending, or no thread can be had: records wait in rings
                return
            self._thread = thread
            self.running = True
            self.ring.resize(self.ring.room)
        from resweep.record.process import started

        started()
        if self.worker is not None:
            self.worker.start()

    def _run(self) -> None:
        due = monotonic() + self._pause()
        while not self._stop:
            self._awake.wait(max(0.0, due - monotonic()))
            self._awake.clear()
            requests, self._requests = self._requests, []
            now = monotonic()
            due = min(due, now + self._pause())
            self._step(deliver=now >= due or bool(requests), at_once=bool(requests))
            if now >= due:
                due = now + self._pause()
            for request in requests:
                request.set()

    def _pause(self) -> float:
        waiting = getattr(self.sink, "own_waiting", 0)
        slower = [pause for files, pause in _BACKLOG if waiting > files]
        return max([self._flush_s, *slower])

    def _step(self, *, deliver: bool, at_once: bool = False) -> None:
        try:
            with self._fold_lock:
                self._fold()
            if deliver:
                self._look_again()
                self._deliver(at_once=at_once)
        except BaseException as error:  # noqa: BLE001 - whatever it is, the user's service goes on
            spare_the_interrupt(error)
            self._folding.dropped["invalid"] += 1
            if monotonic() - self._stumbled_at >= WARN_S:
                self._stumbled_at = monotonic()
                _log.warning("recording stumbled over %s; going on", type(error).__name__)

    def _fold(self) -> None:
        self.ids.follow_clock()
        waiting = len(self.ring.calls)
        self._folding.begin(waiting)
        for _ in range(waiting):
            call = self.ring.calls.popleft()
            self._folding.take(call)
            let_go(call)
        self._folding.settle()
        now = self.clock.now()
        for (watch, *what), times in self.ring.take_lost().items():
            self._folding.lose(watch, tuple(what), times, now)  # type: ignore[arg-type]
            self._calls += times
        self._calls += waiting
        if waiting:
            self._weigh(waiting)

    def _weigh(self, folded: int) -> None:
        """Let the ring hold as many records as `ring_bytes` allows by what the last ones weighed."""
        held = self._folding.held_bytes()
        wanted = int(self._ring_bytes * folded / max(held, 1))
        self.ring.resize(max(_RECORDS_LEAST, min(wanted, 2 * self.ring.room, RECORDS_MAX)))

    # --- handing over --------------------------------------------------------------------------------

    def _deliver(self, *, at_once: bool = False) -> None:
        with self._send_lock:
            with self._fold_lock:
                self._close_windows()
            lost = self._outbox.deliver(list(self.configs.values()), self.clock.now(), at_once=at_once)
            lost += _spool_losses(self.sink)
            with self._fold_lock:
                self._count(lost)

    def _close_windows(self) -> None:
        self._sum_notes()
        windows, self._folding.windows = self._folding.windows, {}
        samples, self._folding.samples = self._folding.samples, []
        feedback, self._feedback = self._feedback, []
        if self.exposes:
            self._totals.add(windows.values())
            self._totals.exemplars.update(self._folding.exemplars)
            for one in feedback:
                self._totals.rate(one)
            return
        self._outbox.feedback.extend(feedback)
        panels = [] if self._folding.panels is None else self._folding.panels.drain()
        self._count(self._outbox.add(windows.values(), samples, panels))

    def _sum_notes(self) -> None:
        notes, self._notes = self._notes, []
        minute = int(self.clock.now() // MINUTE)
        for pipeline, config, name, times in notes:
            window = self._folding.window(pipeline, config, minute)
            if name.startswith("fact:") and name not in window.counts and len(window.counts) > _NOTED_MAX:
                name = f"{':'.join(name.split(':')[:2])}:other"  # so many values are no fact of the answers
            window.add(name, times)

    def _look_again(self) -> None:
        """Read again what live objects say of themselves: somebody may have changed their k."""
        for watch in list(self.watches):
            facts = _look_at(watch)
            if facts is not None:
                if facts.asked is not None:
                    watch.asked = facts.asked
                watch.static_filters = facts.filters
                watch.plain = watch.plain and not facts.filters
                self.observe(watch, facts.observed)
            self._say_missing(watch)

    def _say_missing(self, watch: Watch) -> None:
        """Observe what no answer carried so far: an adapter that extracts nothing must not be silent."""
        missing = ", ".join(watch.missing())
        record = self.configs.get((watch.pipeline, watch.config))
        if record is not None and missing != record.observed.get("missing", ""):
            self.observe(watch, {"missing": missing})

    def _count(self, losses: Iterable[Loss]) -> None:
        now = self.clock.now()
        for pipeline, config, reason, times in losses:
            self._folding.drop(pipeline, config, reason, times, now)

    def flush(self, timeout: float = 2.0) -> bool:
        """Fold and hand over what there is; False where that took longer than `timeout` seconds."""
        if self._inline or self._thread is None or not self._thread.is_alive():
            self._step(deliver=True, at_once=True)
            return True
        done = threading.Event()
        self._requests.append(done)
        self._awake.set()
        return done.wait(timeout)

    def leave(self, timeout: float) -> None:
        """Hand over what there is because the process ends; takes at most `timeout` seconds.

        The folding thread goes on: threads that are still running may still record.
        """
        if self._thread is None and not (self.ring.calls or self.ring.lost or self._feedback):
            return  # nothing was recorded in this process: it has nothing to say
        if hasattr(self.sink, "timeout_s"):
            self.sink.timeout_s = min(self.sink.timeout_s, timeout / 2)
        end = monotonic() + timeout
        self.flush(timeout)
        if self.spans is not None:
            self.spans.flush(max(0.0, end - monotonic()))

    def hurry(self) -> None:
        """Hand over as soon as something is recorded, because the process is about to end.

        Called from signal handlers: no lock may be taken here that this very thread may hold.
        """
        self._flush_s = _HURRY_S
        with suppress(RuntimeError):
            _thread.start_new_thread(self._awake.set, ())

    def close(self, timeout: float = 2.0) -> None:
        """Hand over what there is and stop; takes at most `timeout` seconds."""
        end = monotonic() + timeout
        self.leave(timeout)
        self._stop = True
        if self.worker is not None:
            self.worker.stop()
        self._awake.set()
        if self._thread is not None and self._thread is not threading.current_thread():
            self._thread.join(max(0.0, end - monotonic()))
        with suppress(Exception):
            self.sink.close()

    # --- showing -------------------------------------------------------------------------------------

    def snapshot(self) -> Snapshot:
        """Return the numbers as of now: the catalog without an agent, the process's own health with one."""
        complete = self._fold_lock.acquire(timeout=1.0)
        try:
            if complete:
                self._fold()
                if self.exposes:
                    self._close_windows()
            samples: list[Sample] = list(self._totals.samples()) if self.exposes else []
        finally:
            if complete:
                self._fold_lock.release()
        samples.extend(process_samples(*self._health()))
        return Snapshot(ts=self.clock.now(), samples=tuple(samples), complete=complete)

    def _health(self) -> tuple[int, Mapping[str, int], int, float, bool, Mapping[str, int]]:
        oldest = next(iter(self.ring.calls.copy()), None)
        lag = 0.0 if oldest is None else max(0.0, perf_counter() - oldest.t1)
        spooled = int(getattr(self.sink, "waiting_bytes", 0))
        dropped = Counter(self._folding.dropped)
        if self.spans is not None:
            dropped["sink_failed"] += self.spans.undelivered
        return self._calls, dropped, spooled, lag, self._outbox.up, self._states()

    def _states(self) -> Counter[str]:
        """How many watched retrievers were called, and how many show no ids, scores or sources."""
        states: Counter[str] = Counter()
        for watch in list(self.watches):
            if watch.on:
                states["called" if watch.called else "uncalled"] += 1
                states.update(f"no_{name}" for name in watch.missing())
        return states


def _look_at(watch: Watch) -> Facts | None:
    if watch.look is None or not watch.on:
        return None
    try:
        return watch.look()
    except BaseException as error:  # noqa: BLE001 - an object may do anything when looked at
        spare_the_interrupt(error)
        _log.debug("%s could not be looked at again: %s", watch.name, type(error).__name__)
        watch.look = None
        return None


def _spool_losses(sink: object) -> list[Loss]:
    take = getattr(sink, "take_dropped", None)
    dropped = take() if callable(take) else {}
    return [(pipeline, config, "spool_full", n) for (pipeline, config), n in dropped.items()]
