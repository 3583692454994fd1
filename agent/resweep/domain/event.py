"""What one retrieval was: the value every other part of resweep reads.

Events are NamedTuples because they are built once per request in the user's service, where a frozen
dataclass costs four times as much. Nothing here reads a clock or draws a random number.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, NamedTuple

ScoreKind = Literal["similarity", "distance", "rerank"]
ScoreState = Literal["ok", "missing", "invalid"]
FeedbackKind = Literal["positive", "negative", "not_found", "escalated", "corrected"]
FEEDBACK_KINDS: tuple[FeedbackKind, ...] = ("positive", "negative", "not_found", "escalated", "corrected")

EVENT_SCHEMA = "resweep.event/1"
UNKNOWN = "unknown"
CONFIG_ID_LENGTH = 12


class Hit(NamedTuple):
    """One returned passage, in rank order.

    `score` is a finite float or None; `score_state` says whether None means missing or invalid (NaN,
    infinite, bool, text that is no number). `source` is None where unknown. `tokens` is a count, estimated
    when the event says so. `text` is only present where content capture is on. `rank` (from 1) is only
    given where it is not the place in the list: a sender left gaps.
    """

    id: str
    score: float | None = None
    kind: ScoreKind | None = None
    retriever_score: float | None = None
    source: str | None = None
    tokens: int | None = None
    text_hash: str | None = None
    score_state: ScoreState = "missing"
    text: str | None = None
    rank: int | None = None


class ErrorInfo(NamedTuple):
    """Why a retrieval failed: the exception's class name, and its text where content capture is on."""

    error_class: str
    message: str | None = None


class RetrievalEvent(NamedTuple):
    """One retrieval.

    `config` is the 12-hex config id. `ts` is unix seconds. `asked` is the depth requested for the prompt;
    `returned` the passages handed to the caller (hits beyond it are probe material). `returned_none` tells
    `None` from an empty list. `stages` maps a stage to seconds, e.g. ``{"rerank_s": 0.012}``. `query` is
    only present where content capture is on; `query_key` identifies the normalised query (and its filter
    or tenant value) without showing it. `user_key` is the user's own pseudonym for whom it was, by which
    it can be deleted. `truncated` says that the sender lost part of the answer on the way, so that no count
    or rank of it holds. `p` is the probability with which a sampled event was kept, 1 where all are.
    """

    id: str
    ts: float
    pipeline: str
    config: str
    asked: int | None = None
    returned: int = 0
    hits: tuple[Hit, ...] = ()
    query: str | None = None
    query_key: int | None = None
    candidates: int | None = None
    reranked: int | None = None
    filters: Mapping[str, object] | None = None
    latency_s: float | None = None
    stages: Mapping[str, float] = {}
    partial: bool = False
    error: ErrorInfo | None = None
    returned_none: bool = False
    stop: str | None = None
    trace_id: str | None = None
    probe: bool = False
    tokens_estimated: bool = False
    user_key: str | None = None
    truncated: bool = False
    p: float = 1.0


class Feedback(NamedTuple):
    """What a user said of one retrieval; counted once per (event, kind, rater)."""

    id: str
    event_id: str
    kind: FeedbackKind
    rater: str | None
    ts: float


CROCKFORD = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"


def ulid(milliseconds: int, entropy: int) -> str:
    """Return the 26-character ULID of a unix time in ms (48 bits) and 80 bits of entropy.

    Source: https://github.com/ulid/spec (Crockford base 32, most significant first).
    """
    value = ((milliseconds & (1 << 48) - 1) << 80) | (entropy & (1 << 80) - 1)
    return "".join(CROCKFORD[(value >> shift) & 31] for shift in range(125, -1, -5))


def event_id(milliseconds: int, entropy: int, config: str) -> str:
    """Return a self-describing event id: `<ulid>-<config 12 hex>`."""
    return f"{ulid(milliseconds, entropy)}-{config}"


class EventIdParts(NamedTuple):
    """What an event id says of itself: unix seconds and the 12-hex config id."""

    ts: float
    config: str


def parse_event_id(value: str) -> EventIdParts | None:
    """Return time and config of a self-describing event id, or None where it describes nothing."""
    stem, dash, config = value.rpartition("-")
    if not dash or len(stem) != 26 or len(config) != CONFIG_ID_LENGTH:
        return None
    if any(c not in "0123456789abcdef" for c in config):
        return None
    number = 0
    for letter in stem.upper():
        digit = CROCKFORD.find(letter)
        if digit < 0:
            return None
        number = number << 5 | digit
    return EventIdParts((number >> 80) / 1000.0, config)
