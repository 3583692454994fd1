"""Lines as a service writes them, labels as reviewers leave them, one report."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from resweep.domain.event import RetrievalEvent
from resweep.ingest.jsonlines import EventLine, LineReader, lines_of
from resweep.shipped import invalidation_rules
from resweep.sweep.recorded import Source, sweep_recorded
from resweep.sweep.settings import SweepSettings


def _read(path: Path) -> list[RetrievalEvent]:
    items = LineReader(invalidation_rules()).read(lines_of(path))
    return [item.event for item in items if isinstance(item, EventLine)]


def _event(i: int, depth: int) -> dict[str, Any]:
    hits = [{"id": f"n{i}-{rank}", "source": "faq.md", "tokens": 100} for rank in range(1, depth + 1)]
    hits[0]["text_hash"] = f"t{i}"
    return {
        "type": "event",
        "id": f"e{i}",
        "ts": 1796000000 + i,
        "pipeline": "support-bot",
        "query": f"Question number {i}?",
        "asked": 8,
        "hits": hits,
    }


def _case(i: int) -> dict[str, Any]:
    return {
        "case_id": f"c{i}",
        "query": f"question number {i}",
        "state": "labelled",
        "inclusion_probability": 0.5 if i % 2 else 0.25,
        "judgments": [
            {"passage_id": "before the re-ingest", "text_hash": f"t{i}", "grade": 1},
            {"passage_id": f"n{i}-12", "grade": 1},
        ],
    }


def test_probes_reach_beyond_the_live_k(tmp_path: Path) -> None:
    """30 probed cases: one passage found by text at rank 1, one by id at rank 12; 3 unprobed are left out."""
    log, cases = tmp_path / "events.jsonl", tmp_path / "cases.jsonl"
    log.write_text("".join(json.dumps(_event(i, 40 if i < 30 else 8)) + "\n" for i in range(33)))
    cases.write_text("".join(json.dumps(_case(i)) + "\n" for i in range(33)))
    settings = SweepSettings(objective="recall", resamples=500)
    report = sweep_recorded(log, cases, (1, 8, 20), settings, source=Source(events=_read))
    assert (report.n_cases, report.n_excluded_shallow, report.weighted) == (30, 3, True)
    assert [point["measures"]["recall"]["mean"] for point in report.points] == [0.5, 0.5, 1.0]
    assert [point["prompt_tokens"] for point in report.points] == [100, 800, 2000]
    assert report.points[1]["measures"]["duplicate_source_rate"]["mean"] == 7 / 8
    assert report.chosen["context_k"] == 20
