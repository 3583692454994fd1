"""What every test may lean on: a missing real part skips, unless everything is required."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Generator
from importlib.util import find_spec

import pytest
from hypothesis import settings

# Time limits of single examples measure the machine, not the code.
settings.register_profile("resweep", deadline=None)
settings.load_profile("resweep")

REQUIRED = os.environ.get("RESWEEP_REQUIRE") == "all"


def need(found: bool, what: str) -> None:
    """Skip where a real part is missing; fail instead when RESWEEP_REQUIRE=all."""
    if found:
        return
    if REQUIRED:
        pytest.fail(f"RESWEEP_REQUIRE=all, and {what} is missing", pytrace=False)
    pytest.skip(f"needs {what}")


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(
    collector: pytest.Collector,
) -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    """Fail where a file of integration tests skips itself though everything is required."""
    report = yield
    if REQUIRED and report.outcome == "skipped" and "integration" in collector.path.parts:
        report.outcome = "failed"
        report.longrepr = f"RESWEEP_REQUIRE=all, and {collector.path.name} skipped itself: {report.longrepr}"
    return report


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Fail where an integration test skips itself though everything is required."""
    report = yield
    if REQUIRED and report.outcome == "skipped" and item.get_closest_marker("integration"):
        report.outcome = "failed"
        report.longrepr = f"RESWEEP_REQUIRE=all, and {item.nodeid} skipped itself: {report.longrepr}"
    return report


@pytest.fixture(scope="session")
def require() -> Callable[[bool, str], None]:
    """Return what skips (or fails) where something is missing: `require(found, "what it is")`."""
    return need


@pytest.fixture(scope="session")
def program() -> Callable[[str], str]:
    """Return a program's path by name; skip (or fail) where it is not installed."""

    def find(name: str) -> str:
        path = shutil.which(name)
        need(path is not None, f"the program {name!r}")
        assert path is not None
        return path

    return find


@pytest.fixture(scope="session")
def library() -> Callable[[str], None]:
    """Return what skips (or fails) where a library cannot be imported."""
    return lambda name: need(find_spec(name) is not None, f"the library {name!r}")
