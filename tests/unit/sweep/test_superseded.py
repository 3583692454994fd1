"""Superseded passages: in the context, cited, and apart from accuracy."""

from __future__ import annotations

import gzip
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from resweep.domain.errors import InputError
from resweep.serve.report.page import render
from resweep.sweep.answers import Answering, Model, Said, ToJudge, Verdict
from resweep.sweep.cache import Cache
from resweep.sweep.calls import Policy
from resweep.sweep.citations import cited_places, marks
from resweep.sweep.engine import Sweep, sweep_lists
from resweep.sweep.lists import Case, RankedList
from resweep.sweep.runner import Question, Target, Wanted, sweep_live
from resweep.sweep.saved import write_saved
from resweep.sweep.superseded import read_superseded, with_superseded

CASES = [Case(case_id=f"c{i}", query=f"q{i}", judgments={"new": 1.0}, reference="yes") for i in range(4)]
IDS = ["new", "x", "old"]


def retrieve(question: Question) -> RankedList:
    ids = IDS[: question.context_k]
    return RankedList(ids, texts=[f"{one} text" for one in ids])


def cites_the_old(question: str, passages: Sequence[str]) -> Said:
    """Two of the four rest on the old passage where it is there; one is distracted."""
    if question in ("q0", "q1") and "old text" in passages:
        return Said(f"no [{passages.index('old text') + 1}]")
    return Said("no [2]" if question == "q2" and len(passages) > 1 else "yes [1]")


def swept(tmp_path: Path, generate: Any, *, evidence_first: bool = False) -> Sweep:
    def judge(asked: ToJudge) -> Verdict:
        return Verdict(asked.answer.startswith("yes"))

    model = Model(name="m", version="1")
    answering = Answering(
        generate=generate,
        judge=judge,
        generator=model,
        judge_model=model,
        evidence_first=evidence_first,
    )
    cache = Cache(tmp_path, now=1e9)
    try:
        return sweep_live(
            Target(ask=retrieve, version="v"),
            Wanted(cases=CASES, ks=(1, 2, 3)),
            cache=cache,
            policy=Policy(sleep=lambda _: None),
            answering=answering,
        )
    finally:
        cache.close()


def told(sweep: Sweep, **superseded: str | None) -> Any:
    return with_superseded(sweep, superseded or {"old": "new"}).report.as_dict()["superseded"]


@pytest.mark.parametrize(
    ("text", "places"),
    [
        ("so [2], and [1].", (2, 1)),
        ("so [1, 3] [3]", (1, 3)),
        ("so [1-3; 5]", (1, 2, 3, 5)),
        ("so (1), [a] and [x1]", ()),
        ("[1-9999]", tuple(range(1, 101))),
    ],
)
def test_marks_in_a_text_are_places(text: str, places: tuple[int, ...]) -> None:
    """Each place once, in the order it is cited in; a span is bounded."""
    assert marks(text) == places


def test_a_number_beyond_the_passages_cites_none_of_them() -> None:
    """A year in brackets is no passage; what a generator says itself is read instead of its text."""
    assert cited_places("in [2024] [2]", None, 3) == (2,)
    assert cited_places("in [2]", (0, 3, 4), 3) == (3,)
    assert cited_places("in [2]", (), 3) == ()


def test_stale_answers_are_told_apart_from_distracted_ones(tmp_path: Path) -> None:
    """At 3 two of four answers cite the old passage and are wrong; one is wrong without."""
    found = told(swept(tmp_path, cites_the_old))
    assert (found["listed"], found["citations"]) == (1, "read")
    assert [p["cite_superseded"] for p in found["points"]] == [0, 0, 2]
    assert [p["cite_superseded_share"] for p in found["points"]] == [0.0, 0.0, 0.5]
    assert [(p["wrong_citing"], p["wrong_not_citing"]) for p in found["points"]] == [(0, 0), (0, 1), (2, 1)]
    assert found["points"][2] | {"accuracy_citing": 0.0, "accuracy_not_citing": 0.5} == found["points"][2]


def test_contexts_that_hold_one_are_counted_at_every_depth(tmp_path: Path) -> None:
    """And those that hold what replaced it as well."""
    points = told(swept(tmp_path, cites_the_old))["points"]
    assert [(p["contexts"], p["holding"], p["holding_share"], p["holding_both"]) for p in points] == [
        (4, 0, 0.0, 0),
        (4, 0, 0.0, 0),
        (4, 4, 1.0, 4),
    ]


def test_without_any_citation_nothing_is_said_of_them(tmp_path: Path) -> None:
    """Null and a sentence, never a zero."""
    sweep = with_superseded(swept(tmp_path, lambda q, p: Said("yes")), {"old": None})
    found: Any = sweep.report.superseded
    assert found["citations"] == "not read"
    assert {p["cite_superseded"] for p in found["points"]} == {None}
    assert "citations of superseded ones could not be read" in sweep.report.diagnosis[-1]["text"]


def test_recorded_lists_tell_of_contexts_alone() -> None:
    """No answers, so that citations are neither read nor missed."""
    lists = {case.case_id: RankedList(IDS) for case in CASES}
    sweep = with_superseded(sweep_lists(CASES, {3: lists}, (1, 3)), {"old": None})
    found: Any = sweep.report.superseded
    assert [(p["holding"], p["holding_both"], p["answers"]) for p in found["points"]] == [
        (0, None, None),
        (4, None, None),
    ]
    assert found["citations"] is None
    assert sweep.report.diagnosis[-1]["text"].endswith("so many hold one: 0.0 % at 1; 100.0 % at 3.")


def test_places_follow_the_order_of_the_prompt(tmp_path: Path) -> None:
    """With evidence first another passage may stand at a place; the id that stood there is kept beside."""
    sweep = swept(tmp_path, lambda q, p: Said("yes", cited=(1,)), evidence_first=True)
    assert {(one.cited, one.cited_ids) for one in sweep.answers if one.cell} == {((1,), ("new",))}
    assert {one.cited for one in sweep.answers if one.cell is None} == {()}


def test_what_an_answer_cites_is_kept_with_it(tmp_path: Path) -> None:
    """As places, and as the ids that stood there."""
    write_saved(tmp_path / "kept", swept(tmp_path, cites_the_old))
    kept = gzip.decompress((tmp_path / "kept" / "cases.jsonl.gz").read_bytes())
    first = json.loads(kept.splitlines()[0])
    deepest = next(one for one in first["answers"] if one["context_k"] == 3)
    assert (deepest["cited"], deepest["cited_ids"]) == ([3], ["old"])


def test_the_page_has_a_table_of_them(tmp_path: Path) -> None:
    """Contexts, answers, and who was wrong."""
    sweep = with_superseded(swept(tmp_path, cites_the_old), {"old": None})
    page = render(sweep.report.as_dict())
    assert '<td class="num">4 of 4</td><td class="num">100</td><td class="num">2 of 4</td>' in page


@pytest.mark.parametrize(
    ("name", "text", "expected"),
    [
        ("s.txt", "a\n\n b \n", {"a": None, "b": None}),
        ("s.csv", "passage_id,replaced_by\na,b\nc,\n", {"a": "b", "c": None}),
        ("s.tsv", "a\tb\n", {"a": "b"}),
        ("s.json", '["a", 7]', {"a": None, "7": None}),
        ("s.json", '{"a": "b", "c": null}', {"a": "b", "c": None}),
    ],
)
def test_superseded_passages_come_as_lines_a_table_or_json(
    tmp_path: Path, name: str, text: str, expected: dict[str, str | None]
) -> None:
    """With what replaced them where the file says."""
    (tmp_path / name).write_text(text, "utf-8")
    assert read_superseded(tmp_path / name) == expected


@pytest.mark.parametrize("text", ["", '[["a"]]', '{"a": [1]}', "[1,", "[true]"])
def test_a_file_without_ids_is_refused(tmp_path: Path, text: str) -> None:
    """By its name."""
    (tmp_path / "s.json").write_text(text, "utf-8")
    with pytest.raises(InputError, match=r"s\.json"):
        read_superseded(tmp_path / "s.json")
