"""A real Prometheus over the demo's agent, with the shipped rules and nobody to wait for."""

from __future__ import annotations

import json
import shutil
import socket
from pathlib import Path
from typing import Any, cast
from urllib.parse import urlsplit

import httpx
import msgspec

from resweep import documents
from resweep.serve.demo.children import Children
from resweep.shipped import rules_dir

NAME = "prometheus"
FOR = "2s"  # instead of the shipped minutes, so that the demo ends before the coffee is cold


def find() -> str | None:
    """Return the path of a Prometheus, None where there is none."""
    return shutil.which("prometheus")


class Prometheus:
    """Prometheus scraping one agent every second."""

    def __init__(self, children: Children, folder: Path, agent: str, token: str) -> None:
        self._children = children
        self._folder = folder
        self._target = urlsplit(agent).netloc
        self._token = token
        self.address = f"http://127.0.0.1:{free_port()}"

    def start(self, program: str) -> None:
        """Write its files and start it."""
        rules = self._folder / "rules"
        rules.mkdir()
        for kind in ("recording", "alerts"):
            for file in (rules_dir() / kind).iterdir():
                if file.name.endswith((".yaml", ".yml")):
                    (rules / f"{kind}.json").write_text(
                        json.dumps(hurried(cast("dict[str, Any]", documents.read(file))))
                    )
        config = self._folder / "prometheus.json"  # JSON is YAML
        config.write_text(json.dumps(self._config(rules)))
        self._children.start(
            NAME,
            program,
            f"--config.file={config}",
            f"--storage.tsdb.path={self._folder / 'tsdb'}",
            f"--web.listen-address={urlsplit(self.address).netloc}",
        )
        self._children.wait(NAME, self._ready)

    def _config(self, rules: Path) -> dict[str, object]:
        return {
            "global": {"scrape_interval": "1s", "evaluation_interval": "1s"},
            "rule_files": [str(rules / "*.json")],
            "scrape_configs": [
                {
                    "job_name": "resweep",
                    "authorization": {"credentials": self._token},
                    "static_configs": [{"targets": [self._target]}],
                }
            ],
        }

    def _ready(self) -> bool:
        try:
            return httpx.get(f"{self.address}/-/ready", timeout=1).is_success
        except httpx.HTTPError:
            return False

    def firing(self) -> list[dict[str, Any]]:
        """Return the alerts that fire now."""
        answer = httpx.get(f"{self.address}/api/v1/alerts", timeout=5)
        alerts: list[dict[str, Any]] = msgspec.json.decode(answer.content)["data"]["alerts"]
        return [alert for alert in alerts if alert["state"] == "firing"]


def hurried(rules: dict[str, Any]) -> dict[str, Any]:
    """Return rules evaluated every second whose alerts wait two."""
    for group in rules["groups"]:
        group["interval"] = "1s"
        for rule in group["rules"]:
            if "alert" in rule:
                rule["for"] = FOR
    return rules


def free_port() -> int:
    """Return a port that is free on loopback now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
