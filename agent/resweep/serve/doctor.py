"""What is wired, what is seen, what is missing: the findings of `resweep doctor`."""

from __future__ import annotations

import platform
import time
from collections.abc import Callable, Iterator
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, Literal, NamedTuple

import resweep
from resweep import settings as table
from resweep.domain.batch import ConfigRecord
from resweep.domain.errors import ResweepError
from resweep.domain.event import Hit, RetrievalEvent
from resweep.ingest.intake import Intake
from resweep.ingest.spool import Spool
from resweep.serve.access import running
from resweep.serve.client import Client
from resweep.serve.listen import endpoint
from resweep.serve.named import Seen
from resweep.serve.places import Places, places, read_address, token_of
from resweep.serve.settings_sources import Loaded
from resweep.settings import Settings
from resweep.store.lease import Lease
from resweep.store.lockfile import find_lock, read_lock

State = Literal["ok", "note", "fail"]
LIBRARIES = ("prometheus-client", "msgspec", "sqlalchemy", "apscheduler", "starlette", "uvicorn", "typer")
CALLS = 2000  # for the measured cost of a call
WAITING_S = 60.0  # a batch that waits longer than this means that nobody reads the spool


class Line(NamedTuple):
    """One finding."""

    state: State
    subject: str
    text: str


def findings(loaded: Loaded, url: str | None = None) -> Iterator[Line]:
    """Yield what there is to say of this installation, its settings and its agent."""
    yield Line("ok", "resweep", f"{resweep.__version__} on Python {platform.python_version()}")
    yield Line("ok", "libraries", ", ".join(f"{name} {_version(name)}" for name in LIBRARIES))
    yield from _settings(loaded)
    try:
        where = places(loaded.settings)
    except ResweepError as error:
        yield Line("fail", "home", str(error))
        return
    yield Line("ok", "home", str(where.home))
    yield from _agent(loaded.settings, where, url)
    yield from _spool(where)
    yield from _store(where)
    yield from _lock(loaded.settings)
    yield from _capture(loaded.settings)


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return "missing"


def _settings(loaded: Loaded) -> Iterator[Line]:
    yield Line("ok", "settings", f"file {loaded.file}" if loaded.file else "no resweep.toml; defaults hold")
    for one in table.known():
        if one.key in loaded.origins:
            value = getattr(getattr(loaded.settings, one.section), one.name)
            shown = "set" if one.secret else repr(value)
            yield Line("ok", "settings", f"{one.key} = {shown} (from {loaded.origins[one.key]})")
    try:
        endpoint(loaded.settings.agent.listen)
    except ResweepError as error:
        yield Line("fail", "settings", str(error))


def _agent(settings: Settings, where: Places, url: str | None) -> Iterator[Line]:
    client = Client(url, token_of(settings, where)) if url else running(settings, where)
    if client is None:
        address = read_address(where)
        told = f"; the one at {address.listening} is gone" if address else ""
        yield Line("note", "agent", f"none runs{told}: start one with `resweep agent`")
        return
    try:
        health = client.get("/healthz/ready")
        yield Line("ok", "agent", f"{client.url} answers: {health['state']}, ready")
        for note in health.get("notes", ()):
            yield Line("note", "agent", note)
    except ResweepError as error:
        yield Line("fail", "agent", f"{client.url} is not ready: {error}")
    yield from _token(client, settings, where)
    yield from _canaries(client)


def _canaries(client: Client) -> Iterator[Line]:
    """What canaries and probes can do, by the recorders that asked for work lately."""
    try:
        told = client.get("/v1/canaries")
    except ResweepError:
        return  # an agent that stands by, or an older one
    if not told["recorders"]:
        yield Line("note", "canaries", "no recorder offers to run any: give watch(…, canaries=True)")
    for one in told["recorders"]:
        yield _offered(one)
    for system in told["systems"]:
        if system["trouble"]:
            told_of = f"{system['pipeline']}: the last run broke off: {system['trouble']}"
            yield Line("note", "canaries", told_of)


def _offered(one: Any) -> Line:
    """What one watched retriever can be asked to do."""
    told = f"{one['pipeline']}, config {one['config']}: {', '.join(one['kinds']) or 'nothing'}"
    if one["depth"] == "fixed":
        return Line("note", "canaries", f"{told}; probes cannot look deeper: give watch(probe=…)")
    if one["canaries"] and "embed" not in one["kinds"]:
        return Line("note", "canaries", f"{told}; no embedder is found: give watch(embed=…)")
    if one["resting"]:
        return Line("note", "canaries", f"{told}; resting after {one['trouble']}")
    return Line("ok", "canaries", told)


def _token(client: Client, settings: Settings, where: Places) -> Iterator[Line]:
    origin = "RESWEEP_TOKEN" if settings.agent.token else str(where.token)
    try:
        client.get("/v1/tuned")
    except ResweepError as error:
        yield Line("fail", "token", f"that of {origin} is not taken: {error}")
    else:
        yield Line("ok", "token", f"that of {origin} is taken")


def _spool(where: Places) -> Iterator[Line]:
    waiting = Spool(where.spool, Intake(_Nowhere())).waiting()
    if not where.spool.is_dir():
        yield Line("note", "spool", f"{where.spool} is not there: no recorder has handed anything over yet")
        return
    size = sum(file.size for file in waiting)
    age = time.time() - waiting[0].written / 1e9 if waiting else 0.0
    text = f"{where.spool}: {len(waiting)} batches wait, {size} bytes, the oldest for {age:.0f} s"
    yield Line("note" if age > WAITING_S else "ok", "spool", text)
    bad = len(list((where.spool / "bad").glob("*.json")))
    if bad:
        yield Line("note", "spool", f"{bad} batches could not be read: see {where.spool / 'bad'}")


class _Nowhere:
    """An intake's store that is never asked."""

    def apply(self, batch: object) -> bool:
        raise NotImplementedError


def _store(where: Places) -> Iterator[Line]:
    try:
        holder = Lease(where.store).holder()
    except ResweepError as error:
        yield Line("fail", "store", f"{where.store}: {error}")
        return
    path = Path(where.store.removeprefix("sqlite:///"))
    if where.store.startswith("sqlite:///") and not path.exists():
        yield Line("note", "store", f"{path} is not there yet: an agent makes it")
        return
    size = f", {path.stat().st_size} bytes" if path.exists() else ""
    yield Line("ok", "store", f"{where.store}{size}; led by {holder or 'nobody'}")


def _lock(settings: Settings) -> Iterator[Line]:
    path = Path(settings.agent.lock_file) if settings.agent.lock_file else find_lock(Path.cwd())
    if path is None:
        yield Line("note", "lock file", "none from here upward: `resweep lock pull` makes one")
        return
    try:
        lock = read_lock(path)
    except ResweepError as error:
        yield Line("fail", "lock file", str(error))
    else:
        yield Line("ok", "lock file", f"{path}: {len(lock.entries)} tuned depths")


def _capture(settings: Settings) -> Iterator[Line]:
    capture = settings.record.capture
    if capture == "none":
        off = "none: no texts are kept, so labelling is off; record.capture = 'sampled' turns it on"
        yield Line("note", "capture", off)
    else:
        yield Line("ok", "capture", f"{capture}: texts of retrievals are kept")


class Extracted(NamedTuple):
    """What a retriever's answer showed, passage by passage, and what a call costs more (µs)."""

    config: ConfigRecord
    event: RetrievalEvent | None
    lines: tuple[Line, ...]
    added_us: float


def extracted(seen: Seen, added_us: float) -> Extracted:
    """Return what recording made of an answer, with findings on what it did not find."""
    return Extracted(seen.config, seen.event, tuple(_answer_lines(seen)), added_us)


def _answer_lines(seen: Seen) -> Iterator[Line]:
    if seen.error is not None:
        yield Line("fail", "call", f"the retriever raised {seen.error}")
        return
    event = seen.event
    if event is None:
        yield Line("fail", "call", "no retrieval was seen: the call did not reach a watched method")
        return
    yield Line("ok", "call", f"asked {event.asked}, returned {event.returned}, {_seconds(event.latency_s)}")
    yield from _coverage("id", event.hits, lambda h: bool(h.id) and h.id != h.text_hash, "made from the text")
    yield from _coverage("score", event.hits, lambda h: h.score is not None, "score layers see nothing")
    yield from _coverage("source", event.hits, lambda h: h.source is not None, "source diversity is unknown")
    yield from _coverage("tokens", event.hits, lambda h: h.tokens is not None, "context size is unknown")
    yield Line("ok", "direction", direction(event.hits))
    if event.tokens_estimated:
        yield Line("note", "tokens", "estimated: pass tokens=… to watch() to count with your tokenizer")


def _coverage(name: str, hits: tuple[Hit, ...], has: Callable[[Hit], bool], otherwise: str) -> Iterator[Line]:
    found = sum(has(hit) for hit in hits)
    whole = found == len(hits)
    text = f"{found} of {len(hits)} passages" + ("" if whole else f"; {otherwise}")
    yield Line("ok" if whole else "note", name, text)


def direction(hits: tuple[Hit, ...]) -> str:
    """Say which way scores run along the ranks of one answer."""
    scores = [hit.score for hit in hits if hit.score is not None]
    if len(scores) < 2 or scores[0] == scores[-1]:
        return "not to be told from this answer"
    return "higher is better" if scores[0] > scores[-1] else "lower is better, as of a distance"


def _seconds(latency: float | None) -> str:
    return "no latency" if latency is None else f"{latency * 1000:.1f} ms"


def cost_per_call(answer: object) -> float:
    """Return the µs that recording adds to a call that returns this answer, measured here and now."""

    def bare(query: str) -> object:
        return answer

    from resweep.testing import capture

    with capture() as sink:
        watched = resweep.watch(bare, pipeline="doctor", config={"context_k": 1}, sink=sink)
        return max(0.0, _time(watched) - _time(bare)) * 1e6


def _time(function: Callable[[str], Any]) -> float:
    started = time.perf_counter()
    for _ in range(CALLS):
        function("q")
    return (time.perf_counter() - started) / CALLS
