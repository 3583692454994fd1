"""A recording through the judge on virtual time: the object that `resweep replay --json` prints."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from resweep.detect.settings import DetectSettings
from resweep.domain.errors import InputError
from resweep.domain.fingerprint import fingerprint
from resweep.domain.verdict import TunedK
from resweep.serve.replay import ReplayResult, replay
from resweep.shipped import invalidation_rules

A = {"embedder": {"model": "m1"}, "context_k": 8}
B = {"embedder": {"model": "m2"}, "context_k": 8}


def config(value: Mapping[str, object]) -> dict[str, object]:
    return {"type": "config", "pipeline": "bot", "config": value}


def events(first: int, n: int, every: float = 9.0, **more: object) -> list[dict[str, object]]:
    hits = [{"id": f"p{i}", "score": 0.9 - i / 100} for i in range(8)]
    event = {"type": "event", "pipeline": "bot", "asked": 8, "hits": hits}
    return [
        {**event, "id": f"e{i}", "ts": 1_796_000_000 + i * every, **more} for i in range(first, first + n)
    ]


def run(tmp_path: Path, rows: Sequence[object], tuned: Sequence[TunedK] = ()) -> ReplayResult:
    path = tmp_path / "stream.jsonl"
    path.write_text("\n".join(row if isinstance(row, str) else json.dumps(row) for row in rows))
    return replay([path], settings=DetectSettings(), rules=invalidation_rules(), tuned=tuned)


def test_a_declared_change_is_found_with_its_events(tmp_path: Path) -> None:
    """Onset is the first event of the new config, opening the one that completed the evidence."""
    result = run(tmp_path, [config(A), *events(0, 100), config(B), *events(100, 100)]).to_json()
    assert isinstance(result["flags"], list)
    flag = next(f for f in result["flags"] if f["reason"] == "config_changed")
    assert (flag["onset_event"], flag["opened_at_event"], flag["components"], flag["cleared_at_event"]) == (
        100,
        124,
        ["embedder"],
        None,
    )


def test_the_object_has_the_documented_shape(tmp_path: Path) -> None:
    """`resweep.replay/1`."""
    result = run(tmp_path, [config(A), *events(0, 10), "{broken"]).to_json()
    assert (result["schema"], result["events"], result["bad_lines"]) == ("resweep.replay/1", 10, 1)
    known = fingerprint(A).config_hash
    assert isinstance(result["pipelines"], dict)
    assert result["pipelines"]["bot"]["configs"] == [known]
    assert result["pipelines"]["bot"]["verdict"] == "untuned"
    json.dumps(result, allow_nan=False)


def test_a_short_run_at_the_end_of_a_recording_still_counts(tmp_path: Path) -> None:
    """Nothing more will come: six events of a new config are the change."""
    result = run(tmp_path, [config(A), *events(0, 40, 0.5), config(B), *events(40, 6, 0.5)])
    assert [f.reason for f in result.flags if f.severity == "warning"] == ["config_changed"]


def test_a_tuned_pipeline_replays_in_silence(tmp_path: Path) -> None:
    """No flag, verdict valid."""
    tuned = TunedK(pipeline="bot", basis=fingerprint(A).basis_hash, context_k=8)
    result = run(tmp_path, [config(A), *events(0, 200)], [tuned])
    assert (list(result.flags), result.verdicts[0].state) == ([], "valid")


def test_another_k_is_a_mismatch(tmp_path: Path) -> None:
    """The tuned depth is 5, the pipeline asks for 8."""
    tuned = TunedK(pipeline="bot", basis=fingerprint(A).basis_hash, context_k=5)
    result = run(tmp_path, [config(A), *events(0, 50)], [tuned])
    assert [(f.reason, f.components) for f in result.flags] == [("k_mismatch", ("depth",))]


def test_equal_recordings_give_equal_bytes(tmp_path: Path) -> None:
    """Nothing reads a clock."""
    rows = [config(A), *events(0, 60), config(B), *events(60, 60)]
    first, second = (json.dumps(run(tmp_path, rows).to_json(), sort_keys=True) for _ in range(2))
    assert first == second


def test_a_file_of_no_events_is_refused_with_its_first_bad_line(tmp_path: Path) -> None:
    """Something else was given by mistake."""
    with pytest.raises(InputError, match=r"none of 2 could be used\. .*stream\.jsonl, line 1"):
        run(tmp_path, ["<html>", "</html>"])


def test_two_pipelines_do_not_mix(tmp_path: Path) -> None:
    """Each has its own configs and its own verdict."""
    rows: list[object] = [config(A), {**config(B), "pipeline": "other"}]
    for one, two in zip(events(0, 60), events(0, 60, pipeline="other"), strict=True):
        rows += [one, two]
    result = run(tmp_path, rows)
    assert {f.reason for f in result.flags} == {"untuned"}
    assert set(result.configs) == {"bot", "other"}
