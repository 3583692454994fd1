"""The report as a file, opened where there is no network: on a phone, on a desk, in the dark, on paper."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from resweep.serve.report.page import render
from resweep.sweep.engine import sweep_lists
from resweep.sweep.evidence import Cell
from resweep.sweep.lists import Case, RankedList
from resweep.sweep.rules import parse_rule
from resweep.sweep.settings import Latency, SweepSettings

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

HOSTILE = "<img src=x onerror=alert(1)> | & " + "Donaudampfschifffahrtsgesellschaft" * 3
SIDEWAYS = "document.documentElement.scrollWidth - document.documentElement.clientWidth"
CUT = "[...document.querySelectorAll('table.stack')].some(t => t.scrollWidth > t.parentElement.clientWidth)"


def ranked(n: int, depth: int) -> RankedList:
    """Return a list with its evidence at a rank of its own, under a source with a long name."""
    ids = [f"x{i}" for i in range(depth)]
    at = int(random.Random(n).expovariate(0.1))
    if at < depth:
        ids[at] = "r"
    return RankedList(
        ids,
        scores=[1 - i / 100 for i in range(depth)],
        tokens=[100] * depth,
        texts=["word " * 40] * depth,
        sources=[f"docs/{'very-long-path/' * 6}{n % 3}.md"] * depth,
    )


@pytest.fixture(name="file", scope="module")
def _file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write the page of a grid with answers, prices, times, an adaptive rule, and queries that mean harm."""
    cases = [Case(case_id=f"c{i}" * 9, query=f"{HOSTILE} {i}", judgments={"r": 1.0}) for i in range(80)]
    runs = {c: {case.case_id: ranked(i, c) for i, case in enumerate(cases)} for c in (10, 40)}
    cells = [Cell(c, k) for c in (10, 40) for k in (1, 3, 8, 20)]
    answers = {
        cell: {case.case_id: float(i % 10 < cell.context_k) for i, case in enumerate(cases)} for cell in cells
    }
    settings = SweepSettings(
        objective="answer_accuracy",
        baseline=Cell(40, 20),
        resamples=500,
        usd_per_million_tokens=3.0,
        rules=(parse_rule("min_score(0.95) & at_most(6)"),),
        latency={cell: Latency(0.1 * cell.context_k, 0.2 * cell.context_k) for cell in cells},
    )
    swept = sweep_lists(
        cases, runs, (1, 3, 8, 20), settings, grid=True, extra={"answer_accuracy": answers}, pipeline="bot"
    )
    path = tmp_path_factory.mktemp("report") / "report.html"
    path.write_text(render(swept.report.stamped({"how": "recorded", "run": "a.run"}, 1788300000.0).as_dict()))
    return path


@pytest.fixture(name="opened", params=[(w, scheme) for w in (375, 1280) for scheme in ("light", "dark")])
def _opened(request: Any, browser: Browser, file: Path) -> Iterator[tuple[Page, list[str]]]:
    """Open the file without a network; what it asks for and what goes wrong is kept."""
    width, scheme = request.param
    context = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=scheme, offline=True)
    page, trouble = context.new_page(), list[str]()
    page.on("console", lambda m: trouble.append(m.text))
    page.on("pageerror", lambda e: trouble.append(str(e)))
    page.on("request", lambda r: trouble.append(r.url) if not r.url.startswith("file:") else None)
    page.goto(file.as_uri())
    yield page, trouble
    context.close()


def test_the_file_asks_for_nothing_and_fits_its_window(opened: tuple[Page, list[str]]) -> None:
    """Also with every case opened; no word of a query is taken for markup."""
    page, trouble = opened
    assert page.evaluate(SIDEWAYS) == 0
    page.evaluate("document.querySelectorAll('details').forEach(d => { d.open = true })")
    assert page.evaluate(SIDEWAYS) == 0
    assert page.locator("img").count() == 0
    assert trouble == []


def test_the_result_of_every_depth_is_in_sight(opened: tuple[Page, list[str]]) -> None:
    """A grid's table is no wider than its frame: its last column says which depth was chosen."""
    page, _ = opened
    assert page.evaluate(CUT) is False


def test_on_paper_nothing_is_cut(browser: Browser, file: Path) -> None:
    """A4 with margins: no table is wider than the sheet."""
    context = browser.new_context(viewport={"width": 718, "height": 1000}, offline=True)
    page = context.new_page()
    page.emulate_media(media="print")
    page.goto(file.as_uri())
    wide = page.evaluate("[...document.querySelectorAll('table')].map(t => t.getBoundingClientRect().right)")
    context.close()
    assert max(wide) <= 718
