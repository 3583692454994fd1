"""Ragas' context precision at every depth from one verdict for each passage."""

from __future__ import annotations

import gzip
import json
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from resweep.domain.errors import BudgetSpentError, InputError
from resweep.sweep.answers import AnswerCost, Answering, Model, Said, Verdict
from resweep.sweep.cache import Cache
from resweep.sweep.calls import CallFailedError, Policy
from resweep.sweep.engine import Sweep
from resweep.sweep.evidence import USEFULNESS
from resweep.sweep.lists import Case, RankedList
from resweep.sweep.runner import Question, Target, Wanted, sweep_live
from resweep.sweep.saved import write_saved
from resweep.sweep.settings import SweepSettings
from resweep.sweep.usefulness import (
    EPSILON,
    ToWeigh,
    Usefulness,
    Weighing,
    context_precision,
)

KS = (1, 2, 4)
CASES = [Case(case_id=f"c{i}", query=f"q{i}", judgments={"a": 1.0}, reference="so") for i in range(10)]
MODEL = Model(name="m", version="1", usd_per_million=10.0)
Run = Callable[..., Sweep]


def retrieve(question: Question) -> RankedList:
    """The second and the fourth passage are useful."""
    ids = ["x", "a", "y", "b"][: question.context_k]
    return RankedList(ids, texts=[f"{one} of {question.query}" for one in ids])


class Judge:
    """Says that a and b are useful; counts what it was asked."""

    def __init__(self) -> None:
        self.asked: Counter[ToWeigh] = Counter()

    def __call__(self, one: ToWeigh) -> Usefulness:
        self.asked[one] += 1
        return Usefulness(one.passage[0] in "ab", f"on {one.passage[0]}", 50, 4)

    def weighing(self, **changes: Any) -> Weighing:
        held: dict[str, Any] = {"judge": self, "model": MODEL, "rubric": "r/1", "prompt_tokens": 30}
        return Weighing(**held | changes)


@pytest.fixture(name="run")
def _run(tmp_path: Path) -> Iterator[Run]:
    """Sweep with passages weighed; the cache is shared by the sweeps of a test."""
    cache = Cache(tmp_path / "cache", now=1e9)

    def run(weighing: Weighing, policy: Policy | None = None, **more: Any) -> Sweep:
        return sweep_live(
            Target(ask=more.pop("ask", retrieve), version=more.pop("version", "v")),
            Wanted(cases=more.pop("cases", CASES), ks=more.pop("ks", KS), sample=2),
            more.pop("settings", SweepSettings(resamples=200)),
            cache=cache,
            policy=policy or Policy(backoff_s=0.0, sleep=lambda _: None),
            weighing=weighing,
            **more,
        )

    yield run
    cache.close()


def means(swept: Sweep) -> list[float | None]:
    return [point["measures"][USEFULNESS]["mean"] for point in swept.report.points]


@pytest.mark.parametrize(
    ("useful", "value"),
    [
        ([True], 1 / (1 + EPSILON)),
        ([False, True, False, True], (1 / 2 + 2 / 4) / (2 + EPSILON)),
        ([False, False], 0.0),
        ([], 0.0),
    ],
)
def test_the_precision_of_useful_ranks_is_averaged_over_those_found(useful: list[bool], value: float) -> None:
    """Not over the relevant there are: what was missed costs nothing, and epsilon guards an empty list."""
    assert context_precision(useful) == value


def test_every_depth_has_its_value_from_the_verdicts_of_the_deepest(run: Run) -> None:
    """4 passages of 10 cases: 40 calls for three depths."""
    judge = Judge()
    swept = run(judge.weighing())
    assert means(swept) == pytest.approx([0.0, 0.5, 0.5])
    assert len(judge.asked) == 40
    assert set(judge.asked.values()) == {1}


def test_a_second_sweep_asks_nothing_and_another_depth_only_what_is_new(run: Run) -> None:
    """Verdicts are kept by question, reference, passage, rubric, and judge."""
    judge = Judge()
    run(judge.weighing(), ks=(1, 2))
    run(judge.weighing(), ks=(1, 2))
    assert judge.asked.total() == 20
    run(judge.weighing())
    assert judge.asked.total() == 40


@pytest.mark.parametrize(
    "change", [{"rubric": "r/2"}, {"model": Model(name="m", version="2")}], ids=["rubric", "judge"]
)
def test_another_rubric_or_judge_is_asked_anew(run: Run, change: dict[str, Any]) -> None:
    """Verdicts of different judges are not comparable."""
    judge = Judge()
    run(judge.weighing())
    run(judge.weighing(**change))
    assert judge.asked.total() == 80


def test_a_passage_that_cannot_be_weighed_leaves_its_depths_out(run: Run) -> None:
    """The case stays at the depths before it, and is named."""
    judge = Judge()

    def fails(one: ToWeigh) -> Usefulness:
        if one.passage == "y of q3":
            raise CallFailedError("no verdict", again=False)
        return judge(one)

    swept = run(judge.weighing(judge=fails))
    assert [point["measures"][USEFULNESS]["n"] for point in swept.report.points] == [10, 10, 9]
    ragas: Any = swept.report.ragas
    assert ragas["failed"] == {"c3": "CallFailedError: no verdict"}


def test_a_budget_that_cannot_suffice_is_refused_before_the_first_verdict(run: Run) -> None:
    """40 verdicts and 16 retrievals do not fit into 50 calls."""
    judge = Judge()
    told: list[AnswerCost] = []
    with pytest.raises(BudgetSpentError, match="40 passages to weigh"):
        run(judge.weighing(tell=told.append), Policy(max_calls=50))
    assert (judge.asked.total(), told[0].verdicts, told[0].usd is not None) == (0, 40, True)


def test_a_budget_is_for_answers_and_verdicts_together(run: Run) -> None:
    """Neither is begun where both cannot be paid."""
    judge = Judge()
    answering = Answering(
        generate=lambda q, p: Said("so"),
        judge=lambda asked: Verdict(True),
        generator=MODEL,
        judge_model=MODEL,
    )
    with pytest.raises(BudgetSpentError, match="40 answers and 40 passages to weigh"):
        run(judge.weighing(), Policy(max_calls=60), answering=answering)
    assert judge.asked.total() == 0


def test_what_it_took_is_told_apart_from_answers(run: Run) -> None:
    """50 tokens in and 4 out for each of 40, at 10 USD a million."""
    told: Any = run(Judge().weighing()).report.ragas
    assert (told["verdicts"], told["prompt_tokens"], told["completion_tokens"]) == (40, 2000, 160)
    assert told["usd"] == pytest.approx(0.0216)
    assert (told["measure"], told["rubric"], told["judge"]["name"]) == (USEFULNESS, "r/1", "m")


def test_a_sweep_that_was_cut_off_pays_for_no_verdict_twice(run: Run) -> None:
    """The verdicts before the budget ended are kept."""
    judge = Judge()

    def dear(one: ToWeigh) -> Usefulness:
        found = judge(one)
        return Usefulness(found.useful, found.reason, 10_000, 0)

    with pytest.raises(BudgetSpentError):
        run(judge.weighing(judge=dear), Policy(max_tokens=100_000, concurrency=1))
    before = judge.asked.total()
    run(judge.weighing(judge=dear))
    assert (0 < before < 40, judge.asked.total()) == (True, 40)


def test_verdicts_are_kept_with_their_reasons(run: Run, tmp_path: Path) -> None:
    """By case, in the order retrieved."""
    write_saved(tmp_path / "kept", run(Judge().weighing()))
    line = gzip.decompress((tmp_path / "kept" / "cases.jsonl.gz").read_bytes()).splitlines()[0]
    kept = json.loads(line)["usefulness"]
    assert [(one["passage_id"], one["useful"], one["reason"]) for one in kept] == [
        ("x", False, "on x"),
        ("a", True, "on a"),
        ("y", False, "on y"),
        ("b", True, "on b"),
    ]


def test_it_can_decide_as_a_measure_of_the_ranking(run: Run) -> None:
    """2 and 4 differ by Ragas' epsilon alone, alike in every case: within the margin they are as good."""
    report = run(Judge().weighing(), settings=SweepSettings(objective=USEFULNESS, resamples=200)).report
    assert (report.chosen["context_k"], list(report.best_set), report.margin) == (2, [2, 4], 0.02)
    assert "budget_choice" in {found["code"] for found in report.diagnosis}
    assert report.definitions[USEFULNESS].startswith("sum over useful ranks")


def test_cases_without_a_reference_are_counted_and_none_at_all_is_refused(run: Run) -> None:
    """There is nothing to weigh by."""
    mute = [Case(case_id="m", query="q", judgments={"a": 1.0})]
    told: Any = run(Judge().weighing(), cases=[*CASES, *mute]).report.ragas
    assert told["without_reference"] == 1
    with pytest.raises(InputError, match="nothing to weigh passages by"):
        run(Judge().weighing(), cases=mute, version="other")
