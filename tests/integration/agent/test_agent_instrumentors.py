"""What the usual instrumentations of LangChain send is read as what happened."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

APP = Path(__file__).with_name("instrumented_app.py")
PYTHON = Path(__file__).resolve().parents[3] / ".venvs" / "peers" / "bin" / "python"


@pytest.mark.integration
@pytest.mark.parametrize("which", ["openinference", "openllmetry"])
def test_spans_of_a_real_instrumentation_are_retrievals(agent: Any, which: str) -> None:
    """Two answers of three passages, an empty one, an error; sources by their names."""
    ready = PYTHON.exists() and _has(PYTHON, "opentelemetry.exporter.otlp.proto.http")
    if not ready:
        text = "needs .venvs/peers: make adapters"
        pytest.fail(text) if os.environ.get("RESWEEP_REQUIRE") == "all" else pytest.skip(text)
    done = subprocess.run(
        [str(PYTHON), str(APP), which, agent.url, agent.token],
        env={"PATH": os.environ["PATH"], "TRACELOOP_TRACE_CONTENT": "true"},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    labels = f'config="unknown",pipeline="{which}"'
    assert agent.metric(f"resweep_retrievals_total{{{labels}}}") == [4]
    assert agent.metric(f'resweep_retrieval_errors_total{{class="timeout",{labels}}}') == [1]
    empty = f'config="unknown",kind="zero",pipeline="{which}"'
    assert agent.metric(f"resweep_empty_retrievals_total{{{empty}}}") == [1]
    assert agent.metric(f"resweep_retrieved_passages_sum{{{labels}}}") == [6]
    assert agent.metric(f"resweep_source_diversity_ratio_sum{{{labels}}}") == [2]


def _has(python: Path, module: str) -> bool:
    tried = subprocess.run([str(python), "-c", f"import {module}"], capture_output=True, check=False)
    return tried.returncode == 0
