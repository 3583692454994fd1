"""Prometheus' own tool takes the rules, and they fire and stay silent where they should."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

pytestmark = pytest.mark.integration

RULES = Path(__file__).resolve().parents[2] / "rules"
FILES = [*sorted(RULES.glob("recording/*.yaml")), *sorted(RULES.glob("alerts/*.yaml"))]
TESTS = sorted((RULES / "tests").glob("*.test.yaml"))


def run(command: list[str]) -> subprocess.CompletedProcess[str]:
    """Run a command and keep what it says."""
    return subprocess.run(command, capture_output=True, text=True, check=False)


@pytest.fixture(scope="module")
def results(program: Callable[[str], str]) -> Mapping[Path, subprocess.CompletedProcess[str]]:
    """What promtool says of each file of tests; two at a time, for they take seconds."""
    promtool = program("promtool")
    with ThreadPoolExecutor(2) as pool:
        done = pool.map(lambda file: run([promtool, "test", "rules", str(file)]), TESTS)
        return dict(zip(TESTS, done, strict=True))


def test_promtool_finds_nothing_to_mend(program: Callable[[str], str]) -> None:
    """Syntax and lint, over all files at once."""
    assert len(FILES) == 2
    checked = run([program("promtool"), "check", "rules", "--lint=all", "--lint-fatal", *map(str, FILES)])
    assert checked.returncode == 0, checked.stdout + checked.stderr


@pytest.mark.parametrize("file", TESTS, ids=lambda file: file.name.removesuffix(".test.yaml"))
def test_alerts_fire_and_stay_silent(
    file: Path, results: Mapping[Path, subprocess.CompletedProcess[str]]
) -> None:
    """Each file of rules/tests passes, with full labels and annotations."""
    assert results[file].returncode == 0, results[file].stdout + results[file].stderr
