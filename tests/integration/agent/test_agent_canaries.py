"""An embedder rotated under the same name: found, accepted, taken back, through a real agent."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import resweep

pytestmark = pytest.mark.integration
HURRY = {
    "RESWEEP_CANARY_EVERY": "1s",
    "RESWEEP_CANARY_CONFIRM": "1s",
    "RESWEEP_CANARY_TEXTS": "8",
    "RESWEEP_CANARY_QUERIES": "6",
    "RESWEEP_CANARY_POLL_S": "0.1",
    "RESWEEP_CANARY_PER_SECOND": "100",
}
CONFIG = {"embedder": {"model": "m1"}, "index": {"name": "docs"}, "context_k": 4}
Wait = Callable[..., Any]


class Service:
    """A retriever over hashed words, whose provider may turn its vector space."""

    def __init__(self) -> None:
        rng = np.random.default_rng(5)
        self.turn = np.eye(64)
        self.other, _ = np.linalg.qr(rng.normal(size=(64, 64)))
        self.threads: set[str] = set()
        self.asked: list[tuple[str, int, str | None]] = []
        self._index = rng.normal(size=(200, 64))

    def embed(self, text: str) -> list[float]:
        """Return the vector of a text, as the provider makes it now."""
        self.threads.add(threading.current_thread().name)
        vector = np.random.default_rng(sum(text.encode()) * 131 + len(text)).normal(size=64)
        return [float(x) for x in self.turn @ vector]

    def retrieve(self, query: str, k: int = 4, tenant: str | None = None) -> list[dict[str, Any]]:
        """Return the k nearest passages."""
        self.asked.append((query, k, tenant))
        scores = self._index @ np.array(self.embed(query))
        best = np.argsort(-scores)[:k]
        return [
            {"id": f"p{i}", "score": float(scores[i] / 64), "text": f"passage {i}", "source": f"s{i % 9}"}
            for i in best
        ]


@pytest.fixture(name="service")
def _service() -> Iterator[Service]:
    yield Service()
    resweep.shutdown()


@pytest.fixture(name="watched")
def _watched(
    request: pytest.FixtureRequest, agents: Callable[..., Any], service: Service, tmp_path: Path
) -> tuple[Any, Callable[..., Any]]:
    """Return an agent and the service's watched retriever, which hands over by URL or by files."""
    agent = agents(**HURRY).started()
    resweep.configure(token=agent.token, salt="s", flush_s=0.2, sample_rate=1.0)
    spool = getattr(request, "param", "http") == "spool"
    sink = f"spool:{agent.home / 'spool'}" if spool else agent.url
    retrieve = resweep.watch(
        service.retrieve,
        pipeline="bot",
        config=CONFIG,
        sink=sink,
        capture="sampled",
        canaries=True,
        embed=service.embed,
    )
    return agent, retrieve


@pytest.fixture(autouse=True)
def _fresh() -> Iterator[None]:
    """Forget what a test configured."""
    yield
    from resweep.record.options import reset

    reset()


def runs(agent: Any, kind: str) -> list[dict[str, Any]]:
    """Return the runs of one kind of canary."""
    return [run for run in agent.get("/v1/canaries")["runs"] if run["kind"] == kind]


def open_flags(agent: Any) -> list[dict[str, Any]]:
    """Return the open flags of the active layer."""
    return [flag for flag in agent.get("/v1/flags")["flags"] if flag["layer"] == "active"]


def verdict(agent: Any) -> str:
    """Return the verdict of the pipeline."""
    (pipeline,) = agent.get("/v1/status")["pipelines"]
    return str(pipeline["verdict"])


def test_a_swapped_embedder_is_found_accepted_and_found_again(
    watched: tuple[Any, Callable[..., Any]], service: Service, until: Wait
) -> None:
    """Swap, accept with another k, roll back: two epochs, and the first one's k is in force again."""
    agent, retrieve = watched
    for n in range(30):
        retrieve(f"question {n}")
    resweep.flush()
    until(lambda: agent.get("/v1/status")["pipelines"], 30)
    assert agent.call("/v1/accept", {"pipeline": "bot"})[0] == 200
    until(lambda: len(runs(agent, "embed")) >= 2 and agent.get("/v1/canaries")["epochs"], 30)
    assert (open_flags(agent), verdict(agent)) == ([], "valid")

    service.turn = service.other
    until(lambda: open_flags(agent), 30)
    (flag,) = open_flags(agent)
    assert (flag["reason"], flag["severity"], flag["components"]) == ("silent_change", "page", ["embedder"])
    until(lambda: verdict(agent) == "expired", 30)

    status, accepted = agent.call("/v1/accept", {"pipeline": "bot", "context_k": 8, "because": "swept again"})
    assert (status, accepted["tuned"][0]["epoch"]) == (200, 2)
    assert accepted["cleared"] == [flag["key"]]
    assert open_flags(agent) == []

    service.turn = np.eye(64)
    until(lambda: [e["present"] for e in agent.get("/v1/canaries")["epochs"]] == [True, False], 30)
    until(lambda: agent.metric("resweep_tuned_context_k{") == [4.0], 30)
    until(lambda: verdict(agent) == "valid", 30)
    assert open_flags(agent) == []


@pytest.mark.parametrize("watched", ["spool"], indirect=True)
def test_the_flag_clears_when_the_provider_goes_back(
    watched: tuple[Any, Callable[..., Any]], service: Service, until: Wait
) -> None:
    """Nobody accepts anything: the canaries recognise the first embedder."""
    agent, retrieve = watched
    retrieve("a question")
    resweep.flush()
    until(lambda: len(runs(agent, "embed")) >= 2, 30)
    service.turn = service.other
    until(lambda: open_flags(agent), 30)
    service.turn = np.eye(64)
    until(lambda: not open_flags(agent), 30)
    assert service.threads == {"MainThread", "resweep-work"}


def test_canaries_and_probes_enter_no_live_figure(
    watched: tuple[Any, Callable[..., Any]], service: Service, until: Wait
) -> None:
    """Twenty live calls stay twenty; a probe goes 40 deep with the tenant of its call."""
    agent, retrieve = watched
    for n in range(20):
        retrieve(f"question {n}", tenant="acme" if n == 7 else None)
    resweep.flush()
    until(lambda: len(runs(agent, "retrieve")) >= 2, 30)
    until(lambda: [one for one in service.asked if one[1] == 40], 30)
    assert {one for one in service.asked if one[1] == 40} <= {
        (f"question {n}", 40, "acme" if n == 7 else None) for n in range(20)
    }
    resweep.flush()
    assert agent.metric("resweep_retrievals_total{") == [20.0]
    assert len(service.asked) > 20
    assert agent.metric("resweep_drift_evidence{") != []


def test_an_offer_that_is_none_is_refused(agents: Callable[..., Any]) -> None:
    """With what was expected; and an answer to nobody's work is a conflict."""
    agent = agents(**HURRY).started()
    assert agent.call("/v1/work")[0] == 400
    assert agent.call("/v1/work?offer=%7B%22writer%22%3A%22w%22%7D")[1] == {
        "work": [],
        "again_s": 0.1,
        "pause_s": 0.01,
    }
    answer = json.dumps({"id": "x", "writer": "w"}).encode()
    assert agent.call("/v1/work/x", answer) == (409, {"taken": False})
