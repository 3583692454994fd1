"""Cases: the questions of the labelled set, and what identifies one.

    candidate -> in_review -> labelled | unanswerable | rejected
    labelled  -> needs_look      (its list now holds passages that nobody judged)

A case without a person's word is a candidate. What a person rejected stays rejected, however often it is
asked again.
"""

from __future__ import annotations

from ast import literal_eval
from collections.abc import Mapping
from hashlib import blake2b
from typing import Any, Literal, get_args

import msgspec

from resweep.domain.event import Hit
from resweep.domain.sample import normalised

CASE_SCHEMA = "resweep.case/1"
CaseState = Literal["candidate", "in_review", "labelled", "needs_look", "unanswerable", "rejected"]
Side = Literal["tune", "holdout", "quarantined"]
Origin = Literal["live", "feedback", "imported", "synthetic", "canary"]

CASE_STATES: tuple[CaseState, ...] = get_args(CaseState)
SIDES: tuple[Side, ...] = get_args(Side)
ORIGINS: tuple[Origin, ...] = get_args(Origin)
OPEN_STATES: tuple[CaseState, ...] = ("candidate", "in_review", "needs_look")
# States in which a person has given the case their word at least once.
REVIEWED_STATES: tuple[CaseState, ...] = ("labelled", "needs_look", "unanswerable", "rejected")
HOLDOUT_SHARE = 0.2


def question_key(query: str, filters: Mapping[str, object] | None = None) -> str:
    """Return 32 hex digits that name a question: case, spaces and closing punctuation do not matter.

    The same words under another filter or tenant value are another question: other passages answer it.
    """
    text = normalised(query)
    if filters:
        text += "\x00" + "\x01".join(f"{name}={filters[name]!r}" for name in sorted(filters))
    return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16, person=b"question").hexdigest()


def scope_of(filters: Mapping[str, object] | None) -> str:
    """Return filter values as text, "" for none: what `filters_of` reads back."""
    return repr(sorted(filters.items(), key=lambda item: item[0])) if filters else ""


def filters_of(scope: str) -> dict[str, Any] | None:
    """Return the filter values that a scope tells; None for none, and for one that is no plain data."""
    try:
        return dict(literal_eval(scope)) if scope else None
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
        return None


def case_id_of(pipeline: str, question: str) -> str:
    """Return the id of the case that asks a question of a pipeline: equal wherever it is made."""
    name = f"{pipeline}\x00{question}".encode("utf-8", "surrogatepass")
    return blake2b(name, digest_size=8, person=b"case").hexdigest()


def side_of(cluster: str, holdout: float = HOLDOUT_SHARE) -> Side:
    """Return the split of a cluster of near-equal questions: a pure function of its name."""
    digest = blake2b(cluster.encode(), digest_size=8, person=b"split").digest()
    return "holdout" if int.from_bytes(digest, "big") < holdout * 2**64 else "tune"


class Draw(msgspec.Struct, frozen=True, kw_only=True):
    """One sampled event: `p` is its probability of being sampled, `strata` all it qualified for.

    `stratum` is the one with the highest rate, which is why it is there.
    """

    event_id: str
    ts: float
    p: float
    plan: str
    stratum: str
    strata: tuple[str, ...] = ()
    config: str = ""
    user_key: str | None = None


class Candidate(msgspec.Struct, frozen=True, kw_only=True):
    """A question to put into the set, or to fold into the case that asks it already.

    `question` is its key, `like` the key of a near-equal question already there. `cluster` and `side` are
    its place among near-equal questions, where that was looked into. `hits` are what to judge, in rank order;
    `asked` is the depth that reached the prompt, `scope` its filter values as text.
    """

    pipeline: str
    question: str
    query: str | None = None
    draw: Draw | None = None
    origin: Origin = "live"
    like: str | None = None
    cluster: str | None = None
    side: Side | None = None
    scope: str = ""
    hits: tuple[Hit, ...] = ()
    asked: int | None = None
    corpus_revision: str | None = None
    slices: Mapping[str, str] = {}


class Judgment(msgspec.Struct, frozen=True, kw_only=True):
    """A grade for one passage: 0 does not answer, 1 answers; more only where grades are on."""

    passage_id: str
    grade: float
    text_hash: str | None = None


class CaseLine(msgspec.Struct, kw_only=True):
    """A case as `resweep.case/1` says it.

    `inclusion_probability` is that of the first sampled event, `weight` the number of traffic events the case
    stands for, `events` every sampled event that was folded into it. `filters` are the filter or tenant
    values it was asked under, `links` where an answer is said to stand, by whoever brought the case.
    """

    case_id: str
    query: str | None = None
    filters: dict[str, Any] | None = None
    pipeline: str | None = None
    stratum: str | None = None
    inclusion_probability: float | None = None
    weight: float | None = None
    plan: str | None = None
    state: str | None = None
    split: str | None = None
    judgments: list[Judgment] = []
    required: list[list[str]] = []
    answerable: bool | None = None
    reference_answer: str | None = None
    notes: str | None = None
    slices: dict[str, str] = {}
    provenance: str | None = None
    event_id: str | None = None
    config: str | None = None
    corpus_revision: str | None = None
    cluster: str | None = None
    seen: int = 1
    first_ts: float | None = None
    last_ts: float | None = None
    links: list[str] = []
    events: list[Draw] = []


def line_of(case: CaseLine) -> bytes:
    """Return the line of a case, without its end."""
    return msgspec.json.encode(case)


Outcome = Literal["labelled", "unanswerable", "rejected", "skipped"]
OUTCOMES: tuple[Outcome, ...] = get_args(Outcome)
Anchor = Literal["here", "moved", "lost"]


class Graded(msgspec.Struct, frozen=True, kw_only=True):
    """One reviewer's grade of one passage. `anchor`: under its id still, moved to another, or lost."""

    reviewer: str
    passage_id: str
    grade: float
    ts: float
    text_hash: str | None = None
    anchor: Anchor = "here"


class Suggestion(msgspec.Struct, frozen=True, kw_only=True):
    """What a model says of one passage: it is shown, and never counts. `judge` names the model."""

    passage_id: str
    grade: float
    judge: str
    ts: float
    reason: str = ""
    text_hash: str | None = None


class Agreement(msgspec.Struct, frozen=True, kw_only=True):
    """How often people grade a passage as the suggestion did: `n` judged, `agree` of them alike.

    `blind` are those that a person judged before the suggestion was there to be seen.
    """

    n: int = 0
    agree: int = 0
    blind: int = 0
    blind_agree: int = 0


class Review(msgspec.Struct, frozen=True, kw_only=True):
    """A reviewer's word on a whole case. `place` 0 is the first opinion, 1 the second, and so on."""

    reviewer: str
    outcome: Outcome
    revision: int
    place: int
    ts: float
    reference_answer: str | None = None
    notes: str | None = None
    required: tuple[tuple[str, ...], ...] = ()


class Step(msgspec.Struct, frozen=True, kw_only=True):
    """One change of a case, as its history tells it."""

    id: int
    ts: float
    who: str
    action: str
    undone: bool = False
    details: Mapping[str, object] = {}


class CaseRow(msgspec.Struct, frozen=True, kw_only=True):
    """A case as it stands in the queue. Times are unix seconds; `p` is null for what nobody sampled."""

    case_id: str
    pipeline: str
    query: str | None
    origin: str
    state: CaseState
    split: Side
    cluster: str
    stratum: str
    weight: float
    seen: int
    first_ts: float
    last_ts: float
    created: float
    revision: int
    place: float
    p: float | None = None
    plan: str | None = None
    event_id: str | None = None
    config: str | None = None
    claimed_by: str | None = None
    claimed_until: float | None = None
    kept: bool = False
    disputed: bool = False
    skips: int = 0
    lead: str | None = None


class CaseView(msgspec.Struct, frozen=True, kw_only=True):
    """A case with all there is to judge and to know.

    `hits` are in rank order; `asked` is how many of them reached the prompt. `judgments` and `reviews` of
    others are left out until the viewer is done; `suggestions` are those for texts of the list. `draws` tells
    why it was sampled.
    """

    case: CaseRow
    hits: tuple[Hit, ...] = ()
    asked: int | None = None
    listed_at: float | None = None
    judgments: tuple[Graded, ...] = ()
    suggestions: tuple[Suggestion, ...] = ()
    reviews: tuple[Review, ...] = ()
    draws: tuple[Draw, ...] = ()
    history: tuple[Step, ...] = ()
    required: tuple[tuple[str, ...], ...] = ()
    reference_answer: str | None = None
    notes: str | None = None
    slices: Mapping[str, str] = {}
    links: tuple[str, ...] = ()
    corpus_revision: str | None = None


class Filter(msgspec.Struct, frozen=True, kw_only=True):
    """Which cases are wanted; None for all. `words` must all stand in the query."""

    pipeline: str | None = None
    states: tuple[str, ...] = ()
    stratum: str | None = None
    split: str | None = None
    origin: str | None = None
    cluster: str | None = None
    disputed: bool | None = None
    words: str | None = None


class Cell(msgspec.Struct, frozen=True, kw_only=True):
    """So many cases of one stratum, state and split; the weights of their draws, added up, and squared."""

    pipeline: str
    stratum: str
    state: CaseState
    split: Side
    plan: str | None = None
    n: int = 0
    weight: float = 0.0
    squares: float = 0.0
