"""Answers at every depth: asked once for equal content, judged with a reason, within a budget."""

from __future__ import annotations

import gzip
import json
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from resweep.domain.errors import BudgetSpentError, InputError
from resweep.sweep.answered import Checking
from resweep.sweep.answers import AnswerCost, Answering, Model, Said, ToJudge, Verdict
from resweep.sweep.audit import Item
from resweep.sweep.cache import Cache
from resweep.sweep.calls import CallFailedError, Policy
from resweep.sweep.engine import Sweep
from resweep.sweep.lists import Case, RankedList
from resweep.sweep.runner import Question, Target, Wanted, sweep_live
from resweep.sweep.saved import read_saved, write_saved
from resweep.sweep.settings import SweepSettings

KS = (1, 2, 4)
CASES = [
    Case(case_id=f"c{i}", query=f"question {i}", judgments={"r": 1.0}, reference=f"answer {i}")
    for i in range(40)
]
QUICK = Policy(backoff_s=0.0, sleep=lambda _: None)
Run = Callable[..., Sweep]


def retrieve(question: Question) -> RankedList:
    """The evidence stands at rank 2; every list goes on to what distracts."""
    ids = ["x0", "r", "x1", "x2"][: question.context_k]
    return RankedList(ids, texts=[f"{i} for {question.query}" for i in ids], tokens=[10] * len(ids))


class Models:
    """A generator that is right at depth 2 and distracted at 4, and an honest judge; both count."""

    def __init__(self) -> None:
        self.made: Counter[tuple[str, int]] = Counter()
        self.ruled: Counter[str] = Counter()
        self.order: list[tuple[str, ...]] = []

    def generate(self, question: str, passages: Sequence[str]) -> Said:
        number = int(question.split()[1])
        self.made[question, len(passages)] += 1
        self.order.append(tuple(passages))
        found = any(text.startswith("r ") for text in passages)
        distracted = len(passages) == 4 and number % 2
        known = not passages and number < 4
        right = known or (found and not distracted)
        return Said(f"answer {number}" if right else "no idea", 100, 5)

    def judge(self, asked: ToJudge) -> Verdict:
        self.ruled[asked.answer] += 1
        right = asked.answer == asked.reference
        return Verdict(right, "same" if right else "differs", 50, 3)

    def answering(self, **changes: Any) -> Answering:
        model = Model(name="m", version="1", usd_per_million=10.0)
        return Answering(
            generate=self.generate, judge=self.judge, generator=model, judge_model=model, **changes
        )


@pytest.fixture(name="run")
def _run(tmp_path: Path) -> Iterator[Run]:
    """Sweep with answers; the cache is shared by the sweeps of a test."""
    cache = Cache(tmp_path / "cache", now=1e9)

    def run(answering: Answering, policy: Policy = QUICK, **more: Any) -> Sweep:
        settings = SweepSettings(objective="answer_accuracy", resamples=500)
        wanted = Wanted(cases=more.pop("cases", CASES), ks=KS, sample=2)
        target = Target(ask=more.pop("ask", retrieve), version="v")
        return sweep_live(target, wanted, settings, cache=cache, policy=policy, answering=answering, **more)

    yield run
    cache.close()


def accuracy(swept: Sweep) -> list[float]:
    return [point["measures"]["answer_accuracy"]["mean"] for point in swept.report.points]


def test_accuracy_turns_over_where_passages_distract(run: Run) -> None:
    """Nothing at 1, everything at 2, half at 4: the sweep chooses 2."""
    swept = run(Models().answering())
    assert accuracy(swept) == [0.0, 1.0, 0.5]
    assert (swept.report.chosen["context_k"], swept.report.margin) == (2, 0.0)


def test_the_closed_book_row_shows_what_the_model_knows_unaided(run: Run) -> None:
    """Four of forty, and the report says that this is not the retriever's merit."""
    report = run(Models().answering()).report
    assert report.answers is not None
    assert report.answers["closed_book"]["mean"] == pytest.approx(0.1)
    texts = {found["code"]: found["text"] for found in report.diagnosis}
    assert texts["closed_book"].startswith("Without any passage 10.0 % of 40 answers are right")


def test_every_distinct_answer_is_made_once_and_every_distinct_verdict_given_once(run: Run) -> None:
    """4 contexts for each question; a second sweep asks for nothing at all."""
    models = Models()
    run(models.answering())
    assert sum(models.made.values()) == len(models.made) == 4 * 40
    assert models.ruled["answer 0"] == 1
    before = sum(models.ruled.values())
    run(models.answering())
    assert (sum(models.made.values()), sum(models.ruled.values())) == (160, before)


def test_another_judge_rules_anew_on_the_same_answers(run: Run) -> None:
    """Verdicts of different judges are not comparable; answers need not be made again."""
    models = Models()
    run(models.answering())
    ruled = sum(models.ruled.values())
    run(replace(models.answering(), judge_model=Model(name="m", version="2")))
    assert sum(models.made.values()) == 160
    assert sum(models.ruled.values()) == 2 * ruled


def test_the_record_names_models_versions_and_what_they_took(run: Run) -> None:
    """Tokens and money, at the prices given."""
    told = run(Models().answering()).report.answers
    assert told is not None
    assert told["generator"] == told["judge"]
    assert (told["judge"]["name"], told["judge"]["version"], told["rubric"]) == ("m", "1", "resweep.rubric/1")
    rulings = (told["prompt_tokens"] - 160 * 100) // 50
    assert told["completion_tokens"] == 160 * 5 + 3 * rulings
    assert told["usd"] == pytest.approx((told["prompt_tokens"] + told["completion_tokens"]) * 10 / 1e6)


def test_passages_stay_in_the_order_they_were_retrieved_unless_evidence_goes_first(run: Run) -> None:
    """What putting evidence on top gains is what a perfect reranker could give."""
    plain, pinned = Models(), Models()
    run(plain.answering())
    run(pinned.answering(evidence_first=True))
    assert ("x0 for question 0", "r for question 0") in plain.order
    assert ("r for question 0", "x0 for question 0") in pinned.order


def test_a_budget_that_cannot_suffice_asks_for_no_answer(run: Run) -> None:
    """In calls, tokens or money; the estimate is told before."""
    models = Models()
    told: list[AnswerCost] = []
    for policy in (
        replace(QUICK, max_calls=100),
        replace(QUICK, max_tokens=1000),
        replace(QUICK, max_usd=0.01),
    ):
        with pytest.raises(BudgetSpentError, match="no answer was asked for"):
            run(models.answering(tell=told.append), policy)
    assert not models.made
    assert (told[0].answers, told[0].verdicts) == (160, 160)
    assert told[0].usd == pytest.approx(told[0].prompt_tokens * 10 / 1e6)


def test_an_answer_that_cannot_be_used_is_paid_for_all_the_same(run: Run) -> None:
    """Each verdict comes at the second try; the first one's tokens count towards the budget."""
    models, tried = Models(), Counter[str]()

    def stammers(asked: ToJudge) -> Verdict:
        tried[asked.question + asked.answer] += 1
        if tried[asked.question + asked.answer] == 1:
            raise CallFailedError("no verdict", taken=(50, 3))
        return models.judge(asked)

    told = run(replace(models.answering(), judge=stammers)).report.answers
    made, ruled = sum(models.made.values()), sum(models.ruled.values())
    assert told is not None
    assert (told["prompt_tokens"], told["completion_tokens"]) == (
        100 * made + 100 * ruled,
        5 * made + 6 * ruled,
    )
    assert told["usd"] == pytest.approx(10e-6 * (105 * made + 106 * ruled))


def test_a_budget_that_runs_out_is_gone_on_from(run: Run) -> None:
    """What was paid for is kept."""
    models = Models()
    with pytest.raises(BudgetSpentError, match="answers are kept"):
        run(models.answering(), replace(QUICK, max_calls=230, concurrency=1))
    run(models.answering())
    assert sum(models.made.values()) == 160


def test_what_is_left_is_told_of_answers_and_verdicts(run: Run) -> None:
    """A sweep that ended between the two makes no answer anew, and still has every verdict to pay for."""
    told: list[AnswerCost] = []

    def gone(asked: ToJudge) -> Verdict:
        raise CallFailedError("no judge", again=False)

    with pytest.raises(InputError, match="no judge"):
        run(replace(Models().answering(), judge=gone))
    run(Models().answering(tell=told.append))
    assert (told[0].answers, told[0].verdicts) == (0, 2 * 40)  # each question was answered in two ways


def test_verdicts_and_reasons_are_kept_by_case_and_depth(run: Run, tmp_path: Path) -> None:
    """Any figure can be followed to its answers; the kept sweep reads back."""
    swept = run(Models().answering())
    write_saved(tmp_path / "kept", swept)
    packed = (tmp_path / "kept" / "cases.jsonl.gz").read_bytes()
    line = json.loads(gzip.decompress(packed).splitlines()[0])
    told = {one["context_k"]: (one["answer"], one["right"], one["reason"]) for one in line["answers"]}
    assert told[2] == ("answer 0", True, "same")
    assert told[1] == ("no idea", False, "differs")
    assert None in told
    assert read_saved(tmp_path / "kept").cases[0].reference == "answer 0"


def test_a_case_without_a_reference_takes_no_part_in_answers(run: Run) -> None:
    """It is counted; without any reference there is nothing to judge by."""
    some = [replace(case, reference=None) if i < 10 else case for i, case in enumerate(CASES)]
    report = run(Models().answering(), cases=some).report
    assert report.answers is not None
    assert report.answers["without_reference"] == 10
    assert report.points[1]["measures"]["answer_accuracy"]["n"] == 30
    assert report.points[1]["measures"]["recall"]["n"] == 40
    with pytest.raises(InputError, match="got none: a judge has nothing to compare with"):
        run(Models().answering(), cases=[replace(case, reference=None) for case in CASES])


def test_passages_without_texts_cannot_be_answered_from(run: Run) -> None:
    """Said with the case."""
    with pytest.raises(
        InputError, match="expected the text of every passage, got none for some of case 'c0'"
    ):
        run(Models().answering(), ask=lambda q: RankedList(["r", "x"][: q.context_k]))


def test_an_answer_that_fails_for_good_is_left_out_and_named(run: Run) -> None:
    """One of 160 may; its case takes no part in the means of answers."""
    models = Models()

    def flaky(question: str, passages: Sequence[str]) -> Said:
        if question == "question 7" and len(passages) == 2:
            raise ValueError("content filter")
        return models.generate(question, passages)

    report = run(replace(models.answering(), generate=flaky)).report
    assert report.answers is not None
    assert report.answers["failed"] == {"c7": "ValueError: content filter"}
    assert report.points[1]["measures"]["answer_accuracy"]["n"] == 39


def test_an_audit_corrects_levels_and_names_what_is_unresolved(run: Run) -> None:
    """A judge that says right too often at every depth is found out."""
    models = Models()

    def kind(asked: ToJudge) -> Verdict:
        honest = models.judge(asked)
        lenient = asked.question.endswith(("3", "8"))
        return replace_verdict(honest, right=honest.right or lenient)

    items = [Item(f"c{i}", k, None, k == 2 or (k == 4 and i % 2 == 0), 1e9) for k in KS for i in range(40)]
    checked = Checking(items=items, now=1e9)
    report = run(replace(models.answering(), judge=kind), check=checked).report
    assert report.answers is not None
    told = report.answers["audit"]
    assert (told["net_bias"]["too_kind"], told["net_bias"]["too_harsh"]) == (12, 0)
    assert told["net_bias"]["net"] == pytest.approx(0.1)
    levels = {one["context_k"]: one for one in told["levels"]}
    assert levels[1]["judged"] == pytest.approx(0.2)
    assert levels[1]["mean"] == pytest.approx(0.0, abs=1e-9)
    assert levels[4]["mean"] == pytest.approx(0.5, abs=1e-9)
    codes = {found["code"] for found in report.diagnosis}
    assert {"judge", "corrected"} <= codes
    text = next(found["text"] for found in report.diagnosis if found["code"] == "corrected")
    assert text.startswith("Corrected by the audits (PPI++), answers are right at 1: 0.0 % (0.0 % to ")
    assert "; at 4: 50.0 % (" in text


def replace_verdict(verdict: Verdict, *, right: bool) -> Verdict:
    return Verdict(right, verdict.reason, verdict.prompt_tokens, verdict.completion_tokens)
