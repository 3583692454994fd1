"""Sweeps in several processes: killed, and sharing their work. Nothing is paid twice."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.integration
ROOT = Path(__file__).parents[2]
CONCURRENCY, CASES = 4, 60
MODULE = """
import os, time

def retrieve(query, k):
    line = f"{query} {k}\\n".encode()
    with open("asked.log", "ab", buffering=0) as log:
        log.write(line)
    time.sleep(0.05)
    return [{"id": f"d{i}"} for i in range(k)]
"""


def sweep(folder: Path, *more: str, home: str = "home") -> subprocess.Popen[str]:
    """Start a sweep of the slow retriever."""
    env = {
        "PATH": os.environ["PATH"],
        "HOME": str(folder),
        "RESWEEP_HOME": str(folder / home),
        "PYTHONPATH": os.pathsep.join((str(ROOT / "agent"), str(ROOT / "exporters"))),
        "RESWEEP_SWEEP_CONCURRENCY": str(CONCURRENCY),
    }
    words = ("--retriever", "slow_app:retrieve", "--cases", "cases.jsonl", "--k", "1,2,4", "--json")
    return subprocess.Popen(
        [sys.executable, "-m", "resweep", "sweep", *words, *more],
        cwd=folder,
        env=env,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def asked(folder: Path) -> list[str]:
    """Return the calls made so far."""
    log = folder / "asked.log"
    return log.read_text().splitlines() if log.exists() else []


@pytest.fixture(autouse=True)
def _files(tmp_path: Path) -> None:
    """Write the retriever, and cases whose answer comes second."""
    (tmp_path / "slow_app.py").write_text(MODULE)
    (tmp_path / "cases.jsonl").write_text(
        "".join(
            json.dumps({"case_id": f"c{i}", "query": f"q{i}", "judgments": [{"passage_id": "d1"}]}) + "\n"
            for i in range(CASES)
        )
    )


def test_a_killed_sweep_pays_for_nothing_twice(tmp_path: Path) -> None:
    """Killed three times with SIGKILL: only the calls under way at that moment are made again."""
    for target in (15, 40, 70):
        process = sweep(tmp_path)
        while len(asked(tmp_path)) < target and process.poll() is None:
            time.sleep(0.01)
        process.send_signal(signal.SIGKILL)
        process.communicate()
    process = sweep(tmp_path)
    out, err = process.communicate(timeout=120)
    assert process.returncode == 0, err
    told = json.loads(out)
    calls = Counter(asked(tmp_path))
    assert len(calls) == CASES + 2 * 20  # every question at 4, the 20 sampled ones at 1 and 2
    assert sum(calls.values()) - len(calls) <= 3 * CONCURRENCY
    assert [p["measures"]["recall"]["mean"] for p in told["points"]] == [0.0, 1.0, 1.0]


def test_workers_share_a_sweep_and_end_with_one_report(tmp_path: Path, postgresql: Callable[[], str]) -> None:
    """Three join, one is killed: every call is made once but for what it had in hand, all figures agree."""
    join = ("--join", postgresql())
    lost, *workers = (sweep(tmp_path, *join, home=f"home{i}") for i in range(3))
    while len(asked(tmp_path)) < 20:
        time.sleep(0.01)
    lost.send_signal(signal.SIGKILL)
    lost.communicate()
    told = []
    for worker in workers:
        out, err = worker.communicate(timeout=240)
        assert worker.returncode == 0, err
        told.append(json.loads(out))
    calls = Counter(asked(tmp_path))
    assert len(calls) == CASES + 2 * 20
    assert sum(calls.values()) - len(calls) <= CONCURRENCY
    alone = json.loads(sweep(tmp_path, home="alone").communicate(timeout=120)[0])
    assert told[0]["points"] == told[1]["points"]  # the latencies too: those of the calls, whoever made them
    assert _figures(told[0]) == _figures(alone)


def _figures(report: dict[str, Any]) -> tuple[object, ...]:
    """Return what a report says apart from how long its calls took."""
    points = [(point["context_k"], point["state"], point["measures"]) for point in report["points"]]
    return points, report["best_set"], report["chosen"]
