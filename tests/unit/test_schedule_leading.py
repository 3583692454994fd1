"""One leads, one waits; the one that waits takes over."""

from __future__ import annotations

import threading

import pytest

from resweep.schedule import leading
from resweep.schedule.leading import Leadership


class SharedLease:
    """A lease on a shared lock."""

    def __init__(self, lock: threading.Lock) -> None:
        self.lock = lock
        self.mine = False
        self.lost = False

    def acquire(self) -> bool:
        """Take it if it is free."""
        self.mine = not self.lost and (self.mine or self.lock.acquire(blocking=False))
        return self.mine

    @property
    def held(self) -> bool:
        """Say whether it is ours."""
        return self.mine and not self.lost

    def release(self) -> None:
        """Give it up."""
        if self.mine:
            self.mine = False
            self.lock.release()


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("POLL_S", "KEEP_S", "RETRY_S"):
        monkeypatch.setattr(leading, name, 0.01)


def test_the_second_waits_and_takes_over() -> None:
    """At any moment one of them leads."""
    lock, said, took_over = threading.Lock(), list[str](), threading.Event()
    one = Leadership(
        SharedLease(lock), begin=lambda: said.append("1 begins"), end=lambda: said.append("1 ends")
    )
    two = Leadership(SharedLease(lock), begin=took_over.set, end=lambda: said.append("2 ends"))
    assert one.lead_now()
    assert not two.lead_now()
    one.start()
    two.start()
    assert not took_over.wait(0.1)
    one.stop()
    assert took_over.wait(5)
    two.stop()
    assert said == ["1 begins", "1 ends", "2 ends"]


def test_a_lease_that_is_lost_ends_the_work() -> None:
    """And the agent waits again."""
    ended = threading.Event()
    lease = SharedLease(threading.Lock())
    one = Leadership(lease, begin=lambda: None, end=ended.set)
    assert one.lead_now()
    lease.lost = True
    one.start()
    assert ended.wait(5)
    assert one.state == "waiting"
    one.stop()


def test_a_start_that_fails_gives_the_lease_up_and_is_tried_again() -> None:
    """The reason can be seen meanwhile."""
    tries, begun = list[int](), threading.Event()

    def begin() -> None:
        tries.append(1)
        if len(tries) == 1:
            raise OSError("store is locked")
        begun.set()

    one = Leadership(SharedLease(threading.Lock()), begin=begin, end=lambda: None)
    with pytest.raises(OSError, match="locked"):
        one.lead_now()
    assert not one.leading
    one.start()
    assert begun.wait(5)
    one.stop()


def test_the_one_that_leads_is_looked_after() -> None:
    """Every second: that is where a dead scheduler is found."""
    looked = threading.Event()
    one = Leadership(SharedLease(threading.Lock()), begin=lambda: None, end=lambda: None, look=looked.set)
    assert one.lead_now()
    one.start()
    assert looked.wait(5)
    one.stop()
    assert one.state == "stopped"
