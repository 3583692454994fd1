"""`resweep demo`: a watched retriever, a changed embedder, the alarm that nothing else raises, a new k."""

from __future__ import annotations

import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import msgspec
from rich.console import Console
from rich.live import Live
from rich.panel import Panel
from rich.table import Table

from resweep.serve.demo import tuning
from resweep.serve.demo.bot import PIPELINE
from resweep.serve.demo.children import Children, DemoError
from resweep.serve.demo.prometheus import NAME as PROMETHEUS
from resweep.serve.demo.prometheus import Prometheus, find

DEMO_SCHEMA = "resweep.demo/1"
BEFORE, AFTER = "lsa-words", "lsa-chars"
K = 8
WATCH_S = 6.0  # of quiet traffic shown before the change
VERDICT_S = 30.0  # the longest wait for the verdict, and for the alert
# The product waits for minutes before it calls a change settled; a demo may not.
HURRY = {"RESWEEP_DETECT_SWITCH_QUIET_S": "3"}


@dataclass(slots=True)
class Story:
    """What happened, for the summary and for `--json`."""

    verdict_before: str = ""
    verdict_after: str = ""
    why: str = ""
    flag: dict[str, Any] = field(default_factory=dict)
    alert: dict[str, Any] | None = None
    sweep: dict[str, Any] = field(default_factory=dict)
    verdict_tuned: str = ""
    alert_resolved: bool | None = None
    prometheus: str = "not on the PATH: the alert line is the agent's own"
    traffic: dict[str, Any] = field(default_factory=dict)
    seconds: float = 0.0
    addresses: dict[str, str] = field(default_factory=dict)

    def to_json(self) -> dict[str, object]:
        """Return the `resweep.demo/1` object."""
        return {"schema": DEMO_SCHEMA, **msgspec.to_builtins(self)}


class AgentClient:
    """The agent's HTTP API, as the demo needs it."""

    def __init__(self, address: str, token: str) -> None:
        self.address = address
        self.token = token
        self._http = httpx.Client(base_url=address, headers={"Authorization": f"Bearer {token}"}, timeout=5)

    def pipeline(self) -> dict[str, Any]:
        """Return the support bot's entry in the status, empty before it was seen."""
        known = self._get("/v1/status")["pipelines"]
        return next((p for p in known if p["name"] == PIPELINE), {})

    def flags(self) -> list[dict[str, Any]]:
        """Return the open flags."""
        flags: list[dict[str, Any]] = self._get("/v1/flags")["flags"]
        return [f for f in flags if f["state"] == "open"]

    def accept(self, k: int, because: str) -> None:
        """Accept a depth for the config in charge."""
        body = {"pipeline": PIPELINE, "context_k": k, "because": because}
        self._http.post("/v1/accept", json=body).raise_for_status()

    def adopt(self, wish: dict[str, object]) -> dict[str, Any]:
        """Accept what a sweep chose; return the answer."""
        answer = self._http.post("/v1/accept", json=wish)
        answer.raise_for_status()
        decoded: dict[str, Any] = msgspec.json.decode(answer.content)
        return decoded

    def close(self) -> None:
        """Let go of the connection."""
        self._http.close()

    def _get(self, path: str) -> dict[str, Any]:
        answer = self._http.get(path)
        answer.raise_for_status()
        decoded: dict[str, Any] = msgspec.json.decode(answer.content)
        return decoded


def run(*, keep: bool = False, as_json: bool = False, prometheus: bool = True) -> int:
    """Run the demo; return the exit code. `keep` leaves everything running until Ctrl-C."""
    console = Console(stderr=as_json)
    folder = Path(tempfile.mkdtemp(prefix="resweep-demo-"))
    children = Children(
        folder, {"RESWEEP_HOME": str(folder), "RESWEEP_SINK": f"spool:{folder / 'spool'}", **HURRY}
    )
    try:
        story = Demo(console, folder, children, prometheus=prometheus).play()
        if as_json:
            Console().print_json(data=story.to_json())
        if keep:
            _stay(console, story)
        return 0
    finally:
        children.stop_all()
        shutil.rmtree(folder, ignore_errors=True)


def _stay(console: Console, story: Story) -> None:
    for name, address in story.addresses.items():
        console.print(f"  {name}: {address}")
    console.print("Left running; Ctrl-C ends it.")
    try:
        while True:
            time.sleep(3600)
    except KeyboardInterrupt:
        console.print("ending")


class Demo:
    """The steps, in order. Raises DemoError where a part does not do what it must."""

    def __init__(self, console: Console, folder: Path, children: Children, *, prometheus: bool) -> None:
        self.console = console
        self.folder = folder
        self.children = children
        self.program = find() if prometheus else None
        self.story = Story()

    def play(self) -> Story:
        """Play it all and return what happened."""
        started = time.monotonic()
        with closing(self._start_agent()) as agent:
            self._play(agent)
        self.story.seconds = round(time.monotonic() - started, 1)
        self._summary()
        return self.story

    def _play(self, agent: AgentClient) -> None:
        scraper = self._start_prometheus(agent)
        self._bot("bot-before", BEFORE)
        self._until(agent, "untuned", "first answers")
        agent.accept(K, "the demo's starting point")
        self._say(f"k = {K} accepted for {PIPELINE} as tuned: embedder {BEFORE}")
        self.story.verdict_before = self._until(agent, "valid", "valid")["verdict"]
        self._watch(agent, WATCH_S)
        self._say(
            f"now the embedder changes to {AFTER}. k stays {K}; no error, no page, nothing fires ...", "bold"
        )
        self.children.stop("bot-before")
        self._bot("bot-after", AFTER)
        self._expired(agent)
        self._alert(scraper)
        self._tune(agent)
        self._resolved(scraper)

    def _start_agent(self) -> AgentClient:
        self._say("starting the agent")
        self.children.python("agent", "-m", "resweep", "agent", "--listen", "127.0.0.1:0")
        note = self.folder / "agent.json"
        self.children.wait("agent", note.exists)
        address = msgspec.json.decode(note.read_bytes())["listening"]
        client = AgentClient(address, (self.folder / "token").read_text("utf-8").strip())
        self.story.addresses = {"agent": address, "token": str(self.folder / "token")}
        return client

    def _start_prometheus(self, agent: AgentClient) -> Prometheus | None:
        if self.program is None:
            return None
        self._say("starting Prometheus with the shipped rules")
        scraper = Prometheus(self.children, self.folder, agent.address, agent.token)
        scraper.start(self.program)
        self.story.prometheus = scraper.address
        self.story.addresses[PROMETHEUS] = scraper.address
        return scraper

    def _bot(self, name: str, model: str, k: int = K) -> None:
        self._say(f"starting {PIPELINE}: 248 documents, embedder {model}, k = {k}")
        self.children.python(name, "-m", "resweep.serve.demo.bot", "--model", model, "--k", str(k))
        self.children.wait(name, lambda: "ready" in self.children.log(name).read_text("utf-8", "replace"))

    def _until(self, agent: AgentClient, verdict: str, what: str) -> dict[str, Any]:
        until = time.monotonic() + VERDICT_S
        with self._live(agent) as show:
            while time.monotonic() < until:
                pipeline = show()
                if pipeline.get("verdict") == verdict:
                    return pipeline
                time.sleep(0.25)
        raise DemoError(f"expected {what} (verdict {verdict}) within {VERDICT_S:.0f} s; it did not come")

    def _watch(self, agent: AgentClient, seconds: float) -> None:
        until = time.monotonic() + seconds
        with self._live(agent) as show:
            while time.monotonic() < until:
                show()
                time.sleep(0.5)

    @contextmanager
    def _live(self, agent: AgentClient) -> Iterator[Callable[[], dict[str, Any]]]:
        with Live(console=self.console, transient=True, auto_refresh=False) as live:

            def show() -> dict[str, Any]:
                pipeline = agent.pipeline()
                live.update(figures(pipeline), refresh=True)
                return pipeline

            yield show

    def _expired(self, agent: AgentClient) -> None:
        pipeline = self._until(agent, "expired", "the verdict to expire")
        self.story.verdict_after, self.story.why = pipeline["verdict"], pipeline["why"]
        self.story.traffic = pipeline["configs"]
        self.console.print(figures(pipeline))
        self.story.flag = self._flag(agent)

    def _flag(self, agent: AgentClient) -> dict[str, Any]:
        """Return the flag that explains the verdict; it is written down a moment after."""
        until = time.monotonic() + VERDICT_S
        while time.monotonic() < until:
            for flag in agent.flags():
                if flag["reason"] == "config_changed":
                    return flag
            time.sleep(0.25)
        raise DemoError(f"expected the flag config_changed within {VERDICT_S:.0f} s; it did not come")

    def _alert(self, scraper: Prometheus | None) -> None:
        if scraper is None:
            return
        until = time.monotonic() + VERDICT_S
        while time.monotonic() < until:
            for alert in scraper.firing():
                if alert["labels"]["alertname"] == "ResweepTunedKExpired":
                    self.story.alert = alert
                    return
            time.sleep(0.25)
        raise DemoError(f"expected ResweepTunedKExpired to fire in Prometheus within {VERDICT_S:.0f} s")

    def _tune(self, agent: AgentClient) -> None:
        """Sweep, accept what it chose, and run with it."""
        self._say("sweeping the judged questions with the new embedder", "bold")
        report = tuning.sweep(PIPELINE, AFTER, K, self.folder)
        self.story.sweep = tuning.in_brief(report)
        self.story.addresses["report"] = str(self.folder / tuning.REPORT_FILE)
        self.console.print(tuning.curve(report))
        k = report["chosen"]["context_k"]
        if k is None:
            raise DemoError(f"expected the sweep to choose a depth; {report['chosen']['why']}")
        self._say(report["chosen"]["why"])
        agent.adopt(tuning.wish(PIPELINE, report))
        self._say(f"k = {k} accepted for embedder {AFTER}, on the evidence of sweep {report['report_id']}")
        if k != K:
            self.children.stop("bot-after")
            self._bot("bot-tuned", AFTER, k)
        pipeline = self._until(agent, "valid", "the verdict to be valid again")
        self.story.verdict_tuned = pipeline["verdict"]
        self.console.print(figures(pipeline))

    def _resolved(self, scraper: Prometheus | None) -> None:
        if scraper is None:
            return
        until = time.monotonic() + VERDICT_S
        while time.monotonic() < until:
            if not any(a["labels"]["alertname"] == "ResweepTunedKExpired" for a in scraper.firing()):
                self.story.alert_resolved = True
                return
            time.sleep(0.25)
        raise DemoError(f"expected ResweepTunedKExpired to resolve in Prometheus within {VERDICT_S:.0f} s")

    def _summary(self) -> None:
        told = [f"[bold]{self.story.why}[/bold]"]
        if self.story.alert is not None:
            labels = self.story.alert["labels"]
            told.append(
                f"Prometheus fires {labels['alertname']} ({labels['severity']}) for {labels['pipeline']}, "
                f"config {labels['config']}, reason {labels['reason']}, component {labels['component']}"
            )
            told.append(" ".join(self.story.alert["annotations"]["description"].split()))
        else:
            told.append(self.story.prometheus)
        told.append(self._tuned())
        verdicts = (self.story.verdict_before, self.story.verdict_after, self.story.verdict_tuned)
        told.append("verdict: {} before the change, {} after it, {} with the new k".format(*verdicts))
        told.append(f"took {self.story.seconds:.0f} s. Your own retriever: see the README, five minutes.")
        self.console.print(Panel("\n\n".join(told), title="resweep demo", border_style="green"))

    def _tuned(self) -> str:
        """Say what the sweep found, and what became of the alert."""
        swept, k = self.story.sweep, str(self.story.sweep["chosen"]["context_k"])
        recall = swept["recall"]
        change = f"{100 * recall[str(K)]:.0f} % at {K}, {100 * recall[k]:.0f} % at {k}"
        told = f"The sweep of {swept['n_cases']} judged questions chose k = {k}: recall {change}"
        return f"{told}. The alert has resolved." if self.story.alert_resolved else f"{told}."

    def _say(self, text: str, style: str = "") -> None:
        self.console.print(text, style=style, highlight=False)


def figures(pipeline: dict[str, Any]) -> Table:
    """Return the live figures of a pipeline as a table, a row for each config."""
    table = Table(title=f"{pipeline.get('name', PIPELINE)}: {pipeline.get('verdict', 'no traffic yet')}")
    for column, justify in COLUMNS:
        table.add_column(column, justify=justify, no_wrap=True)  # type: ignore[arg-type]
    for config, row in pipeline.get("configs", {}).items():
        table.add_row(config, *(_cell(row.get(name)) for name in FIGURES))
    return table


COLUMNS = (
    ("config", "left"),
    ("calls", "right"),
    ("empty", "right"),
    ("errors", "right"),
    ("k served", "right"),
    ("tokens", "right"),
    ("sources", "right"),
    ("ms", "right"),
)
FIGURES = (
    "retrievals",
    "empty",
    "errors",
    "passages_mean",
    "context_tokens_mean",
    "source_diversity_mean",
    "latency_mean_ms",
)


def _cell(value: object) -> str:
    return "-" if value is None else f"{value:.2f}" if isinstance(value, float) else str(value)
