"""Sweeps by the agent: begun by a flag that asks for one, one at a time, remembered, never accepted."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from resweep.detect.judge import Judge
from resweep.detect.settings import DetectSettings
from resweep.domain.batch import Batch, ConfigRecord
from resweep.domain.clock import VirtualClock
from resweep.domain.errors import UsageError
from resweep.domain.fingerprint import fingerprint
from resweep.domain.invalidation import InvalidationRules
from resweep.domain.window import Window
from resweep.schedule.desk import Desk
from resweep.schedule.sweepdesk import Ended, SweepDesk, SweepWish
from resweep.serve.ownsweep import wish_of
from resweep.settings import Settings, SweepSection
from resweep.store import open_store
from resweep.store.sql import SqlStore

START = 1_800_000_000.0
WISH = SweepWish(pipeline="bot", by_itself=True, rest_s=3600.0)


class Sweeps:
    """Starts nothing and ends when it is told to."""

    def __init__(self) -> None:
        self.begun: list[str] = []
        self.end: Ended | None = None
        self.stopped = 0
        self.error: Exception | None = None

    def __call__(self, config: ConfigRecord) -> Sweeps:
        """Note what is to be swept."""
        if self.error is not None:
            raise self.error
        self.begun.append(config.config)
        return self

    def ended(self) -> Ended | None:
        """Say how it ended."""
        end, self.end = self.end, None
        return end

    def stop(self) -> None:
        """Note that it was stopped."""
        self.stopped += 1


@pytest.fixture(name="clock")
def _clock() -> VirtualClock:
    return VirtualClock(START)


@pytest.fixture(name="store")
def _store(tmp_path: Path, clock: VirtualClock) -> Iterator[SqlStore]:
    store = open_store(str(tmp_path / "s.db"), clock=clock)
    yield store
    store.close()


@pytest.fixture(name="desk")
def _desk(store: SqlStore, clock: VirtualClock) -> Desk:
    """Give a desk that has flagged an untuned pipeline."""
    rules = InvalidationRules.load_default()
    desk = Desk(store, lambda state: Judge(DetectSettings(switch_quiet_s=0), rules, state), clock)
    desk.open()
    record = config()
    counts = {"retrievals": 40, "ok": 40, "served": 40, "asked:8": 40, "returned:8": 40}
    window = Window("bot", record.config, int(START // 60), counts=counts)
    batch = Batch(writer="w", seq=1, ts=START, configs=[record], windows=[window])
    assert store.apply(batch)
    desk.heard(batch)
    desk.sit()
    return desk


def config() -> ConfigRecord:
    """Return the record of a config."""
    known = fingerprint({"embedder": {"model": "m1"}, "context_k": 8})
    return ConfigRecord(
        pipeline="bot", config=known.config_hash, basis=known.basis_hash, document=known.document
    )


def report(made: float) -> dict[str, Any]:
    """Return the least that the store takes as a report."""
    return {
        "schema": "resweep.report/1",
        "report_id": f"r{made:.0f}",
        "pipeline": "bot",
        "basis_hash": config().basis,
        "made_at": made,
        "n_cases": 40,
        "n_effective": 40.0,
        "objective": "ndcg",
        "best_set": [5, 8],
        "chosen": {"context_k": 5, "candidate_k": None},
        "points": [],
    }


def test_a_flag_that_asks_for_a_sweep_gets_one(store: SqlStore, desk: Desk, clock: VirtualClock) -> None:
    """Of the config in charge; while it runs no other begins."""
    sweeps = Sweeps()
    at = SweepDesk(store, desk, WISH, sweeps, clock)
    at.run()
    at.run()
    assert sweeps.begun == [config().config]
    assert [(run.state, run.why) for run in at.runs()] == [("running", "untuned")]


def test_a_sweep_that_ended_answers_its_flag(store: SqlStore, desk: Desk, clock: VirtualClock) -> None:
    """However long the flag stays open: what is left to do is a person's to accept."""
    sweeps = Sweeps()
    at = SweepDesk(store, desk, WISH, sweeps, clock)
    at.run()
    store.record_report(report(START + 5))
    sweeps.end = Ended(code=0, told="proposes context_k 5")
    clock.advance(30 * 86_400)
    at.run()
    assert [(run.state, run.told) for run in at.runs()] == [("done", "proposes context_k 5")]
    assert (len(sweeps.begun), store.tuned()) == (1, [])


def test_one_that_failed_is_tried_again_after_a_rest(
    store: SqlStore, desk: Desk, clock: VirtualClock
) -> None:
    """Not at once: what cannot be retrieved now cannot be a minute later."""
    sweeps = Sweeps()
    at = SweepDesk(store, desk, WISH, sweeps, clock)
    at.run()
    sweeps.end = Ended(code=2, told="error: no module named app")
    clock.advance(60)
    at.run()
    assert [(run.state, run.told) for run in at.runs()] == [("failed", "error: no module named app")]
    clock.advance(3600)
    at.run()
    assert len(sweeps.begun) == 2


def test_what_cannot_be_started_is_a_failed_run_too(store: SqlStore, desk: Desk, clock: VirtualClock) -> None:
    """With the reason; the job itself goes on."""
    sweeps = Sweeps()
    sweeps.error = UsageError("not known by all its parts")
    at = SweepDesk(store, desk, WISH, sweeps, clock)
    at.run()
    assert [(run.state, run.told) for run in at.runs()] == [("failed", "not known by all its parts")]


def test_an_agent_that_was_killed_finds_its_sweep_stopped(
    store: SqlStore, desk: Desk, clock: VirtualClock
) -> None:
    """And remembers it, so that the rest holds over restarts."""
    SweepDesk(store, desk, WISH, Sweeps(), clock).run()
    again = Sweeps()
    at = SweepDesk(store, desk, WISH, again, clock)
    assert [run.state for run in at.runs()] == ["stopped"]
    at.run()
    assert again.begun == []


def test_the_end_of_the_agent_ends_the_sweep(store: SqlStore, desk: Desk, clock: VirtualClock) -> None:
    """Once."""
    sweeps = Sweeps()
    at = SweepDesk(store, desk, WISH, sweeps, clock)
    at.run()
    at.stop()
    assert (sweeps.stopped, at.runs()[0].state) == (1, "stopped")


def test_only_a_person_starts_one_where_it_is_not_by_itself(
    store: SqlStore, desk: Desk, clock: VirtualClock
) -> None:
    """And not a second beside it."""
    sweeps = Sweeps()
    at = SweepDesk(store, desk, replace(WISH, by_itself=False), sweeps, clock)
    at.run()
    assert sweeps.begun == []
    assert at.ask("ann").why == "ann"
    with pytest.raises(UsageError, match="runs already"):
        at.ask("bob")


def test_a_pipeline_nobody_has_seen_has_nothing_to_sweep(
    store: SqlStore, desk: Desk, clock: VirtualClock
) -> None:
    """Asked for, that is said; by itself nothing begins."""
    at = SweepDesk(store, desk, replace(WISH, pipeline="other"), Sweeps(), clock)
    at.run()
    with pytest.raises(UsageError, match="other was not seen yet"):
        at.ask("ann")


def test_by_itself_needs_a_retriever_a_pipeline_and_a_budget() -> None:
    """All that is missing is named at once."""
    with pytest.raises(UsageError, match=r"sweep\.pipeline and sweep\.max_calls"):
        wish_of(Settings(sweep=SweepSection(by_itself=True, retriever="a:b")))
    assert wish_of(Settings(sweep=SweepSection(retriever="a:b"))) is None
    told = wish_of(Settings(sweep=SweepSection(retriever="a:b", pipeline="bot", rest_hours=1)))
    assert told == replace(WISH, by_itself=False)
