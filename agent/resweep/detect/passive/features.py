"""The numbers of one block of answers: a row of values per distinct query, a stream per column.

Streams are means over distinct queries of one block (half an hour, or longer at low traffic). Text is not
needed: query groups are the sources their first passage comes from, and recurring answers stand in for
recurring questions where no query is known.
"""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Sequence
from math import inf, log1p
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from resweep.detect.passive.vocabulary import Vocabulary, trim
from resweep.domain.sample import TOKENS_UNKNOWN, Answer, Record, depth, unpack_answer

Array = NDArray[np.float64]

VALUES = ("top", "gap", "spread", "tail", "tokens", "context", "count", "latency", "sources", "query_words")
SPREADS = ("top", "spread", "tokens")
SHARES = (
    "empty",
    "answers_new",
    "answers_fresh",
    "pairs_new",
    "shapes_new",
    "passages_new",
    "sources_new",
    "misfit",
    "copies",
    "words_new",
)
GROUPS = 128  # query groups: the most frequent first sources, then hash buckets
BUCKETS = 32
STREAMS = (
    *VALUES,
    *(f"{name}_spread" for name in SPREADS),
    *SHARES,
    *(f"group_{i}" for i in range(GROUPS)),
)
INDEX = {name: i for i, name in enumerate(STREAMS)}
_WORDS = INDEX["query_words"]
_WORDS_NEW = INDEX["words_new"]
_ANSWERS_FRESH = INDEX["answers_fresh"]
_ANSWERS_NEW = INDEX["answers_new"]
_SHAPES_NEW = INDEX["shapes_new"]
_PAIRS_NEW = INDEX["pairs_new"]
_PASSAGES_NEW = INDEX["passages_new"]
_SOURCES_NEW = INDEX["sources_new"]
_MISFIT = INDEX["misfit"]
_GROUP_0 = INDEX["group_0"]
SCORES = ("top", "gap", "spread", "tail", "top_spread", "spread_spread")


class Block(NamedTuple):
    """One closed block: mean and within-block variance of each stream over `n` distinct queries.

    A stream that none of the queries shows is NaN. `ts` is the block's middle, `end` its last event's time,
    `first`/`last` the numbers of its events.
    """

    ts: float
    end: float
    first: int
    last: int
    n: int
    mean: Array
    variance: Array


class Memory:
    """What answers, pairs, passages, sources and words were seen 12 h ago or earlier."""

    def __init__(self, held: float, size: int, passages: Vocabulary, sources: Vocabulary) -> None:
        self.held = held
        self.size = size
        self.passages = passages
        self.sources = sources
        self.marks: dict[int, float] = {}  # answers, pairs and words by hash, since when
        self.block_start = 0.0
        self.frozen_at = inf  # while a change is open, what came after its onset stays new

    def new(self, mark: int, ts: float) -> bool:
        """Whether a mark was never seen; it is from now on, so that a popular new answer counts once."""
        marks = self.marks
        first = marks.get(mark)
        if first is not None:
            return first >= self.frozen_at
        marks[mark] = ts
        trim(marks, self.size)
        return True

    def fresh(self, mark: int, ts: float) -> bool:
        """Whether a mark was not known before this block (or an open change); it is from now on."""
        first = self.marks.setdefault(mark, ts)
        return first >= min(self.block_start, self.frozen_at)


class Table(NamedTuple):
    """Answers of equal depth as arrays of shape (answers, depth)."""

    ids: NDArray[np.uint32]
    scores: NDArray[np.float32]
    sources: NDArray[np.uint32]
    tokens: NDArray[np.uint16]


def table(answers: Sequence[bytes], k: int) -> Table:
    """Return packed answers of depth `k` as arrays."""
    shape = np.dtype(
        [
            ("ids", "<u4", (k,)),
            ("scores", "<f4", (k,)),
            ("sources", "<u4", (k,)),
            ("tokens", "<u2", (k,)),
            ("firsts", "<f4", (k,)),
        ]
    )
    rows = np.frombuffer(b"".join(answers), dtype=shape)
    return Table(rows["ids"], rows["scores"], rows["sources"], rows["tokens"])


class Groups:
    """Query groups by what answers them first: passages where few answer most queries, else sources.

    Frozen after the first day, so that shares mean the same thing before and after a change.
    """

    def __init__(self) -> None:
        self.by_source = True
        self.own: dict[int, int] = {}
        self.frozen = False
        self._passages: Counter[int] = Counter()
        self._sources: Counter[int] = Counter()

    def note(self, passage: int, source: int) -> None:
        """Count a first passage and its source, until frozen."""
        if len(self._passages) < 8192:
            self._passages[passage] += 1
            self._sources[source or passage] += 1

    def freeze(self) -> None:
        """Give the most frequent their own group."""
        if self.frozen:
            return
        own = GROUPS - BUCKETS
        passages = sorted(self._passages.items(), key=lambda pair: (-pair[1], pair[0]))[:own]
        self.by_source = sum(count for _, count in passages) < 0.5 * sum(self._passages.values())
        sources = sorted(self._sources.items(), key=lambda pair: (-pair[1], pair[0]))[:own]
        self.own = {item: i for i, (item, _) in enumerate(sources if self.by_source else passages)}
        self.frozen = True
        self._passages.clear()
        self._sources.clear()

    def __call__(self, passage: int, source: int) -> int:
        """Return the group of an answer by its first passage."""
        item = source or passage if self.by_source else passage
        found = self.own.get(item)
        return GROUPS - BUCKETS + item % BUCKETS if found is None else found


def rows(
    records: Sequence[Record], memory: Memory, groups: Groups, means: Array | None, direction: int
) -> Array:
    """Return the matrix (records x streams) of a block; NaN where a record does not show a stream.

    `means` are the reference means that spreads are taken about. `direction` is 1 where higher scores are
    better, -1 for distances: scores are turned so that better is higher.
    """
    out = np.full((len(records), len(STREAMS)), np.nan)
    memory.block_start = records[0].ts
    for k in {depth(r.answer) for r in records}:
        at = [i for i, r in enumerate(records) if depth(r.answer) == k]
        chosen = [records[i] for i in at]
        if k:
            _measure(out, np.array(at), table([r.answer for r in chosen], k), direction)
        for i, r in zip(at, chosen, strict=True):
            out[i, INDEX["empty"]] = k == 0
            out[i, INDEX["count"]] = k / r.asked if r.asked else k
            out[i, INDEX["latency"]] = np.log(r.latency_s) if r.latency_s > 0 else np.nan
    for i, r in enumerate(records):
        _recall(out[i], r, memory, groups)
    if means is not None:
        for name in SPREADS:  # absolute deviations: squares have tails too long for a mean of 30
            out[:, INDEX[f"{name}_spread"]] = np.abs(out[:, INDEX[name]] - means[INDEX[name]])
    return out


def _measure(out: Array, at: NDArray[np.int_], t: Table, direction: int) -> None:
    scores = t.scores.astype(np.float64) * direction
    tokens = np.where(t.tokens == TOKENS_UNKNOWN, np.nan, t.tokens.astype(np.float64))
    out[at, INDEX["top"]] = scores[:, 0]
    if scores.shape[1] > 1:
        out[at, INDEX["gap"]] = scores[:, 0] - scores[:, 1]
        out[at, INDEX["spread"]] = scores.std(axis=1)
        out[at, INDEX["tail"]] = scores[:, -1]
    out[at, INDEX["tokens"]] = np.log1p(tokens.mean(axis=1))
    out[at, INDEX["context"]] = np.log1p(tokens.sum(axis=1))
    out[at, INDEX["sources"]] = _distinct(t.sources) / t.sources.shape[1]
    out[at, INDEX["copies"]] = _copies(t.sources, tokens, scores)


def _distinct(sources: NDArray[np.uint32]) -> Array:
    ordered = np.sort(sources, axis=1)
    return np.asarray(1.0 + (ordered[:, 1:] != ordered[:, :-1]).sum(axis=1), dtype=np.float64)


def _copies(sources: NDArray[np.uint32], tokens: Array, scores: Array) -> Array:
    """Share of neighbours in rank that have one source, nearly one length and nearly one score."""
    if sources.shape[1] < 2:
        return np.full(len(sources), np.nan)
    near = np.abs(np.diff(scores, axis=1)) <= 0.1 * np.abs(scores[:, :1] - scores[:, -1:])
    alike = np.abs(np.diff(tokens, axis=1)) <= 0.02 * tokens[:, 1:]
    return np.asarray((near & alike & (sources[:, 1:] == sources[:, :-1])).mean(axis=1), dtype=np.float64)


def _recall(row: Array, record: Record, memory: Memory, groups: Groups) -> None:
    """Fill in what of a record was known 12 h ago."""
    ts, packed = record.ts, record.answer
    if record.words:
        words = array("I", record.words)
        row[_WORDS] = log1p(len(words))
        row[_WORDS_NEW] = sum([memory.new(w << 3, ts) for w in words]) / len(words)
    k = depth(packed)
    if not k:
        return
    answer = unpack_answer(packed)
    mark = hash(tuple(sorted(answer.ids))) << 3 | 1  # in no order: rounding swaps neighbours
    coarse = [0 if s != s else round(s * 1e4) for s in answer.scores]
    row[_ANSWERS_NEW] = memory.new(mark, ts)
    row[_ANSWERS_FRESH] = memory.fresh(mark, ts)
    row[_SHAPES_NEW] = memory.fresh(hash((*coarse, *answer.tokens)) << 3 | 2, ts)
    pairs = [memory.fresh(hash((p, s)) << 3 | 3, ts) for p, s in zip(answer.ids[:2], coarse, strict=False)]
    row[_PAIRS_NEW] = sum(pairs) / len(pairs)
    _compare_bodies(row, answer, memory, min(ts - memory.held, memory.frozen_at))
    if groups.frozen:
        row[_GROUP_0:] = 0.0
        row[_GROUP_0 + groups(answer.ids[0], answer.sources[0])] = 1.0
    else:
        groups.note(answer.ids[0], answer.sources[0])


def _compare_bodies(row: Array, answer: Answer, memory: Memory, before: float) -> None:
    """Fill in which passages and sources are old, and whether the old ones still have their body."""
    old = fits = known = shown = 0
    get, sources = memory.passages.items.get, memory.sources.items.get
    for passage, source, tokens in zip(answer.ids, answer.sources, answer.tokens, strict=True):
        seen = get(passage)
        if seen is not None and seen.first <= before:
            old += 1
            fits += seen.tokens == tokens and seen.source == source
        if source:
            shown += 1
            origin = sources(source)
            known += origin is not None and origin.first <= before
    row[_PASSAGES_NEW] = 1.0 - old / len(answer.ids)
    if old:
        row[_MISFIT] = 1.0 - fits / old
    if shown:
        row[_SOURCES_NEW] = 1.0 - known / shown


def block(records: Sequence[Record], matrix: Array) -> Block:
    """Return the block that a matrix of records makes."""
    with np.errstate(invalid="ignore"):
        shown = np.isfinite(matrix)
        n = np.maximum(shown.sum(axis=0), 1)
        mean = np.where(shown, matrix, 0.0).sum(axis=0) / n
        variance = (np.where(shown, matrix - mean, 0.0) ** 2).sum(axis=0) / n
    mean[~shown.any(axis=0)] = np.nan
    times = [r.ts for r in records]
    numbers = [r.number for r in records]
    return Block(
        (times[0] + times[-1]) / 2, max(times), min(numbers), max(numbers), len(records), mean, variance
    )
