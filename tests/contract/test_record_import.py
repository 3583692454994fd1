"""Importing resweep, and watching, load nothing heavy into the user's service."""

from __future__ import annotations

import subprocess
import sys

import pytest

HEAVY = (
    "numpy",
    "pandas",
    "scipy",
    "sklearn",
    "sqlalchemy",
    "starlette",
    "uvicorn",
    "fastapi",
    "opentelemetry",
    "apscheduler",
    "httpx",
    "requests",
)
WATCH = "resweep.watch(lambda query: [{'id': 'a'}], sink='none', config={'a': 1})('q'); resweep.flush()"


def loaded(code: str) -> set[str]:
    script = f"import sys, resweep\n{code}\nprint(*sys.modules)"
    run = subprocess.run(
        [sys.executable, "-c", script],
        capture_output=True,
        text=True,
        check=True,
        env={"PYTHONPATH": ":".join(sys.path)},
    )
    return set(run.stdout.split())


@pytest.mark.parametrize("code", ["", WATCH])
def test_nothing_heavy_is_loaded(code: str) -> None:
    """Neither by the import nor by recording a call."""
    assert not loaded(code) & set(HEAVY)


def test_importing_loads_no_part_of_resweep() -> None:
    """Each name loads what it needs when it is first used."""
    assert not [name for name in loaded("") if name.startswith("resweep.")]


def test_every_public_name_is_there() -> None:
    """What `dir` says can be had."""
    loaded("assert all(hasattr(resweep, name) for name in dir(resweep)), dir(resweep)")
