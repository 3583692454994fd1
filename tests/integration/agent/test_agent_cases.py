"""The labelled set through a real agent: events in, cases out, judged over HTTP, deleted for good."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

Agents = Callable[..., Any]
Until = Callable[..., Any]


def body(n: int) -> bytes:
    """Give n event lines of the last minutes with their texts, every tenth empty."""
    now = time.time() - 300
    lines = []
    for i in range(n):
        hits = [
            {"id": f"p{j}", "score": 0.9 - j / 10, "text": f"text {j}"}
            for j in range(0 if i % 10 == 3 else 3)
        ]
        event = {
            "type": "event",
            "id": f"e{i}",
            "ts": now + i / 10,
            "pipeline": "bot",
            "asked": 3,
            "hits": hits,
        }
        lines.append(json.dumps({**event, "query": f"what about secret topic {i}"}))
    return "\n".join(lines).encode()


def queue(agent: Any, until: Until) -> list[dict[str, Any]]:
    """Post events and wait for the cases that are made of them."""
    assert agent.call("/v1/events", body(400), content_type="application/x-ndjson")[0] == 200
    until(lambda: agent.get("/v1/cases?pipeline=bot")["cases"])
    found: list[dict[str, Any]] = agent.get("/v1/cases?pipeline=bot&limit=500")["cases"]
    return found


def test_posted_events_are_sampled_judged_and_exported(agents: Agents, until: Until) -> None:
    """From a body of events to a file that a sweep reads, and the numbers on /metrics."""
    agent = agents(RESWEEP_LABEL_EVERY_S="1").started()
    rows = queue(agent, until)
    assert {"uniform", "empty_or_short"} <= {row["stratum"] for row in rows}
    assert all(0 < row["p"] <= 1 and row["weight"] >= 1 for row in rows)
    status, given = agent.call("/v1/cases/next", {"by": "ann", "stratum": "uniform"})
    assert status == 200
    case = given["case"]["case"]["case_id"]
    agent.call(f"/v1/cases/{case}/judge", {"by": "ann", "passage_id": "p0", "grade": 1})
    status, done = agent.call(f"/v1/cases/{case}/finish", {"by": "ann", "reference_answer": "so"})
    assert (status, done["case"]["state"]) == (200, "labelled")
    lines = [json.loads(line) for line in agent.get("/v1/cases/export?state=labelled").splitlines()]
    assert [(c["case_id"], c["judgments"][0]["passage_id"]) for c in lines] == [(case, "p0")]
    assert lines[0]["weight"] >= 1 / lines[0]["inclusion_probability"]
    assert agent.get("/v1/cases/progress?pipeline=bot")["pipelines"][0]["labelled"] == 1
    assert agent.call("/v1/cases/undo", {"by": "ann"})[1]["undone"]["action"] == "finish"


def test_two_reviewers_get_two_cases_and_a_wrong_word_is_400(agents: Agents, until: Until) -> None:
    """What is not there is 404; what cannot be meant says what was expected."""
    agent = agents(RESWEEP_LABEL_EVERY_S="1").started()
    queue(agent, until)
    ids = {agent.call("/v1/cases/next", {"by": who})[1]["case"]["case"]["case_id"] for who in ("ann", "bea")}
    assert len(ids) == 2
    case = ids.pop()
    assert agent.call(f"/v1/cases/{case}/finish", {"by": "ann", "outcome": "maybe"})[0] == 400
    assert agent.call(f"/v1/cases/{case}/judge", {"by": "ann"})[0] == 400
    assert agent.call(f"/v1/cases/{case}/praise", {"by": "ann"})[0] == 404
    assert agent.call("/v1/cases/nobody/judge", {"by": "ann", "passage_id": "a", "grade": 1})[0] == 404
    assert agent.call("/v1/cases?after=x", None)[0] == 400


def test_a_forgotten_event_leaves_no_trace_in_the_stores_files(
    agents: Agents, until: Until, tmp_path: Path
) -> None:
    """Its text is gone from the database and its log, history and judgments included."""
    agent = agents(RESWEEP_LABEL_EVERY_S="1").started()
    row = queue(agent, until)[0]
    agent.call(f"/v1/cases/{row['case_id']}/judge", {"by": "ann", "passage_id": "p0", "grade": 1})
    agent.call(f"/v1/cases/{row['case_id']}/finish", {"by": "ann", "notes": row["query"]})
    status, told = agent.call("/v1/forget", {"events": [row["event_id"]], "by": "ann"})
    assert (status, told["events"]) == (200, 1)
    assert agent.call(f"/v1/cases/{row['case_id']}", None)[0] == 404
    assert agent.end() == 0
    for path in (tmp_path / "home").rglob("resweep.db*"):
        assert row["query"].encode() not in path.read_bytes()
