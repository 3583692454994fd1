"""The lease of an SQLite store: a lock on a file beside it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from resweep.domain.errors import StoreError, UsageError
from resweep.store.lease import Lease


def test_a_lease_lies_beside_the_store(tmp_path: Path) -> None:
    """And says in words who holds it."""
    lease = Lease(f"sqlite:///{tmp_path}/state/resweep.db")
    assert lease.acquire()
    assert (tmp_path / "state" / "resweep.db.lease").read_text() == lease.holder()
    lease.release()


def test_what_a_dead_holder_left_behind_counts_for_nothing(tmp_path: Path) -> None:
    """The lock is the lease, not the file."""
    (tmp_path / "resweep.db.lease").write_text("pid 1 on elsewhere")
    lease = Lease(str(tmp_path / "resweep.db"))
    assert lease.holder() is None
    assert lease.acquire()
    lease.release()


def test_a_removed_file_is_a_lost_lease(tmp_path: Path) -> None:
    """Two agents with a lock on two files of one name would both lead."""
    one, other = Lease(str(tmp_path / "resweep.db")), Lease(str(tmp_path / "resweep.db"))
    one.acquire()
    (tmp_path / "resweep.db.lease").unlink()
    assert other.acquire()
    assert (one.held, other.held) == (False, True)
    assert not one.acquire()
    for lease in (one, other):
        lease.release()


def test_a_forked_child_does_not_lead(tmp_path: Path) -> None:
    """It shares the lock with its parent, not the lease."""
    lease = Lease(str(tmp_path / "resweep.db"))
    lease.acquire()
    child = os.fork()
    if child == 0:
        os._exit(int(lease.held))
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert lease.held
    lease.release()


def test_a_lease_needs_a_place(tmp_path: Path) -> None:
    """A folder in place of the file, and a store in memory, are named as what they are."""
    (tmp_path / "resweep.db.lease").mkdir()
    with pytest.raises(StoreError, match=r"resweep\.db\.lease"):
        Lease(str(tmp_path / "resweep.db")).acquire()
    with pytest.raises(UsageError, match="needs a file"):
        Lease("sqlite://")
