"""What changed, measured on pairs of answers to the same question: the traces behind a named cause."""

from __future__ import annotations

from collections.abc import Sequence
from math import isnan
from statistics import fmean, median

import msgspec

from resweep.detect.passive.compare import Outcome, aligned, passages
from resweep.detect.passive.twins import Vote
from resweep.detect.passive.vocabulary import Vocabulary
from resweep.domain.sample import SOURCE_UNKNOWN, TOKENS_UNKNOWN, Answer, unpack_answer


class TwinTraces(msgspec.Struct, frozen=True, kw_only=True):
    """Means over twins since the onset; shares in [0, 1], ratios after / before. None: not observed."""

    twins: int
    changed: float  # share of twins with another answer
    ids_jaccard: float  # of the changed answers, by (id, source, tokens)
    bare_ids_jaccard: float  # by id alone
    sources_jaccard: float | None
    same_pair_moved: float | None  # share of common (query, passage) pairs whose score moved
    first_pair_moved: float | None  # the same for the score of the first stage
    misfit: float | None  # share of common ids that now have other tokens or another source
    unseen_ids: float  # share of passages never seen before the onset
    unseen_sources: float | None
    vanished_sources: float | None  # share of lost passages whose source was never seen again
    copies: float | None  # share of gained passages that repeat a neighbour's tokens, source and score
    tokens_ratio: float | None
    count_ratio: float
    scale_ratio: float | None  # median top score after / before
    top_before: float | None
    top_after: float | None
    order_kept: float | None  # share of common pairs of passages that stand in the same order
    order_only: float  # share of changed answers that hold the same passages in another order
    cut_moved: float | None  # share of answers whose score at the cut got better, less those with a worse one
    source_kept: float | None  # share of lost passages whose source is still in the answer


def twin_traces(
    votes: Sequence[Vote], onset_ts: float, vocabulary: tuple[Vocabulary, Vocabulary], tolerance: float
) -> TwinTraces:
    """Return the traces of the newest vote of each query since an onset."""
    newest = {vote.key: vote for vote in votes if vote.ts >= onset_ts}
    pairs = [_both(v) for v in newest.values() if v.outcome is Outcome.CHANGED]
    every = pairs or [_both(v) for v in newest.values()]
    ids, sources = vocabulary
    top_before, top_after = _tops([a for a, _ in every]), _tops([b for _, b in every])
    return TwinTraces(
        twins=len(newest),
        changed=len(pairs) / max(1, len(newest)),
        ids_jaccard=_mean([_jaccard(set(passages(a)), set(passages(b))) for a, b in every]) or 0.0,
        bare_ids_jaccard=_mean([_jaccard(set(a.ids), set(b.ids)) for a, b in every]) or 0.0,
        sources_jaccard=_mean([_jaccard(_known(a), _known(b)) for a, b in every if _known(a) and _known(b)]),
        same_pair_moved=_share([abs(x - y) > tolerance for a, b in every for x, y in _common_scores(a, b)]),
        first_pair_moved=_share([abs(x - y) > tolerance for a, b in every for x, y in _common_firsts(a, b)]),
        misfit=_share([m for a, b in every for m in _misfits(a, b)]),
        unseen_ids=_share([not ids.known(p, onset_ts) for _, b in every for p in b.ids]) or 0.0,
        unseen_sources=_share([not sources.known(s, onset_ts) for _, b in every for s in b.sources if s]),
        vanished_sources=_vanished(every, sources, onset_ts),
        copies=_share([c for a, b in every for c in _copies(a, b, tolerance)]),
        tokens_ratio=_ratio(_tokens([a for a, _ in every]), _tokens([b for _, b in every])),
        count_ratio=sum(len(b.ids) for _, b in every) / max(1, sum(len(a.ids) for a, _ in every)),
        scale_ratio=_ratio(top_before, top_after),
        top_before=top_before,
        top_after=top_after,
        order_kept=_share([kept for a, b in every for kept in _order(a, b)]),
        order_only=_share([set(passages(a)) == set(passages(b)) for a, b in pairs]) or 0.0,
        cut_moved=_mean([m for a, b in every for m in _cut(a, b, tolerance)]),
        source_kept=_share([kept for a, b in every for kept in _sources_kept(a, b)]),
    )


def _both(vote: Vote) -> tuple[Answer, Answer]:
    before = unpack_answer(vote.before)
    return before, aligned(before, unpack_answer(vote.after))


def _mean(values: list[float]) -> float | None:
    return fmean(values) if values else None


def _share(values: list[bool]) -> float | None:
    return sum(values) / len(values) if values else None


def _ratio(before: float | None, after: float | None) -> float | None:
    return after / before if before and after is not None else None


def _jaccard(
    a: set[object] | set[int] | set[tuple[int, int, int]],
    b: set[object] | set[int] | set[tuple[int, int, int]],
) -> float:
    union = len(a | b)
    return len(a & b) / union if union else 1.0


def _known(answer: Answer) -> set[int]:
    return {s for s in answer.sources if s != SOURCE_UNKNOWN}


def _tops(answers: list[Answer]) -> float | None:
    values = [a.scores[0] for a in answers if a.scores and not isnan(a.scores[0])]
    return median(values) if values else None


def _tokens(answers: list[Answer]) -> float | None:
    return _mean([float(t) for a in answers for t in a.tokens if t != TOKENS_UNKNOWN])


def _common_scores(a: Answer, b: Answer) -> list[tuple[float, float]]:
    return _common(a, a.scores, b, b.scores)


def _common_firsts(a: Answer, b: Answer) -> list[tuple[float, float]]:
    return _common(a, a.firsts, b, b.firsts)


def _common(
    a: Answer, a_scores: tuple[float, ...], b: Answer, b_scores: tuple[float, ...]
) -> list[tuple[float, float]]:
    then = dict(zip(passages(b), b_scores, strict=True))
    both = [(x, then[p]) for p, x in zip(passages(a), a_scores, strict=True) if p in then]
    return [(x, y) for x, y in both if not (isnan(x) or isnan(y))]


def _misfits(a: Answer, b: Answer) -> list[bool]:
    then = {p: (s, t) for p, s, t in zip(b.ids, b.sources, b.tokens, strict=True)}
    return [then[p] != (s, t) for p, s, t in zip(a.ids, a.sources, a.tokens, strict=True) if p in then]


def _copies(a: Answer, b: Answer, tolerance: float) -> list[bool]:
    """Per gained passage: whether another passage of the answer has its source and nearly its tokens."""
    before = set(passages(a))
    found = []
    for i, p in enumerate(passages(b)):
        if p in before:
            continue
        found.append(any(_twins(b, i, j, tolerance) for j in range(len(b.ids)) if j != i))
    return found


def _twins(b: Answer, i: int, j: int, tolerance: float) -> bool:
    same = (
        b.sources[i] == b.sources[j] != SOURCE_UNKNOWN
        and abs(b.tokens[i] - b.tokens[j]) <= 0.02 * b.tokens[i]
    )
    return same and abs(b.scores[i] - b.scores[j]) <= 4 * tolerance


def _vanished(every: list[tuple[Answer, Answer]], sources: Vocabulary, onset_ts: float) -> float | None:
    lost = [s for a, b in every for s in a.sources if s and s not in b.sources]
    gone = [(seen := sources.items.get(s)) is None or seen.last < onset_ts for s in lost]
    kept = sum(len(a.sources) for a, _ in every)
    return sum(gone) / kept if kept and any(s for a, _ in every for s in a.sources) else None


def _order(a: Answer, b: Answer) -> list[bool]:
    place = {p: i for i, p in enumerate(passages(b))}
    ranks = [place[p] for p in passages(a) if p in place]
    return [x < y for i, x in enumerate(ranks) for y in ranks[i + 1 :]]


def _cut(a: Answer, b: Answer, tolerance: float) -> list[float]:
    """+1 where the last score of an answer got better by more than the tolerance, -1 where worse."""
    if len(a.scores) < 2 or len(a.scores) != len(b.scores):
        return []
    better = b.scores[-1] - a.scores[-1]
    if a.scores[0] < a.scores[-1]:  # distances
        better = -better
    return [0.0 if not abs(better) > tolerance else 1.0 if better > 0 else -1.0]


def _sources_kept(a: Answer, b: Answer) -> list[bool]:
    """Per lost passage whose source had two or more: whether another passage of that source is left.

    A filter or a lost document takes all passages of a source; corrupt vectors or a lossy index take some.
    """
    after, left = set(passages(b)), set(b.sources)
    return [
        s in left
        for p, s in zip(passages(a), a.sources, strict=True)
        if p not in after and s != SOURCE_UNKNOWN and a.sources.count(s) > 1
    ]
