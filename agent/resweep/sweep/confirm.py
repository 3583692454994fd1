"""Confirmation of a chosen depth on cases that had no part in choosing it."""

from __future__ import annotations

from dataclasses import dataclass

from resweep.domain.errors import UsageError
from resweep.domain.estimate import Estimate
from resweep.sweep.choose import Choice, compare_cells
from resweep.sweep.evidence import Evidence
from resweep.sweep.settings import Looks, SweepSettings


@dataclass(frozen=True, slots=True, kw_only=True)
class Confirmation:
    """What the holdout says of the chosen depth; `agrees` is None where it cannot tell."""

    n_tune: int
    n_holdout: int
    tune: Estimate
    holdout: Estimate
    looks: Looks
    agrees: bool | None
    text: str


def confirm(
    choice: Choice, tune: Evidence, holdout: Evidence, settings: SweepSettings
) -> Confirmation | None:
    """Return whether the holdout contradicts the choice; None where nothing was chosen.

    It agrees unless the chosen depth is shown worse than the best by more than the margin. Each look at the
    holdout spends its part of alpha (alpha / looks allowed), so that looking again does not make chance
    look like proof. Raises UsageError for a look beyond those allowed, or for tuning cases.
    """
    looks = settings.looks
    if holdout.split != "holdout":
        raise UsageError("expected the holdout, got tuning cases: they cannot confirm what they chose")
    if looks.look > looks.of:
        raise UsageError(
            f"expected at most {looks.of} looks at the holdout, this would be number {looks.look}; "
            "refresh the holdout with new cases"
        )
    if choice.chosen is None or choice.chosen not in holdout.cells:
        return None
    best, cells = compare_cells(holdout, settings, settings.alpha / looks.of)
    known = best is not None and not best.too_few and choice.chosen in cells
    agrees = bool(best.kept[cells.index(choice.chosen)]) if best is not None and known else None
    scores = [
        split.estimate(choice.objective, choice.chosen, alpha=settings.alpha, standard=settings.standard)
        for split in (tune, holdout)
    ]
    return Confirmation(
        n_tune=len(tune.cases),
        n_holdout=len(holdout.cases),
        tune=scores[0],
        holdout=scores[1],
        looks=looks,
        agrees=agrees,
        text=_text(choice, scores[0], scores[1], looks, agrees),
    )


def _text(choice: Choice, tune: Estimate, holdout: Estimate, looks: Looks, agrees: bool | None) -> str:
    verdict = {True: "agrees", False: "disagrees: another depth is shown better", None: "too few to tell"}
    score = "no data" if holdout.mean is None else f"{choice.objective} {holdout.mean:.3f}"
    chosen_on = "no data" if tune.mean is None else f"{tune.mean:.3f}"
    return (
        f"{score} at {holdout.n} other cases (chosen on {tune.n} at {chosen_on}); "
        f"look {looks.look} of {looks.of}; {verdict[agrees]}"
    )
