"""What the integration tests share: the dashboard's queries, and patience with a bound."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Protocol

import pytest

BOARD = Path(__file__).resolve().parents[2] / "rules" / "dashboards" / "resweep.json"
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
