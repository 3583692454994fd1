"""From files to the report: what `--run RUN --qrels QRELS --k 3,5,8 --json` prints."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from resweep.domain.errors import InputError, UsageError
from resweep.domain.event import Hit, RetrievalEvent
from resweep.sweep.recorded import Source, sweep_recorded
from resweep.sweep.settings import SweepSettings, parse_depths

QUICK = SweepSettings(resamples=500)
DOCUMENTED = [
    "schema",
    "pipeline",
    "basis_hash",
    "n_cases",
    "n_effective",
    "n_excluded_unjudged",
    "n_missing",
    "weighted",
    "points",
    "objective",
    "margin",
    "best_set",
    "chosen",
    "regressions",
    "diagnosis",
]
POINT = {
    "context_k",
    "candidate_k",
    "state",
    "measures",
    "prompt_tokens",
    "cost_usd",
    "latency_p50_s",
    "latency_p95_s",
}


@pytest.fixture
def files(tmp_path: Path) -> tuple[Path, Path]:
    """Twenty queries with the evidence at rank 2 of 6, one unjudged, one judged and missing."""
    run, qrels = tmp_path / "bm25.run", tmp_path / "qrels"
    ids = ["x1", "r", "x2", "x3", "x4", "x5"]
    queries = [f"q{i}" for i in range(20)]
    asked = [*queries, "nobody"]
    run.write_text(
        "".join(f"{q} Q0 {d} {rank} {10 - rank} bm25\n" for q in asked for rank, d in enumerate(ids, 1))
    )
    qrels.write_text("".join(f"{q} 0 r 1\n" for q in [*queries, "absent"]))
    return run, qrels


def test_the_documented_object(files: tuple[Path, Path]) -> None:
    """Every documented key, in order, first; every point with its keys; strict JSON."""
    found = json.loads(sweep_recorded(*files, (3, 5, 8), QUICK).to_json())
    assert list(found)[: len(DOCUMENTED)] == DOCUMENTED
    assert found["schema"] == "resweep.report/1"
    assert all(point.keys() >= POINT for point in found["points"])
    assert [point["state"] for point in found["points"]] == ["measured", "measured", "unreachable"]
    for measure in ("recall", "all_evidence", "precision", "context_precision", "mrr", "ndcg"):
        assert {"mean", "low", "high"} <= found["points"][0]["measures"][measure].keys()
    assert {"context_k", "candidate_k", "why"} <= found["chosen"].keys()


def test_the_counts_of_who_takes_part(files: tuple[Path, Path]) -> None:
    """21 judged of which 1 is missing and scores 0; 1 asked that nobody judged."""
    report = sweep_recorded(*files, (3,), QUICK)
    assert (report.n_cases, report.n_missing, report.n_excluded_unjudged) == (21, 1, 1)
    assert report.points[0]["measures"]["recall"]["mean"] == pytest.approx(20 / 21)
    assert report.points[0]["candidate_k"] == 6


def test_equal_files_give_equal_bytes(files: tuple[Path, Path]) -> None:
    """No clock and no unseeded draw has a part in a report."""
    assert sweep_recorded(*files, (1, 3), QUICK).to_json() == sweep_recorded(*files, (1, 3), QUICK).to_json()


def test_a_grid_of_runs(files: tuple[Path, Path]) -> None:
    """One file per candidate depth; context beyond the candidates is impossible."""
    report = sweep_recorded({2: files[0], 6: files[0]}, files[1], (1, 3), QUICK)
    states = {(p["candidate_k"], p["context_k"]): p["state"] for p in report.points}
    assert states == {(2, 1): "measured", (2, 3): "impossible", (6, 1): "measured", (6, 3): "measured"}


def test_a_labelled_set_with_weights(files: tuple[Path, Path], tmp_path: Path) -> None:
    """`resweep.case/1` judgments with weights, and a line that takes no part in the notes."""
    cases = tmp_path / "cases.jsonl"
    rows: list[dict[str, Any]] = [
        {"case_id": f"q{i}", "judgments": [{"passage_id": "r", "grade": 1}], "weight": 1 + i % 2}
        for i in range(20)
    ]
    rows.append({"case_id": "gone", "state": "rejected"})
    cases.write_text("".join(json.dumps(row) + "\n" for row in rows))
    report = sweep_recorded(files[0], cases, (3,), QUICK)
    assert report.weighted
    assert report.n_effective == pytest.approx(30**2 / 50)
    assert "line 21" in report.notes[0]
    assert "was rejected" in report.notes[0]


def test_recorded_events(files: tuple[Path, Path], tmp_path: Path) -> None:
    """Events are read by the reader that is given; their ids are the query ids of the judgments."""
    log = tmp_path / "log.jsonl"
    log.write_text('{"type":"event"}\n')

    def read(path: Path) -> list[RetrievalEvent]:
        assert path == log
        hits = (Hit("x"), Hit("r"), Hit("y"))
        return [
            RetrievalEvent(f"q{i}", float(i), "bot", "a" * 12, 2, 2, hits, candidates=30) for i in range(20)
        ]

    report = sweep_recorded(log, files[1], (2, 3), QUICK, source=Source(events=read, pipeline="bot"))
    assert report.pipeline == "bot"
    assert report.points[0]["candidate_k"] == 30
    assert report.points[0]["measures"]["mrr"]["mean"] == pytest.approx(0.5 * 20 / 21)
    with pytest.raises(UsageError, match=r"a reader of resweep\.event/1"):
        sweep_recorded(log, files[1], (2,), QUICK)


def test_a_run_of_other_queries_is_refused(files: tuple[Path, Path], tmp_path: Path) -> None:
    """Nothing in common is a mistake, not a recall of 0."""
    other = tmp_path / "other"
    other.write_text("z 0 r 1\n")
    with pytest.raises(InputError, match=r"judged: 'z', \.\.\.; run: 'q0'"):
        sweep_recorded(files[0], other, (3,), QUICK)


def test_an_empty_file_is_told(tmp_path: Path, files: tuple[Path, Path]) -> None:
    """Neither an empty run nor empty judgments are silently no data."""
    empty = tmp_path / "empty"
    empty.write_text("\n")
    for run, qrels in ((empty, files[1]), (files[0], empty)):
        with pytest.raises(InputError, match="an empty file"):
            sweep_recorded(run, qrels, (3,), QUICK)


def test_depths_in_words() -> None:
    """Lists and ranges; anything else is refused."""
    assert parse_depths("3,5,8") == (3, 5, 8)
    assert parse_depths("1-4, 10") == (1, 2, 3, 4, 10)
    with pytest.raises(UsageError, match="3,5,8 or 1-10,20"):
        parse_depths("many")
