"""`resweep compare`: lost and gained by name, limits that fail a build, words for people and for CI."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as Xml

import pytest
from typer.testing import CliRunner, Result

from resweep.domain.errors import UsageError
from resweep.serve.cli.app import app
from resweep.serve.compare_texts import junit, markdown
from resweep.sweep.compare import Side
from resweep.sweep.gate import Limits, compare_systems, parse_drops
from resweep.sweep.lists import Case, RankedList

Run = Callable[..., Result]
CASES = [Case(case_id=f"q{i}", query=f"question {i}", judgments={"r": 1.0}) for i in range(60)]


def system(lost: frozenset[int] = frozenset()) -> dict[str, RankedList]:
    """Return a run with the evidence at rank 1, but for some cases that do not get it."""
    return {c.case_id: RankedList(["x"] if i in lost else ["r", "x"]) for i, c in enumerate(CASES)}


@pytest.fixture(name="run")
def _run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Run]:
    """Run a command beside two runs: q1 lost and q2 gained; the means are equal."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("RESWEEP_HOME", str(tmp_path / "home"))
    monkeypatch.syspath_prepend(str(tmp_path))
    Path("a.qrels").write_text("".join(f"q{i} 0 r 1\n" for i in range(20)))
    for name, without in (("before", 2), ("after", 1)):
        first = ["x" if i == without else "r" for i in range(20)]
        Path(f"{name}.run").write_text("".join(f"q{i} Q0 {d} 1 1.0 t\n" for i, d in enumerate(first)))
    Path("compared_app.py").write_text(
        "def old(query, k): return [{'id': 'r'}][:k]\n"
        "def new(query, k): return [{'id': 'x' if query.endswith('3') else 'r'}][:k]\n"
    )
    yield lambda *words: CliRunner().invoke(app, list(words))
    sys.modules.pop("compared_app", None)


FILES = ("compare", "before.run", "after.run", "--cases", "a.qrels", "--k", "1")


def test_lost_and_gained_are_listed_though_the_means_are_equal(run: Run) -> None:
    """A swap leaves every mean where it was."""
    told = json.loads(run(*FILES, "--json").stdout)
    assert told["schema"] == "resweep.compare/1"
    assert told["measures"]["recall"]["difference"] == 0
    assert [c["case_id"] for c in told["lost"]] == ["q1"]
    assert [c["case_id"] for c in told["gained"]] == ["q2"]
    assert (told["lost"][0]["wanted"], told["lost"][0]["passages"]) == (["r"], ["x"])


def test_the_exit_code_is_that_of_the_limits(run: Run) -> None:
    """0 where none is set or all hold, 1 where one fails."""
    assert run(*FILES).exit_code == 0
    assert run(*FILES, "--max-lost", "1", "--max-drop", "recall=0.02").exit_code == 0
    done = run(*FILES, "--max-lost", "0")
    assert done.exit_code == 1
    assert "FAILED: 1 cases lost, at most 0 may be: q1" in done.stdout


def test_what_cannot_be_compared_ends_with_2(run: Run) -> None:
    """Never 1, which means that a limit failed."""
    for words in (
        ("compare", "nothing", "after.run", "--cases", "a.qrels", "--k", "1"),
        ("compare", "before.run", "after.run", "--k", "1"),
        ("compare", "before.run", "after.run", "--cases", "a.qrels"),
        (*FILES, "--max-drop", "recall"),
        (*FILES, "--max-drop", "answer_accuracy=0.1"),
    ):
        assert run(*words).exit_code == 2, words


def test_two_kept_sweeps_are_compared_at_what_each_chose(run: Run) -> None:
    """They bring their own cases."""
    for name in ("before", "after"):
        words = ("sweep", "--run", f"{name}.run", "--qrels", "a.qrels", "--k", "1", "--save", f"kept-{name}")
        assert run(*words).exit_code == 0
    done = run("compare", "kept-before", "kept-after/report.json", "--json")
    told = json.loads(done.stdout)
    assert ([c["case_id"] for c in told["lost"]], told["after"]["context_k"]) == (["q1"], 1)


def test_two_live_retrievers_are_asked_off_the_record(run: Run) -> None:
    """By their names."""
    Path("cases.jsonl").write_text(
        "".join(
            json.dumps({"case_id": c.case_id, "query": c.query, "judgments": [{"passage_id": "r"}]}) + "\n"
            for c in CASES
        )
    )
    words = ("compare", "compared_app:old", "compared_app:new", "--cases", "cases.jsonl", "--k", "1")
    told = json.loads(run(*words, "--json").stdout)
    assert [c["case_id"] for c in told["lost"]] == [f"q{i}" for i in range(3, 60, 10)]
    assert run(*words, "--max-drop", "recall=0.02").exit_code == 1
    assert run(*words, "--max-drop", "recall=0.2").exit_code == 0


@pytest.mark.parametrize(
    ("words", "code", "says"),
    [
        (("--max-drop", "nonsense=0.1"), 2, "expected a measure among"),
        (("--max-lost", "-1"), 2, "expected --max-lost from 0"),
        (("--settings", "small.toml"), 6, "at least 60 calls (60 cases), got 59; nothing was asked"),
        (("--settings", "one.toml"), 6, "at least 120 calls (60 cases), got 119; of which 60 are spent"),
    ],
)
def test_what_cannot_be_meant_or_paid_is_said_before_it_is(
    words: tuple[str, str], code: int, says: str, run: Run
) -> None:
    """Limits before any call; one budget holds for both sides together."""
    Path("cases.jsonl").write_text(
        "".join(
            json.dumps({"case_id": c.case_id, "query": c.query, "judgments": [{"passage_id": "r"}]}) + "\n"
            for c in CASES
        )
    )
    Path("small.toml").write_text("[sweep]\nmax_calls = 59\n")
    Path("one.toml").write_text("[sweep]\nmax_calls = 119\n")
    live = ("compare", "compared_app:old", "compared_app:new", "--cases", "cases.jsonl", "--k", "1")
    done = run(*live, *words)
    assert (done.exit_code, says in done.stderr) == (code, True), done.stderr
    assert ("compared_app" in sys.modules) == (code == 6)


def test_a_smoke_set_is_enough_for_a_pull_request(run: Run) -> None:
    """The same few cases each time."""
    told = json.loads(run(*FILES, "--smoke", "6", "--json").stdout)
    assert told["n"] == 6
    assert told == json.loads(run(*FILES, "--smoke", "6", "--json").stdout)


def test_files_for_ci(run: Run) -> None:
    """JUnit with a test for each limit, Markdown with both lists."""
    run(*FILES, "--max-lost", "0", "--max-drop", "recall=0.02", "--junit", "j.xml", "--markdown", "c.md")
    suite = Xml.parse("j.xml").getroot()[0]
    assert (suite.get("tests"), suite.get("failures")) == ("2", "1")
    failure = suite.find("testcase/failure")
    assert failure is not None
    assert "q1" in (failure.text or "")
    text = Path("c.md").read_text("utf-8")
    assert "**failed**" in text
    assert "**Lost: 1**" in text
    assert "**Gained: 1**" in text


def compared(after: dict[str, RankedList], limits: Limits, cases: list[Case] | None = None) -> Any:
    """Compare a system with the one that finds everything, at depth 2."""
    return compare_systems(cases or CASES, Side(system(), 2), Side(after, 2), ("a", "b"), limits)


def test_a_shown_fall_fails_and_a_fall_within_the_limit_does_not() -> None:
    """Nine of sixty lost is shown to be more than 2 points, not more than 20."""
    after = system(frozenset(range(9)))
    assert not compared(after, Limits(max_drop={"recall": 0.02})).ok
    assert compared(after, Limits(max_drop={"recall": 0.2})).ok


def test_one_lost_of_sixty_is_not_shown_to_be_a_fall() -> None:
    """Chance alone does that; the list of the lost is another limit."""
    after = system(frozenset({7}))
    assert compared(after, Limits(max_drop={"recall": 0.0})).ok
    assert not compared(after, Limits(max_lost=0)).ok


def test_with_too_few_cases_the_mean_decides() -> None:
    """A gate that cannot tell does not say that all is well."""
    after = system(frozenset({0}))
    told = compared(after, Limits(max_drop={"recall": 0.02}), CASES[:5])
    assert not told.ok
    assert "too few cases to test, so the mean decides" in told.gates[0].text
    assert compared(after, Limits(max_drop={"recall": 0.2}), CASES[:5]).ok


def test_equal_systems_pass_every_limit() -> None:
    """Whatever is asked."""
    told = compared(system(), Limits(max_lost=0, max_drop={"recall": 0.0, "ndcg": 0.0}))
    assert told.ok
    assert (told.lost, told.gained) == ((), ())


def test_the_holdout_takes_no_part() -> None:
    """Looked at with every change, it would soon confirm anything."""
    from dataclasses import replace

    cases = [replace(case, split="holdout" if i < 9 else "tune") for i, case in enumerate(CASES)]
    told = compared(system(frozenset(range(9))), Limits(max_lost=0), cases)
    assert told.ok
    assert told.notes == ["9 cases of the holdout take no part"]


def test_nothing_to_compare_is_said() -> None:
    """No judged case with a relevant passage."""
    with pytest.raises(UsageError, match="expected judged cases"):
        compared(system(), Limits(), [Case(case_id="q0", judgments={})])


@pytest.mark.parametrize("text", ["recall", "recall=x", "recall=-0.1", "recall=2", "=0.1="])
def test_a_limit_that_cannot_be_meant_is_refused(text: str) -> None:
    """With an example."""
    with pytest.raises(UsageError, match=r"as recall=0\.02"):
        parse_drops([text])


def test_fewer_than_no_case_lost_is_no_limit() -> None:
    """It would fail every build."""
    with pytest.raises(UsageError, match="expected --max-lost from 0"):
        compared(system(), Limits(max_lost=-1))


def test_words_of_users_make_no_markup() -> None:
    """A query may hold pipes, tags and control characters."""
    cases = [Case(case_id="q0", query="a | <b> \x00\x1b `x` &lt;", judgments={"r": 1.0})]
    told = compared(system(frozenset({0})), Limits(max_lost=0), cases).as_dict()
    assert "a \\| \\<b\\>" in markdown(told)
    assert "\\&lt;" in markdown(told)  # shown as it was asked
    assert Xml.fromstring(junit(told))[0].get("failures") == "1"
