"""Reaching what an agent knows: through its API while it runs, else on its store."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Protocol
from urllib.parse import quote, urlencode

from resweep.domain.clock import Clock, SystemClock
from resweep.domain.errors import LeaseHeldError
from resweep.serve.client import Client, UnreachableError
from resweep.serve.places import Places, places, read_address, token_of
from resweep.settings import Settings


class Access(Protocol):
    """What the commands ask of an agent or its store; each returns the object of the API."""

    def status(self) -> Any:
        """Return `resweep.status/1`."""

    def flags(self, pipeline: str | None, every: bool) -> Any:
        """Return `resweep.flags/1`."""

    def say_of_flag(self, key: str, action: str, by: str, because: str) -> Any:
        """Note what a person says of a flag."""

    def accept(self, wish: dict[str, object]) -> Any:
        """Record an accepted depth."""

    def push(self, records: list[object]) -> Any:
        """Record tuned depths as they are."""

    def maintain(self, work: dict[str, object]) -> Any:
        """Announce work, or its end."""

    def maintenances(self) -> Any:
        """Return announced work."""

    def tuned(self) -> Any:
        """Return the tuned depths in force."""

    def hand_over(self, report: dict[str, object]) -> Any:
        """Hand a report over: `report`, and the packed `cases` where there are any."""

    def reports(self, pipeline: str | None) -> Any:
        """Return `resweep.reports/1`."""

    def case_page(self, query: dict[str, str]) -> Any:
        """Return a page of `resweep.cases/1`."""

    def case_progress(self, pipeline: str | None) -> Any:
        """Return `resweep.cases-progress/1`."""

    def case_lines(self, query: dict[str, str]) -> Any:
        """Return a page of `resweep.cases-lines/1`."""

    def import_cases(self, lines: list[object], by: str) -> Any:
        """Take cases in."""


class Remote:
    """An agent that runs."""

    def __init__(self, client: Client) -> None:
        self._client = client

    def status(self) -> Any:
        """Return `resweep.status/1`."""
        return self._client.get("/v1/status")

    def flags(self, pipeline: str | None, every: bool) -> Any:
        """Return `resweep.flags/1`."""
        asked = {"pipeline": pipeline or "", "all": "1" if every else ""}
        query = urlencode({name: value for name, value in asked.items() if value})
        return self._client.get(f"/v1/flags?{query}")

    def say_of_flag(self, key: str, action: str, by: str, because: str) -> Any:
        """Note what a person says of a flag."""
        return self._client.post(f"/v1/flags/{quote(key, safe='')}/{action}", {"by": by, "because": because})

    def accept(self, wish: dict[str, object]) -> Any:
        """Record an accepted depth."""
        return self._client.post("/v1/accept", wish)

    def push(self, records: list[object]) -> Any:
        """Record tuned depths as they are."""
        return self._client.post("/v1/tuned", {"tuned": records})

    def maintain(self, work: dict[str, object]) -> Any:
        """Announce work, or its end."""
        return self._client.post("/v1/maintenance", work)

    def maintenances(self) -> Any:
        """Return announced work."""
        return self._client.get("/v1/maintenance")

    def tuned(self) -> Any:
        """Return the tuned depths in force."""
        return self._client.get("/v1/accept")

    def hand_over(self, report: dict[str, object]) -> Any:
        """Hand a report over."""
        return self._client.post("/v1/reports", report)

    def reports(self, pipeline: str | None) -> Any:
        """Return `resweep.reports/1`."""
        return self._client.get(f"/v1/reports?{urlencode({'pipeline': pipeline or ''})}")

    def case_page(self, query: dict[str, str]) -> Any:
        """Return a page of `resweep.cases/1`."""
        return self._client.get(f"/v1/cases?{urlencode(query)}")

    def case_progress(self, pipeline: str | None) -> Any:
        """Return `resweep.cases-progress/1`."""
        return self._client.get(f"/v1/cases/progress?{urlencode({'pipeline': pipeline or ''})}")

    def case_lines(self, query: dict[str, str]) -> Any:
        """Return a page of `resweep.cases-lines/1`."""
        return self._client.get(f"/v1/cases/lines?{urlencode(query)}")

    def import_cases(self, lines: list[object], by: str) -> Any:
        """Take cases in."""
        return self._client.post("/v1/cases/import", {"lines": lines, "by": by})


@dataclass(slots=True)
class Local:
    """The store itself, while no agent runs. `bench` holds it and a judge."""

    bench: Any
    rules: Any
    clock: Clock

    def status(self) -> Any:
        """Return `resweep.status/1`, without an agent's part."""
        from resweep.serve import views

        now = self.clock.now()
        return {
            "schema": views.STATUS_SCHEMA,
            "ts": now,
            "agent": None,
            "pipelines": views.pipelines_object(self.bench.store, self.bench.desk.verdicts(now), now),
        }

    def flags(self, pipeline: str | None, every: bool) -> Any:
        """Return `resweep.flags/1`."""
        from resweep.serve import calls

        return calls.flags(self.bench, pipeline, every, self.clock.now())

    def say_of_flag(self, key: str, action: str, by: str, because: str) -> Any:
        """Note what a person says of a flag."""
        from resweep.serve import calls

        return calls.say_of_flag(self.bench, key, action, {"by": by, "because": because})

    def accept(self, wish: dict[str, object]) -> Any:
        """Record an accepted depth."""
        from resweep.serve import calls

        return calls.accept(self.bench, wish, self.rules, self.clock.now())

    def push(self, records: list[object]) -> Any:
        """Record tuned depths as they are."""
        from resweep.serve import calls

        return calls.push(self.bench, {"tuned": records})

    def maintain(self, work: dict[str, object]) -> Any:
        """Announce work, or its end."""
        from resweep.serve import calls

        return calls.maintain(self.bench, work, self.clock.now())

    def maintenances(self) -> Any:
        """Return announced work."""
        from resweep.serve import calls

        return calls.maintenances(self.bench, self.clock.now())

    def tuned(self) -> Any:
        """Return the tuned depths in force."""
        from resweep.serve import calls

        return calls.tuned(self.bench, self.clock.now())

    def hand_over(self, report: dict[str, object]) -> Any:
        """Hand a report over."""
        from resweep.serve import reportsapi

        return reportsapi.take(self.bench.store, report)

    def reports(self, pipeline: str | None) -> Any:
        """Return `resweep.reports/1`."""
        from resweep.serve import reportsapi

        return reportsapi.listed(self.bench.store, pipeline)

    def case_page(self, query: dict[str, str]) -> Any:
        """Return a page of `resweep.cases/1`."""
        from resweep.serve import cases

        return cases.page(self.bench, query)

    def case_progress(self, pipeline: str | None) -> Any:
        """Return `resweep.cases-progress/1`."""
        from resweep.serve import cases

        return cases.progress_object(self.bench, pipeline)

    def case_lines(self, query: dict[str, str]) -> Any:
        """Return a page of `resweep.cases-lines/1`."""
        from resweep.serve import cases

        return cases.lines_page(self.bench, query)

    def import_cases(self, lines: list[object], by: str) -> Any:
        """Take cases in."""
        import msgspec

        from resweep.serve import cases

        return cases.take(self.bench, msgspec.json.encode({"lines": lines, "by": by}))


@dataclass(slots=True)
class _Bench:
    store: Any
    desk: Any
    make_cases: Callable[[], Any]

    @property
    def cases(self) -> Any:
        """The labelling desk, made when it is asked for."""
        return self.make_cases()


@contextmanager
def access(settings: Settings, url: str | None = None) -> Iterator[Access]:
    """Give access to the agent at `url`, else to the one of the home folder, else to its store.

    Raises UnreachableError where a named agent does not answer, LeaseHeldError where one leads on the store
    but does not answer here, StoreError where the store refuses.
    """
    named = url or os.environ.get("RESWEEP_URL")
    where = places(settings)
    if named:
        yield Remote(Client(named, token_of(settings, where)))
        return
    client = running(settings, where)
    if client is not None:
        yield Remote(client)
        return
    with _on_store(settings, where) as local:
        yield local


def running(settings: Settings, where: Places) -> Client | None:
    """Return a client of the agent of this home folder; None where none answers."""
    address = read_address(where)
    if address is None:
        return None
    client = Client(address.listening, token_of(settings, where))
    try:
        client.get("/healthz/live")
    except UnreachableError:
        return None
    return client


@contextmanager
def _on_store(settings: Settings, where: Places) -> Iterator[Local]:
    from resweep.schedule.desk import Desk
    from resweep.serve.parts import case_desk, judge_maker, rules_of, store_settings
    from resweep.store import open_store
    from resweep.store.lease import Lease

    lease, clock = Lease(where.store), SystemClock()
    if not lease.acquire():
        raise LeaseHeldError(
            f"an agent ({lease.holder()}) leads on {where.store} and does not answer here: name it with "
            "--url http://HOST:PORT"
        )
    try:
        store = open_store(where.store, clock=clock, settings=store_settings(settings))
        try:
            rules = rules_of(settings)
            desk = Desk(store, judge_maker(settings, rules), clock)
            desk.open()
            yield Local(_Bench(store, desk, lambda: case_desk(settings, store, clock)), rules, clock)
        finally:
            store.close()
    finally:
        lease.release()
