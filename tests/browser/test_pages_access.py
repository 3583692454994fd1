"""What axe finds, what a person can do to a flag, and a queue of 50,000."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest

from resweep.domain.case import Candidate, question_key

pytestmark = pytest.mark.integration
PAGES = ("/", "/p/support-bot", "/flags?all=1", "/review", "/login")
BYTES_MAX = 100_000  # of one page


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing_on_any_page(scheme: str, person: Any, site: Any, library: Any) -> None:
    """WCAG 2.2 A and AA, in both themes."""
    library("axe_playwright_python")
    from axe_playwright_python.sync_playwright import Axe

    # The policy lets no foreign script in, as it should; axe is one.
    someone = person("axe", "admin", color_scheme=scheme, bypass_csp=True)
    page = someone.sign_in()
    case_id = site.store.case_page()[0].case_id
    found = {}
    for path in (*PAGES, f"/case/{case_id}"):
        page.goto(path)
        tags = {"runOnly": ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"]}
        violations = Axe().run(page, options=tags).response["violations"]
        found[path] = [(v["id"], [n["target"] for n in v["nodes"]][:3]) for v in violations]
    assert {path: bad for path, bad in found.items() if bad} == {}


def test_a_flag_is_acknowledged_with_a_note(person: Any, site: Any) -> None:
    """The name and the note stand beside it, for everybody."""
    page = person("m.okafor", "reviewer").sign_in()
    flag = page.locator(".flag", has_text="hr-policies")
    flag.get_by_text("Answer", exact=True).click()
    flag.get_by_label("Note").fill("known; <b>sweep</b> tonight")
    flag.get_by_role("button", name="Acknowledge").click()
    page.get_by_text("Acknowledged by m.okafor").wait_for()
    assert page.get_by_text("known; <b>sweep</b> tonight").is_visible()
    assert page.get_by_role("button", name="Resolve").count() == 0
    assert [ack.who for ack in site.store.acks("hr-policies")] == ["m.okafor"]


def test_nothing_moves_once_a_page_is_drawn(person: Any) -> None:
    """The layout shift is 0."""
    page = person().sign_in("/p/support-bot")
    shift = """new Promise(done => { let sum = 0;
        new PerformanceObserver(list => { for (const e of list.getEntries()) sum += e.value; })
            .observe({type: "layout-shift", buffered: true});
        setTimeout(() => done(sum), 300); })"""
    assert page.evaluate(shift) == 0


@pytest.mark.long
def test_a_queue_of_fifty_thousand_pages_by_place(person: Any, site: Any, tmp_path: Path) -> None:
    """Pages stay small, and every case is on one of them."""
    for start in range(0, 50_000, 5_000):
        site.store.enqueue(
            Candidate(pipeline="large", question=question_key(f"question {n}"), query=f"question {n} of many")
            for n in range(start, start + 5_000)
        )
    page = person("many", "reviewer").sign_in()
    began = time.monotonic()
    body = page.goto("/review?pipeline=large").body()
    print(f"{time.monotonic() - began:.3f} s, {len(body)} bytes")  # noqa: T201 (shown by -s)
    assert len(body) < BYTES_MAX
    assert page.get_by_text("50,000 cases").first.is_visible()
    first = page.locator(".queue a").first.inner_text()
    page.get_by_role("link", name="Next 50").click()
    page.wait_for_url("**after=**")
    assert page.locator(".queue li").count() == 50
    assert page.locator(".queue a").first.inner_text() != first
