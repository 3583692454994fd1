"""The wheel, installed elsewhere beside what it declares and nothing else."""

from __future__ import annotations

import json
import subprocess
import zipfile
from pathlib import Path

import pytest

pytestmark = pytest.mark.integration
ROOT = Path(__file__).resolve().parents[2]
# What the wheel holds besides Python.
DATA = {
    "resweep/py.typed",
    "resweep_exporters/py.typed",
    "resweep/rules/invalidation.yaml",
    "resweep/rules/dashboards/resweep.json",
    "resweep/serve/demo/data/README.md",
    "resweep/serve/demo/data/corpus.jsonl.gz",
    "resweep/serve/demo/data/questions.jsonl.gz",
}
BASE = """
import sys
import resweep
from prometheus_client import generate_latest

def search(query, k=3):
    return [{"id": f"p{n}", "score": 1 - n / 10} for n in range(k)]

search = resweep.watch(search, pipeline="docs", config={"context_k": 3}, sink="none")
assert len(search("a question")) == 3
assert resweep.flush()
assert "resweep_retrievals_total{" in generate_latest().decode()
heavy = {"pandas", "sklearn", "scipy", "sqlalchemy", "starlette", "typer", "numpy"} & set(sys.modules)
assert not heavy, heavy
print(resweep.__version__, resweep.__file__)
"""


def run(python: Path, folder: Path, *args: str) -> subprocess.CompletedProcess[str]:
    """Run a Python of another environment in another folder, with no variable of this one."""
    env = {"PATH": "", "HOME": str(folder)}
    return subprocess.run(
        [str(python), *args], cwd=folder, env=env, capture_output=True, text=True, timeout=120
    )


def checked(python: Path, folder: Path, *args: str) -> str:
    """Run it; return what it printed."""
    ended = run(python, folder, *args)
    assert ended.returncode == 0, ended.stderr
    return ended.stdout


def test_the_wheel_holds_what_it_needs_and_nothing_else(wheel: Path) -> None:
    """Sources, typing marks, rules, runbooks, demo data, templates and what browsers load; no tests."""
    names = {name for name in zipfile.ZipFile(wheel).namelist() if ".dist-info/" not in name}
    data = {name for name in names if not name.endswith(".py")}
    of_rules = {name for name in data if name.startswith("resweep/rules/") and name not in DATA}
    of_pages = {name for name in data if name.startswith(("resweep/serve/pages/", "resweep/serve/report/"))}
    assert data - of_rules - of_pages == DATA
    assert {name.split("/")[3] for name in of_pages} == {"templates", "static"}
    assert {name.split("/")[2] for name in of_rules} == {"alerts", "recording", "runbooks"}
    assert {name.split("/")[0] for name in names} == {"resweep", "resweep_exporters"}
    assert not [name for name in names if "/tests/" in name or "/test_" in name or "conftest" in name]


def test_the_wheel_holds_every_source(wheel: Path) -> None:
    """Migrations among them, which nothing imports by name."""
    names = set(zipfile.ZipFile(wheel).namelist())
    for root in (ROOT / "agent", ROOT / "exporters"):
        sources = {path.relative_to(root).as_posix() for path in root.glob("resweep*/**/*.py")}
        assert sources <= names


def test_the_base_install_records_and_shows_metrics(base_install: Path, tmp_path: Path) -> None:
    """Without a library of the agent at hand."""
    version, _, file = checked(base_install, tmp_path, "-c", BASE).strip().partition(" ")
    assert version
    assert Path(file).is_relative_to(base_install.parents[1])
    assert list(tmp_path.iterdir()) == []


def test_commands_of_the_base_install_say_what_to_install(base_install: Path, tmp_path: Path) -> None:
    """One line, exit 2."""
    ended = run(base_install, tmp_path, "-m", "resweep", "status")
    assert ended.returncode == 2
    assert "pip install 'resweep[agent]'" in ended.stderr
    assert "Traceback" not in ended.stderr


def test_the_agents_commands_work_from_the_wheel(agent_install: Path, tmp_path: Path) -> None:
    """The store is migrated, the rules are there, a config is checked, and what was written can be read."""
    told = json.loads(checked(agent_install, tmp_path, "-m", "resweep", "status", "--json"))
    assert (told["agent"], told["pipelines"]) == (None, [])
    written = json.loads(
        checked(agent_install, tmp_path, "-m", "resweep", "rules", "--write", "r", "--json")
    )["written"]
    assert "r/alerts/resweep.alerts.yaml" in written
    assert "r/runbooks/ResweepTunedKExpired.md" in written
    (tmp_path / "rag.yaml").write_text("pipeline: docs\nconfig: {context_k: 3}\n")
    ended = run(agent_install, tmp_path, "-m", "resweep", "check", "rag.yaml")
    assert (ended.returncode, ended.stderr) == (1, "")


def test_the_console_script_is_installed(agent_install: Path, tmp_path: Path) -> None:
    """`resweep` beside python."""
    script = agent_install.parent / "resweep"
    shown = subprocess.run([script, "--version"], cwd=tmp_path, capture_output=True, text=True, timeout=60)
    assert shown.stdout.startswith("resweep ")
