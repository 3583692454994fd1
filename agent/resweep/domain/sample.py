"""The mergeable sample of distinct queries that the passive layers read.

One salt per pipeline turns a query into a 64-bit key. The `k` smallest keys of a period are its bottom-k
sample: every distinct query is in or out by its key alone, so replicas and hours keep the *same* queries,
repeats count once, and the sample of a union is the sample of the merged samples, bit for bit.
Source: Cohen and Kaplan, "Summarizing data using bottom-k sketches" (PODC 2007).
"""

from __future__ import annotations

import zlib
from array import array
from collections.abc import Iterable, Mapping
from hashlib import blake2b
from math import nan
from struct import Struct
from typing import NamedTuple

import msgspec

from resweep.domain.event import Hit, RetrievalEvent

SAMPLE_SIZE = 1024  # distinct queries kept a period
DEPTH_MAX = 64  # passages of one answer that are kept
TOKENS_UNKNOWN = 0xFFFF
SOURCE_UNKNOWN = 0
FIXED = 1_000_000  # fixed-point sums are kept in millionths
_BYTES_PER_PASSAGE = 18
_PUNCTUATION = " \t\r\n.,;:!?…。？！"
_SCORE = Struct("<f")
_LAYOUTS = tuple(Struct(f"<{k}I{k}f{k}I{k}H{k}f") for k in range(DEPTH_MAX + 1))


def normalised(query: str) -> str:
    """Return the query as it counts for identity: case, runs of spaces and trailing punctuation dropped."""
    return " ".join(query.casefold().split()).rstrip(_PUNCTUATION)


def query_key(query: str, filters: Mapping[str, object] | None, salt: bytes) -> int:
    """Return the salted 64-bit identity of a normalised query under its filter or tenant values.

    The same words under another filter are another question. `salt` (at most 64 bytes) belongs to the
    pipeline and is kept for its life: without it the key cannot be turned back by guessing queries.
    """
    text = normalised(query)
    if filters:
        text += "\x00" + "\x01".join(f"{name}={filters[name]!r}" for name in sorted(filters))
    return int.from_bytes(blake2b(text.encode(), digest_size=8, key=salt).digest(), "big")


def event_key(event_id: str, salt: bytes) -> int:
    """Return the key of an event whose query is not known: its own, so that each has one vote."""
    return int.from_bytes(
        blake2b(event_id.encode(), digest_size=8, key=salt, person=b"event").digest(), "big"
    )


class Answer(NamedTuple):
    """One answer in rank order: passage and source hashes (32 bit), scores (NaN: none), token counts.

    `firsts` are the first-stage scores where they differ from the final ones, else NaN.
    """

    ids: tuple[int, ...]
    scores: tuple[float, ...]
    sources: tuple[int, ...]
    tokens: tuple[int, ...]
    firsts: tuple[float, ...] = ()


class Record(NamedTuple):
    """What is kept of one sampled retrieval.

    `answer` is packed (see `pack_answer`); `words` holds the 32-bit hashes of the query's words where the
    text was seen. `number` is the event's number in a replay, -1 in a live agent. `known` says whether the
    key stands for a query (else for the event alone). `latency_s` is NaN where unknown.
    """

    key: int
    ts: float
    id: str
    number: int
    known: bool
    answer: bytes
    asked: int
    latency_s: float
    words: bytes = b""


class Hashes(dict[str, int]):
    """Stable 32-bit hashes of strings, remembered up to a bound; a look-up makes what is missing.

    Never 0, which stands for unknown. A dictionary, so that the look-up of a known string costs no call.
    """

    def __init__(self, remembered: int = 200_000) -> None:
        super().__init__()
        self._bound = remembered

    def __missing__(self, text: str) -> int:
        if len(self) >= self._bound:
            self.clear()
        found = self[text] = zlib.crc32(text.encode("utf-8", "surrogatepass")) or 1
        return found


def pack_answer(hits: tuple[Hit, ...], hashes: Hashes) -> bytes:
    """Return hits as bytes: k hashes, k float32 scores, k source hashes, k token counts (16 bit),
    k float32 first-stage scores.

    Equal answers give equal bytes. A passage whose text hash is known is identified by id *and* text hash:
    an id reused for another text is another passage.
    """
    if len(hits) > DEPTH_MAX:
        hits = hits[:DEPTH_MAX]
    values = (
        *[hashes[hit[0] if hit[6] is None else f"{hit[0]}\x00{hit[6]}"] for hit in hits],
        *[nan if hit[1] is None else hit[1] for hit in hits],
        *[SOURCE_UNKNOWN if hit[4] is None else hashes[hit[4]] for hit in hits],
        *[TOKENS_UNKNOWN if hit[5] is None else min(max(hit[5], 0), TOKENS_UNKNOWN - 1) for hit in hits],
        *[nan if hit[3] is None else hit[3] for hit in hits],
    )
    try:
        return _LAYOUTS[len(hits)].pack(*values)
    except OverflowError:  # a score beyond float32
        return _LAYOUTS[len(hits)].pack(*(_bounded(v) if isinstance(v, float) else v for v in values))


def _bounded(score: float) -> float:
    return max(-3e38, min(3e38, score))


def end_scores(answer: bytes) -> tuple[float, float]:
    """Return the first and the last score of a packed answer; NaN for none."""
    k = depth(answer)
    if not k:
        return nan, nan
    return _SCORE.unpack_from(answer, 4 * k)[0], _SCORE.unpack_from(answer, 8 * k - 4)[0]


def depth(answer: bytes) -> int:
    """Return how many passages a packed answer holds."""
    return len(answer) // _BYTES_PER_PASSAGE


def unpack_answer(answer: bytes) -> Answer:
    """Return a packed answer as tuples."""
    k = depth(answer)
    values = _LAYOUTS[k].unpack(answer)
    return Answer(
        values[:k], values[k : 2 * k], values[2 * k : 3 * k], values[3 * k : 4 * k], values[4 * k :]
    )


def word_hashes(query: str | None, hashes: Hashes) -> bytes:
    """Return the hashes of a query's first 16 words, packed; empty where the text is not known."""
    if not query:
        return b""
    return array("I", [hashes[word] for word in query.casefold().split()[:16]]).tobytes()


def record_of(event: RetrievalEvent, number: int, key: int, known: bool, hashes: Hashes) -> Record:
    """Return what the sample keeps of an event; hits beyond `returned` are probe material and left out."""
    return Record(
        key,
        event.ts,
        event.id,
        number,
        known,
        pack_answer(event.hits[: event.returned], hashes),
        event.asked or 0,
        nan if event.latency_s is None else event.latency_s,
        word_hashes(event.query, hashes),
    )


def newest(one: Record, other: Record) -> Record:
    """Return the later of two records of one key; ties go by event id, so that order does not matter."""
    return one if (one.ts, one.id) >= (other.ts, other.id) else other


class BottomK:
    """The newest record of each of the `size` smallest keys seen. Merging is commutative and associative."""

    def __init__(self, size: int = SAMPLE_SIZE, records: Iterable[Record] = ()) -> None:
        self.size = size
        self.bound = 1 << 64  # keys at or above it cannot enter
        self._records: dict[int, Record] = {}
        for record in records:
            self.add(record)

    def add(self, record: Record) -> None:
        """Offer one record."""
        key = record.key
        if key >= self.bound:
            return
        held = self._records.get(key)
        self._records[key] = record if held is None else newest(held, record)
        if len(self._records) >= 2 * self.size:
            self._prune()

    def merge(self, other: BottomK) -> None:
        """Add another sample of the same size."""
        for record in other._records.values():
            self.add(record)

    def _prune(self) -> None:
        kept = sorted(self._records)[: self.size]
        self._records = {key: self._records[key] for key in kept}
        if len(kept) == self.size:
            self.bound = kept[-1] + 1

    def records(self) -> list[Record]:
        """Return the sample by time, then event id."""
        if len(self._records) > self.size:
            self._prune()
        return sorted(self._records.values(), key=lambda record: (record.ts, record.id))

    def __len__(self) -> int:
        return min(self.size, len(self._records))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, BottomK) and self.size == other.size and self.records() == other.records()

    __hash__ = None  # type: ignore[assignment]


class Sum(msgspec.Struct):
    """Count, sum and sum of squares of one stream, the sums in millionths: integers, so merges are exact."""

    n: int = 0
    total: int = 0
    squares: int = 0

    def add(self, value: float) -> None:
        """Add one finite value."""
        self.n += 1
        self.total += round(value * FIXED)
        self.squares += round(value * value * FIXED)

    def merge(self, other: Sum) -> None:
        """Add another stream's sums."""
        self.n += other.n
        self.total += other.total
        self.squares += other.squares

    @property
    def mean(self) -> float:
        """The mean; 0 for no values."""
        return self.total / self.n / FIXED if self.n else 0.0
