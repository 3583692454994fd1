"""How a report speaks: percentages, counts, dates, and the sentence over each chart."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

# A title for each finding of the diagnosis; a code without one is shown by its text alone.
TITLES: Mapping[str, str] = {
    "budget_choice": "A budget choice, not a peak",
    "reranking_problem": "Reranking problem rather than a k problem",
    "peaks_agree": "Recall and accuracy agree",
    "downstream": "Lost after retrieval",
    "at_the_edge": "The sweep stops too soon",
    "out_of_reach": "Evidence out of reach",
    "partial_credit": "Half answers",
    "slices": "Weak slices",
    "reranker": "What the reranker does",
    "grid_agrees": "Grid and first stage agree",
    "grid_disagrees": "Grid and first stage disagree",
    "short_lists": "Short lists",
    "unreachable": "Not reachable",
    "copies": "Copies among the deeper ranks",
    "duplicates": "Duplicates",
    "tokens": "Cost follows tokens",
    "latency_knee": "Time has a knee",
    "latency_uneven": "Time is uneven",
    "no_latency_knee": "No latency knee",
    "unjudged": "Unjudged is not irrelevant",
    "weighted": "Weighted to the traffic",
    "texts_moved": "Judged ids with another text",
    "missing": "Missing from the run",
    "left_out": "Left out of the means",
    "judge": "The judge",
    "corrected": "Corrected for the judge",
    "unresolved": "Unresolved by the judge",
    "closed_book": "What the model knows unaided",
    "superseded": "Superseded passages",
}
MEASURES: Mapping[str, str] = {
    "recall": "Recall",
    "all_evidence": "All evidence",
    "partial_credit": "Partial credit",
    "precision": "Precision",
    "precision_returned": "Precision (returned)",
    "context_precision": "Context precision",
    "ap": "Average precision",
    "mrr": "MRR",
    "ndcg": "nDCG",
    "judged": "Judged",
    "answer_accuracy": "Answer accuracy",
    "ragas_context_precision": "Context precision (Ragas)",
    "faithfulness": "Faithfulness",
    "citation_validity": "Citation validity",
}


# How some findings begin, which their title says already.
_SAID = (
    "This is a budget choice, not a peak: ",
    "A reranking problem rather than a k problem: ",
    "No latency knee: ",
    "Recall and accuracy do not point apart: ",
)


def titled(code: str, text: str) -> tuple[str, str]:
    """Return a finding's title and its text without what the title says; the title may be empty."""
    title = TITLES.get(code, "")
    for said in _SAID:
        if title and text.startswith(said):
            rest = text.removeprefix(said)
            named = "@" in rest.split(" ", 1)[0]  # a measure's name stays as it is written
            return title, rest if named else rest[0].upper() + rest[1:]
    return title, text


def name_of(measure: str) -> str:
    """Return a measure's name as a reader knows it."""
    return MEASURES.get(measure, measure.replace("_", " ").capitalize())


SPENT: Mapping[str, str] = {
    "prompt_tokens": "Tokens",
    "cost_usd": "USD / answer",
    "latency_p50_s": "p50",
    "latency_p95_s": "p95",
}


def spent(name: str, value: float | None) -> str:
    """Return what a depth takes: tokens, money or time."""
    return number(value) if name == "prompt_tokens" else usd(value) if name == "cost_usd" else seconds(value)


def percent(share: float | None, digits: int = 1) -> str:
    """Return a share in per cent, without the sign; a dash for no data."""
    if share is None:
        return "–"
    text = f"{100 * share:.{digits}f}"
    return text.removesuffix(".0") if digits == 1 and text.endswith("100.0") else text


def whole(share: float) -> str:
    """Return a share as an axis names it."""
    return f"{100 * share:g}"


def number(value: float | None, digits: int = 0) -> str:
    """Return a number with its thousands apart; a dash for no data."""
    return "–" if value is None else f"{value:,.{digits}f}"


def usd(value: float | None) -> str:
    """Return a price to two significant digits or the tenth of a cent, whichever is finer."""
    if value is None:
        return "–"
    return f"{value:.3f}" if value >= 0.001 or value == 0 else f"{value:.2g}"


def seconds(value: float | None) -> str:
    """Return a time: milliseconds below a second."""
    if value is None:
        return "–"
    return (
        f"{value:.2f} s"
        if value >= 1
        else f"{1000 * value:.0f} ms"
        if value >= 0.01
        else f"{1000 * value:.1f} ms"
    )


def day(ts: float | None) -> str:
    """Return a date as `2 Sep 2026`, in UTC; nothing where there is none."""
    if ts is None:
        return ""
    when = datetime.fromtimestamp(ts, UTC)
    return f"{when.day} {when:%b %Y}"


def listed(numbers: Sequence[int], most: int = 8) -> str:
    """Return depths in a row, shortened where there are many."""
    if len(numbers) <= most:
        return ", ".join(map(str, numbers))
    return f"{numbers[0]} to {numbers[-1]} ({len(numbers)} depths)"


def finding(measures: Sequence[tuple[str, Sequence[tuple[int, float]]]], report: Mapping[str, Any]) -> str:
    """Return the sentence over the main chart: what the curves say, from (measure, (k, mean)) pairs."""
    curves = dict(measures)
    chosen = report["chosen"]["context_k"]
    answers = curves.get("answer_accuracy")
    if answers:
        peak = max(answers, key=lambda point: point[1])
        if peak[0] != answers[-1][0] and answers[-1][1] < peak[1]:
            return f"More passages find more, but answer worse after {peak[0]}"
        return "Answers hold as more passages come in"
    recall = curves.get("recall") or next(iter(curves.values()))
    (first_k, first), (last_k, last) = recall[0], recall[-1]
    rise = f"Recall goes from {percent(first, 0)} % at {first_k} to {percent(last, 0)} % at {last_k}"
    if chosen is None:
        return f"{rise}; no depth meets the constraints"
    return f"{rise}; {chosen} is the least depth that holds up"
