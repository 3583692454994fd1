"""The report as a page: every number where a reader looks for it, nothing from outside, nothing unescaped."""

from __future__ import annotations

import json
import re
from functools import lru_cache
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from resweep.serve.report import words
from resweep.serve.report.charts import NARROW, WIDE, Plan, Series, Value, draw
from resweep.serve.report.page import render, view
from resweep.serve.report.scale import Scale, round_range, round_ticks, spread
from resweep.sweep.constraints import floor
from resweep.sweep.engine import sweep_lists
from resweep.sweep.evidence import Cell
from resweep.sweep.lists import Case, RankedList
from resweep.sweep.settings import SweepSettings

FIGURES = json.loads((Path(__file__).parents[1] / "golden" / "sweep_figures.json").read_text())
CSS = (Path(words.__file__).parent / "templates" / "style.css").read_text("utf-8")


def lists(case: int, depth: int = 40) -> RankedList:
    """Return a list whose evidence stands at rank 2, or at 12 for every third case."""
    ids = [f"x{i}" for i in range(depth)]
    ids[11 if case % 3 == 0 else 1] = "r"
    return RankedList(
        ids, tokens=[100] * depth, texts=[f"text of {i}" for i in ids], sources=["a.md"] * depth
    )


@lru_cache(maxsize=1)
def report() -> dict[str, Any]:
    """Return a report with answers that turn over, a grid, and cases that lose by the choice."""
    cases = [
        Case(case_id=f"c{i}", query=f"<script>alert({i})</script>", judgments={"r": 1.0}) for i in range(60)
    ]
    runs = {c: {case.case_id: lists(i, c) for i, case in enumerate(cases)} for c in (20, 40)}
    right = {3: 0.5, 5: 0.9, 20: 0.6, 40: 0.5}
    answers = {
        Cell(c, k): {f"c{i}": float(i < 60 * right[k]) for i in range(60)} for c in (20, 40) for k in right
    }
    settings = SweepSettings(
        objective="answer_accuracy", baseline=Cell(40, 20), resamples=500, usd_per_million_tokens=3.0
    )
    swept = sweep_lists(
        cases, runs, (3, 5, 20, 40), settings, grid=True, extra={"answer_accuracy": answers}, pipeline="bot"
    )
    return swept.report.stamped({"how": "recorded", "run": "a.run"}, 1788300000.0).as_dict()


class Outline(HTMLParser):
    """Which tags a page has, and which of them were left open."""

    VOID = frozenset(("meta", "br", "path", "rect", "circle", "link", "img"))

    def __init__(self) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.open: list[str] = []
        self.wrong: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if tag not in self.VOID and (not self.open or self.open.pop() != tag):
            self.wrong.append(tag)


def test_the_page_stands_alone() -> None:
    """One file: no script, no address, no font, a policy that forbids them."""
    page, outline = render(report()), Outline()
    outline.feed(page)
    assert {"script", "link", "img", "iframe"} & set(outline.tags) == set()
    assert re.findall(r"(?:src|href)=|url\(|@import|https?:", page) == []
    assert "default-src 'none'" in page
    assert (outline.wrong, outline.open) == ([], [])
    assert outline.tags.count("h1") == 1


def test_what_users_wrote_is_text() -> None:
    """Queries and passages may hold anything."""
    told = _regressions()[0] | {"query": "<script>alert(1)</script>"}
    page = render(report() | {"regressions": [told]})
    assert "<script>alert" not in page
    assert "&lt;script&gt;alert(" in page


def test_the_facts_come_first() -> None:
    """Chosen, best set, why, holdout, cases."""
    facts = {name: (value, note) for name, value, note in view(report())["facts"]}
    assert facts["Chosen"][0] == "context_k 5, candidate_k 20"
    assert facts["Chosen"][1].startswith("Answer accuracy 90.0 % (")
    assert facts["Not distinguishable from the best"] == ("5", "95 %, all depths compared at once")
    assert facts["Holdout"] == ("none", "the set has no split")
    assert facts["Cases"][0] == "60, effective 60"


def test_recall_and_answers_share_their_axes() -> None:
    """With bands, the chosen depth and the best set, wide and narrow; the title says the finding."""
    wide, narrow = view(report())["main"]
    assert wide.says == "More passages find more, but answer worse after 5"
    assert [bool(one.band) for one in wide.series] == [True, True]
    assert (wide.pick, wide.best) != (None, None)
    assert (wide.size, narrow.size) == (WIDE, NARROW)


def test_the_grid_says_impossible_in_words_and_outlines_the_best() -> None:
    """One cell spans the depths that cannot be."""
    grid = view(report())["grid"]
    first = grid["rows"][0]
    assert first[0] == 20
    assert (first[1][-1]["text"], first[1][-1]["shade"]) == ("impossible", None)
    assert [cell["text"] for cell in first[1] if cell["best"]] == ["90.0"]


def test_cases_lost_are_told_with_their_passages() -> None:
    """What they get, with what is relevant marked, and what they do not reach."""
    changed = report() | {"regressions": _regressions()}
    page = render(changed)
    assert "Not reached: <code>r</code>" in page
    assert "text of x0" in page


def _regressions() -> list[dict[str, Any]]:
    passage = {"id": "x0", "grade": None, "source": "a.md", "text": "text of x0"}
    told = {"case_id": "c0", "query": "why", "before": 1.0, "after": 0.0, "passages": ["x0"], "wanted": ["r"]}
    return [{"measure": "recall", **told, "shown": [passage]}]


def test_the_closed_book_has_a_row_of_its_own() -> None:
    """Depth 0, beside the others; and the models are named in how it was measured."""
    book = {"mean": 0.125, "low": 0.05, "high": 0.25, "n": 60}
    model = {"name": "gpt", "version": "2026-01"}
    told = {
        "generator": model,
        "judge": model,
        "rubric": "resweep.rubric/1",
        "evidence_first": False,
        "closed_book": book,
        "audit": {"n": 60, "expired": True},
    }
    page = render(report() | {"answers": told})
    assert "unaided" in page
    assert "12.5" in page
    assert "Answers by gpt 2026-01, passages in the order retrieved." in page
    assert "Judge audited on 60 answers, which has expired." in page


def test_no_data_is_said_and_is_no_crash() -> None:
    """An empty answerable set has no curve and no depth."""
    empty = sweep_lists([Case(case_id="c", judgments={})], {20: {"c": lists(0, 20)}}, (3, 5)).report
    page = render(empty.stamped({}).as_dict())
    assert "No data" in page
    assert "no depth chosen" in page


def test_constraints_say_why_this_depth_and_not_the_one_before() -> None:
    """With the numbers."""
    cases = [Case(case_id=f"c{i}", query="q", judgments={"r": 1.0}) for i in range(60)]
    runs = {40: {case.case_id: lists(i) for i, case in enumerate(cases)}}
    settings = SweepSettings(
        objective="precision", margin=1.0, constraint=floor("recall", 0.9), resamples=500
    )
    told = sweep_lists(cases, runs, (5, 20), settings).report.as_dict()
    fact = next(one for one in view(told)["facts"] if one[0].startswith("Why"))
    assert fact == (
        "Why 20 and not 5",
        "recall >= 0.9",
        "5 is passed over: recall >= 0.9 fails (0.6667)",
    )


def _luminance(colour: str) -> float:
    colour = colour if len(colour) == 7 else "#" + "".join(2 * c for c in colour[1:])
    parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def _contrast(one: str, other: str) -> float:
    high, low = sorted((_luminance(one), _luminance(other)), reverse=True)
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("theme", [0, 1, 2])
def test_text_can_be_read_in_every_theme(theme: int) -> None:
    """Light, dark and print: 4.5 to 1 at least on every ground it stands on."""
    block = re.findall(r":root\{[^}]*\}", CSS)[theme]
    colours = dict(re.findall(r"--([\w-]+):(#[0-9a-f]+)", block))
    for text in ("text", "muted", "accent", "bad", "warn", "good", "s1", "s2"):
        for ground in ("bg", "surface", "sunk", "accent-bg"):
            assert _contrast(colours[text], colours[ground]) >= 4.5, (text, ground)


def test_axes_name_round_numbers() -> None:
    """A cut range for rates, from zero for counts, never above the most there can be."""
    assert round_range([0.6, 0.93], zero=False, most=1.0) == pytest.approx((0.6, 1.0))
    assert round_range([512, 20480], zero=True) == (0.0, 30000.0)
    assert round_ticks(0.5, 1.0) == [0.5, 0.6, 0.7, 0.8, 0.9, 1.0]
    assert spread([0, 5, 30, 58, 60], 20) == [0, 2, 4]


def test_a_log_scale_doubles_evenly() -> None:
    """From 5 to 10 as far as from 10 to 20."""
    scale = Scale(5, 20, 0, 100, log=True)
    assert [scale(k) for k in (5, 10, 20)] == [0.0, 50.0, 100.0]


def test_labels_at_the_ends_keep_apart() -> None:
    """Two curves that end together have their names below one another."""
    curves = [
        Series(name, [Value(1, 0.5), Value(8, end)]) for name, end in (("Recall", 0.8), ("nDCG", 0.801))
    ]
    plan = Plan(series=curves, says="", x_title="k", y_title="", write=lambda v: f"{v:.1f}")
    ends = [label.y for label in draw(plan, WIDE).labels if label.text in ("Recall", "nDCG")]
    assert abs(ends[0] - ends[1]) == pytest.approx(30)


def test_every_finding_has_a_title() -> None:
    """As the sweep's own codes are; a new one shows up here."""
    sources = Path(words.__file__).parents[2] / "sweep"
    codes: set[str] = set()
    for path in [*sources.glob("findings/*.py"), sources / "patterns.py"]:
        codes |= set(re.findall(r'Finding\(\s*"(\w+)"', path.read_text("utf-8")))
    assert codes - words.TITLES.keys() == set()
