"""A sweep that the agent runs itself: after an alarm, within a budget, and nothing accepted."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

RETRIEVER = """
import time

SLOW = 0.0


class Retriever:
    def search(self, query, k=10):
        time.sleep(SLOW)
        n = int(query.split()[-1])
        ids = [f"d{(n + 7 * i) % 400}" for i in range(k)]
        return [{"id": one, "score": 1.0 - 0.001 * i} for i, one in enumerate(ids)]


retriever = Retriever()
"""


def _home(folder: Path, *, slow: float = 0.0, calls: int = 500) -> Path:
    """Return a home with a retriever, cases and the settings for sweeps by itself."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "ownrag.py").write_text(RETRIEVER.replace("SLOW = 0.0", f"SLOW = {slow}"))
    with (folder / "cases.jsonl").open("w") as lines:
        for n in range(60):
            found = (n + 7 * (n % 6)) % 400
            case = {
                "schema": "resweep.case/1",
                "case_id": f"c{n}",
                "query": f"question {n}",
                "judgments": [{"passage_id": f"d{found}", "grade": 1}],
            }
            lines.write(json.dumps(case) + "\n")
    (folder / "resweep.toml").write_text(
        '[sweep]\nretriever = "ownrag:retriever"\ncases = "cases.jsonl"\npipeline = "bot"\nby_itself = true\n'
        f"max_calls = {calls}\n"
    )
    return folder


def _run(agent: Any, state: str) -> Callable[[], Any]:
    def look() -> Any:
        runs = agent.get("/v1/sweeps")["sweeps"]
        return runs[0] if runs and runs[0]["state"] == state else None

    return look


def test_an_alarm_is_followed_by_a_sweep_that_proposes_and_accepts_nothing(
    agents: Any, traffic: Any, until: Any, tmp_path: Path
) -> None:
    """The report is stored for the basis in charge; the pipeline stays untuned until a person accepts."""
    agent = agents(home=_home(tmp_path / "home")).started()
    record = traffic.config()
    assert traffic.send(agent, traffic.batch(1, record))[0] == 200
    run = until(_run(agent, "done"), 60)
    assert (run["config"], run["basis"], run["why"]) == (record.config, record.basis, "untuned")
    assert run["told"].startswith("proposes context_k ")
    (report,) = agent.get("/v1/reports?pipeline=bot")["reports"]
    assert (report["basis_hash"], report["n_cases"]) == (record.basis, 60)
    assert agent.get("/v1/tuned")["tuned"] == []
    assert not list((tmp_path / "home").glob("own-sweep-*"))


def test_a_budget_that_cannot_suffice_is_said_and_nothing_is_tried_again_at_once(
    agents: Any, traffic: Any, until: Any, tmp_path: Path
) -> None:
    """Ten calls for sixty cases: the run failed, with the reason."""
    agent = agents(home=_home(tmp_path / "home", calls=10)).started()
    assert traffic.send(agent, traffic.batch(1, traffic.config()))[0] == 200
    run = until(_run(agent, "failed"), 60)
    assert "calls" in run["told"]
    assert len(agent.get("/v1/sweeps")["sweeps"]) == 1


def test_an_agent_that_ends_ends_its_sweep_and_a_person_can_go_on_with_it(
    agents: Any, traffic: Any, until: Any, tmp_path: Path
) -> None:
    """The next agent tells that it was stopped; asked anew it ends; two at a time are refused."""
    home = _home(tmp_path / "home", slow=0.5)
    agent = agents(home=home).started()
    assert traffic.send(agent, traffic.batch(1, traffic.config()))[0] == 200
    until(_run(agent, "running"), 60)
    status, said = agent.call("/v1/sweeps", {"by": "ann"})
    assert (status, "runs already" in said["error"]) == (400, True)
    assert agent.end() == 0
    agent = agents(home=home).started()
    assert agent.get("/v1/sweeps")["sweeps"][0]["state"] == "stopped"
    (home / "ownrag.py").write_text(RETRIEVER)
    status, run = agent.call("/v1/sweeps", {"by": "ann"})
    assert (status, run["why"], run["state"]) == (202, "ann", "running")
    until(_run(agent, "done"), 60)
    assert [entry["who"] for entry in agent.get("/v1/audit")["entries"] if entry["action"] == "sweep"] == [
        "ann"
    ]


def test_without_settings_a_wish_is_refused_with_what_is_missing(agent: Any) -> None:
    """The agent sweeps nothing that it was not given."""
    status, said = agent.call("/v1/sweeps", {})
    assert (status, "sweep.retriever" in said["error"]) == (400, True)
