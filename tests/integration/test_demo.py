"""The demo out of the wheel, with and without Prometheus: it tells its story and leaves nothing."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.integration
TIMEOUT_S = 240  # the demo itself gives up long before


@dataclass(frozen=True, slots=True, kw_only=True)
class Played:
    """A demo that ended: its exit code, the object it printed, where its temporary files were, its group."""

    code: int
    story: dict[str, Any]
    shown: str
    temporary: Path
    home: Path
    group: int


def start(python: Path, folder: Path, path: str) -> subprocess.Popen[str]:
    """Start `resweep demo --json` in a session of its own, with these programs on the PATH."""
    for name in ("tmp", "home"):
        (folder / name).mkdir()
    env = {"PATH": path, "HOME": str(folder / "home"), "TMPDIR": str(folder / "tmp"), "COLUMNS": "200"}
    return subprocess.Popen(
        [str(python), "-m", "resweep", "demo", "--json"],
        env=env,
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


def ended(process: subprocess.Popen[str], folder: Path) -> Played:
    """Wait for a demo."""
    out, err = process.communicate(timeout=TIMEOUT_S)
    return Played(
        code=process.returncode,
        story=json.loads(out or "{}"),
        shown=err,
        temporary=folder / "tmp",
        home=folder / "home",
        group=process.pid,
    )


@pytest.fixture(scope="module")
def demos(
    program: Callable[[str], str], agent_install: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[dict[str, Played]]:
    """Play the demo twice at the same time: with Prometheus on the PATH, and with nothing on it."""
    paths = {"with": os.path.dirname(program("prometheus")), "without": ""}
    folders = {name: tmp_path_factory.mktemp(name) for name in paths}
    running = {name: start(agent_install, folders[name], path) for name, path in paths.items()}
    try:
        yield {name: ended(process, folders[name]) for name, process in running.items()}
    finally:
        for process in running.values():
            process.kill()
            process.wait()


@pytest.mark.parametrize("name", ["with", "without"])
def test_the_verdict_goes_from_valid_to_expired(demos: dict[str, Played], name: str) -> None:
    """Because the embedder changed, said in words and in a flag; it ends by itself with 0."""
    played = demos[name]
    assert played.code == 0, played.shown
    assert (played.story["verdict_before"], played.story["verdict_after"]) == ("valid", "expired")
    assert "embedder.model changed from lsa-words to lsa-chars" in played.story["why"]
    assert played.story["flag"]["components"] == ["embedder"]
    assert played.story["why"] in " ".join(played.shown.replace("│", " ").split())


def test_with_prometheus_its_alert_is_shown(demos: dict[str, Played]) -> None:
    """The alert as Prometheus fires it, with the labels of the flag."""
    alert, flag = demos["with"].story["alert"], demos["with"].story["flag"]
    assert alert["labels"]["alertname"] == "ResweepTunedKExpired"
    assert (alert["labels"]["config"], alert["labels"]["component"]) == (flag["config"], "embedder")


def test_without_prometheus_that_is_said(demos: dict[str, Played]) -> None:
    """The agent's own verdict is the alarm then."""
    assert demos["without"].story["alert"] is None
    assert "not on the PATH" in demos["without"].shown


@pytest.mark.parametrize("name", ["with", "without"])
def test_nothing_is_left_running_or_on_disk(demos: dict[str, Played], name: str) -> None:
    """No program of the demo's session, no file in its temporary folder or the user's home."""
    played = demos[name]
    with pytest.raises(ProcessLookupError):
        os.killpg(played.group, 0)
    assert list(played.temporary.iterdir()) == []
    assert list(played.home.rglob("*")) == []


@pytest.mark.parametrize("name", ["with", "without"])
def test_the_sweep_closes_the_loop(demos: dict[str, Played], name: str) -> None:
    """The new depth is measured on judged questions, accepted on its evidence, and the verdict is valid."""
    swept = demos[name].story["sweep"]
    k = str(swept["chosen"]["context_k"])
    assert (swept["n_cases"], swept["objective"]) == (86, "recall")
    assert swept["chosen"]["context_k"] == min(swept["best_set"])
    assert swept["recall"][k] > swept["recall"]["8"]
    assert demos[name].story["verdict_tuned"] == "valid"
    assert f"k = {k} accepted" in demos[name].shown


def test_with_prometheus_the_alert_resolves(demos: dict[str, Played]) -> None:
    """Fired for the old depth, gone with the new one; all of it within a minute."""
    assert demos["with"].story["alert_resolved"] is True
    assert demos["without"].story["alert_resolved"] is None
