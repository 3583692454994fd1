"""Weights that undo both choices: what was sampled, and what of it was reviewed.

A case weighs the sum of 1/p over its sampled events. Reviewers do not get through everything, so the weight
of what was sampled under one plan and stratum is carried by what was reviewed of it: times sampled/reviewed,
in weight. Where nothing of a plan was reviewed yet, the stratum's other plans carry it. Queue order is random
inside a stratum, so what is reviewed first is a sample of the rest; skipped cases count as not reviewed.
Source: weighting-class adjustment, Särndal, Swensson and Wretman, Model Assisted Survey Sampling (1992),
15.6.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

import msgspec

from resweep.domain.case import REVIEWED_STATES, CaseLine, Cell

Factors = Mapping[tuple[str, str | None], float]  # by stratum and plan


def factors(cells: Iterable[Cell]) -> Factors:
    """Return sampled/reviewed of each stratum and plan; 1 where there is nothing to weigh."""
    by_stratum: dict[str, list[Cell]] = {}
    for cell in cells:
        by_stratum.setdefault(cell.stratum, []).append(cell)
    found: dict[tuple[str, str | None], float] = {}
    for stratum, some in by_stratum.items():
        found.update({(stratum, plan): factor for plan, factor in _stratum(some).items()})
    return found


def _stratum(cells: Sequence[Cell]) -> dict[str | None, float]:
    sampled: dict[str | None, float] = {}
    reviewed: dict[str | None, float] = {}
    for cell in cells:
        sampled[cell.plan] = sampled.get(cell.plan, 0.0) + cell.weight
        if cell.state in REVIEWED_STATES:
            reviewed[cell.plan] = reviewed.get(cell.plan, 0.0) + cell.weight
    seen = {plan for plan, weight in reviewed.items() if weight > 0}
    carried = sum(weight for plan, weight in sampled.items() if plan in seen)
    spread = sum(sampled.values()) / carried if carried else 1.0
    return {plan: spread * sampled[plan] / reviewed[plan] if plan in seen else 1.0 for plan in sampled}


def reweighted(cases: Iterable[CaseLine], by: Factors) -> Iterator[CaseLine]:
    """Yield cases with the weight they carry: of reviewed ones times sampled/reviewed, else as sampled."""
    for case in cases:
        factor = by.get((case.stratum or "", case.plan), 1.0)
        if case.weight is None or case.state not in REVIEWED_STATES:
            yield case
        else:
            yield msgspec.structs.replace(case, weight=case.weight * factor)


def effective(weights: Iterable[float]) -> float:
    """Return the effective number of cases, (sum w)^2 / sum w^2 (Kish, 1965)."""
    some = list(weights)
    squares = sum(w * w for w in some)
    return sum(some) ** 2 / squares if squares else 0.0
