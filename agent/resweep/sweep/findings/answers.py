"""Whether the answers say something else than retrieval does."""

from __future__ import annotations

import numpy as np

from resweep.domain.estimate import weighted_mean
from resweep.domain.measures import DEFINITIONS, NEVER_FALL
from resweep.domain.resample import compare
from resweep.sweep.evidence import USEFULNESS, Cell
from resweep.sweep.findings.picture import Finding, Picture, percent
from resweep.sweep.patterns import Move, Moves, pattern_of


def budget_choice(picture: Picture) -> Finding | None:
    """A retrieval measure cannot show where answers peak."""
    name, margin = picture.choice.objective, picture.choice.margin
    if name not in (*DEFINITIONS, USEFULNESS):
        return None
    why = (
        f"{name}@k never falls with k, on any corpus"
        if name in NEVER_FALL
        else f"{name}@k sees the ranking and not the answers"
    )
    return Finding(
        "budget_choice",
        f"This is a budget choice, not a peak: {why}. The best set holds every depth not shown worse than "
        f"the best by more than {margin:g}; where answers peak, only a sweep with answers can show.",
    )


def peak_gap(picture: Picture) -> Finding | None:
    """Recall still rising where accuracy has long turned over is a reranking problem."""
    row = picture.row
    accuracy = [picture.mean("answer_accuracy", cell) for cell in row]
    if len(row) < 2 or any(value is None for value in accuracy):
        return None
    recall = [picture.mean("recall", cell) or 0.0 for cell in row]
    top = max(range(len(row)), key=lambda i: accuracy[i] or 0.0)
    still = recall[-1] - recall[top]
    lost = (accuracy[top] or 0.0) - (accuracy[-1] or 0.0)
    if top == len(row) - 1:
        highest = (
            f"accuracy is highest at {picture.name(row[top])}, the deepest ({percent(accuracy[top] or 0.0)})"
        )
        return Finding(
            "peaks_agree",
            f"Recall and accuracy do not point apart: {highest}; deeper ones may do better still.",
        )
    numbers = (
        f"accuracy peaks at {picture.name(row[top])} ({percent(accuracy[top] or 0.0)}) and loses "
        f"{100 * lost:.1f} points by {picture.name(row[-1])}; recall goes on from {percent(recall[top])} to "
        f"{percent(recall[-1])}"
    )
    if still > 0.01 and recall[-1] > recall[-2]:
        return Finding(
            "reranking_problem",
            f"A reranking problem rather than a k problem: {numbers}. The evidence is there, and too low.",
        )
    return Finding("peaks_agree", f"Recall and accuracy do not point apart: {numbers}.")


def answers_pattern(picture: Picture) -> Finding | None:
    """The paired moves from the baseline to the chosen depth, read together."""
    before = picture.settings.baseline
    if before is None or before not in picture.evidence.cells or before == picture.at:
        return None
    moves = Moves(
        precision=_move(picture, "precision", before),
        recall=_move(picture, "recall", before),
        answers=_move(picture, "answer_accuracy", before),
        faithfulness=_move(picture, "faithfulness", before),
        cost="up" if picture.at.context_k > before.context_k else "down",
    )
    pattern = pattern_of(moves)
    if pattern is None:
        return None
    return Finding(
        pattern.code,
        f"From {picture.name(before)} to {picture.name(picture.at)}: precision {moves.precision}, recall "
        f"{moves.recall}, answers {moves.answers}: {pattern.reading}. Next: {pattern.next_experiment}.",
    )


def _move(picture: Picture, name: str, before: Cell) -> Move:
    evidence, settings = picture.evidence, picture.settings
    if name not in evidence.values:
        return "unknown"
    old, new = (evidence.values[name][:, evidence.column(cell)] for cell in (before, picture.at))
    seen = ~(np.isnan(old) | np.isnan(new))
    if not seen.any():
        return "unknown"
    change = compare(
        old[seen],
        new[seen],
        evidence.weights[seen],
        alpha=settings.alpha,
        seed=settings.seed,
        resamples=settings.resamples,
    )
    return "up" if change.low > 0 else "down" if change.high < 0 else "flat"


def downstream(picture: Picture) -> Finding | None:
    """All the evidence and a wrong answer is not retrieval's fault."""
    evidence = picture.evidence
    if "answer_accuracy" not in evidence.values:
        return None
    column = evidence.column(picture.at)
    whole = evidence.values["all_evidence"][:, column] == 1
    right = evidence.values["answer_accuracy"][:, column]
    seen = whole & ~np.isnan(right)
    if not seen.any():
        return None
    wrong = 1 - weighted_mean(right[seen], evidence.weights[seen])
    return Finding(
        "downstream",
        f"Of the {int(seen.sum())} cases with all their evidence at {picture.name(picture.at)}, "
        f"{percent(wrong)} are answered wrong all the same: that share is downstream of retrieval.",
    )
