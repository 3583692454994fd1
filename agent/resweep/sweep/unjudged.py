"""How far passages that nobody judged could move a result: unjudged is not irrelevant."""

from __future__ import annotations

from typing import NamedTuple

from resweep.domain.estimate import weighted_mean
from resweep.domain.measures import measure, rank_table
from resweep.sweep.evidence import Cell, Evidence

MOST_CASES = 10_000


class Bounds(NamedTuple):
    """The lowest and highest of three means: as judged, with every unjudged passage beyond k relevant, and
    with every one within k relevant.
    """

    low: float
    high: float


def unjudged_bounds(evidence: Evidence, cell: Cell, name: str) -> Bounds:
    """Return how low and how high the mean of a retrieval measure could come out once all is judged.

    Only recorded passages can turn out relevant; what was never retrieved is not counted. Beyond 10,000
    cases, evenly spaced ones speak for all.
    """
    matches = evidence.run(cell).matched
    rows = slice(None, None, -(-len(matches) // MOST_CASES) or 1)
    weights = evidence.weights[rows]
    means = [weighted_mean(evidence.values[name][rows, evidence.column(cell)], weights)]
    for inside in (False, True):
        judgments = []
        for matched in matches[rows]:
            part = matched.ranking[: cell.context_k] if inside else matched.ranking[cell.context_k :]
            # A passage that is within k as well as repeated beyond it belongs to k.
            within = set() if inside else set(matched.ranking[: cell.context_k])
            new = {p: 1.0 for p in part if p not in matched.judgments and p not in within}
            judgments.append(new | matched.judgments)
        table = rank_table([matched.ranking for matched in matches[rows]], judgments)
        values = measure(table, [cell.context_k], [name]).values[name][:, 0]
        means.append(weighted_mean(values, weights))
    return Bounds(min(means), max(means))
