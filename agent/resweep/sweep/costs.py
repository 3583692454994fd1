"""Tokens and money of a cell, from the passages themselves."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from resweep.domain.estimate import weighted_mean
from resweep.domain.measures import IntArray
from resweep.sweep.evidence import Cell, Evidence, Run
from resweep.sweep.settings import SweepSettings

MILLION = 1_000_000


class CellCost(NamedTuple):
    """Weighted mean prompt tokens per query and what they cost; None where not known."""

    prompt_tokens: float | None
    cost_usd: float | None


def mean_tokens(evidence: Evidence, run: Run, kept: IntArray) -> float | None:
    """Return the weighted mean tokens of the first `kept[i]` passages of each case that has a list."""
    present = np.array([ranked is not None for ranked in run.lists], dtype=bool)
    if run.spent is None or not present.any():
        return None
    return weighted_mean(run.spent.of(kept)[present], evidence.weights[present])


def cell_cost(evidence: Evidence, cell: Cell, settings: SweepSettings) -> CellCost:
    """Return what the passages of a cell hold, and what they cost at one flat price."""
    kept = np.full(len(evidence.cases), cell.context_k, dtype=np.int64)
    tokens = mean_tokens(evidence, evidence.run(cell), kept)
    price = settings.usd_per_million_tokens
    return CellCost(tokens, None if None in (tokens, price) else (tokens or 0) * (price or 0) / MILLION)
