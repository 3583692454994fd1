"""Which evidence arrives, which comes in part, and which never does."""

from __future__ import annotations

import numpy as np

from resweep.domain.estimate import weighted_mean
from resweep.sweep.choose import label
from resweep.sweep.evidence import Cell
from resweep.sweep.findings.picture import Finding, Picture, listed, percent


def out_of_reach(picture: Picture) -> Finding | None:
    """Evidence beyond every depth is no matter of k."""
    evidence, last = picture.evidence, picture.row[-1]
    missing = 1 - evidence.values["recall"][:, evidence.column(last)]
    touched = np.flatnonzero(missing > 0)
    if not len(touched):
        return None
    worst = touched[np.argsort(-missing[touched], kind="stable")]
    ids = [evidence.cases[i].case_id for i in worst]
    share = percent(weighted_mean((missing > 0).astype(np.float64), evidence.weights))
    by_weight = f"{share} by weight" if evidence.weighted else share
    return Finding(
        "out_of_reach",
        f"{percent(weighted_mean(missing, evidence.weights))} of the evidence, as a mean over cases, is not "
        f"within {last.context_k}; {len(touched)} of {len(missing)} cases ({by_weight}) miss some: "
        f"{listed(ids)}. No k reaches it: another index, chunking or a lexical channel may.",
    )


def at_the_edge(picture: Picture) -> Finding | None:
    """A best set at the deepest depth alone says that the sweep stopped too soon."""
    row, best = picture.row, picture.choice.best_depths
    longest = picture.evidence.runs[row[-1].candidate_k].longest
    if len(row) < 2 or best != (row[-1].context_k,) or longest <= row[-1].context_k:
        return None
    return Finding(
        "at_the_edge",
        f"Only the deepest depth swept ({best[0]}) is in the best set, and the lists go on to {longest}: "
        "sweep deeper before settling on it.",
    )


def partial_credit(picture: Picture) -> Finding | None:
    """Half the evidence is credit in recall, and often no answer."""
    recall = picture.mean("recall", picture.at) or 0.0
    whole = picture.mean("all_evidence", picture.at) or 0.0
    if recall - whole < 0.005:
        return None
    return Finding(
        "partial_credit",
        f"At {picture.name(picture.at)}, recall is {percent(recall)} but only {percent(whole)} of cases have "
        f"all their evidence: {100 * (recall - whole):.1f} points of partial credit, which is "
        f"{percent((recall - whole) / recall)} of the recall.",
    )


def weak_slices(picture: Picture) -> Finding | None:
    """A mean over everything hides the part that fails."""
    name = picture.choice.objective
    overall = picture.mean(name, picture.at)
    if overall is None:
        return None
    found = []
    for part in picture.slices:
        estimate = picture.evidence.estimate(
            name,
            picture.at,
            part.rows.astype(np.float64),
            alpha=picture.settings.alpha,
            standard=picture.settings.standard,
        )
        critical = part.label in picture.settings.critical
        mean, high = estimate.mean, estimate.high
        if mean is not None and high is not None and (critical or high < overall):
            found.append((mean, f"{part.label} {mean:.3f} ({estimate.n} cases)"))
    if not found:
        return None
    weakest = listed([text for _, text in sorted(found)])
    return Finding(
        "slices",
        f"Against {name} {overall:.3f} over all, at {picture.name(picture.at)}: {weakest}.",
    )


def before_the_reranker(picture: Picture) -> Finding | None:
    """What never was a candidate no reranker can bring back."""
    first, at = picture.first_stage, picture.at
    if first is None:
        return None
    depth = first.cells[0].candidate_k

    def recall(k: int) -> float | None:
        cell = Cell(depth, k)
        if cell not in first.cells:
            return None
        settings = picture.settings
        return first.estimate("recall", cell, alpha=settings.alpha, standard=settings.standard).mean

    before, pool = recall(at.context_k), recall(at.candidate_k)
    after = picture.mean("recall", at)
    if before is None or after is None:
        return None
    limit = (
        "" if pool is None else f" The pool of {at.candidate_k} holds {percent(pool)}: no order can do more."
    )
    return Finding(
        "reranker",
        f"At context_k {at.context_k}, recall is {percent(before)} before the reranker and {percent(after)} "
        f"after it.{limit}",
    )


def grid_agreement(picture: Picture) -> Finding | None:
    """Reranking a whole pool and keeping it all must find what the pool holds."""
    first = picture.first_stage
    if first is None:
        return None
    shared = [
        (cell, Cell(first.cells[0].candidate_k, cell.context_k))
        for cell in picture.evidence.cells
        if cell.context_k == cell.candidate_k
        and Cell(first.cells[0].candidate_k, cell.context_k) in first.cells
    ]
    if not shared:
        return None
    rows = [
        (
            cell,
            picture.mean("recall", cell) or 0.0,
            first.estimate(
                "recall", other, alpha=picture.settings.alpha, standard=picture.settings.standard
            ).mean
            or 0.0,
        )
        for cell, other in shared
    ]
    numbers = ", ".join(f"{cell.candidate_k}: {grid:.3f} and {sweep:.3f}" for cell, grid, sweep in rows)
    if all(abs(grid - sweep) < 0.005 for _, grid, sweep in rows):
        return Finding("grid_agrees", f"Grid and first stage agree on recall where they overlap ({numbers}).")
    return Finding(
        "grid_disagrees",
        f"Grid and first stage should agree on recall where the whole pool is kept, and do not ({numbers}): "
        "they were measured on different lists, and their answers cannot be compared.",
    )


def unreachable(picture: Picture) -> Finding | None:
    """A depth the retriever never serves must not look like a flat curve."""
    cells = [(c, s) for c, s in picture.evidence.status.items() if s.state == "unreachable"]
    if not cells:
        return None
    names = ", ".join(label(cell, tuple(picture.evidence.status)) for cell, _ in cells)
    whys = "; ".join(dict.fromkeys(status.why for _, status in cells))
    return Finding("unreachable", f"Not measured: {names} ({whys}).")


def short_lists(picture: Picture) -> Finding | None:
    """A depth that most lists do not fill is no depth."""
    run = picture.evidence.runs[picture.at.candidate_k]
    returned = run.table.returned
    short = [(cell, float((returned < cell.context_k).mean())) for cell in picture.row]
    named = [f"{picture.name(cell)} ({percent(share)})" for cell, share in short if share >= 0.01]
    if not named:
        return None
    return Finding(
        "short_lists",
        f"Lists that end before the depth they are measured at: {', '.join(named)}. Precision divides by k "
        "all the same; precision_returned by what came.",
    )
