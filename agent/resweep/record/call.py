"""The code on a request: clock, call, clock, count, append. Everything else waits for the folding thread.

A `Call` is the slim record of one retrieval. It is what the context variable holds, so that the event id of
an answer can be asked for later, and what the ring holds, until it is folded and lets go of the answer.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from contextvars import ContextVar
from threading import Lock
from time import perf_counter
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from resweep.record.failure import Failure
    from resweep.record.stages import Stage
    from resweep.record.watching import Site, Watch

OK: Final = 0
PARTIAL: Final = 1
FAILED: Final = 2
OVERHEAD_MASK = 63  # one call in 64 times its own recording
_LOST_KINDS_MAX = 4096

clock = perf_counter


class Call:
    """One retrieval in progress or just done; times are those of `clock`, in seconds.

    `active` while its code runs: a nested call of the same watched object is then part of it. `extra` takes
    what came in beside the answer (stages, facts) and is None for most calls. `total` is the number of
    passages where the result kept holds fewer. What most calls leave as it is stands on the class: a call
    is made on a request, and each attribute costs.
    """

    site: Site
    number: int
    args: tuple[Any, ...]
    kwargs: Mapping[str, Any]
    t0: float
    t1: float = 0.0
    result: Any = None
    state: int = OK
    active: bool = True
    parent: Call | None = None
    extra: Extra | None = None
    failure: Failure | None = None
    total: int | None = None
    overhead: float = 0.0


class Extra:
    """What came in while a call ran: stages with their seconds and results, facts noted by the user."""

    __slots__ = ("around", "facts", "inside", "scored", "stages")

    def __init__(self) -> None:
        self.stages: list[Stage] = []
        self.facts: dict[str, object] = {}
        self.scored: Any = None
        self.inside: set[int] = set()  # objects whose stage runs now
        self.around: Any = None  # the surrounding span, where spans are on


class Ring:
    """Finished calls that wait to be folded. Any thread appends, one at a time takes out.

    A deque appends and pops in one step of the interpreter, so no thread ever waits for another here.
    `lock` guards `lost` alone: the counts of calls that found no room.
    """

    __slots__ = ("calls", "half_room", "lock", "lost", "room")

    def __init__(self, room: int) -> None:
        self.calls: deque[Call] = deque()
        self.lock = Lock()
        self.lost: dict[Lost, int] = {}
        self.resize(room)

    def resize(self, room: int) -> None:
        """Set how many calls may wait; beyond half of that the folding thread is woken."""
        self.room = room
        self.half_room = room // 2

    def halt(self, room: int) -> None:
        """Forget what waits; until the next `resize` every call asks for the folding thread."""
        self.calls.clear()
        self.lost = {}
        self.lock = Lock()
        self.room = room
        self.half_room = 0

    def take_lost(self) -> dict[Lost, int]:
        """Return the counts of calls that found no room since last asked."""
        if not self.lost:
            return {}
        with self.lock:
            lost, self.lost = self.lost, {}
        return lost


# watch, state, whether the answer was None, asked, returned, class of error
Lost = tuple["Watch", int, bool, int | None, int, str]
current: ContextVar[Call | None] = ContextVar("resweep_call", default=None)
_get = current.get
_set = current.set


def begin(site: Site, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Call | None:
    """Return the record of a call that starts now; None for one inside another of the same object."""
    if not site.on:
        return None
    node = _get()
    parent = None
    while node is not None:
        if node.active:
            if node.site.watch is site.watch:
                return None
            if parent is None:
                parent = node
        node = node.parent
    call = Call()
    call.site = site
    call.args = args
    call.kwargs = kwargs
    if parent is not None:
        call.parent = parent
    call.number = site.next_number()
    spans = site.recorder.spans
    if spans is not None:
        extra_of(call).around = spans.surrounding()
    _set(call)
    call.t0 = clock()
    return call


def finish(call: Call, result: Any) -> None:
    """Record what a call returned. The order of a list is copied, so that nobody can change the record."""
    call.t1 = clock()
    call.active = False
    parent = call.parent
    if parent is not None and parent.active:
        _set(parent)
    elif _get() is not call:
        _set(call)
    call.result = result.copy() if type(result) is list else result
    keep(call)
    if not call.number & OVERHEAD_MASK:
        call.overhead = clock() - call.t1


def fail(call: Call, error: BaseException) -> None:
    """Record that a call raised; one that was cancelled or interrupted is partial.

    The exception itself is not kept: its traceback would hold on to the frames of the user's code.
    """
    call.t1 = clock()
    call.active = False
    parent = call.parent
    _set(parent if parent is not None and parent.active else call)
    call.result = None
    if isinstance(error, Exception):
        call.state = FAILED
        call.failure = call.site.classify(error)
    else:
        call.state = PARTIAL
    keep(call)


def keep(call: Call) -> None:
    """Append a finished call to the ring; where that is full, count it there and then."""
    recorder = call.site.recorder
    ring = recorder.ring
    waiting = len(ring.calls)
    if waiting < ring.room:
        ring.calls.append(call)
        if waiting == ring.half_room or not recorder.running:
            recorder.wake()
    elif not recorder.made_room():
        _lose(ring, call)
    else:
        ring.calls.append(call)


def _lose(ring: Ring, call: Call) -> None:
    """Keep the counts of a call whose record has no room; every counter stays exact."""
    site, watch = call.site, call.site.watch
    asked = site.asked_by(call.args, call.kwargs)
    error_class = call.failure.error_class if call.failure is not None else ""
    answers = [call.result]
    if watch.multi is not None and call.state == OK:
        answers = [answer for _, answer in watch.multi(call.args, call.kwargs, call.result)]
    keys: list[Lost] = []
    for answer in answers:
        total = call.total if call.total is not None else site.count(answer)
        keys.append((watch, call.state, answer is None and call.state == OK, asked, total, error_class))
    let_go(call)
    with ring.lock:
        for key in keys:
            if key not in ring.lost and len(ring.lost) >= _LOST_KINDS_MAX:
                key = (*key[:3], None, min(key[4], 1), error_class)
            ring.lost[key] = ring.lost.get(key, 0) + 1


def let_go(call: Call) -> None:
    """Drop what a call refers to: the context variable may keep the record itself for long."""
    call.result = None
    call.args = ()
    call.kwargs = _NO_KWARGS
    call.extra = None
    call.parent = None


_NO_KWARGS: Mapping[str, Any] = {}


def innermost() -> Call | None:
    """Return the retrieval that runs now in this context, None outside of one."""
    node = _get()
    while node is not None and not node.active:
        node = node.parent
    return node


def running(watch: Watch) -> Call | None:
    """Return the retrieval of a watch that runs now in this context, None outside of one."""
    node = _get()
    while node is not None and not (node.active and node.site.watch is watch):
        node = node.parent
    return node


def extra_of(call: Call) -> Extra:
    """Return where a call keeps what comes in beside its answer."""
    if call.extra is None:
        call.extra = Extra()
    return call.extra
