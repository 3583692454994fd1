"""A sweep that is killed goes on where it was: nothing is paid twice."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

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


def sweep(folder: Path) -> subprocess.Popen[str]:
    """Start a sweep of the slow retriever."""
    env = {
        "PATH": os.environ["PATH"],
        "HOME": str(folder),
        "RESWEEP_HOME": str(folder / "home"),
        "PYTHONPATH": os.pathsep.join((str(ROOT / "agent"), str(ROOT / "exporters"))),
        "RESWEEP_SWEEP_CONCURRENCY": str(CONCURRENCY),
    }
    words = ("--retriever", "slow_app:retrieve", "--cases", "cases.jsonl", "--k", "1,2,4", "--json")
    return subprocess.Popen(
        [sys.executable, "-m", "resweep", "sweep", *words],
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


def test_a_killed_sweep_pays_for_nothing_twice(tmp_path: Path) -> None:
    """Killed three times with SIGKILL: only the calls under way at that moment are made again."""
    (tmp_path / "slow_app.py").write_text(MODULE)
    (tmp_path / "cases.jsonl").write_text(
        "".join(
            json.dumps({"case_id": f"c{i}", "query": f"q{i}", "judgments": [{"passage_id": "d1"}]}) + "\n"
            for i in range(CASES)
        )
    )
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
