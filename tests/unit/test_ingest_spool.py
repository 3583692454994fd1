"""The spool gives every batch to the store once, whatever else lies in the folder."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from resweep.domain.batch import Batch, encode_batch
from resweep.domain.clock import VirtualClock
from resweep.domain.errors import InputError, StoreBusyError, StoreError
from resweep.ingest.intake import Intake
from resweep.ingest.spool import Spool


class Applied:
    """A store that only remembers which batches it was given."""

    def __init__(self) -> None:
        self.batches: list[tuple[str, int]] = []
        self.error: Exception | None = None

    def apply(self, batch: Batch) -> bool:
        """Take a batch once."""
        if self.error is not None:
            raise self.error
        new = (batch.writer, batch.seq) not in self.batches
        if new:
            self.batches.append((batch.writer, batch.seq))
        return new


def name(seq: int, writer: str = "w1") -> str:
    """Return the file name of a batch."""
    return f"{writer}.{seq:010d}.w.json"


Put = Callable[..., Path]


@pytest.fixture(name="put")
def _put(tmp_path: Path) -> Put:
    def put(seq: int, *, age: int = 0) -> Path:
        path = tmp_path / name(seq)
        path.write_bytes(encode_batch(Batch(writer="w1", seq=seq, ts=1.0)))
        os.utime(path, (1000 - age, 1000 - age))
        return path

    return put


@pytest.fixture(name="store")
def _store() -> Applied:
    return Applied()


@pytest.fixture(name="clock")
def _clock() -> VirtualClock:
    return VirtualClock(1000.0)


@pytest.fixture(name="spool")
def _spool(tmp_path: Path, store: Applied, clock: VirtualClock) -> Spool:
    return Spool(tmp_path, Intake(store), clock=clock, at_most=3)


def test_the_oldest_goes_first_and_files_go_when_applied(
    put: Put, spool: Spool, store: Applied, tmp_path: Path
) -> None:
    """Age counts, not the name."""
    put(1, age=1)
    put(2, age=5)
    assert spool.run() == 2
    assert store.batches == [("w1", 2), ("w1", 1)]
    assert list(tmp_path.iterdir()) == []


def test_one_go_takes_no_more_than_its_bound(put: Put, spool: Spool) -> None:
    """Thousands of files at once stall nothing: the rest comes with the next tick."""
    for seq in range(7):
        put(seq)
    assert [spool.run(), spool.run(), spool.run(), spool.run()] == [3, 3, 1, 0]


def test_a_duplicate_is_deleted_and_counted(put: Put, store: Applied, tmp_path: Path) -> None:
    """A crash between applying and deleting leaves a file that is known already."""
    intake = Intake(store)
    for _ in range(2):
        put(1)
        Spool(tmp_path, intake).run()
    assert (intake.applied, intake.duplicates, list(tmp_path.iterdir())) == (1, 1, [])


@pytest.mark.parametrize("body", [b"", b'{"writer":"w1","se', b"\xff\xfe", b"[" * 100_000, b"[]"])
def test_a_damaged_file_is_moved_aside_with_its_reason(
    body: bytes, put: Put, spool: Spool, store: Applied, tmp_path: Path
) -> None:
    """Half-written, empty or foreign text: the next batch goes in all the same."""
    (tmp_path / name(1)).write_bytes(body)
    put(2)
    spool.run()
    assert store.batches == [("w1", 2)]
    assert spool.bad == 1
    assert (tmp_path / "bad" / name(1)).read_bytes() == body
    assert "InputError" in (tmp_path / "bad" / f"{name(1)}.reason").read_text()


def test_a_batch_that_the_store_calls_unusable_is_moved_aside(put: Put, spool: Spool, store: Applied) -> None:
    """Numbers that are no counts, for instance: trying again would not help."""
    put(1)
    store.error = InputError("expected a count from 0; got -1")
    spool.run()
    assert (store.batches, spool.bad) == ([], 1)


def test_a_batch_of_a_newer_format_waits_for_a_newer_agent(
    put: Put, spool: Spool, store: Applied, clock: VirtualClock, tmp_path: Path
) -> None:
    """It stays, is told of, takes no turn from others, and is looked at again later."""
    newer = msgspec.json.decode(encode_batch(Batch(writer="w1", seq=1, ts=1.0)))
    (tmp_path / name(1)).write_bytes(msgspec.json.encode(newer | {"schema": "resweep.batch/2"}))
    put(2)
    spool.run()
    assert store.batches == [("w1", 2)]
    assert "resweep.batch/2" in spool.left[name(1)].reason
    assert spool.run() == 0
    clock.advance(61)
    assert spool.run() == 1


def test_a_store_that_refuses_keeps_the_file_and_gets_a_rest(
    put: Put, spool: Spool, store: Applied, clock: VirtualClock
) -> None:
    """Each refusal in a row makes the rest longer; when the store takes again, nothing is lost."""
    path = put(1)
    store.error = StoreBusyError("locked")
    with pytest.raises(StoreError, match="locked"):
        spool.run()
    store.error = None
    with pytest.raises(StoreError, match="locked"):
        spool.run()
    assert path.exists()
    clock.advance(1.1)
    spool.run()
    assert (store.batches, path.exists()) == ([("w1", 1)], False)


def test_a_batch_that_trips_the_store_is_moved_aside(put: Put, spool: Spool, store: Applied) -> None:
    """Else it would be tried for ever."""
    put(1)
    store.error = ZeroDivisionError("surprise")
    spool.run()
    assert spool.bad == 1


def test_a_judge_that_fails_does_not_make_a_counted_batch_look_refused(
    put: Put, store: Applied, tmp_path: Path
) -> None:
    """The store has it: the file goes."""

    def fail(batch: Batch) -> None:
        raise ZeroDivisionError

    path = put(1)
    spool = Spool(tmp_path, Intake(store, fail))
    spool.run()
    assert (store.batches, spool.bad, path.exists()) == ([("w1", 1)], 0, False)


def test_foreign_files_are_not_touched(spool: Spool, tmp_path: Path) -> None:
    """Temporary files, notes, folders and symbolic links stay as they are."""
    (tmp_path / "notes.txt").write_text("mine")
    (tmp_path / f".{name(1)}.tmp").write_text("{")
    (tmp_path / name(2)).mkdir()
    (tmp_path / name(3)).symlink_to("/etc/hostname")
    before = sorted(tmp_path.iterdir())
    assert spool.run() == 0
    assert sorted(tmp_path.iterdir()) == before


def test_no_folder_means_nothing_to_do(tmp_path: Path, store: Applied) -> None:
    """Recorders make it when they first write."""
    assert Spool(tmp_path / "none", Intake(store)).run() == 0
