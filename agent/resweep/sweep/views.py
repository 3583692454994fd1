"""The same lists cut otherwise: by an adaptive rule, or at a token budget, beside the fixed depth.

Each is judged by the passages it actually selects, case by case, and compared with the fixed depth that
selects about as many on average.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from resweep.domain.estimate import Estimate, estimate, weighted_mean, weighted_quantiles
from resweep.domain.measures import FloatArray, IntArray, measure_at
from resweep.domain.resample import Comparison, compare
from resweep.sweep.costs import mean_tokens
from resweep.sweep.evidence import Cell, Evidence
from resweep.sweep.rules import END, Rule, Stop, distances
from resweep.sweep.settings import SweepSettings
from resweep.sweep.slices import Slice

VIEW_MEASURES: tuple[str, ...] = (
    "recall",
    "all_evidence",
    "precision",
    "context_precision",
    "mrr",
    "ndcg",
)
NOTHING = Stop(0, "no list")


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """What one way of cutting selects and achieves.

    `selected` are the mean, and the 10 %, 50 % and 90 % quantiles of the passages selected; `empty` the
    weighted share of cases left with none. `stops` counts cases by stop reason. `against` is the measured
    cell that selects about as many (the fixed baseline) and `change` the paired change of the objective
    against it, where the objective is of retrieval. `parts` gives each slice its own mean selected, share
    left empty and recall: scores are not calibrated alike across languages and sources.
    """

    name: str
    selected: tuple[float, float, float, float]
    empty: float
    prompt_tokens: float | None
    measures: Mapping[str, Estimate]
    stops: Mapping[str, int]
    against: Cell | None
    change: Comparison | None
    parts: Mapping[str, PartView]


class PartView(NamedTuple):
    """One slice under a view: mean passages selected, share of cases left with none, mean recall."""

    selected: float
    empty: float
    recall: float


def rule_views(evidence: Evidence, settings: SweepSettings, slices: Sequence[Slice] = ()) -> list[View]:
    """Return a view per adaptive rule of the settings, over the deepest run."""
    if not settings.rules or not len(evidence.cases):
        return []
    lists = evidence.runs[max(evidence.runs)].lists
    down = distances(ranked for ranked in lists if ranked is not None)
    return [_rule_view(rule, evidence, down, settings, slices) for rule in settings.rules]


def _rule_view(
    rule: Rule, evidence: Evidence, down: bool, settings: SweepSettings, slices: Sequence[Slice]
) -> View:
    lists = evidence.runs[max(evidence.runs)].lists
    stops = [NOTHING if ranked is None else rule(ranked, down) for ranked in lists]
    kept: IntArray = np.array([stop.kept for stop in stops], dtype=np.int64)
    return _view(str(rule), evidence, kept, Counter(stop.reason for stop in stops), settings, slices)


def token_views(evidence: Evidence, budgets: Sequence[float], settings: SweepSettings) -> list[View]:
    """Return a view per token budget: for each case the longest prefix that fits. None without tokens."""
    spent = evidence.runs[max(evidence.runs)].spent
    if spent is None or not len(evidence.cases):
        return []
    views = []
    for budget in budgets:
        kept = spent.within(round(budget))
        ended = int((kept == spent.lengths).sum())
        stops = {END: ended, "budget": len(kept) - ended}
        views.append(_view(f"{round(budget)} tokens", evidence, kept, stops, settings))
    return views


def _view(
    name: str,
    evidence: Evidence,
    counts: IntArray,
    stops: Mapping[str, int],
    settings: SweepSettings,
    slices: Sequence[Slice] = (),
) -> View:
    run = evidence.runs[max(evidence.runs)]
    kept = counts.astype(np.float64)
    names = dict.fromkeys((*VIEW_MEASURES, settings.objective))
    values = measure_at(run.table, counts, [one for one in names if one in _OF_RANKS])
    against = _nearest(evidence, run.candidate_k, weighted_mean(kept, evidence.weights))
    change = None
    if against is not None and settings.objective in values:
        fixed = evidence.values[settings.objective][:, evidence.column(against)]
        change = compare(
            fixed,
            values[settings.objective],
            evidence.weights,
            alpha=settings.alpha,
            resamples=settings.resamples,
            seed=settings.seed,
        )
    low, median, high = weighted_quantiles(kept, evidence.weights, (0.1, 0.5, 0.9))
    return View(
        name=name,
        selected=(weighted_mean(kept, evidence.weights), low, median, high),
        empty=weighted_mean((counts == 0).astype(np.float64), evidence.weights),
        prompt_tokens=mean_tokens(evidence, run, counts),
        measures={
            one: estimate(v, evidence.weights, alpha=settings.alpha, standard=settings.standard)
            for one, v in values.items()
        },
        stops={reason: n for reason, n in stops.items() if n},
        against=against,
        change=change,
        parts={one.label: _part(one, kept, values["recall"], evidence.weights) for one in slices},
    )


def _part(part: Slice, kept: FloatArray, recall: FloatArray, weights: FloatArray) -> PartView:
    rows, w = part.rows, weights[part.rows]
    empty = (kept[rows] == 0).astype(np.float64)
    return PartView(*(weighted_mean(values, w) for values in (kept[rows], empty, recall[rows])))


# Judged shares and partial credit add nothing here; answers were not measured at these cuts.
_OF_RANKS = frozenset((*VIEW_MEASURES, "precision_returned", "ap", "partial_credit"))


def _nearest(evidence: Evidence, candidate_k: int, selected: float) -> Cell | None:
    cells = [cell for cell in evidence.cells if cell.candidate_k == candidate_k]
    return min(cells, key=lambda cell: abs(cell.context_k - selected), default=None)
