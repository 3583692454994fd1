"""The jobs beside ingest and judge: webhook calls from the outbox, pushes of metrics, health."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from resweep.domain.clock import VirtualClock
from resweep.domain.errors import LeaseHeldError, UsageError
from resweep.domain.verdict import Flag
from resweep.schedule.due import Due
from resweep.serve.agent import Agent, NotLeadingError
from resweep.serve.jobs import Caller, ExportFailedError, Outlets, Pusher
from resweep.serve.places import places
from resweep.settings import AgentSettings, OtlpSettings, Settings, WebhookSettings
from resweep.store import StoreSettings, open_store
from resweep.store.sql import SqlStore
from resweep_exporters.webhook import Delivery

RUN = Due(tick=0, start=0, end=0, late_s=0, skipped=0)
FLAG = Flag(
    key="bot:untuned:c",
    pipeline="bot",
    config="c",
    basis="b",
    reason="untuned",
    layer="declared",
    components=("depth",),
    severity="notice",
    message="no tuned k",
    opened_ts=1000.0,
)


class Answers:
    """A webhook exporter that answers as it is told, and notes the calls."""

    def __init__(self, *answers: Delivery) -> None:
        self.answers = list(answers)
        self.calls: list[tuple[str, int]] = []

    def deliver(self, flag: Flag, kind: str, attempt: int) -> Delivery:
        """Note a call and answer it."""
        self.calls.append((kind, attempt))
        return self.answers.pop(0)


@pytest.fixture(name="clock")
def _clock() -> VirtualClock:
    return VirtualClock(2000.0)


@pytest.fixture(name="store")
def _store(tmp_path: Path, clock: VirtualClock) -> Iterator[SqlStore]:
    store = open_store(
        str(tmp_path / "s.db"), clock=clock, settings=StoreSettings(webhook_targets=("webhook",))
    )
    store.save_judgement([FLAG], [], b"{}")
    yield store
    store.close()


def test_a_call_that_is_taken_is_made_once(store: SqlStore, clock: VirtualClock) -> None:
    """One for the opening of the flag."""
    exporter: Any = Answers(Delivery(outcome="delivered", status=204))
    caller = Caller(store, exporter, clock)
    caller.run(RUN)
    caller.run(RUN)
    assert exporter.calls == [("opened", 0)]


def test_a_call_that_fails_is_made_again_when_its_time_has_come(store: SqlStore, clock: VirtualClock) -> None:
    """With the number of the attempt, so that waits grow."""
    exporter: Any = Answers(
        Delivery(outcome="retry", retry_after=15.0, why="answered 503"),
        Delivery(outcome="delivered", status=200),
    )
    caller = Caller(store, exporter, clock)
    caller.run(RUN)
    clock.advance(14)
    caller.run(RUN)
    clock.advance(2)
    caller.run(RUN)
    assert exporter.calls == [("opened", 0), ("opened", 1)]


def test_a_call_that_is_refused_is_not_made_again(store: SqlStore, clock: VirtualClock) -> None:
    """404 and its like are final."""
    exporter: Any = Answers(Delivery(outcome="refused", status=404, why="answered 404"))
    caller = Caller(store, exporter, clock)
    caller.run(RUN)
    clock.advance(30 * 86400)
    caller.run(RUN)
    assert exporter.calls == [("opened", 0)]


def test_a_push_that_is_not_taken_is_a_failed_run() -> None:
    """So that the job's last success says when the collector last had the numbers."""

    class Refuses:
        def export_once(self) -> bool:
            """Say no."""
            return False

    exporter: Any = Refuses()
    with pytest.raises(ExportFailedError, match="did not take"):
        Pusher(exporter).run(RUN)


def test_outlets_are_what_the_settings_ask_for(clock: VirtualClock) -> None:
    """None by default; a webhook needs a secret."""
    source: Any = None
    assert Outlets.of(Settings(), source, clock) == Outlets()
    with pytest.raises(UsageError, match="RESWEEP_WEBHOOK_SECRET"):
        Outlets.of(Settings(webhook=WebhookSettings(url="https://x.example")), source, clock)
    made = Outlets.of(
        Settings(
            webhook=WebhookSettings(url="https://x.example", secret="s"),
            otlp=OtlpSettings(endpoint="http://127.0.0.1:4318"),
        ),
        source,
        clock,
    )
    assert made.webhook is not None
    assert made.otlp is not None
    made.close()


def agent(home: Path, clock: VirtualClock | None = None, *, standby: bool = False) -> Agent:
    """Return an agent on a home."""
    settings = Settings(agent=AgentSettings(home=str(home), standby=standby))
    return Agent(settings, places(settings), clock)


def test_an_agent_leads_or_stands_by_or_says_who_leads(tmp_path: Path) -> None:
    """And one that stands by answers for its health alone."""
    first, second, third = agent(tmp_path), agent(tmp_path, standby=True), agent(tmp_path)
    first.start()
    try:
        second.start()
        with pytest.raises(LeaseHeldError, match="--standby"):
            third.start()
        assert (first.health().state, second.health().state) == ("leader", "standby")
        assert second.health().ready
        with pytest.raises(NotLeadingError, match="pid"):
            second.desks()
        assert {s.metric for s in second.snapshot().samples} == {"resweep_leader", "resweep_agent_info"}
    finally:
        second.stop()
        first.stop()


def test_readiness_names_the_job_that_does_not_succeed(tmp_path: Path) -> None:
    """Two intervals and a grace after its last success; liveness is another matter."""
    one = agent(tmp_path)
    one.start()
    try:
        desks = one.desks()
        assert one.health().ready
        slot = desks.runner._slots["ingest"]
        desks.runner.stop()
        slot.state.succeeded, slot.state.error = 1.0, "StoreBusyError: locked"
        desks.runner._since = 1.0
        told = one.health()
        assert (told.live, told.ready) == (True, False)
        assert any("job ingest has not succeeded lately: StoreBusyError: locked" in t for t in told.troubles)
        desks.runner._beat -= 60
        assert not one.health().live
    finally:
        one.stop()


def test_what_the_agent_counts_is_in_its_numbers(tmp_path: Path) -> None:
    """Each name is one of the catalog, with the catalog's labels."""
    from resweep_exporters.catalog import BY_NAME

    one = agent(tmp_path)
    one.start()
    try:
        shown = one.snapshot()
        assert shown.complete
        for sample in shown.samples:
            assert len(sample.labels) == len(BY_NAME[sample.metric].labels)
        assert "resweep_job_runs_total" in {sample.metric for sample in shown.samples}
    finally:
        one.stop()
