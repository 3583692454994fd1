"""Batches reach the spool whole, in bounded space, and wait where they cannot."""

from __future__ import annotations

import errno
import logging
import os
from pathlib import Path
from typing import Any

import pytest

import resweep
from resweep.domain.batch import Batch, decode_batch
from resweep.domain.event import RetrievalEvent
from resweep.domain.ports import Sink
from resweep.domain.window import Window
from resweep.record.outbox import SAMPLES_MAX, WINDOWS_MAX, Outbox
from resweep.record.recorder import Recorder
from resweep.record.sinks import NullSink, choose
from resweep.record.spool import SpoolSink


def windows(writer: str = "w1", seq: int = 1, calls: int = 7) -> Batch:
    return Batch(writer=writer, seq=seq, ts=0.0, windows=[Window("p", "c", 1, {"retrievals": calls})])


def samples(seq: int = 1, events: int = 3) -> Batch:
    made = [RetrievalEvent(f"e{i}", 0.0, "p", "c", query="x" * 200) for i in range(events)]
    return Batch(writer="w1", seq=seq, ts=0.0, kind="samples", events=made)


def test_a_batch_is_one_private_file_under_its_final_name(tmp_path: Path) -> None:
    """Name, modes and content; no temporary file stays."""
    SpoolSink(tmp_path / "spool").write(windows(seq=12))
    (file,) = (tmp_path / "spool").iterdir()
    assert file.name == "w1.0000000012.w.json"
    assert (file.stat().st_mode & 0o777, file.parent.stat().st_mode & 0o777) == (0o600, 0o700)
    assert decode_batch(file.read_bytes()).windows[0].get("retrievals") == 7


def test_samples_go_before_any_window(tmp_path: Path) -> None:
    """At the bound the oldest samples are given up and counted; older windows stay."""
    sink = SpoolSink(tmp_path, max_bytes=2000)
    sink.write(windows(seq=1))
    sink.write(samples(seq=2))
    sink.write(windows(seq=3))
    sink.write(samples(seq=4))
    assert sorted(file.name[-18:] for file in tmp_path.iterdir()) == [
        ".0000000001.w.json",
        ".0000000003.w.json",
        ".0000000004.s.json",
    ]
    assert sink.take_dropped() == {("p", "c"): 3}


def test_the_bound_holds_without_samples_too(tmp_path: Path) -> None:
    """Nothing grows without bound: then the oldest windows go, counted by their calls."""
    sink = SpoolSink(tmp_path, max_bytes=1000)
    for seq in range(1, 20):
        sink.write(windows(seq=seq))
    assert sum(file.stat().st_size for file in tmp_path.iterdir()) <= 1000
    assert sink.take_dropped()["p", "c"] == 7 * (19 - len(list(tmp_path.iterdir())))


def test_a_failed_write_leaves_no_half_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A full disk raises OSError and leaves the folder as it was."""

    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "replace", full)
    with pytest.raises(OSError, match="No space left"):
        SpoolSink(tmp_path).write(windows())
    assert list(tmp_path.iterdir()) == []


class Moody:
    """A sink that refuses while `away`, and keeps the rest."""

    def __init__(self) -> None:
        self.away = True
        self.taken: list[Batch] = []

    def write(self, batch: Batch) -> None:
        if self.away:
            raise OSError(errno.EROFS, "Read-only file system")
        self.taken.append(batch)

    def close(self) -> None: ...


def test_a_sink_that_is_away_costs_one_window_a_minute(caplog: pytest.LogCaptureFixture) -> None:
    """Windows merge while they wait, go over in order later, and one warning is logged."""
    sink = Moody()
    box = Outbox(sink)
    for _ in range(10):
        box.add([Window("p", "c", 1, {"retrievals": 3})], [])
        box.deliver([], 0.0, at_once=True)
    assert len(caplog.records) == 1
    sink.away = False
    box.deliver([], 0.0, at_once=True)
    assert [batch.windows[0].get("retrievals") for batch in sink.taken] == [3, 27]
    assert [batch.seq for batch in sink.taken] == [1, 2]


def test_what_waits_is_bounded_and_what_goes_is_counted() -> None:
    """Beyond the bound the oldest windows and samples go."""
    box = Outbox(Moody())
    lost = box.add([Window("p", "c", minute, {"retrievals": 2}) for minute in range(WINDOWS_MAX + 5)], [])
    assert lost == [("p", "c", "sink_failed", 2)] * 5
    assert min(key[2] for key in box.windows) == 5
    lost = box.add([], [RetrievalEvent(str(i), 0.0, "p", "c") for i in range(SAMPLES_MAX + 2)])
    assert lost == [("p", "c", "sink_failed", 1)] * 2
    assert box.samples[0].id == "2"


def test_a_batch_that_no_sink_takes_does_not_stop_the_others() -> None:
    """An exception other than OSError gives that batch up, counted by its calls."""

    class Picky(Moody):
        def write(self, batch: Batch) -> None:
            if batch.seq == 1:
                raise ValueError("never")
            self.taken.append(batch)

    sink = Picky()
    box = Outbox(sink)
    box.add([Window("p", "c", 1, {"retrievals": 3})], [])
    assert box.deliver([], 0.0) == [("p", "c", "sink_failed", 3)]
    box.add([Window("p", "c", 1, {"retrievals": 4})], [])
    assert box.deliver([], 0.0) == []
    assert [batch.seq for batch in sink.taken] == [2]


def test_sinks_are_chosen_by_name(tmp_path: Path) -> None:
    """none, spool:PATH, a path, http."""
    from resweep.record.http import HttpSink

    assert isinstance(choose("none"), NullSink)
    spool = choose(f"spool:{tmp_path}", {})
    assert isinstance(spool, SpoolSink)
    assert spool.folder == tmp_path
    http: Sink = choose("http://127.0.0.1:9464", {})
    assert isinstance(http, HttpSink)
    assert http.url == "http://127.0.0.1:9464/v1/batches"
    default = choose(None, {"RESWEEP_HOME": str(tmp_path)})
    assert isinstance(default, SpoolSink)
    assert default.folder == tmp_path / "spool"


def test_without_a_writable_folder_the_service_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """One warning says what was tried and what to set; calls return; what is lost is counted."""
    (tmp_path / "file").write_text("")
    for name in ("RESWEEP_HOME", "XDG_STATE_HOME", "HOME"):
        monkeypatch.setenv(name, str(tmp_path / "file"))
    retrieve: Any = resweep.watch(lambda query: ["a"], pipeline="nowhere")
    assert [retrieve("q") for _ in range(3)] == [["a"]] * 3
    said = [record.getMessage() for record in caplog.records if "RESWEEP_SINK" in record.getMessage()]
    assert len(said) == 1
    assert f"{tmp_path}/file/spool" in said[0]
    resweep.shutdown()


def test_a_recorder_takes_up_again_when_the_disk_is_back() -> None:
    """What was recorded while the sink refused arrives, and every call is in it."""
    sink = Moody()
    sink.synchronous = True  # type: ignore[attr-defined]
    recorder = Recorder(sink)
    from resweep.domain.batch import ConfigRecord
    from resweep.record.watching import Site, Watch
    from resweep.record.wrap import wrap

    record = ConfigRecord(pipeline="p", config="c", basis="b", document={})
    watch = Watch(recorder, record, name="p/c")
    recorder.add(watch)
    retrieve = wrap(_two, Site(watch, _two))
    for _ in range(5):
        retrieve("q")
        recorder.flush()
    sink.away = False
    retrieve("q")
    recorder.flush()
    assert sum(window.get("retrievals") for batch in sink.taken for window in batch.windows) == 6


def _two(query: str) -> list[str]:
    return ["a", "b"]


def test_nothing_is_said_at_debug_level_about_texts(caplog: pytest.LogCaptureFixture) -> None:
    """Logs hold no content, whatever their level."""
    caplog.set_level(logging.DEBUG)

    def fails(query: str) -> list[str]:
        raise RuntimeError("tango-7351-planted")

    with resweep.testing.capture() as sink:
        watched = resweep.watch(fails, sink=sink, extract=lambda result: 1 / 0)
        with pytest.raises(RuntimeError):
            watched("tango-7351-planted")
        sink.flush()
    assert "tango-7351" not in caplog.text


def test_a_folder_that_becomes_writable_is_found(tmp_path: Path) -> None:
    """What waited goes there as soon as it can."""
    blocked = tmp_path / "home"
    blocked.write_text("")
    sink = choose(None, {"RESWEEP_HOME": str(blocked), "HOME": str(blocked)})
    with pytest.raises(OSError, match="no folder"):
        sink.write(windows())
    blocked.unlink()
    sink.write(windows())
    assert [file.name for file in (blocked / "spool").iterdir()] == ["w1.0000000001.w.json"]
