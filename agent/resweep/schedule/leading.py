"""Who runs the jobs: one agent on a store, and another after it when it ends, however it ends."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from typing import Literal, Protocol

log = logging.getLogger("resweep.schedule")

POLL_S = 0.5  # how often one that waits asks for the lease
KEEP_S = 1.0  # how often one that leads looks after it
RETRY_S = 5.0  # rest after a start that failed

State = Literal["waiting", "leading", "stopped"]


class Lease(Protocol):
    """The right to lead on one store, held by one process at most."""

    def acquire(self) -> bool:
        """Take the lease if it is free; return whether it is ours."""

    @property
    def held(self) -> bool:
        """Whether it is ours at this moment."""

    def release(self) -> None:
        """Give it up."""


class Leadership:
    """Waits for the lease in a thread of its own, then leads: calls `begin`, looks after it, calls `end`.

    `look` is called every second while leading; it is where a dead scheduler is found. `begin` may raise:
    the lease is given up, and tried for again.
    """

    def __init__(
        self,
        lease: Lease,
        *,
        begin: Callable[[], None],
        end: Callable[[], None],
        look: Callable[[], None] = lambda: None,
    ) -> None:
        self._lease = lease
        self._begin = begin
        self._end = end
        self._look = look
        self._stopping = threading.Event()
        self._thread: threading.Thread | None = None
        self.state: State = "waiting"
        self.trouble: str | None = None

    @property
    def leading(self) -> bool:
        """Whether this process leads now."""
        return self.state == "leading"

    def alive(self) -> bool:
        """Whether the thread that waits or leads is there."""
        return self._thread is None or self._thread.is_alive()

    def lead_now(self) -> bool:
        """Take the lease and begin; False at once where another holds it. Raises what `begin` does."""
        if not self._lease.acquire():
            return False
        try:
            self._begin()
        except BaseException:
            self._lease.release()
            raise
        self.state, self.trouble = "leading", None
        return True

    def start(self) -> None:
        """Wait or go on leading in the background."""
        self._thread = threading.Thread(target=self._run, name="resweep-leader", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """End, and give the lease up."""
        self._stopping.set()
        if self._thread is not None:
            self._thread.join(timeout=1.0)
        if self.leading:
            self._step_down()
        self.state = "stopped"

    def _run(self) -> None:
        while not self._stopping.wait(KEEP_S if self.leading else POLL_S):
            try:
                self._turn()
            except Exception as error:  # noqa: BLE001  (whatever happens, this thread has to go on)
                self.trouble = f"{type(error).__name__}: {error}"
                log.warning("cannot lead: %s", self.trouble)
                self._stopping.wait(RETRY_S)

    def _turn(self) -> None:
        if not self.leading:
            if self.lead_now():
                log.info("this agent leads now")
        elif self._lease.held:
            self._look()
        else:
            log.error("the lease is lost; this agent stands by")
            self._step_down()

    def _step_down(self) -> None:
        self.state = "waiting"
        try:
            self._end()
        finally:
            self._lease.release()
