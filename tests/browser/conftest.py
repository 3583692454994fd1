"""A real agent with a story to tell, and a real browser to look at it."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from resweep.domain.batch import Batch, ConfigRecord
from resweep.domain.case import Candidate, Draw, question_key
from resweep.domain.event import Hit
from resweep.domain.fingerprint import fingerprint
from resweep.domain.verdict import TunedK
from resweep.domain.window import Window

if TYPE_CHECKING:
    from playwright.sync_api import Browser, BrowserContext, Page

ROOT = Path(__file__).resolve().parents[2]
ARTEFACTS = ROOT / "artefacts" / "pages"
TOKENS = {"admin": "a-token-for-admins", "reviewer": "a-token-for-reviewers", "viewer": "a-token-for-viewers"}
FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
    "--force-color-profile=srgb",
]
HOUR, DAY = 3600.0, 86400.0
OLD = {
    "embedder": {"model": "bge-small-en-v1.5", "dimensions": 384},
    "chunker": {"tokens": 512, "overlap": 64},
    "index": {"collection": "support_03"},
    "context_k": 8,
}
NEW = {
    **OLD,
    "embedder": {"model": "bge-base-en-v1.5", "dimensions": 768},
    "index": {"collection": "support_11"},
}
QUESTIONS = (
    "How long do refunds take for annual plans?",
    "Can I move my seats to another workspace?",
    "Is single sign-on part of the team plan",
    "What happens to my data after I leave?",
    "API rate limit for exports",
    "Why does the invoice show the wrong VAT number?",
)
STRATA = ("canary_lost", "novel", "low_confidence", "uniform", "uniform", "feedback")


def record(pipeline: str, document: dict[str, Any]) -> ConfigRecord:
    """Return the record of a config."""
    known = fingerprint(document)
    return ConfigRecord(
        pipeline=pipeline, config=known.config_hash, basis=known.basis_hash, document=known.document
    )


def window(config: ConfigRecord, ts: float, calls: int, empty: int, down: int = 0) -> Window:
    """Return one minute of traffic."""
    made = Window(config.pipeline, config.config, int(ts // 60))
    counts = {
        "retrievals": calls,
        "ok": calls,
        "empty_zero": empty,
        "served": calls - empty,
        "asked:8": calls,
    }
    for name, amount in counts.items():
        made.add(name, amount)
    for n in range(calls):
        made.observe("source_diversity_ratio", 0.7 if down == 0 else 0.6)
        made.observe("context_tokens", 3900 + 40 * (n % 7))
        made.observe("retrieval_duration_seconds", 0.08 + 0.01 * (n % 5) + 0.02 * down)
        made.observe("retrieved_passages", 8 if n >= empty else 0)
    return made


def batch(seq: int, config: ConfigRecord, windows: list[Window], ts: float) -> Batch:
    """Return a batch."""
    return Batch(
        writer=f"w-{config.pipeline}-{config.config}", seq=seq, ts=ts, configs=[config], windows=windows
    )


def plant_traffic(agent: Any) -> None:
    """Let one pipeline change its embedder an hour ago, one run well, and one be new."""
    now = time.time()
    store = agent.desks().store
    old, new = record("support-bot", OLD), record("support-bot", NEW)
    fine = record("docs-search", {**OLD, "context_k": 15})
    fresh = record("hr-policies", {**NEW, "context_k": 4})
    for config, k in ((old, 8), (fine, 15)):
        store.record_tuned(
            TunedK(
                pipeline=config.pipeline,
                basis=config.basis,
                context_k=k,
                tuned_at=now - 20 * DAY,
                tuned_by="m.okafor",
                because="smallest with recall at 75 % or more",
                best_set=(5, 8, 10),
            )
        )
    agent.take(
        batch(
            1,
            old,
            [window(old, now - 600 * n, 14 + n % 5, 1 if n % 7 == 0 else 0) for n in range(200, 5, -1)],
            now - 0.9 * HOUR,
        )
    )
    agent.take(batch(1, fine, [window(fine, now - HOUR * n, 90, 1) for n in range(48, 0, -1)], now - HOUR))
    for seq in range(1, 51):
        ts = now - 60.0 * (51 - seq)
        agent.take(batch(seq, new, [window(new, ts, 12 + seq % 5, 2 if seq % 2 else 0, 1)], ts))
        if seq % 5 == 0:
            agent.take(batch(100 + seq, fine, [window(fine, ts, 20, 0)], ts))
            agent.take(batch(100 + seq, fresh, [window(fresh, ts, 2, 0)], ts))
    agent.desks().desk.sit()


def hits(question: str, n: int = 40) -> tuple[Hit, ...]:
    """Return a depth-40 list, with one text twice and words of the question in some."""
    words = question.rstrip("?").split()
    made = []
    for rank in range(1, n + 1):
        twin = 1 if rank == 17 else rank
        text = (
            f"Passage {twin} speaks of {words[twin % len(words)]} and {words[-1]}. It was written for "
            "customers who ask by mail, and says what to do, whom to ask and how long that takes. "
        ) * (1 + twin % 3)
        made.append(
            Hit(
                id=f"p-{10_000 + rank}",
                score=round(0.9 - rank / 100, 3),
                source=f"billing/page-{rank % 9}.md",
                tokens=120 + 11 * rank,
                text=text,
                text_hash=f"hash-{twin}",
                score_state="ok",
            )
        )
    return tuple(made)


def plant_cases(agent: Any, config: str = "c41d7e90b2aa") -> list[str]:
    """Put questions into the queue of support-bot; return their ids."""
    now = time.time()
    new = [
        Candidate(
            pipeline="support-bot",
            question=question_key(text),
            query=text,
            draw=Draw(
                event_id=f"e-{n}",
                ts=now - (n + 1) * 3 * HOUR,
                p=0.2 if STRATA[n] != "uniform" else 0.05,
                plan="plan-1",
                stratum=STRATA[n],
                strata=(STRATA[n],),
                config=config,
            ),
            hits=hits(text),
            asked=8,
        )
        for n, text in enumerate(QUESTIONS)
    ]
    return list(agent.desks().store.enqueue(new).values())


class Site:
    """An agent served on a free port of this machine."""

    def __init__(self, home: Path, label: Mapping[str, Any] | None = None, **web: Any) -> None:
        import uvicorn

        from resweep.serve import http
        from resweep.serve.agent import Agent
        from resweep.serve.listen import bind, bound, endpoint
        from resweep.serve.places import places
        from resweep.settings import AgentSettings, LabelSection, Settings, WebSection

        settings = Settings(
            agent=AgentSettings(home=str(home), token=TOKENS["admin"]),
            web=WebSection(viewer_token=TOKENS["viewer"], reviewer_token=TOKENS["reviewer"], **web),
            label=LabelSection(**(label or {})),
        )
        self.agent = Agent(settings, places(settings))
        self.agent.start()
        listener = bind(endpoint("127.0.0.1:0"))
        self.url = f"http://{bound(listener)}"
        config = uvicorn.Config(
            http.app(self.agent, TOKENS["admin"]), log_config=None, lifespan="off", proxy_headers=False
        )
        self.server = uvicorn.Server(config)
        self.thread = threading.Thread(
            target=lambda: asyncio.run(self.server.serve(sockets=[listener])), daemon=True
        )
        self.thread.start()

    @property
    def store(self) -> Any:
        """The agent's store."""
        return self.agent.desks().store

    def end(self) -> None:
        """Stop serving, then the agent."""
        self.server.should_exit = True
        self.thread.join(10)
        self.agent.stop()


@pytest.fixture(name="site", scope="session")
def _site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """Serve an agent whose pipelines have a story."""
    home = tmp_path_factory.mktemp("home")
    home.chmod(0o700)
    site = Site(home)
    plant_traffic(site.agent)
    plant_cases(site.agent)
    yield site
    site.end()


@pytest.fixture(name="graded")
def _graded(tmp_path: Path) -> Iterator[Site]:
    """Serve an agent whose reviewers give two grades."""
    tmp_path.chmod(0o700)
    site = Site(tmp_path, label={"grades": 2})
    plant_cases(site.agent)
    yield site
    site.end()


@pytest.fixture(name="browser", scope="module")
def _browser(program: Any, library: Any) -> Iterator[Browser]:
    """Start Chromium without a head.

    For one module only: meanwhile an event loop runs in this thread, and tests elsewhere want their own.
    """
    library("playwright")
    path = program("chromium")
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=FLAGS)
        yield browser
        browser.close()


class Person:
    """Somebody with a browser of their own; what the policy forbids or a script trips over is kept."""

    def __init__(self, browser: Browser, site: Site, name: str, role: str, **options: Any) -> None:
        options.setdefault("viewport", {"width": 1440, "height": 900})
        self.context: BrowserContext = browser.new_context(base_url=site.url, **options)
        self.page: Page = self.context.new_page()
        self.page.set_default_timeout(20_000)  # a machine may be busy
        self.trouble: list[str] = []
        self.page.on("console", lambda m: self.trouble.append(m.text) if m.type == "error" else None)
        self.page.on("pageerror", lambda e: self.trouble.append(str(e)))
        self.name = name
        self.role = role

    def sign_in(self, path: str = "/") -> Page:
        """Sign in with the token of a role and go to a page."""
        self.page.goto("/login")
        self.page.get_by_label("Your name").fill(self.name)
        self.page.get_by_label("Token").fill(TOKENS[self.role])
        self.page.get_by_role("button", name="Sign in").click()
        if path != "/":
            self.page.goto(path)
        return self.page

    def expected(self, *words: str) -> None:
        """Leave out of the trouble what a test meant to cause."""
        self.trouble = [line for line in self.trouble if not any(word in line for word in words)]

    def shot(self, name: str, *, whole: bool = True) -> None:
        """Keep a picture of the page, whole or what is in sight."""
        ARTEFACTS.mkdir(parents=True, exist_ok=True)
        self.page.screenshot(path=ARTEFACTS / f"{name}.png", full_page=whole)


@pytest.fixture(name="person")
def _person(browser: Browser, site: Site) -> Iterator[Any]:
    """Make people; none may meet an error of script or policy."""
    made: list[Person] = []

    def make(name: str = "m.okafor", role: str = "admin", at: Site | None = None, **options: Any) -> Person:
        made.append(Person(browser, at or site, name, role, **options))
        return made[-1]

    yield make
    for one in made:
        one.context.close()
    assert [line for one in made for line in one.trouble] == []
