"""Workers of a user's service and the agent beside them: the sum of all, whatever is recycled."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pytest

WORKER = """
import sys, resweep

def retrieve(query, k=4):
    return [{"id": f"p{i}", "score": 1 - i / 10, "source": f"s{i}", "text": "some words"} for i in range(k)]

retrieve = resweep.watch(retrieve, pipeline="shop", config={"embedder": {"model": "m1"}, "context_k": 4})
for number in range(25):
    retrieve(f"question {number}")
event = resweep.current_event_id()
resweep.feedback(event, "negative", rater=f"u{sys.argv[1]}")
"""


@pytest.mark.parametrize("sink", ["spool", "http"])
def test_the_agent_exposes_the_sum_of_recycled_workers(
    agents: Callable[..., Any], until: Callable[..., Any], sink: str
) -> None:
    """Four at a time, each replaced once; none of them waits for the agent."""
    agent = agents(RESWEEP_TOKEN="t" * 20).started()
    environ = {**os.environ, "RESWEEP_HOME": str(agent.home), "PYTHONPATH": os.pathsep.join(sys.path)}
    environ |= {"RESWEEP_TOKEN": agent.token, "RESWEEP_SINK": agent.url} if sink == "http" else {}
    for generation in range(2):
        command = [sys.executable, "-c", WORKER]
        workers = [subprocess.Popen([*command, f"{generation}{n}"], env=environ) for n in range(4)]
        assert [worker.wait(60) for worker in workers] == [0] * 4
    until(lambda: agent.metric("resweep_retrievals_total") == [200], 30)
    until(lambda: agent.metric('resweep_feedback_total{config="') and rated(agent) == 8, 30)
    told = agent.get("/v1/status")["pipelines"][0]
    assert (told["name"], told["context_k"], told["last_hour"]["retrievals"]) == ("shop", 4, 200)
    assert not list((agent.home / "spool").glob("*.json"))


def rated(agent: Any) -> float:
    """Return how often feedback was counted."""
    page: bytes = agent.get("/metrics")
    lines = [line for line in page.decode().splitlines() if line.startswith("resweep_feedback_total")]
    return sum(float(line.rpartition(" ")[2]) for line in lines)
