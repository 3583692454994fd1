"""A collector that is away or never answers: the service answers, ends, and counts what was lost."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import pytest

CALLS = 3000
EXIT_S = 5.0


@pytest.fixture(scope="module", name="benchmark")
def _benchmark() -> Any:
    """Give the benchmark, which has the collectors and the service."""
    path = Path(__file__).resolve().parents[2] / "benchmarks" / "collector.py"
    spec = importlib.util.spec_from_file_location("collector_benchmark", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("case", ["closed", "silent"])
def test_every_call_is_answered_and_every_span_accounted_for(benchmark: Any, case: str) -> None:
    """The process ends in time, with one line in its log at most."""
    with benchmark.CASES[case]() as where:
        told = benchmark.run(where, CALLS)
    assert told["lost"] + told["full"] == CALLS
    assert told["lines"] <= 1
    assert told["exit"] < EXIT_S
