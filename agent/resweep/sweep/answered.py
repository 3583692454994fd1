"""Answers in a sweep: made, judged, audited, and what they say in the report."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from resweep.domain.errors import BudgetSpentError, InputError
from resweep.sweep.answers import (
    MEASURE,
    NO_COST,
    RUBRIC,
    AnswerCost,
    Answering,
    Answers,
    Model,
    answer_cost,
    make_answers,
    wanted_answers,
)
from resweep.sweep.audit import Audit, Item, audit
from resweep.sweep.calls import Calls
from resweep.sweep.engine import Sweep
from resweep.sweep.evidence import USEFULNESS, Cell
from resweep.sweep.findings.picture import percent
from resweep.sweep.lists import Case, Lists
from resweep.sweep.report import Report
from resweep.sweep.settings import SweepSettings
from resweep.sweep.usefulness import DEFINITION, Weighing, Weights


@dataclass(frozen=True, slots=True, kw_only=True)
class Checking:
    """A person's verdicts, and the time (unix s) that decides whether they still speak for the judge.

    `tolerance` None: 2 points, or half the width of the net bias where that is more.
    """

    items: Sequence[Item]
    now: float
    tolerance: float | None = None


def answer_all(
    cases: Sequence[Case],
    cells: Mapping[Cell, Lists],
    answering: Answering,
    calls: Calls,
    also: AnswerCost = NO_COST,
) -> Answers:
    """Return every answer with its verdict. Raises InputError where no case has a reference to judge by.

    `also` is what will be asked for beside answers, within the same budget.
    """
    wanted = wanted_answers(cases, cells, evidence_first=answering.evidence_first)
    if not wanted:
        raise InputError(
            "expected cases with a `reference_answer`, got none: a judge has nothing to compare with; add "
            "references, or sweep retrieval alone"
        )
    cost = answer_cost(wanted, answering, calls.cache)
    if answering.tell is not None:
        answering.tell(cost)
    check_affordable(cost, also, calls)
    answers = make_answers(wanted, answering, calls)
    answers.without_reference = sum(case.kind == "answerable" and case.reference is None for case in cases)
    return answers


def check_affordable(cost: AnswerCost, also: AnswerCost, calls: Calls) -> None:
    """Raise BudgetSpentError where the budget cannot suffice for answers, and verdicts on passages beside."""
    told = " and ".join(
        f"{n} {what}" for n, what in ((cost.answers, "answers"), (also.verdicts, "passages to weigh")) if n
    )
    policy, so_far = calls.policy, calls.progress
    for limit, used, more, what in (
        # at least one for each answer to make, and for each that was made and not judged
        (policy.max_calls, so_far.calls, cost.verdicts + also.verdicts, "calls"),
        (policy.max_tokens, 0, cost.prompt_tokens + also.prompt_tokens, "tokens"),
        (policy.max_usd, 0.0, (cost.usd or 0.0) + (also.usd or 0.0), "USD"),
    ):
        if limit is not None and used + more > limit:
            raise BudgetSpentError(
                f"expected a budget of about {used + more:,.6g} {what} for "
                f"{told or 'verdicts'}, got {limit:g}; no answer was asked for: raise it, or sweep fewer "
                "depths or cases"
            )


def with_answers(
    swept: Sweep,
    answers: Answers,
    answering: Answering,
    cases: Sequence[Case],
    settings: SweepSettings,
    check: Checking | None,
) -> Sweep:
    """Return the sweep with what made and judged its answers, and what follows from an audit."""
    audited = None
    if check is not None:
        judged = answers.extra()[MEASURE]
        audited = audit(
            check.items,
            judged,
            check.now,
            weights={case.case_id: case.weight for case in swept.tune.cases},
            alpha=settings.alpha,
            tolerance=check.tolerance,
        )
    told: dict[str, Any] = {
        "generator": _model(answering.generator),
        "judge": _model(answering.judge_model),
        "prompt": answering.prompt,
        "rubric": RUBRIC,
        "evidence_first": answering.evidence_first,
        "closed_book": answers.closed_book(cases, settings),
        "verdicts": len(answers.judged),
        "prompt_tokens": answers.prompt_tokens,
        "completion_tokens": answers.completion_tokens,
        "usd": answers.usd,
        "without_reference": answers.without_reference,
        "failed": dict(answers.errors),
        "audit": audited.as_dict() if audited else None,
    }
    found = [
        *_closed_book(told, swept.report),
        *_judge(answers, audited),
        *_corrected(swept.report, audited),
        *_unresolved(swept.report, audited),
    ]
    report = replace(swept.report, answers=told, diagnosis=[*swept.report.diagnosis, *found])
    return replace(swept, report=report, answers=tuple(answers.judged))


def with_weights(swept: Sweep, weights: Weights, weighing: Weighing) -> Sweep:
    """Return the sweep with who weighed its passages, by which question, and what it took."""
    told: dict[str, Any] = {
        "measure": USEFULNESS,
        "judge": _model(weighing.model),
        "rubric": weighing.rubric,
        "verdicts": weights.verdicts,
        "prompt_tokens": weights.prompt_tokens,
        "completion_tokens": weights.completion_tokens,
        "usd": weights.usd,
        "without_reference": weights.without_reference,
        "failed": dict(weights.errors),
    }
    definitions = {**swept.report.definitions, USEFULNESS: DEFINITION}
    report = replace(swept.report, ragas=told, definitions=definitions)
    return replace(swept, report=report, weighed=tuple(weights.weighed))


def _model(model: Model) -> dict[str, Any]:
    return asdict(model)


def _closed_book(told: Mapping[str, Any], report: Report) -> list[dict[str, str]]:
    """What the model answers unaided is not the retriever's merit."""
    book = told["closed_book"]
    if book["mean"] is None:
        return []
    at = _accuracy(report, report.chosen["candidate_k"], report.chosen["context_k"])
    beside = "" if at is None else f"; with the chosen depth it is {percent(at)}"
    interval = f"{percent(book['low'])} to {percent(book['high'])}"
    text = (
        f"Without any passage {percent(book['mean'])} of {book['n']} answers are right ({interval}){beside}. "
        "That share is not the retriever's merit."
    )
    return [{"code": "closed_book", "text": text}]


def _judge(answers: Answers, audited: Audit | None) -> list[dict[str, str]]:
    """A judge that nobody checked is a guess."""
    if audited is None:
        text = (
            f"Nobody audited the judge: {len(answers.judged)} verdicts stand as they are. Grade some of "
            "them, spread over depths, and give them with --audit."
        )
        return [{"code": "judge", "text": text}]
    bias, (share, low, high) = audited.overall, audited.agreement
    stale = " The audit has expired." if audited.expired else ""
    net = f"{100 * bias.net:+.1f} points ({100 * bias.low:+.1f} to {100 * bias.high:+.1f})"
    text = (
        f"{bias.n} answers audited: the judge agrees on {percent(share)} ({percent(low)} to "
        f"{percent(high)}). It was too kind {bias.too_kind} and too harsh {bias.too_harsh} times, a net bias "
        f"of {net}; {audited.to_halve} more audits would halve that width.{stale}"
    )
    return [{"code": "judge", "text": text}]


def _corrected(report: Report, audited: Audit | None) -> list[dict[str, str]]:
    """Heights come from people's verdicts as well, never from the judge's alone."""
    if audited is None:
        return []
    row = report.chosen["candidate_k"] or max(level.cell.candidate_k for level in audited.levels)
    levels = [
        f"{level.cell.context_k}: {percent(level.mean)} ({percent(level.low)} to {percent(level.high)}"
        f"{'' if level.own else ', by audits of other depths too'})"
        for level in audited.levels
        if level.cell.candidate_k == row
    ]
    text = f"Corrected by the audits (PPI++), answers are right at {'; at '.join(levels)}."
    return [{"code": "corrected", "text": text}]


def _unresolved(report: Report, audited: Audit | None) -> list[dict[str, str]]:
    """Differences smaller than the judge is exact are not told apart."""
    chosen = _accuracy(report, report.chosen["candidate_k"], report.chosen["context_k"])
    if audited is None or chosen is None:
        return []
    near = [
        f"{k} ({100 * (mean - chosen):+.1f} points)"
        for candidate_k, k in report.best_cells
        if (mean := _accuracy(report, candidate_k, k)) is not None
        and [candidate_k, k] != [report.chosen["candidate_k"], report.chosen["context_k"]]
        and abs(mean - chosen) < audited.tolerance
    ]
    if not near:
        return []
    text = (
        f"Unresolved by the judge against {report.chosen['context_k']}: {', '.join(near)}; it is exact to "
        f"{100 * audited.tolerance:.1f} points."
    )
    return [{"code": "unresolved", "text": text}]


def _accuracy(report: Report, candidate_k: int | None, context_k: int | None) -> float | None:
    for point in report.points:
        if (point["candidate_k"], point["context_k"]) == (candidate_k, context_k):
            found = point["measures"].get(MEASURE)
            mean: float | None = found["mean"] if found else None
            return mean
    return None
