"""An agent as a real process, for the tests of this folder."""

from __future__ import annotations

import http.client
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from resweep.domain.batch import Batch, ConfigRecord, encode_batch
from resweep.domain.fingerprint import fingerprint
from resweep.domain.window import Window

ROOT = Path(__file__).resolve().parents[3]
SOURCES = os.pathsep.join((str(ROOT / "agent"), str(ROOT / "exporters")))


class AgentProcess:
    """One `resweep agent`, its address and its token."""

    def __init__(self, home: Path, *arguments: str, **environ: str) -> None:
        home.mkdir(parents=True, exist_ok=True)
        self.home = home
        self.log = home / f"agent-{time.monotonic_ns()}.log"
        variables = {"PATH": os.environ["PATH"], "HOME": str(home), "PYTHONPATH": SOURCES}
        with self.log.open("w") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "resweep", "agent", "--listen", "127.0.0.1:0", "--json", *arguments],
                env={**variables, "RESWEEP_HOME": str(home), **environ},
                cwd=home,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
            )
        self.token = environ.get("RESWEEP_TOKEN", "")
        self.url = ""

    def started(self) -> AgentProcess:
        """Wait until it listens."""
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        assert line.startswith('{"listening"'), f"the agent ended: {self.log.read_text()}"
        self.url = json.loads(line)["listening"]
        self.token = self.token or (self.home / "token").read_text().strip()
        return self

    def call(
        self, path: str, body: object = None, *, token: str | None = None, **headers: str
    ) -> tuple[int, Any]:
        """Return status and answer (JSON where it is) of a GET, or of a POST where there is a body."""
        at = urlsplit(self.url)
        connection = http.client.HTTPConnection(at.hostname or "", at.port, timeout=10)
        raw = body if isinstance(body, bytes) or body is None else json.dumps(body).encode()
        sent = {"content-type": "application/json", "authorization": f"Bearer {token or self.token}"}
        sent |= {name.replace("_", "-"): value for name, value in headers.items()}
        try:
            connection.request("GET" if raw is None else "POST", path, raw, sent)
            answer = connection.getresponse()
            text = answer.read()
            is_json = answer.headers.get_content_type() == "application/json"
            return answer.status, json.loads(text) if is_json else text
        finally:
            connection.close()

    def get(self, path: str) -> Any:
        """Return the answer to a GET that must be 200."""
        status, answer = self.call(path)
        assert status == 200, answer
        return answer

    def metric(self, start: str) -> list[float]:
        """Return the values of the series whose line starts so."""
        page: bytes = self.get("/metrics")
        found = (line for line in page.decode().splitlines() if line.startswith(start))
        return [float(line.rpartition(" ")[2]) for line in found]

    def kill(self) -> None:
        """End it as kill -9 does."""
        self.process.kill()
        self.process.wait(10)

    def end(self) -> int:
        """End it with SIGTERM and return its exit code."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        try:
            return self.process.wait(10)
        finally:
            if self.process.stdout is not None:
                self.process.stdout.close()
            self.process.kill()


class Traffic:
    """Batches as recorders make them."""

    @staticmethod
    def config(pipeline: str = "bot", **parts: object) -> ConfigRecord:
        """Return the record of a config."""
        known = fingerprint({"embedder": {"model": "m1"}, "context_k": 8, **parts})
        return ConfigRecord(
            pipeline=pipeline, config=known.config_hash, basis=known.basis_hash, document=known.document
        )

    @staticmethod
    def batch(seq: int, record: ConfigRecord, calls: int = 40, writer: str = "w1", ago: float = 0) -> Batch:
        """Return a batch with one window of calls, all well served, that ended some seconds ago."""
        ts = time.time() - ago
        counts = {"retrievals": calls, "ok": calls, "served": calls, "asked:8": calls, "returned:8": calls}
        window = Window(record.pipeline, record.config, int(ts // 60), counts=counts)
        return Batch(writer=writer, seq=seq, ts=ts, configs=[record], windows=[window])

    @staticmethod
    def send(agent: AgentProcess, one: Batch) -> tuple[int, Any]:
        """Post a batch and return the answer."""
        return agent.call("/v1/batches", encode_batch(one))

    @staticmethod
    def spool(home: Path, one: Batch) -> Path:
        """Put a batch into a home's spool, whole or not at all."""
        folder = home / "spool"
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / f"{one.writer}.{one.seq:010d}.w.json"
        part = path.with_suffix(".part")
        part.write_bytes(encode_batch(one))
        part.rename(path)
        return path


@pytest.fixture(name="traffic", scope="session")
def _traffic() -> type[Traffic]:
    """Make batches."""
    return Traffic


@pytest.fixture(name="agents")
def _agents(tmp_path: Path) -> Iterator[Callable[..., AgentProcess]]:
    """Make agents that end with the test; by default all on one home."""
    made: list[AgentProcess] = []

    def make(*arguments: str, home: Path | None = None, **environ: str) -> AgentProcess:
        made.append(AgentProcess(home or tmp_path / "home", *arguments, **environ))
        return made[-1]

    yield make
    for agent in made:
        agent.end()


@pytest.fixture(name="agent", scope="module")
def _agent(tmp_path_factory: pytest.TempPathFactory) -> Iterator[AgentProcess]:
    """Give an agent that the tests of a module share; each has a pipeline and a writer of its own."""
    agent = AgentProcess(tmp_path_factory.mktemp("shared"), RESWEEP_LIMITS_BODY_BYTES="20000").started()
    yield agent
    assert agent.end() == 0


@pytest.fixture(name="until")
def _until() -> Callable[..., Any]:
    """Wait until a function returns something true, and return that."""

    def until(function: Callable[[], Any], seconds: float = 15) -> Any:
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            found = function()
            if found:
                return found
            time.sleep(0.05)
        raise AssertionError("it did not come true in time")

    return until
