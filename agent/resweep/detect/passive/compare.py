"""Two answers to the same question: the same, other scores, other names, or another answer.

A passage counts as lost or gained only where its score stood more than `tolerance` off the cut: rounding to
int8 or float16 swaps neighbours at the cut and changes nothing. A passage is known by its id, tokens and
source together, since many chunkers number passages by position and use an old id for another text.
"""

from __future__ import annotations

from enum import IntEnum
from math import isnan

from resweep.domain.sample import Answer, unpack_answer

ROUNDING = 0.03  # of a token count: estimates differ by so much for one text
_EXACT = 1e-5  # scores closer than this, relative to 1, are the same number in float32


class Outcome(IntEnum):
    """What became of an answer."""

    SAME = 0
    SCORES = 1  # the same passages in the same order, other scores
    RENUMBERED = 2  # the same scores, tokens and sources under other ids
    CHANGED = 3


def compare(before: bytes, after: bytes, tolerance: float) -> Outcome:
    """Return what became of a packed answer. `tolerance` is in units of the score (0.05 SD of the top)."""
    if before == after:
        return Outcome.SAME
    old = unpack_answer(before)
    return _compare(old, aligned(old, unpack_answer(after)), tolerance)


def aligned(before: Answer, after: Answer) -> Answer:
    """Return the later answer with token counts of before where the same passage differs by a rounding."""
    then = dict(zip(before.ids, zip(before.sources, before.tokens, strict=True), strict=True))
    tokens = list(after.tokens)
    for i, (passage, source) in enumerate(zip(after.ids, after.sources, strict=True)):
        origin, count = then.get(passage, (-1, 0))
        if origin == source and abs(tokens[i] - count) <= ROUNDING * count:
            tokens[i] = count
    return after._replace(tokens=tuple(tokens))


def _compare(before: Answer, after: Answer, tolerance: float) -> Outcome:
    close = _close(before.scores, after.scores, tolerance)
    if before.ids == after.ids and _bodies_agree(before, after):
        return Outcome.SAME if close else Outcome.SCORES
    if _renumbered(before, after):
        return Outcome.RENUMBERED
    if _moved(before, after, tolerance):
        return Outcome.CHANGED
    return Outcome.SAME if close else Outcome.SCORES


def _close(before: tuple[float, ...], after: tuple[float, ...], tolerance: float) -> bool:
    if len(before) != len(after):
        return False
    return all(abs(a - b) <= tolerance or (isnan(a) and isnan(b)) for a, b in zip(before, after, strict=True))


def _bodies_agree(before: Answer, after: Answer) -> bool:
    """Whether tokens agree, or differ by one factor throughout (another tokenizer, not another text)."""
    if before.tokens == after.tokens:
        return before.sources == after.sources
    close = _close(before.scores, after.scores, _EXACT)
    return close and before.sources == after.sources


def _renumbered(before: Answer, after: Answer) -> bool:
    return (
        len(before.ids) == len(after.ids) > 0
        and not isnan(before.scores[0])  # with no scores nothing says that these are the same passages
        and set(before.ids) != set(after.ids)
        and before.tokens == after.tokens
        and before.sources == after.sources
        and _close(before.scores, after.scores, _EXACT)
    )


def passages(answer: Answer) -> list[tuple[int, int, int]]:
    """Return the identities of an answer's passages: (id, source, tokens)."""
    return list(zip(answer.ids, answer.sources, answer.tokens, strict=True))


def _moved(before: Answer, after: Answer, tolerance: float) -> bool:
    a, b = passages(before), passages(after)
    scale = _spread(after) / max(_spread(before), 1e-12)
    other = tolerance * min(max(scale, 0.01), 100.0)
    cut = min(len(a), len(b))
    return (
        _beyond_cut(a, before.scores, set(b), cut, tolerance)
        or _beyond_cut(b, after.scores, set(a), cut, other)
        or _reordered(a, before.scores, b, after.scores, tolerance, other)
    )


def _spread(answer: Answer) -> float:
    spread = abs(answer.scores[0] - answer.scores[-1]) if answer.scores else 0.0
    return 0.0 if isnan(spread) else spread


def _beyond_cut(
    own: list[tuple[int, int, int]],
    scores: tuple[float, ...],
    other: set[tuple[int, int, int]],
    cut: int,
    tolerance: float,
) -> bool:
    """Whether a passage missing from `other` stood more than the tolerance off the score at the cut."""
    if not own:
        return bool(other)
    if not cut:
        return True
    edge = scores[cut - 1]
    return any(
        not abs(score - edge) <= tolerance  # NaN compares false: with no score, any difference counts
        for passage, score in zip(own, scores, strict=True)
        if passage not in other
    )


def _reordered(
    a: list[tuple[int, int, int]],
    a_scores: tuple[float, ...],
    b: list[tuple[int, int, int]],
    b_scores: tuple[float, ...],
    tolerance: float,
    other: float,
) -> bool:
    """Whether two common passages stand the other way round, in both answers by more than the tolerance."""
    place = {passage: i for i, passage in enumerate(b)}
    common = [(a_scores[i], b_scores[place[p]], place[p]) for i, p in enumerate(a) if p in place]
    for i, (score, then, rank) in enumerate(common):
        for score2, then2, rank2 in common[i + 1 :]:
            if rank2 < rank and abs(score - score2) > tolerance and abs(then - then2) > other:
                return True
    return False
