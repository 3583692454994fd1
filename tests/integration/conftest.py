"""What the integration tests share: the dashboard's queries, patience, and the wheel installed elsewhere."""

from __future__ import annotations

import json
import subprocess
import sys
import time
import venv
from collections.abc import Callable, Iterator
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from typing import Any, Protocol

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).resolve().parents[2]
BOARD = ROOT / "rules" / "dashboards" / "resweep.json"
VARIABLES = {"$__rate_interval": "1m", "$pipeline": ".*", "$config": ".*"}
DEADLINE_S = 60.0


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Give a test that takes `panel_query` each query of the dashboard, with all variables at "All"."""
    if "panel_query" in metafunc.fixturenames:
        metafunc.parametrize("panel_query", list(_panel_queries()))


def _panel_queries() -> Iterator[Any]:
    board: dict[str, Any] = json.loads(BOARD.read_text(encoding="utf-8"))
    for panel in board["panels"]:
        for target in panel.get("targets", ()):
            query: str = target["expr"]
            for variable, value in VARIABLES.items():
                query = query.replace(variable, value)
            yield pytest.param(query, id=f"{panel['title']} {target['refId']}")


class Until(Protocol):
    """Waits for a condition, and says what did not come."""

    def __call__(self, condition: Callable[[], object], what: str = ...) -> None:
        """Return once the condition holds; OSError counts as not yet."""


@pytest.fixture(scope="session")
def until() -> Until:
    """Return what waits for a condition; it fails after a minute."""

    def wait(condition: Callable[[], object], what: str = "the condition") -> None:
        end = time.monotonic() + DEADLINE_S
        while not _holds(condition):
            if time.monotonic() > end:
                pytest.fail(f"{what} did not come within {DEADLINE_S:.0f} s")
            time.sleep(0.1)

    return wait


def _holds(condition: Callable[[], object]) -> bool:
    try:
        return bool(condition())
    except OSError:
        return False


@pytest.fixture(scope="session")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build the wheel, as an index would get it."""
    folder = tmp_path_factory.mktemp("wheel")
    _pip("wheel", "--no-deps", "--no-build-isolation", "--wheel-dir", str(folder), str(ROOT))
    (built,) = folder.glob("*.whl")
    return built


@pytest.fixture(scope="session")
def base_install(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Install the wheel beside what the base install declares and nothing else; return that Python."""
    return _install(wheel, "", tmp_path_factory.mktemp("base"))


@pytest.fixture(scope="session")
def agent_install(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Install the wheel beside what its extra `agent` declares and nothing else; return that Python."""
    return _install(wheel, "agent", tmp_path_factory.mktemp("agent"))


def _pip(*args: str) -> None:
    command = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--quiet", *args]
    ended = subprocess.run(command, cwd=ROOT.parent, capture_output=True, text=True, timeout=300)
    assert ended.returncode == 0, ended.stderr


def _install(wheel: Path, extra: str, folder: Path) -> Path:
    """Make an environment of the wheel and of links to its dependencies, which are installed here already."""
    venv.create(folder, with_pip=False, symlinks=True)
    python = folder / "bin" / "python"
    (site,) = folder.glob("lib/python*/site-packages")
    for name in sorted(_dependencies("resweep", {extra} - {""})):
        _link(name, site)
    _pip("--python", str(python), "install", "--no-deps", str(wheel))
    return python


def _dependencies(name: str, extras: set[str]) -> set[str]:
    """Return the distributions that one needs here, with those that they need."""
    found: set[str] = set()
    todo = [(name, frozenset(extras))]
    seen = set(todo)
    while todo:
        one, wanted = todo.pop()
        for text in distribution(one).requires or ():
            needed = Requirement(text)
            if needed.marker and not any(needed.marker.evaluate({"extra": e}) for e in wanted | {""}):
                continue
            found.add(canonicalize_name(needed.name))
            step = (canonicalize_name(needed.name), frozenset(needed.extras))
            if step not in seen:
                seen.add(step)
                todo.append(step)
    return found


def _link(name: str, site: Path) -> None:
    """Link the files and folders of an installed distribution into another environment."""
    try:
        installed = distribution(name)
    except PackageNotFoundError:
        pytest.fail(f"{name} is declared and not installed here")
    tops = {Path(str(file)).parts[0] for file in installed.files or ()} - {"..", "__pycache__"}
    for top in tops:
        if not (site / top).exists():
            (site / top).symlink_to(Path(str(installed.locate_file(top))).absolute())
