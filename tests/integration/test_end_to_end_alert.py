"""From a swapped embedder to somebody's phone, through a real agent, Prometheus and Alertmanager."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
import urllib.parse
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import closing
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from resweep.serve.demo import prometheus as scraping
from resweep.serve.demo.bot import PIPELINE
from resweep.serve.demo.children import Children
from resweep.serve.demo.run import HURRY, AgentClient

pytestmark = pytest.mark.integration
ALERT = "ResweepTunedKExpired"
RULES = Path(__file__).resolve().parents[2] / "rules"
Wait = Callable[[Callable[[], object], str], None]


class Prometheus(scraping.Prometheus):
    """The demo's Prometheus, telling an Alertmanager, and open to questions."""

    alertmanager = ""

    def _config(self, rules: Path) -> dict[str, object]:
        target = {"static_configs": [{"targets": [self.alertmanager]}]}
        return {**super()._config(rules), "alerting": {"alertmanagers": [target]}}

    def query(self, expression: str) -> list[Any]:
        """Return the result of an instant query."""
        arguments = urllib.parse.urlencode({"query": expression})
        with urllib.request.urlopen(f"{self.address}/api/v1/query?{arguments}", timeout=10) as answer:
            found: list[Any] = json.load(answer)["data"]["result"]
        return found


class Phone:
    """The receiver at the end of the chain: what Alertmanager posted, alert by alert."""

    def __init__(self) -> None:
        self.alerts: list[dict[str, Any]] = []
        phone = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["content-length"]))
                phone.alerts.extend(json.loads(body)["alerts"])
                self.send_response(200)
                self.end_headers()

            def log_message(self, *args: object) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}/"
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.05})
        self._thread.start()

    def got(self, status: str) -> list[dict[str, Any]]:
        """Return what came about the tuned k in a status."""
        return [a for a in self.alerts if a["status"] == status and a["labels"]["alertname"] == ALERT]

    def close(self) -> None:
        """Hang up."""
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()


class Scene:
    """One machine: an agent, a support bot that it watches, Prometheus, Alertmanager, a phone."""

    def __init__(self, folder: Path, phone: Phone, until: Wait) -> None:
        self.folder, self.phone, self.until = folder, phone, until
        self.env = {"RESWEEP_HOME": str(folder), "RESWEEP_SINK": f"spool:{folder / 'spool'}", **HURRY}
        self.children = Children(folder, self.env)

    def start(self, prometheus: str, alertmanager: str) -> None:
        """Start everything but the bot."""
        self.children.python("agent", "-m", "resweep", "agent", "--listen", "127.0.0.1:0")
        self.children.wait("agent", (self.folder / "agent.json").exists)
        address = json.loads((self.folder / "agent.json").read_bytes())["listening"]
        self.agent = AgentClient(address, (self.folder / "token").read_text("utf-8").strip())
        self.prometheus = Prometheus(self.children, self.folder, address, self.agent.token)
        self.prometheus.alertmanager = f"127.0.0.1:{scraping.free_port()}"
        self._start_alertmanager(alertmanager, self.prometheus.alertmanager)
        self.prometheus.start(prometheus)

    def _start_alertmanager(self, program: str, address: str) -> None:
        route = {"receiver": "phone", "group_by": ["..."], "group_wait": "0s", "group_interval": "1s"}
        receiver = {"name": "phone", "webhook_configs": [{"url": self.phone.url, "send_resolved": True}]}
        config = self.folder / "alertmanager.json"  # JSON is YAML
        config.write_text(json.dumps({"route": route, "receivers": [receiver]}))
        self.children.start(
            "alertmanager",
            program,
            f"--config.file={config}",
            f"--storage.path={self.folder / 'alertmanager'}",
            f"--web.listen-address={address}",
            "--cluster.listen-address=",
        )

    def answer_with(self, model: str) -> None:
        """Let the bot answer with an embedder, at k = 8, in place of the one before."""
        self.children.stop("bot")
        self.children.python("bot", "-m", "resweep.serve.demo.bot", "--model", model, "--k", "8")
        self.children.wait("bot", lambda: "ready" in self.children.log("bot").read_text("utf-8", "replace"))

    def end(self) -> None:
        """End every program."""
        self.children.stop_all()
        if hasattr(self, "agent"):
            self.agent.close()

    def verdict(self, wanted: str) -> None:
        """Wait until the agent's verdict is the wanted one."""
        self.until(lambda: self.agent.pipeline().get("verdict") == wanted, f"the verdict {wanted}")

    def resweep(self, *args: str) -> str:
        """Run a command beside the agent; return what it printed."""
        env = {"PATH": "", "HOME": str(self.folder), **self.env}
        command = [sys.executable, "-m", "resweep", *args]
        return subprocess.run(
            command, env=env, cwd=self.folder, check=True, capture_output=True, text=True, timeout=60
        ).stdout


@pytest.fixture(scope="module")
def scene(
    program: Callable[[str], str], until: Wait, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Scene]:
    """Watch the bot with one embedder, accept its k, then swap the embedder and leave k alone."""
    prometheus, alertmanager = program("prometheus"), program("prometheus-alertmanager")
    with closing(Phone()) as phone:
        scene = Scene(tmp_path_factory.mktemp("scene"), phone, until)
        try:
            scene.start(prometheus, alertmanager)
            scene.answer_with("lsa-words")
            scene.verdict("untuned")
            scene.resweep("accept", PIPELINE, "--k", "8", "--because", "swept")
            scene.verdict("valid")
            scene.answer_with("lsa-chars")
            yield scene
        finally:
            scene.end()


def test_the_swap_of_an_embedder_reaches_the_phone(scene: Scene) -> None:
    """With pipeline, config, reason, the part that changed and the page to open; nothing came before."""
    scene.until(lambda: scene.phone.got("firing"), "the alert")
    (alert,) = scene.phone.got("firing")
    pipeline = scene.agent.pipeline()
    assert alert["labels"] == {
        "alertname": ALERT,
        "basis": pipeline["basis"],
        "component": "embedder",
        "config": pipeline["config"],
        "pipeline": PIPELINE,
        "reason": "config_changed",
        "service": "resweep",
        "severity": "warning",
    }
    told = " ".join(alert["annotations"]["description"].split())
    assert f"The tuned k of {PIPELINE} has expired: the embedder changed; run the sweep." in told
    assert "context_k 8" in told
    assert alert["annotations"]["runbook_url"].endswith(f"/{ALERT}")
    assert (RULES / "runbooks" / f"{ALERT}.md").is_file()


def test_every_panel_shows_data_of_the_real_agent(scene: Scene, panel_query: str) -> None:
    """With all of the variables at "All"."""
    scene.until(lambda: scene.prometheus.query(panel_query), panel_query)


def test_the_alert_resolves_once_the_k_is_accepted(scene: Scene) -> None:
    """`resweep accept` without a depth takes the one in use; the phone hears of it."""
    scene.until(lambda: scene.phone.got("firing"), "the alert")
    assert "k = 8" in scene.resweep("accept", PIPELINE, "--because", "swept again")
    scene.verdict("valid")
    scene.until(lambda: scene.phone.got("resolved"), "the all-clear")
    assert {a["labels"]["alertname"] for a in scene.phone.alerts} == {ALERT}
