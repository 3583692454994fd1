"""The recorders of this process, and what happens to them when it forks or ends.

Exits lose nothing: `atexit` covers ordinary ends, the finalizers of multiprocessing and billiard cover
forked children, which skip atexit. A process killed by a signal it does not handle loses at most what one
flush interval holds: resweep takes no signal handler away from an application.
"""

from __future__ import annotations

import atexit
import os
import signal
import sys
import threading
from time import monotonic
from types import FrameType, ModuleType
from typing import Any

from resweep.record.recorder import Recorder

EXIT_S = 1.5  # the interpreter itself takes some time to end: two seconds in all

# A reload of this module must find the recorders and hooks of before: a second set would count twice.
_kept: dict[str, Any] = globals().get("_kept") or {"recorders": {}, "hooked": False, "finalized": 0}
_lock = threading.RLock()


def recorders() -> dict[object, Recorder]:
    """Return the recorders of this process by what their sink was chosen by."""
    return _kept["recorders"]  # type: ignore[no-any-return]


def lock() -> Any:
    """Return the lock around setting recorders up."""
    return _lock


def hook() -> None:
    """See to forks and exits of this process, once."""
    if _kept["hooked"]:
        return
    _kept["hooked"] = True
    atexit.register(_at_exit)
    os.register_at_fork(after_in_child=_after_fork)
    _listen_for_the_end()


def _listen_for_the_end() -> None:
    """Hurry where the application's own SIGTERM handler is called, which stays in charge.

    uvicorn ends its workers with the signal's default action once it has shut down, so that nothing of
    Python runs any more; from the signal on, what is recorded is handed over at once. A default action is
    left as it is.
    """
    try:
        before = signal.getsignal(signal.SIGTERM)
        if not callable(before) or isinstance(before, signal.Handlers):
            return

        def ending(number: int, frame: FrameType | None) -> Any:
            for recorder in list(recorders().values()):
                recorder.hurry()
            return before(number, frame)

        signal.signal(signal.SIGTERM, ending)
    except ValueError:  # not in the main thread: only there can a handler be set
        return


def started() -> None:
    """A folding thread was started: see to it that a forked child hands over what it has when it ends."""
    if _kept["finalized"] == os.getpid():
        return
    _kept["finalized"] = os.getpid()
    for name in ("multiprocessing.util", "billiard.util"):
        util: ModuleType | None = sys.modules.get(name)
        if util is not None:
            util.Finalize(None, _at_exit, exitpriority=-100)


def shutdown(timeout: float = EXIT_S) -> None:
    """Hand over what every recorder has and stop them all, within `timeout` seconds in all."""
    end = monotonic() + timeout
    with _lock:
        ending = list(recorders().values())
        recorders().clear()
    for recorder in ending:
        recorder.close(max(0.05, end - monotonic()))


def forget(sink: object) -> None:
    """Stop the recorders of a sink and drop their metrics."""
    for key, recorder in list(recorders().items()):
        if recorder.sink is sink:
            del recorders()[key]
            recorder.close()


def _at_exit() -> None:
    end = monotonic() + EXIT_S
    for recorder in list(recorders().values()):
        recorder.leave(max(0.05, end - monotonic()))


def _after_fork() -> None:
    global _lock
    _lock = threading.RLock()
    for recorder in list(recorders().values()):
        recorder.after_fork()
