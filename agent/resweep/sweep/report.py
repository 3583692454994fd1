"""The report of a sweep as one object, `resweep.report/1`: what is printed with --json, and what is stored.

Numbers are as measured; rounding is for whoever prints them. What was not observed is null.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from resweep.domain.estimate import effective_size
from resweep.domain.measures import DEFINITIONS
from resweep.domain.resample import Comparison
from resweep.sweep.choose import Choice
from resweep.sweep.compare import Compared
from resweep.sweep.confirm import Confirmation
from resweep.sweep.costs import cell_cost
from resweep.sweep.evidence import Cell, Evidence
from resweep.sweep.findings.picture import Finding
from resweep.sweep.settings import Latency, SweepSettings
from resweep.sweep.slices import Slice
from resweep.sweep.views import View

REPORT_SCHEMA = "resweep.report/1"
_SLICE_MEASURES = ("recall", "all_evidence")
Json = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """One sweep. `as_dict` is the documented object; field names are its keys.

    `points` has a cell each, measured or not; `best_set` the context depths not shown worse than the best
    by more than `margin`, `best_cells` the same as [candidate_k, context_k]. `chosen` has null depths where
    nothing meets the constraints, and says why. `report_id` is a digest of all the rest, `made_at` (unix s)
    left aside; `measured` says what was swept, `answers` what made and judged the answers,
    `superseded` how often superseded passages are retrieved and cited, `ragas` what weighed the passages.
    `regressions` are the cases that lose by the choice against `comparison.against`, worst first.
    """

    pipeline: str | None
    basis_hash: str | None
    n_cases: int
    n_effective: float
    n_excluded_unjudged: int
    n_missing: int
    weighted: bool
    points: Sequence[Json]
    objective: str
    margin: float
    best_set: Sequence[int]
    chosen: Json
    regressions: Sequence[Json]
    diagnosis: Sequence[Json]
    n_unanswerable: int
    n_unanswerable_with_passages: int
    n_excluded_shallow: int
    n_holdout: int
    best_cells: Sequence[Sequence[int]]
    missing: Sequence[str]
    constraints: str | None
    holdout: Json | None
    comparison: Json | None
    slices: Sequence[Json]
    rules: Sequence[Json]
    fixed_tokens: Sequence[Json]
    definitions: Mapping[str, str]
    methods: Json
    notes: Sequence[str] = field(default=())
    labelled_set: Json = field(default_factory=dict)
    report_id: str | None = None
    made_at: float | None = None
    measured: Json = field(default_factory=dict)
    answers: Json | None = None
    superseded: Json | None = None
    ragas: Json | None = None

    def as_dict(self) -> Json:
        """Return the report as JSON has it."""
        return {"schema": REPORT_SCHEMA} | {name: _plain(value) for name, value in asdict(self).items()}

    def stamped(self, measured: Mapping[str, Any], made_at: float | None = None) -> Report:
        """Return the report with what was swept, when, and its id."""
        from dataclasses import replace

        told = replace(self, measured=dict(measured), report_id=None, made_at=None)
        digest = hashlib.sha256(told.to_json().encode()).hexdigest()
        return replace(told, report_id=digest[:12], made_at=made_at)

    def to_json(self, indent: int | None = None) -> str:
        """Return the report as strict JSON: no NaN, no infinity."""
        return json.dumps(self.as_dict(), ensure_ascii=False, allow_nan=False, indent=indent)


def _plain(value: object) -> object:
    """Return sequences as lists, all the way down, as they come back from JSON."""
    if isinstance(value, Mapping):
        return {name: _plain(inner) for name, inner in value.items()}
    return [_plain(inner) for inner in value] if isinstance(value, list | tuple) else value


def build_report(
    *,
    tune: Evidence,
    choice: Choice,
    settings: SweepSettings,
    findings: Sequence[Finding],
    slices: Sequence[Slice],
    compared: Compared | None,
    against: Cell | None,
    confirmation: Confirmation | None,
    n_holdout: int,
    rules: Sequence[View],
    fixed_tokens: Sequence[View],
    pipeline: str | None = None,
    basis_hash: str | None = None,
    notes: Sequence[str] = (),
    grid: bool = False,
    labelled_set: Mapping[str, Any] | None = None,
) -> Report:
    """Return the report of what was measured and chosen."""
    roll, chosen = tune.roll, choice.chosen
    return Report(
        pipeline=pipeline,
        basis_hash=basis_hash,
        n_cases=len(tune.cases),
        n_effective=effective_size(tune.weights),
        n_excluded_unjudged=len(roll.unjudged),
        n_missing=len(roll.missing),
        weighted=tune.weighted,
        points=[_point(tune, cell, settings) for cell in tune.status],
        objective=choice.objective,
        margin=choice.margin,
        best_set=choice.best_depths,
        chosen={
            "context_k": chosen.context_k if chosen else None,
            "candidate_k": chosen.candidate_k if chosen else None,
            "why": choice.why,
        },
        regressions=_regressions(compared),
        diagnosis=[finding._asdict() for finding in findings],
        n_unanswerable=len(roll.unanswerable),
        n_unanswerable_with_passages=len(roll.misled),
        n_excluded_shallow=len(roll.shallow),
        n_holdout=n_holdout,
        best_cells=[list(cell) for cell in choice.best_cells],
        missing=roll.missing,
        constraints=str(settings.constraint) if settings.constraint else None,
        holdout=_holdout(confirmation),
        comparison=_comparison(compared, against),
        slices=[_slice(tune, part, choice, settings) for part in slices],
        rules=[_view(view) for view in rules],
        fixed_tokens=[_view(view) for view in fixed_tokens],
        definitions={name: text for name, text in DEFINITIONS.items() if name in tune.values},
        methods=_methods(choice, settings, grid=grid),
        labelled_set=dict(labelled_set or {}),
        notes=notes,
    )


def _point(evidence: Evidence, cell: Cell, settings: SweepSettings) -> Json:
    status = evidence.status[cell]
    point: Json = {"context_k": cell.context_k, "candidate_k": cell.candidate_k, "state": status.state}
    if status.state != "measured":
        nothing = dict.fromkeys(("prompt_tokens", "cost_usd", "latency_p50_s", "latency_p95_s"))
        return point | {"measures": {}} | nothing | {"why": status.why}
    measures = {
        name: asdict(evidence.estimate(name, cell, alpha=settings.alpha, standard=settings.standard))
        for name in evidence.values
    }
    latency = settings.latency.get(cell, Latency())
    return (
        point
        | {"measures": measures}
        | cell_cost(evidence, cell, settings)._asdict()
        | {"latency_p50_s": latency.p50_s, "latency_p95_s": latency.p95_s}
    )


def _regressions(compared: Compared | None) -> list[Json]:
    if compared is None:
        return []
    return [
        {"measure": compared.measure}
        | change._asdict()
        | {"shown": [passage._asdict() for passage in change.shown]}
        for change in compared.lost
    ]


def _change(change: Comparison) -> Json:
    return {
        "before": change.before,
        "after": change.after,
        "difference": change.difference,
        "low": change.low,
        "high": change.high,
        "lost": len(change.lost),
        "gained": len(change.gained),
        "same": change.same,
    }


def _comparison(compared: Compared | None, against: Cell | None) -> Json | None:
    if compared is None or against is None:
        return None
    gained = [change.case_id for change in compared.gained]
    return (
        {"against": against._asdict(), "measure": compared.measure}
        | _change(compared.result)
        | {"gained_cases": gained}
    )


def _holdout(confirmation: Confirmation | None) -> Json | None:
    if confirmation is None:
        return None
    return {
        "n": confirmation.n_holdout,
        "n_tune": confirmation.n_tune,
        "score": asdict(confirmation.holdout),
        "tune_score": asdict(confirmation.tune),
        "look": confirmation.looks.look,
        "looks_allowed": confirmation.looks.of,
        "agrees": confirmation.agrees,
        "text": confirmation.text,
    }


def _slice(evidence: Evidence, part: Slice, choice: Choice, settings: SweepSettings) -> Json:
    """Return a slice over the chosen candidate depth's cells: the objective, recall and all_evidence."""
    rows = part.rows.astype(float)
    names = dict.fromkeys((choice.objective, *_SLICE_MEASURES))
    depth = (
        choice.chosen.candidate_k
        if choice.chosen
        else max((c.candidate_k for c in evidence.cells), default=0)
    )
    points = [
        {
            "context_k": cell.context_k,
            "candidate_k": cell.candidate_k,
            "measures": {
                name: asdict(
                    evidence.estimate(name, cell, rows, alpha=settings.alpha, standard=settings.standard)
                )
                for name in names
            },
        }
        for cell in evidence.cells
        if cell.candidate_k == depth
    ]
    weight = float(evidence.weights[part.rows].sum() / evidence.weights.sum()) if len(rows) else 0.0
    return {
        "name": part.name,
        "value": part.value,
        "n": int(part.rows.sum()),
        "share": weight,
        "critical": part.label in settings.critical,
        "points": points,
    }


def _view(view: View) -> Json:
    mean, low, median, high = view.selected
    return {
        "name": view.name,
        "selected": {"mean": mean, "q10": low, "median": median, "q90": high, "none": view.empty},
        "prompt_tokens": view.prompt_tokens,
        "measures": {name: asdict(found) for name, found in view.measures.items()},
        "stops": dict(view.stops),
        "against": view.against._asdict() if view.against else None,
        "change": _change(view.change) if view.change else None,
        "slices": {label: part._asdict() for label, part in view.parts.items()},
    }


def _methods(choice: Choice, settings: SweepSettings, *, grid: bool) -> Json:
    return {
        "best_set": "max-T over paired differences, bootstrap over cases",
        "means": "weighted ratio estimates (Hajek), Wilson intervals at the design-adjusted sample size",
        "alpha": settings.alpha,
        "resamples": settings.resamples,
        "seed": settings.seed,
        "standard": settings.standard,
        "cells_compared": len(choice.cells),
        "grid": grid,
    }
