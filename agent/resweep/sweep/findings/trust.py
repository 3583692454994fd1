"""How far the numbers can be trusted: judgments, weights, cases that take no part."""

from __future__ import annotations

import numpy as np

from resweep.domain.measures import MEASURES, RELEVANT_GRADE
from resweep.sweep.findings.picture import Finding, Picture, listed, percent
from resweep.sweep.unjudged import unjudged_bounds


def judged_share(picture: Picture) -> Finding | None:
    """Unjudged is not irrelevant: say how far it could move the result."""
    share, name = picture.mean("judged", picture.at), picture.choice.objective
    if share is None or share >= 0.9995:
        return None
    name = name if name in MEASURES and name != "judged" else "recall"
    low, high = unjudged_bounds(picture.evidence, picture.at, name)
    grades = (grade for case in picture.evidence.cases for grade in (case.judgments or {}).values())
    positive = all(grade >= RELEVANT_GRADE for grade in grades)
    closed = (
        " The judgments name relevant passages alone: all others are taken as judged." if positive else ""
    )
    return Finding(
        "unjudged",
        f"At {picture.name(picture.at)}, {percent(share)} of the passages were ever judged. Counted as not "
        f"relevant, the rest give {name} {picture.mean(name, picture.at) or 0.0:.3f}; judged, they could "
        f"move it to between {low:.3f} and {high:.3f}.{closed}",
    )


def weights(picture: Picture) -> Finding | None:
    """A labelled set of hard questions peaks elsewhere than the traffic does."""
    found = picture.estimate(picture.choice.objective, picture.at)
    if not picture.evidence.weighted or found.mean is None or found.unweighted is None:
        return None
    return Finding(
        "weighted",
        f"Cases are weighted back to the traffic: {picture.choice.objective} at {picture.name(picture.at)} "
        f"is {found.mean:.3f}, and {found.unweighted:.3f} without weights. {found.n} cases carry the weight "
        f"of {found.n_effective:.0f} equal ones.",
    )


def moved_texts(picture: Picture) -> Finding | None:
    """A judged id that now stands for another text is a judgment to repair."""
    moved = sum(m.moved for m in picture.evidence.run(picture.at).matched)
    if not moved:
        return None
    return Finding(
        "texts_moved",
        f"{moved} judged passages came back under their id with another text. They count as not found; "
        "re-anchor the judgments by text.",
    )


def left_out(picture: Picture) -> Finding | None:
    """Who does not count, and why, each under its own name."""
    roll = picture.evidence.roll
    parts = [
        (len(roll.unjudged), "unjudged, left out"),
        (len(roll.unanswerable), f"without any relevant passage, {len(roll.misled)} of which got passages"),
        (
            len(roll.shallow),
            "recorded to fewer ranks than the deepest k (sweep less deep, or probe)",
        ),
    ]
    texts = [f"{n} {what}" for n, what in parts if n]
    return Finding("left_out", f"Cases not in these means: {'; '.join(texts)}.") if texts else None


def missing(picture: Picture) -> Finding | None:
    """A judged case that the run never answered counts as lost."""
    evidence = picture.evidence
    ids = evidence.roll.missing
    if not ids or not evidence.cells:
        return None
    gone = frozenset(ids)
    present = np.array([case.case_id not in gone for case in evidence.cases], dtype=np.float64)
    name = picture.choice.objective
    without = evidence.estimate(
        name, picture.at, present, alpha=picture.settings.alpha, standard=picture.settings.standard
    )
    told = "no data" if without.mean is None else f"{without.mean:.3f}"
    return Finding(
        "missing",
        f"{len(ids)} judged cases are missing from the run and count 0: {listed(ids)}. Without them "
        f"{name} at {picture.name(picture.at)} is {told}.",
    )
