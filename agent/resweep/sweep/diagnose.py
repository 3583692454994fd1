"""What the curves say, in words with the numbers: every look at a sweep, in the order a reader wants."""

from __future__ import annotations

from collections.abc import Callable

from resweep.sweep.findings import answers, reach, spending, trust
from resweep.sweep.findings.picture import Finding, Picture

Look = Callable[[Picture], Finding | None]
# These need at least one measured cell.
MEASURED_LOOKS: tuple[Look, ...] = (
    answers.peak_gap,
    answers.budget_choice,
    answers.answers_pattern,
    reach.at_the_edge,
    reach.out_of_reach,
    reach.partial_credit,
    reach.before_the_reranker,
    reach.grid_agreement,
    reach.weak_slices,
    answers.downstream,
    spending.copies_beyond,
    spending.duplicates,
    trust.judged_share,
    trust.weights,
    reach.short_lists,
    spending.cost_ratio,
    spending.latency_knee,
    trust.moved_texts,
    trust.missing,
)
ALWAYS_LOOKS: tuple[Look, ...] = (reach.unreachable, trust.left_out)


def diagnose(picture: Picture) -> list[Finding]:
    """Return every finding, in reading order."""
    measured = bool(picture.evidence.cells) and bool(picture.evidence.cases)
    looks = (*MEASURED_LOOKS, *ALWAYS_LOOKS) if measured else ALWAYS_LOOKS
    return [finding for look in looks if (finding := look(picture)) is not None]
