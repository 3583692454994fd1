"""The HTTP API of an agent that runs: what it takes, what it refuses and how it says so."""

from __future__ import annotations

import gzip
import json
import time
from collections.abc import Callable
from typing import Any

import pytest

from resweep.domain.batch import encode_batch

Until = Callable[..., Any]


def retrievals(agent: Any, pipeline: str) -> int:
    """Return how many retrievals of a pipeline the agent counted in the last hour."""
    told = next(one for one in agent.get("/v1/status")["pipelines"] if one["name"] == pipeline)
    found: int = told["last_hour"]["retrievals"]
    return found


BAD_BATCHES = {
    "half": b"{",
    "deep": b"[" * 10_000,
    "binary": b"\xff",
    "empty": b"{}",
    "newer": b'{"schema":"resweep.batch/9","writer":"w","seq":1,"ts":1}',
}


@pytest.mark.parametrize("body", list(BAD_BATCHES.values()), ids=list(BAD_BATCHES))
def test_a_bad_batch_is_400_with_what_was_expected(agent: Any, body: bytes) -> None:
    """And the agent lives on."""
    status, told = agent.call("/v1/batches", body)
    assert status == 400
    assert "resweep.batch/1" in told["error"]
    assert agent.call("/healthz")[0] == 200


def test_bodies_are_bounded_packed_and_unpacked(traffic: Any, agent: Any) -> None:
    """413 for what is too large, however small it was packed; 415 for another type or encoding."""
    assert agent.call("/v1/batches", b"x" * 20001)[0] == 413
    bomb = gzip.compress(b" " * 50_000_000)
    assert agent.call("/v1/batches", bomb, content_encoding="gzip")[0] == 413
    assert agent.call("/v1/batches", b"junk", content_encoding="gzip")[0] == 400
    assert agent.call("/v1/batches", b"{}", content_encoding="br")[0] == 415
    assert agent.call("/v1/batches", b"{}", content_type="text/html")[0] == 415
    packed = gzip.compress(encode_batch(traffic.batch(1, traffic.config("packed"), writer="packed")))
    assert agent.call("/v1/batches", packed, content_encoding="gzip") == (200, {"applied": True})


def test_feedback_is_answered_piece_by_piece(traffic: Any, agent: Any) -> None:
    """A bad piece costs itself alone; nothing of it is a 5xx."""
    record = traffic.config("rated")
    traffic.send(agent, traffic.batch(1, record, writer="rated"))
    event = f"01ARZ3NDEKTSV4RRFFQ69G5FAV-{record.config}"
    good = {"event_id": event, "kind": "negative", "rater": "u1", "ts": time.time()}
    status, told = agent.call("/v1/feedback", [good, {"kind": "negative"}, 5, {**good, "kind": "hated"}])
    assert status == 200
    assert (told["accepted"], told["new"], told["rejected"]) == (1, 1, 3)
    assert [r["ok"] for r in told["results"]] == [True, False, False, False]
    assert agent.call("/v1/feedback", good)[1]["new"] == 0
    lines = "\n".join(json.dumps({**good, "rater": f"u{n}"}) for n in range(2, 5)).encode()
    assert agent.call("/v1/feedback", lines)[1]["new"] == 3
    for nothing in (b"", b"null", b"[]", b"{", b'"x"', b"\xff"):
        assert agent.call("/v1/feedback", nothing)[0] == 400


def test_event_lines_are_counted_and_a_repeated_body_changes_nothing(agent: Any) -> None:
    """Bad lines are told with number and reason."""
    now = time.time()
    event = {"type": "event", "ts": now, "pipeline": "lines", "asked": 3, "hits": [{"id": "a"}], "new": 1}
    lines: list[object] = [{"type": "config", "pipeline": "lines", "config": {"context_k": 3}}]
    lines += [{**event, "id": f"e{n}"} for n in range(5)]
    body = "\n".join(map(json.dumps, lines)).encode() + b"\nnonsense\n"
    status, told = agent.call("/v1/events", body, content_type="application/x-ndjson")
    assert (status, told["applied"], told["events"], told["configs"]) == (200, True, 5, 1)
    assert told["bad"][0]["line"] == 7
    assert told["unknown_fields"] == {"new": 5}
    assert agent.call("/v1/events", body)[1]["applied"] is False
    assert retrievals(agent, "lines") == 5
    assert agent.call("/v1/events", b"nonsense")[0] == 400


def test_maintenance_and_acknowledgement_are_kept(traffic: Any, agent: Any, until: Until) -> None:
    """Who, why, and that the flag stays open."""
    traffic.send(agent, traffic.batch(1, traffic.config("bot"), writer="bot"))
    flag = until(lambda: agent.get("/v1/flags?pipeline=bot")["flags"])[0]
    status, told = agent.call(f"/v1/flags/{flag['key']}/ack", {"by": "ann", "because": "seen"})
    assert (status, told["acknowledged"]["by"], told["state"]) == (200, "ann", "open")
    assert agent.call("/v1/flags/none/ack", {})[0] == 404
    assert agent.call("/v1/maintenance", {"pipeline": "bot", "seconds": 60})[1]["now"] == ["bot"]
    assert agent.metric('resweep_maintenance{pipeline="bot"}') == [1]
    assert agent.call("/v1/maintenance", {"pipeline": "bot", "action": "end"})[1]["now"] == []
    assert agent.call("/v1/maintenance", {"pipeline": "bot", "action": "end"})[0] == 400


def test_metrics_come_in_the_format_and_packing_asked_for(traffic: Any, agent: Any) -> None:
    """OpenMetrics where the scraper prefers it."""
    traffic.send(agent, traffic.batch(1, traffic.config("scraped"), writer="scraped"))
    plain = agent.call("/metrics", accept="text/plain")[1]
    assert b"# EOF" not in plain
    openmetrics = agent.call("/metrics", accept="application/openmetrics-text; version=1.0.0")[1]
    assert openmetrics.endswith(b"# EOF\n")
    assert agent.call("/metrics", accept_encoding="gzip")[1][:2] == b"\x1f\x8b"


DOCUMENTS = {
    "deep": '{"a":' * 900 + "1" + "}" * 900,
    "surrogate": '{"a":"\\ud800"}',
    "infinite": '{"a":1e999}',
    "huge": '{"a":' + "9" * 5000 + "}",
    "nul": '{"\\u0000":1}',
    "list": "[]",
    "number": "5",
    "null": "null",
}
BODIES = {
    "/v1/accept": '{"pipeline":"nasty","document":%s}',
    "/v1/events": '{"type":"config","pipeline":"nasty","config":%s}',
    "/v1/batches": '{"schema":"resweep.batch/1","writer":"nasty","seq":1,"ts":1,"configs":[%s]}',
    "/v1/feedback": "[%s]",
    "/v1/tuned": '{"tuned":[{"pipeline":"nasty","basis":"b","context_k":3,"parts":%s}]}',
    "/v1/maintenance": '{"pipeline":"nasty","seconds":%s}',
}


@pytest.mark.parametrize("document", list(DOCUMENTS.values()), ids=list(DOCUMENTS))
def test_no_body_is_a_5xx(agent: Any, document: str) -> None:
    """Whatever it holds, wherever it is sent."""
    for path, body in BODIES.items():
        for sent in (body % document, document):
            assert agent.call(path, sent.encode())[0] < 500, (path, sent[:80])
    assert agent.call("/healthz")[0] == 200
