"""What the pages are made of: policy, static files, colours that can be read, words."""

from __future__ import annotations

import hashlib
import re
from itertools import product

import pytest

from resweep.domain.window import Window
from resweep.serve.pages import charts, figures, render, words
from resweep.serve.pages.reading import marked, stems

CSS = (render.STATIC / "resweep.css").read_text()
HTMX = "a0abb04f2f45a1f89d1d4844023245537e5e6014c87b144553e0607b4cc32130"
TEMPLATES = list((render.STATIC.parent / "templates").glob("*.html"))
FACES = ("ground", "face", "sunk", "picked")
TEXTS = ("ink", "soft", "link")
STATES = ("expired", "suspect", "untuned", "valid", "little")


def colours(dark: bool) -> dict[str, str]:
    """Return the colours of a theme."""
    light, night = re.findall(r":root \{(.*?)\}", CSS, re.DOTALL)[:2]
    found = dict(re.findall(r"--([\w-]+): (#[0-9a-f]{6})", light))
    return found | (dict(re.findall(r"--([\w-]+): (#[0-9a-f]{6})", night)) if dark else {})


def contrast(one: str, other: str) -> float:
    """Return the contrast of two colours (WCAG 2.2, relative luminance)."""

    def luminance(colour: str) -> float:
        parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
        r, g, b = (c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in parts)
        return 0.2126 * r + 0.7152 * g + 0.0722 * b

    high, low = sorted((luminance(one), luminance(other)), reverse=True)
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("dark", [False, True])
def test_every_text_can_be_read_on_every_face(dark: bool) -> None:
    """4.5 to 1 for text, 3 to 1 for the edges of controls."""
    of = colours(dark)
    pairs = [*product(TEXTS, FACES), *((s, f"{s}-face") for s in STATES), *product(STATES, ("face",))]
    pairs += [("ink", "mark"), ("on-link", "link"), ("face", "ink"), ("one", "face"), ("two", "face")]
    low = {pair: contrast(of[pair[0]], of[pair[1]]) for pair in pairs}
    assert {pair: value for pair, value in low.items() if value < 4.5} == {}
    assert contrast(of["edge"], of["face"]) >= 3


def test_the_vendored_script_is_the_pinned_one() -> None:
    """Unchanged, with its licence beside it."""
    assert hashlib.sha256((render.STATIC / "htmx.min.js").read_bytes()).hexdigest() == HTMX
    assert "Zero-Clause BSD" in (render.STATIC / "htmx.LICENSE").read_text()
    assert HTMX in (render.STATIC / "README.md").read_text()


@pytest.mark.parametrize("path", TEMPLATES, ids=lambda path: path.name)
def test_no_template_needs_what_the_policy_forbids(path: object) -> None:
    """No inline script or style, no handler, nothing that needs eval, nothing from outside."""
    text = path.read_text()  # type: ignore[attr-defined]
    assert not re.search(r"<script(?! src=)|<style| style=| on\w+=|hx-on|js:|https?://|\|safe", text)


def test_a_chart_holds_nothing_inline_and_never_joins_two_configs() -> None:
    """Two lines and a rule; what it shows is said in words."""
    old, new = ([(60.0 * n, 0.1 * side) for n in range(side * 10, side * 10 + 5)] for side in (1, 2))
    svg = str(charts.draw(figures.Course(measure=figures.EMPTY, before=old, after=new), 1100.0))
    assert not re.search(r"<style|<script| style=| on\w+=", svg)
    assert 'aria-label="Empty answers: 10 % before the change, 20 % after it, on average."' in svg
    assert all(f"serie-{n}" in svg for n in range(3))


def test_a_chart_of_nothing_is_none() -> None:
    """The page leaves it out."""
    assert charts.draw(figures.Course(measure=figures.EMPTY, before=[], after=[]), None) is None


def window(ok: int, empty: int, minute: int = 0) -> Window:
    """Return a window with so many completed retrievals, and so many empty ones among them."""
    return Window("p", "c", minute, counts={"retrievals": ok, "ok": ok, "empty_zero": empty})


def test_worse_is_said_only_where_the_interval_leaves_out_zero() -> None:
    """The same shares of few retrievals are not clear."""
    [many] = figures.compare([window(2000, 20)], [window(2000, 60)])
    [few] = figures.compare([window(100, 1)], [window(100, 3)])
    assert (many.before, many.after, many.difference, many.word) == ("1.0 %", "3.0 %", "+2.0 pt", "worse")
    assert (few.difference, few.word) == ("", "not clear")
    [less] = figures.compare([window(2000, 60)], [window(2000, 20)])
    assert less.word == "better"


def test_the_interval_of_a_difference_is_newcombes() -> None:
    """His example: 56/70 against 48/80 (1998, table II, method 10)."""
    low, high = figures.difference((48, 80), (56, 70))
    assert (round(low, 4), round(high, 4)) == (0.0524, 0.3339)


def test_a_course_has_gaps_where_nothing_was_seen() -> None:
    """A lone step is a dash."""
    found = figures.course([window(10, 1, m) for m in (0, 1, 5)], [], figures.EMPTY, 1)
    assert found.before == [(30.0, 0.1), (90.0, 0.1), (270.0, None), (300.0, 0.1), (360.0, 0.1)]


def test_words_of_the_question_are_marked_and_all_else_escaped() -> None:
    """Endings do not matter, common words do not count."""
    wanted = stems("How do the refunds work?")
    assert marked("A refund <b>works</b> how?", wanted) == (
        "A <mark>refund</mark> &lt;b&gt;<mark>works</mark>&lt;/b&gt; how?"
    )


@pytest.mark.parametrize(
    ("seconds", "says"),
    [(4, "4 s"), (61, "1 min"), (66_000, "18 h 20 min"), (183_600, "2 d 3 h"), (777_600, "9 d")],
)
def test_times_are_said_in_two_units_at_most(seconds: float, says: str) -> None:
    """Never "yesterday"."""
    assert words.span(seconds) == says


def test_numbers_are_written_one_way() -> None:
    """One digit below ten per cent; names are not capitalised."""
    assert [words.share(x) for x in (0.0, 0.004, 0.0312, 0.79)] == ["0 %", "0.4 %", "3.1 %", "79 %"]
    assert [words.sentence(x) for x in ("the k", "hr-bot runs")] == ["The k", "hr-bot runs"]
    assert words.brief("it changed (for a reason)" + ", so" * 60).endswith("…")
