"""The overview and a pipeline's page, in a real browser."""

from __future__ import annotations

from typing import Any

import pytest

pytestmark = pytest.mark.integration
LOOKS: dict[str, Any] = {
    "light": {"color_scheme": "light"},
    "dark": {"color_scheme": "dark"},
    "390": {"color_scheme": "light", "viewport": {"width": 390, "height": 844}},
    "390-dark": {"color_scheme": "dark", "viewport": {"width": 390, "height": 844}},
}


@pytest.mark.parametrize("look", LOOKS)
def test_the_overview_answers_the_four_questions_in_one_screen(look: str, person: Any) -> None:
    """What changed, when, how sure, what now; and nothing scrolls sideways."""
    someone = person(**LOOKS[look])
    page = someone.sign_in()
    someone.shot(f"overview-{look}")
    for question in ("What changed", "When", "How sure", "What now"):
        assert page.get_by_role("heading", name=question, exact=True).is_visible()
    assert page.locator("h1").inner_text() == "1 of 3 pipelines needs you now"
    if "390" not in look:
        answers = page.locator(".answers").bounding_box()
        assert answers["y"] + answers["height"] <= 900
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


@pytest.mark.parametrize("look", LOOKS)
def test_a_pipelines_page_shows_diff_sides_layers_charts_and_timeline(look: str, person: Any) -> None:
    """Everything about one pipeline."""
    someone = person(**LOOKS[look])
    page = someone.sign_in("/p/support-bot")
    someone.shot(f"pipeline-{look}")
    assert page.locator("#diff").get_by_text("bge-base-en-v1.5").first.is_visible()
    assert page.locator(".chart").count() >= 3
    assert page.locator(".line li").count() >= 3
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
