"""`resweep doctor --traffic`: a user's own events, how close they come to an alarm, what would be seen."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from resweep.serve.cli.app import app
from resweep.serve.traffic import Tally, at_most_per_quarter


def write(lab: Any, path: Path, n: int, rate: float) -> Path:
    """Write `n` events at `rate` an hour as resweep.event/1."""
    lines: list[object] = [{"type": "config", "pipeline": "p", "config": {"context_k": 8}}]
    for _, event in lab.traffic(lab.world(), n, rate=rate):
        hits = [{"id": h.id, "score": h.score, "source": h.source, "tokens": h.tokens} for h in event.hits]
        lines.append(
            {"type": "event", "id": event.id, "ts": event.ts, "pipeline": "p", "asked": 8, "hits": hits}
            | {"query": str(event.query_key)}
        )
    path.write_text("\n".join(map(json.dumps, lines)))
    return path


def told(lab: Any, tmp_path: Path, n: int, rate: float) -> dict[str, Any]:
    """Return the one system that doctor tells of."""
    done = CliRunner().invoke(
        app, ["doctor", "--traffic", str(write(lab, tmp_path / "e.jsonl", n, rate)), "--json"]
    )
    assert done.exit_code == 0, done.stderr
    document = json.loads(done.stdout)
    assert document["schema"] == "resweep.traffic/1"
    (system,) = document["systems"]
    found: dict[str, Any] = system
    return found


def test_a_busy_week_says_what_would_be_seen_within_a_day(lab: Any, tmp_path: Path) -> None:
    """80 questions that repeat daily: a change of a part of the answers, and of the level, is seen."""
    system = told(lab, tmp_path, 3000, 25.0)
    assert system["alarms"]["warned"] == 0
    assert {layer["layer"] for layer in system["layers"]} == {"twins", "levels", "outcome"}
    assert all(layer["peak"] is None or layer["peak"] < 0 for layer in system["layers"])
    sizes = {one["what"]: one["within"]["1d"] for one in system["smallest"]}
    assert 0.09 < sizes["share of repeated questions whose answer changes"] < 0.5


def test_twenty_queries_a_day_are_told_what_they_cannot_see(lab: Any, tmp_path: Path) -> None:
    """No shift of a level within a day, and why."""
    system = told(lab, tmp_path, 600, 20 / 24)
    (top,) = [one for one in system["smallest"] if "top score" in one["what"]]
    assert top["within"]["1d"] is None
    assert "too few in a day" in top["why"]
    assert system["alarms"]["per_quarter_at_most"] > 5


def test_a_retriever_and_traffic_are_two_questions(tmp_path: Path) -> None:
    """Exit 2, in words."""
    done = CliRunner().invoke(app, ["doctor", "a:b", "--traffic", str(tmp_path / "e.jsonl")])
    assert done.exit_code == 2
    assert "run doctor twice" in done.stderr


@pytest.mark.parametrize(("count", "days", "rate"), [(0, 91.3, 3.0), (0, 1095.6, 0.25), (2, 365.2, 1.57)])
def test_few_alarms_in_a_short_time_exclude_little(count: int, days: float, rate: float) -> None:
    """Upper 95 % Poisson bounds: 3.0 for none, 6.3 for two."""
    assert at_most_per_quarter(count, days) == pytest.approx(rate, abs=0.01)


def test_a_question_repeats_once_a_day_and_only_after_twelve_hours(lab: Any) -> None:
    """80 questions, asked five times an hour each: 80 repeats a day, none on the first half-day."""
    tally = Tally()
    for _, event in lab.traffic(lab.world(), 20_000, rate=400.0):
        tally.add(event)
    assert tally.volumes()[1].repeated == 80
