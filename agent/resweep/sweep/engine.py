"""A sweep over ranked lists, from cases to report. Pure: no files, no clock, no network."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from resweep.sweep.answers import Judged
from resweep.sweep.choose import Choice, choose
from resweep.sweep.compare import Compared, compare_depths
from resweep.sweep.confirm import confirm
from resweep.sweep.costs import cell_cost
from resweep.sweep.diagnose import diagnose
from resweep.sweep.evidence import Cell, Evidence, Extra, gather
from resweep.sweep.findings.picture import Picture
from resweep.sweep.labelled import labelled_set
from resweep.sweep.lists import Case, Lists, split_cases
from resweep.sweep.report import Report, build_report
from resweep.sweep.settings import SweepSettings
from resweep.sweep.slices import Slice, slices_of
from resweep.sweep.usefulness import Weighed
from resweep.sweep.views import rule_views, token_views

MOST_BUDGETS = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class Sweep:
    """A report with what it was made of, so that any figure can be followed to its passages and answers."""

    report: Report
    choice: Choice
    tune: Evidence
    holdout: Evidence | None
    answers: Sequence[Judged] = ()
    weighed: Sequence[Weighed] = ()


def sweep_lists(
    cases: Sequence[Case],
    runs: Mapping[int, Lists],
    ks: Sequence[int],
    settings: SweepSettings | None = None,
    *,
    grid: bool = False,
    first_stage: Lists | None = None,
    extra: Extra | None = None,
    own: Mapping[Cell, Lists] | None = None,
    pipeline: str | None = None,
    basis_hash: str | None = None,
    notes: Sequence[str] = (),
) -> Sweep:
    """Return the sweep of recorded lists: `runs` maps candidate_k to the lists measured at it, by case id.

    With `grid`, candidate_k is a depth that was really asked for, so that context depths beyond it are
    impossible. `first_stage` are the lists before the reranker. `extra` holds per-case values measured
    elsewhere, such as `answer_accuracy`. `own` are the lists of cells that were retrieved by themselves,
    where lists are not prefixes of one another. Depths are chosen on the tuning split alone and confirmed on
    the holdout. Raises UsageError for depths, objective or looks that cannot be meant.
    """
    settings = settings or SweepSettings()
    splits = split_cases(cases)
    size = settings.passage_tokens
    tune = gather(splits.tune, runs, ks, grid=grid, passage_tokens=size, extra=extra, own=own)
    settings.check(tuple(tune.values))
    if settings.baseline is None and settings.baseline_k is not None:
        settings = replace(settings, baseline=Cell(max(tune.runs), settings.baseline_k))
    slices = slices_of(tune)
    choice = choose(tune, settings, slices)
    holdout = None
    confirmation = None
    if splits.holdout and choice.chosen is not None:
        holdout = gather(splits.holdout, runs, ks, split="holdout", grid=grid, extra=extra, own=own)
        confirmation = confirm(choice, tune, holdout, settings)
    against = _baseline(choice, settings)
    compared = _against(tune, choice, against, settings)
    picture = Picture(
        evidence=tune,
        choice=choice,
        settings=settings,
        slices=slices,
        first_stage=_first_stage(tune, first_stage, ks),
    )
    report = build_report(
        tune=tune,
        choice=choice,
        settings=settings,
        findings=diagnose(picture),
        slices=_shown(slices, tune, settings),
        compared=compared,
        against=against,
        confirmation=confirmation,
        n_holdout=len(splits.holdout),
        rules=rule_views(tune, settings, slices),
        fixed_tokens=token_views(tune, _budgets(tune, settings), settings),
        pipeline=pipeline,
        basis_hash=basis_hash,
        notes=[
            *notes,
            *_not_compared(tune, settings.baseline),
            *(_not_confirmed(holdout, choice) if confirmation is None and holdout is not None else ()),
        ],
        grid=grid,
        labelled_set=labelled_set(cases),
    )
    return Sweep(report=report, choice=choice, tune=tune, holdout=holdout)


def _baseline(choice: Choice, settings: SweepSettings) -> Cell | None:
    if settings.baseline is not None:
        return settings.baseline
    return choice.cells[choice.best.best] if choice.best else None


def _against(
    tune: Evidence, choice: Choice, against: Cell | None, settings: SweepSettings
) -> Compared | None:
    if choice.chosen is None or against is None or against not in tune.cells or against == choice.chosen:
        return None
    return compare_depths(tune, against, choice.chosen, settings)


def _not_confirmed(holdout: Evidence, choice: Choice) -> list[str]:
    """Say why a holdout neither agrees nor disagrees."""
    if choice.chosen is None:
        return []
    why = holdout.status[choice.chosen].why
    return [
        f"the holdout cannot confirm context_k {choice.chosen.context_k}: {why or 'no case was measured'}"
    ]


def _not_compared(tune: Evidence, baseline: Cell | None) -> list[str]:
    """Say why there is no comparison with a baseline that was not measured."""
    if baseline is None or baseline in tune.cells:
        return []
    why = tune.status[baseline].why if baseline in tune.status else "not among the depths swept"
    return [f"no comparison with the baseline {baseline.context_k}: {why}"]


def _first_stage(tune: Evidence, lists: Lists | None, ks: Sequence[int]) -> Evidence | None:
    """Measure the lists before the reranker at every context depth and every pool size."""
    if lists is None or not tune.cases:
        return None
    depths = sorted({*ks, *tune.runs})
    found = gather(tune.cases, {depths[-1]: lists}, depths)
    return found if found.cells and len(found.cases) == len(tune.cases) else None


def _shown(slices: Sequence[Slice], tune: Evidence, settings: SweepSettings) -> list[Slice]:
    """Return the slices with every critical one, even where no case of it was measured."""
    labels = {part.label for part in slices}
    nothing = np.zeros(len(tune.cases), dtype=bool)
    absent = []
    for wanted in settings.critical:
        name, _, value = wanted.partition("=")
        if wanted not in labels:
            absent.append(Slice(name, value, nothing))
    return [*slices, *absent]


def _budgets(tune: Evidence, settings: SweepSettings) -> list[float]:
    """Return the mean tokens of ten depths at most of the deepest run: the view at equal cost."""
    deepest = max(tune.runs)
    cells = [cell for cell in tune.cells if cell.candidate_k == deepest]
    costs = [cell_cost(tune, cell, settings) for cell in cells[:: -(-len(cells) // MOST_BUDGETS) or 1]]
    return [cost.prompt_tokens for cost in costs if cost.prompt_tokens]
