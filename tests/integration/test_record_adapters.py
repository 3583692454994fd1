"""Each adapter against the real library, in an environment of its own (`.ci/adapter_venvs` makes them)."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
LIBRARIES = ("langchain", "llamaindex", "haystack", "qdrant", "chroma", "lancedb", "faiss", "pgvector")

pytestmark = pytest.mark.integration


@pytest.mark.parametrize("library", LIBRARIES)
def test_the_adapter_holds_against_the_real_library(
    library: str, require: Callable[[bool, str], None]
) -> None:
    """Its tests pass with the library installed beside resweep."""
    python = ROOT / ".venvs" / library / "bin" / "python"
    require(python.with_name("pytest").exists(), f".venvs/{library}: run .ci/adapter_venvs {library}")
    command: list[str | Path] = [python, "-m", "pytest", "-q", "-p", "no:cacheprovider"]
    test = ROOT / "tests" / "integration" / "adapters" / f"test_adapter_{library}.py"
    env = {**os.environ, "RESWEEP_ADAPTER": library}
    run = subprocess.run([*command, test], cwd=ROOT, env=env, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stdout + run.stderr
