"""What a depth costs, and what of it is wasted."""

from __future__ import annotations

from resweep.domain.errors import UsageError
from resweep.sweep.affine import fit_line
from resweep.sweep.costs import cell_cost
from resweep.sweep.findings.picture import Finding, Picture, percent

LATENCY_TOLERANCE_S = 0.05


def cost_ratio(picture: Picture) -> Finding | None:
    """Cost follows tokens; rounded prices do not show by how much."""
    row = picture.row
    costs = [cell_cost(picture.evidence, cell, picture.settings) for cell in row]
    at = cell_cost(picture.evidence, picture.at, picture.settings)
    if not costs[0].prompt_tokens or at.prompt_tokens is None or len(row) < 2:
        return None
    price = "" if at.cost_usd is None else f" ({at.cost_usd:.6f} USD a query)"
    others = [
        f"{at.prompt_tokens / other.prompt_tokens:.2f} x what {picture.name(cell)} sends"
        for cell, other in ((row[0], costs[0]), (row[-1], costs[-1]))
        if other.prompt_tokens and cell != picture.at
    ]
    return Finding(
        "tokens",
        f"{picture.name(picture.at)} sends {at.prompt_tokens:,.0f} tokens{price}, {', '.join(others)}. Cost "
        "grows as tokens do; ratios are of tokens, never of rounded prices.",
    )


def latency_knee(picture: Picture) -> Finding | None:
    """Time in a straight line with tokens has no knee to stop at."""
    rows = []
    for cell in picture.row:
        tokens = cell_cost(picture.evidence, cell, picture.settings).prompt_tokens
        p95 = picture.settings.latency.get(cell)
        if tokens is not None and p95 is not None and p95.p95_s is not None:
            rows.append((cell, tokens, p95.p95_s))
    if max((row[2] for row in rows), default=0.0) < LATENCY_TOLERANCE_S:
        return None  # too fast for a depth to be felt
    try:
        line = fit_line([row[1] for row in rows], [row[2] for row in rows], LATENCY_TOLERANCE_S)
    except UsageError:
        return None
    shape = (
        f"{line.fixed:.2f} s plus {1000 * line.slope:.3f} s per 1,000 tokens "
        f"({1 / line.slope if line.slope else float('inf'):,.0f} tokens/s)"
    )
    tail = " A p50 of one part is never added to a p95 of the whole."
    if line.knee is not None:
        bend = picture.name(rows[line.knee][0])
        return Finding(
            "latency_knee",
            f"Time (p95) bends at {bend}: one line misses by up to {line.largest_residual:.2f} s.{tail}",
        )
    if line.largest_residual > LATENCY_TOLERANCE_S:
        return Finding(
            "latency_uneven",
            f"Time (p95) is roughly {shape}, but misses it by up to "
            f"{line.largest_residual:.2f} s with no one knee.{tail}",
        )
    return Finding(
        "no_latency_knee",
        f"No latency knee: time (p95) is {shape}, within {line.largest_residual:.3f} s on every row.{tail}",
    )


def copies_beyond(picture: Picture) -> Finding | None:
    """Ranks that a larger k admits may hold what is there already."""
    start, end = picture.at.context_k, picture.row[-1].context_k
    copies = total = 0
    for matched in picture.evidence.runs[picture.at.candidate_k].matched:
        seen = set(matched.ranking[:start])
        for passage in matched.ranking[start:end]:
            copies += passage in seen
            total += 1
            seen.add(passage)
    if not copies:
        return None
    return Finding(
        "copies",
        f"Among ranks {start + 1} to {end}, {copies} of {total} passages ({percent(copies / total)}) are "
        "copies of a passage before them, by id or by text.",
    )


def duplicates(picture: Picture) -> Finding | None:
    """A passage that comes twice in one list is a fault of the index."""
    run = picture.evidence.run(picture.at)
    repeated = int(run.table.duplicates.sum())
    if not repeated:
        return None
    cases = int((run.table.duplicates > 0).sum())
    return Finding(
        "duplicates",
        f"{repeated} passages came again in the same list, in {cases} of {len(run.table)} cases. Each counts "
        "once, at its first place, and still takes its place in the prompt.",
    )
