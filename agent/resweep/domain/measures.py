"""Retrieval measures of many cases at every depth k, in one pass over where the relevant passages stand.

A case has a set of relevant passages (grade >= 1) of size R and a ranking. Rank is the position in the
ranking, never a score. A passage that comes twice counts once, at its first place; the second copy keeps its
place in the prompt, so it still costs precision. h(k) is the number of relevant passages among the first k.

Only cases with R >= 1 are measured. Unjudged cases, cases without any relevant passage, and judged cases that
a run left out (they score 0) are three different things and are kept apart. `DEFINITIONS` says each measure
in words, to be printed wherever its value is.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from resweep.domain.errors import UsageError

FloatArray: TypeAlias = NDArray[np.float64]
IntArray: TypeAlias = NDArray[np.int64]
Judgments: TypeAlias = Mapping[str, float]

RELEVANT_GRADE = 1
# Cells of one block of the pass: its dozen temporaries stay in the processor's cache.
_BLOCK_CELLS = 1 << 17

DEFINITIONS: Mapping[str, str] = {
    "recall": "h(k) / R",
    "all_evidence": "1 if h(k) = R, else 0",
    "partial_credit": "recall@k - all_evidence@k",
    "precision": "h(k) / k",
    "precision_returned": "h(k) / min(k, passages returned); 0 where nothing was returned",
    "context_precision": "sum over relevant ranks r <= k of h(r)/r, divided by min(R, k)",
    "ap": "sum over relevant ranks r <= k of h(r)/r, divided by R",
    "mrr": "1 / rank of the first relevant passage if that is <= k, else 0",
    "ndcg": "sum of grade/log2(rank+1) over relevant ranks <= k, divided by that sum for the best min(R, k)",
    "judged": "share of the first min(k, returned) passages that anyone judged; not observed where none came",
    "duplicate_source_rate": "share of the first k passages with a known source whose source came before",
    "evidence_coverage": "distinct required facts with a passage among the first k / required facts",
}


@dataclass(frozen=True, eq=False)
class RankTable:
    """Where the relevant passages of the measured cases stand.

    `kept` holds the positions, in the input, of the cases measured (R >= 1); `unjudged`, `no_relevant` and
    `missing` (a subset of `kept`) those of the others. `rankings`, `judgments`, `relevant` (R) and `returned`
    have one entry per kept case. The `hit_*` and `ideal_*` columns are sparse: one entry per relevant passage
    found, and per relevant passage in the best order; their `*_case` is a row of `kept`, ascending, and ranks
    count from 1.
    """

    kept: IntArray
    unjudged: IntArray
    no_relevant: IntArray
    missing: IntArray
    rankings: Sequence[Sequence[str]]
    judgments: Sequence[Judgments]
    relevant: IntArray
    returned: IntArray
    hit_case: IntArray
    hit_rank: IntArray
    hit_grade: FloatArray
    ideal_case: IntArray
    ideal_rank: IntArray
    ideal_grade: FloatArray

    def __len__(self) -> int:
        return len(self.kept)

    @cached_property
    def duplicates(self) -> IntArray:
        """The number of passages of each kept case that came before in its list."""
        return _ints([len(ranking) - len(set(ranking)) for ranking in self.rankings])

    @cached_property
    def judged(self) -> tuple[IntArray, IntArray]:
        """The rows and ranks at which a passage stands that anyone judged, repeated ones included."""
        pairs = zip(self.rankings, self.judgments, strict=True)
        ranks = [[r for r, p in enumerate(ranking, 1) if p in judged] for ranking, judged in pairs]
        joined = [rank for case in ranks for rank in case]
        return _rows([len(case) for case in ranks]), _ints(joined)


@dataclass(frozen=True, slots=True, eq=False)
class Measured:
    """Per-case values: `values[name]` has one row per kept case and one column per depth of `ks`."""

    ks: tuple[int, ...]
    values: Mapping[str, FloatArray]


class _Columns:
    """The growing columns of a table; plain lists, because most cases add two or three entries."""

    def __init__(self) -> None:
        self.kept: list[int] = []
        self.unjudged: list[int] = []
        self.no_relevant: list[int] = []
        self.missing: list[int] = []
        self.rankings: list[Sequence[str]] = []
        self.judgments: list[Judgments] = []
        self.relevant: list[int] = []
        self.hit_rank: list[int] = []
        self.hit_grade: list[float] = []
        self.hits: list[int] = []
        self.ideal_grade: list[float] = []

    def add(self, index: int, ranking: Sequence[str], judgments: Judgments, grades: list[float]) -> None:
        before = len(self.hit_rank)
        for passage in judgments.keys() & ranking:
            if (grade := judgments[passage]) >= RELEVANT_GRADE:
                # The first place: a copy further down finds nothing new.
                self.hit_rank.append(ranking.index(passage) + 1)
                self.hit_grade.append(grade)
        self.hits.append(len(self.hit_rank) - before)
        self.ideal_grade.extend(sorted(grades, reverse=True))
        self.kept.append(index)
        self.rankings.append(ranking)
        self.judgments.append(judgments)
        self.relevant.append(len(grades))

    def table(self) -> RankTable:
        relevant = _ints(self.relevant)
        return RankTable(
            kept=_ints(self.kept),
            unjudged=_ints(self.unjudged),
            no_relevant=_ints(self.no_relevant),
            missing=_ints(self.missing),
            rankings=self.rankings,
            judgments=self.judgments,
            relevant=relevant,
            returned=_ints(list(map(len, self.rankings))),
            hit_case=_rows(self.hits),
            hit_rank=_ints(self.hit_rank),
            hit_grade=np.array(self.hit_grade, dtype=np.float64),
            ideal_case=_rows(self.relevant),
            ideal_rank=_places(relevant),
            ideal_grade=np.array(self.ideal_grade, dtype=np.float64),
        )


def _ints(values: Sequence[int]) -> IntArray:
    return np.array(values, dtype=np.int64)


def _rows(counts: Sequence[int]) -> IntArray:
    return np.repeat(np.arange(len(counts), dtype=np.int64), _ints(counts))


def _places(counts: IntArray) -> IntArray:
    """Return 1..n for each count n, joined: the places inside each case."""
    ends = np.cumsum(counts)
    return np.arange(1, int(ends[-1]) + 1 if len(ends) else 1) - np.repeat(ends - counts, counts)


def rank_table(rankings: Sequence[Sequence[str] | None], judgments: Sequence[Judgments | None]) -> RankTable:
    """Return where the relevant passages stand, case by case.

    `rankings[i]` holds the passage ids of case i in rank order, or None where the run left the case out;
    `judgments[i]` its grades by passage id, or None where nobody judged it. An empty mapping, or one without
    a grade >= 1, is a case without any relevant passage. Raises UsageError where the two differ in length.
    """
    if len(rankings) != len(judgments):
        raise UsageError(
            f"expected one ranking per judged case, got {len(rankings)} rankings and {len(judgments)} cases; "
            "pass None for a case that the run left out"
        )
    columns = _Columns()
    for index, (ranking, judged) in enumerate(zip(rankings, judgments, strict=True)):
        if judged is None:
            columns.unjudged.append(index)
            continue
        grades = [grade for grade in judged.values() if grade >= RELEVANT_GRADE]
        if not grades:
            columns.no_relevant.append(index)
            continue
        if ranking is None:
            columns.missing.append(index)
        columns.add(index, ranking if ranking is not None else (), judged, grades)
    return columns.table()


class _Block:
    """Some cases at once: dense over the first `depth` ranks, then only the columns asked for.

    `found` is h(k), `gathered` the sum of h(r)/r over relevant ranks r <= k; each has one row per case of
    the block and one column per k. `relevant` and `returned` are columns, `k` a row.
    """

    def __init__(self, table: RankTable, start: int, stop: int, ks: IntArray) -> None:
        self.table, self.start, self.stop, self.ks = table, start, stop, ks
        self.depth = int(ks[-1])
        self.k = ks.astype(np.float64)
        self.relevant = table.relevant[start:stop, None].astype(np.float64)
        self.returned = table.returned[start:stop, None].astype(np.float64)
        self.hits = self.scatter(table.hit_case, table.hit_rank, None)
        self.running = np.cumsum(self.hits, axis=1)
        self.found = self.at_k(self.running)

    def scatter(self, case: IntArray, rank: IntArray, value: FloatArray | None) -> FloatArray:
        """Return the sparse entries of this block as rows by ranks 1..depth, 0 elsewhere."""
        first, last = np.searchsorted(case, (self.start, self.stop))
        rows, ranks = case[first:last] - self.start, rank[first:last]
        inside = ranks <= self.depth
        dense = np.zeros((self.stop - self.start, self.depth))
        dense[rows[inside], ranks[inside] - 1] = 1.0 if value is None else value[first:last][inside]
        return dense

    def at_k(self, by_rank: FloatArray) -> FloatArray:
        """Return the columns of the depths asked for."""
        return by_rank if len(self.ks) == self.depth else by_rank[:, self.ks - 1]

    @cached_property
    def gathered(self) -> FloatArray:
        """The sum of h(r)/r over relevant ranks r <= k."""
        return self.at_k(np.cumsum(self.hits * self.running / np.arange(1, self.depth + 1), axis=1))

    def gain(self, case: IntArray, rank: IntArray, grade: FloatArray) -> FloatArray:
        """Return the discounted cumulative gain: linear gain, log2(rank + 1)."""
        discount = np.log2(np.arange(2, self.depth + 2))
        return self.at_k(np.cumsum(self.scatter(case, rank, grade) / discount, axis=1))


def _recall(block: _Block) -> FloatArray:
    value: FloatArray = block.found / block.relevant
    return value


def _all_evidence(block: _Block) -> FloatArray:
    complete: FloatArray = np.equal(block.found, block.relevant).astype(np.float64)
    return complete


def _partial_credit(block: _Block) -> FloatArray:
    return _recall(block) - _all_evidence(block)


def _precision(block: _Block) -> FloatArray:
    return block.found / block.k


def _precision_returned(block: _Block) -> FloatArray:
    # Nothing returned: 0 hits of at least 1, which is 0 and never 0/0.
    value: FloatArray = block.found / np.maximum(np.minimum(block.k, block.returned), 1.0)
    return value


def _context_precision(block: _Block) -> FloatArray:
    value: FloatArray = block.gathered / np.minimum(block.relevant, block.k)
    return value


def _ap(block: _Block) -> FloatArray:
    return block.gathered / block.relevant


def _mrr(block: _Block) -> FloatArray:
    first = np.argmax(block.hits, axis=1)[:, None] + 1.0
    value: FloatArray = (block.found > 0) / first
    return value


def _ndcg(block: _Block) -> FloatArray:
    table = block.table
    best = block.gain(table.ideal_case, table.ideal_rank, table.ideal_grade)
    return block.gain(table.hit_case, table.hit_rank, table.hit_grade) / best


def _judged(block: _Block) -> FloatArray:
    seen = np.minimum(block.k, block.returned)
    by_rank = block.scatter(*block.table.judged, None)
    share = np.full(seen.shape, np.nan)
    np.divide(block.at_k(np.cumsum(by_rank, axis=1)), seen, out=share, where=seen > 0)
    return share


_MEASURES: Mapping[str, Callable[[_Block], FloatArray]] = {
    "recall": _recall,
    "all_evidence": _all_evidence,
    "partial_credit": _partial_credit,
    "precision": _precision,
    "precision_returned": _precision_returned,
    "context_precision": _context_precision,
    "ap": _ap,
    "mrr": _mrr,
    "ndcg": _ndcg,
    "judged": _judged,
}
MEASURES: tuple[str, ...] = tuple(_MEASURES)
# What a report shows unless asked for more.
SEVEN: tuple[str, ...] = ("recall", "all_evidence", "precision", "context_precision", "ap", "mrr", "ndcg")
# With k these can only rise, whatever the retriever: they show how far one must go, never where to stop.
NEVER_FALL: frozenset[str] = frozenset({"recall", "all_evidence", "ap", "mrr", "evidence_coverage"})


def check_depths(ks: Sequence[int]) -> IntArray:
    """Return the depths ascending and distinct; raises UsageError for none, or one below 1."""
    depths = sorted(set(ks))
    if not depths or depths[0] < 1:
        raise UsageError(f"expected depths k of at least 1, got {list(ks)}; give e.g. 3, 5, 8")
    return _ints(depths)


def _blocks(table: RankTable, ks: IntArray) -> Iterator[_Block]:
    step = max(1, _BLOCK_CELLS // int(ks[-1]))
    for start in range(0, len(table), step):
        yield _Block(table, start, min(start + step, len(table)), ks)


def measure(table: RankTable, ks: Sequence[int], names: Sequence[str] = SEVEN) -> Measured:
    """Return the named measures of every kept case at every depth of `ks` (sorted, without repeats).

    Raises UsageError for an unknown measure or a depth below 1.
    """
    unknown = [name for name in names if name not in _MEASURES]
    if unknown:
        raise UsageError(f"expected measures among {', '.join(MEASURES)}, got {', '.join(unknown)}")
    depths = check_depths(ks)
    values = {name: np.empty((len(table), len(depths))) for name in names}
    for block in _blocks(table, depths):
        for name, into in values.items():
            into[block.start : block.stop] = _MEASURES[name](block)
    return Measured(tuple(depths.tolist()), values)


def measure_at(table: RankTable, depths: IntArray, names: Sequence[str] = SEVEN) -> dict[str, FloatArray]:
    """Return the named measures of each kept case at its own depth: one value per case.

    A depth of 0 selects nothing: every measure is 0 there, and `judged` is not observed (NaN).
    """
    if len(depths) != len(table):
        raise UsageError(f"expected one depth per measured case ({len(table)}), got {len(depths)}")
    nothing = depths <= 0
    used, column = np.unique(np.maximum(depths, 1), return_inverse=True)
    measured = measure(table, used.tolist() or [1], names)
    rows = np.arange(len(table))
    return {
        name: np.where(nothing, np.nan if name == "judged" else 0.0, values[rows, column])
        for name, values in measured.values.items()
    }


def measure_case(ranking: Sequence[str], relevant: Judgments | Collection[str], k: int) -> dict[str, float]:
    """Return every measure of one case at depth k; `relevant` is a set of ids, or grades by id.

    Raises UsageError for k < 1 and for a case without any relevant passage: such a case belongs to the
    questions that test whether the system declines, and has no place in these means.
    """
    judged = relevant if isinstance(relevant, Mapping) else dict.fromkeys(relevant, 1.0)
    table = rank_table([ranking], [judged])
    if not len(table):
        raise UsageError(
            "expected at least one relevant passage (grade >= 1), got none; "
            "count a question without any among the unanswerable ones"
        )
    return {name: float(value[0, 0]) for name, value in measure(table, [k], MEASURES).values.items()}


def duplicate_source_rate(sources: Sequence[Sequence[str | None]], ks: Sequence[int]) -> FloatArray:
    """Return, per case and depth, the share of passages with a known source whose source came before.

    `sources[i]` holds the source of each passage of case i in rank order, None where unknown. NaN (not
    observed) where none of the first k has a known source.
    """
    depths = check_depths(ks)
    rates = np.full((len(sources), len(depths)), np.nan)
    for row, names in enumerate(sources):
        known, repeated = _source_counts(names, int(depths[-1]))
        if known:
            last = np.minimum(depths, len(known)) - 1
            seen = np.array(known)[last]
            np.divide(np.array(repeated)[last], seen, out=rates[row], where=seen > 0)
    return rates


def _source_counts(names: Sequence[str | None], depth: int) -> tuple[list[int], list[int]]:
    known, repeated = [], []
    distinct: set[str] = set()
    total = 0
    for name in names[:depth]:
        if name is not None:
            total += 1
            distinct.add(name)
        known.append(total)
        repeated.append(total - len(distinct))
    return known, repeated


def evidence_coverage(
    rankings: Sequence[Sequence[str]],
    required: Sequence[Sequence[Collection[str]]],
    ks: Sequence[int],
) -> FloatArray:
    """Return, per case and depth, the share of required facts with a passage among the first k.

    `required[i]` lists the facts of case i, each as the ids of the passages that state it. NaN (not
    observed) for a case without required facts.
    """
    depths = check_depths(ks)
    coverage = np.full((len(rankings), len(depths)), np.nan)
    for row, (ranking, facts) in enumerate(zip(rankings, required, strict=True)):
        if facts:
            first = np.array([_first_rank(ranking, fact) for fact in facts])
            coverage[row] = (first[:, None] <= depths).sum(axis=0) / len(facts)
    return coverage


def _first_rank(ranking: Sequence[str], passages: Collection[str]) -> float:
    return next((rank for rank, passage in enumerate(ranking, 1) if passage in passages), np.inf)
