"""From traces to a cause: a decision list, first rule that holds, at most two components.

Why the order: whether the *text* behind the ids is the same comes first, since nothing else can be
compared without it; then whether the score of the same (query, passage) pair moved, which only the scoring
side can do; then what was lost or gained while scores stood still, which only the stock or a filter can do.
"""

from __future__ import annotations

from typing import NamedTuple

from resweep.detect.passive.traces import TwinTraces
from resweep.domain.verdict import Component

OTHER_TEXT = 0.15  # ids Jaccard below which no passage survived
SAME_SOURCES = 0.3  # sources Jaccard from which the same documents still answer
MOVED = 0.5
SCALE = 3.0  # ratio of top scores beyond which the scale is another
COPIES = 0.3
LOST_BODIES = 0.3
BOUNDED = 1.05  # cosines stay within; rerankers' logits and distances do not


class Cause(NamedTuple):
    """Components, most probable first, and what speaks for them, in words with numbers."""

    components: tuple[Component, ...]
    why: str


def percent(share: float | None) -> str:
    """Return a share as a whole percentage; `not observed` for None."""
    return "not observed" if share is None else f"{100 * share:.0f} %"


def cause(t: TwinTraces) -> Cause:
    """Return the cause that twin traces speak for."""
    for rule in (_chunker, _copies, _scoring, _depth, _reordered, _growth, _loss):
        found = rule(t)
        if found is not None:
            return found
    return Cause(
        ("index", "unknown"), "passages came and went with no pattern; scores of those kept stand still"
    )


def _rescaled(t: TwinTraces) -> bool:
    return t.scale_ratio is not None and not 1 / SCALE < t.scale_ratio < SCALE


def _chunker(t: TwinTraces) -> Cause | None:
    other_text = t.ids_jaccard < OTHER_TEXT
    same_sources = t.sources_jaccard is None or t.sources_jaccard >= SAME_SOURCES
    misfit = t.misfit is not None and t.misfit > MOVED
    resized = t.tokens_ratio is not None and not 0.8 < t.tokens_ratio < 1.25
    unseen = t.unseen_ids > MOVED
    if not (other_text and same_sources and (misfit or resized or unseen)):
        return None
    size = "unknown" if t.tokens_ratio is None else f"{t.tokens_ratio:.2f} times as long"
    kept = percent(t.ids_jaccard)
    why = f"the same documents answer with other passages: {kept} of passages kept, now {size}"
    if t.scale_ratio is not None and not 0.75 < t.scale_ratio < 1.33:
        return Cause(("chunker", "embedder"), f"{why}; top scores {t.scale_ratio:.2f} times as high")
    return Cause(("chunker",), why)


def _copies(t: TwinTraces) -> Cause | None:
    stands = t.same_pair_moved is not None and t.same_pair_moved < MOVED
    if not (stands and t.copies is not None and t.copies > COPIES and t.unseen_ids > 0.15):
        return None
    if (t.unseen_sources or 0.0) > 0.1 or (t.cut_moved or 0.0) < 0:
        return None
    return Cause(
        ("corpus",),
        f"{percent(t.copies)} of the new passages repeat another one of the same answer: stale copies",
    )


def _scoring(t: TwinTraces) -> Cause | None:
    if t.same_pair_moved is None or t.same_pair_moved < MOVED:
        return None
    moved = f"the score of the same question and passage moved in {percent(t.same_pair_moved)} of pairs"
    if t.first_pair_moved is not None:
        if t.first_pair_moved < MOVED:
            return Cause(("reranker",), f"{moved}, that of the first stage in {percent(t.first_pair_moved)}")
        return Cause(("embedder",), f"{moved}, that of the first stage too")
    if _rescaled(t) or _left_bounds(t):
        return Cause(
            ("reranker", "embedder"),
            f"{moved}, and the top score went from {t.top_before:.3g} to {t.top_after:.3g}",
        )
    return Cause(("embedder",), f"{moved}, on the same scale ({t.top_before:.3g} to {t.top_after:.3g})")


def _left_bounds(t: TwinTraces) -> bool:
    """Whether one of the two scores fits a cosine and the other does not."""
    if t.top_before is None or t.top_after is None:
        return False
    return (abs(t.top_before) > BOUNDED) != (abs(t.top_after) > BOUNDED)


def _depth(t: TwinTraces) -> Cause | None:
    if 0.95 <= t.count_ratio <= 1.05:
        return None
    second: Component = "filter" if t.count_ratio < 1 else "corpus"
    return Cause(("depth", second), f"{t.count_ratio:.2f} times as many passages come back")


def _reordered(t: TwinTraces) -> Cause | None:
    if t.order_only < MOVED:
        return None
    return Cause(
        ("reranker",), f"{percent(t.order_only)} of changed answers hold the same passages in another order"
    )


def _growth(t: TwinTraces) -> Cause | None:
    if t.unseen_ids < 0.15 or (t.cut_moved or 0.0) <= 0:
        return None
    return Cause(
        ("corpus",),
        f"{percent(t.unseen_ids)} of passages were never seen before and stand above the old ones",
    )


def _loss(t: TwinTraces) -> Cause | None:
    if t.source_kept is not None and t.source_kept > LOST_BODIES:
        return Cause(
            ("index", "embedder"),
            f"passages are missing one by one: {percent(t.source_kept)} of the lost ones left others "
            "of their source",
        )
    if (t.sources_jaccard or 0.0) < 1.0 and t.sources_jaccard is not None:
        return Cause(
            ("filter", "corpus"),
            f"whole sources are missing ({percent(t.vanished_sources)} were not seen since), scores "
            "stand still",
        )
    return None
