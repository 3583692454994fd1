"""Context precision as Ragas defines it, at every depth from one verdict for each passage.

A model says of each retrieved passage whether it was useful for the reference answer. That verdict depends on
question, reference and passage, never on the depth: each passage is asked about once, and the value of every
prefix follows without another call.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import msgspec

from resweep.sweep.answers import TOKEN_CHARACTERS, AnswerCost, Model, passages_of
from resweep.sweep.cache import Kept, key_of
from resweep.sweep.calls import Ask, Calls
from resweep.sweep.evidence import USEFULNESS, Cell, Extra
from resweep.sweep.lists import Case, Lists

EPSILON = 1e-10  # that Ragas adds to the denominator, so that no useful passage gives 0
VERDICT_TOKENS = 60  # of one reason and verdict, about
DEFINITION = (
    "sum over useful ranks r <= k of h(r)/r, divided by h(k) + 1e-10, where h(r) of the first r passages are "
    "useful; what was never retrieved costs nothing (Ragas, context precision with reference)"
)


class Usefulness(msgspec.Struct, frozen=True):
    """Whether a passage is useful for the reference, why, and what the verdict took."""

    useful: bool
    reason: str = ""
    prompt_tokens: int = 0
    completion_tokens: int = 0


class ToWeigh(NamedTuple):
    """What the judge of a passage sees."""

    question: str
    reference: str
    passage: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Weighing:
    """How passages are weighed: `rubric` names the question that `judge` is asked, in its version.

    `prompt_tokens` is what the question takes around question, reference and passage. `tell` is told what the
    verdicts will cost, before any is asked for.
    """

    judge: Callable[[ToWeigh], Usefulness]
    model: Model
    rubric: str
    prompt_tokens: int
    tell: Callable[[AnswerCost], None] | None = None


class Weighed(NamedTuple):
    """Whether a passage was found useful for the reference answer of a case, and why."""

    case_id: str
    passage_id: str
    useful: bool
    reason: str


class Place(NamedTuple):
    """One case at one cell, with its passages as (id, text) in rank order."""

    case: Case
    cell: Cell
    passages: tuple[tuple[str, str], ...]


@dataclass(slots=True)
class Weights:
    """Every verdict, the value of every prefix, and what it took."""

    values: dict[Cell, dict[str, float]] = field(default_factory=dict)
    weighed: list[Weighed] = field(default_factory=list)
    verdicts: int = 0
    without_reference: int = 0
    errors: dict[str, str] = field(default_factory=dict)
    prompt_tokens: int = 0
    completion_tokens: int = 0
    usd: float = 0.0

    def extra(self) -> Extra:
        """Return the values for the sweep."""
        return {USEFULNESS: self.values}


def context_precision(useful: Sequence[bool]) -> float:
    """Return Ragas' average precision of verdicts in rank order, as it adds them up: from 0 to 1."""
    hits, total = 0, 0.0
    for rank, one in enumerate(useful, 1):
        hits += one
        if one:
            total += hits / rank
    return total / (hits + EPSILON)


def places_of(cases: Sequence[Case], cells: Mapping[Cell, Lists]) -> list[Place]:
    """Return every case with a reference at every cell. Raises InputError for passages without texts."""
    return [
        Place(case, cell, tuple(passages_of(case, lists[case.case_id], cell)))
        for case in cases
        if case.reference and case.kind == "answerable"
        for cell, lists in cells.items()
        if case.case_id in lists
    ]


def weighing_cost(places: Sequence[Place], weighing: Weighing, cache: Kept) -> AnswerCost:
    """Return what the verdicts will take, less what is known already."""
    asked = _asked(places, weighing)
    fresh = [one for key, one in asked.items() if cache.get(key, ever=True) is None]
    tokens = sum(weighing.prompt_tokens + sum(map(len, one)) // TOKEN_CHARACTERS for one in fresh)
    price = weighing.model.usd_per_million
    usd = None if price is None else weighing.model.usd(tokens, VERDICT_TOKENS * len(fresh))
    return AnswerCost(answers=0, verdicts=len(fresh), prompt_tokens=tokens, usd=usd)


def weigh(cases: Sequence[Case], places: Sequence[Place], weighing: Weighing, calls: Calls) -> Weights:
    """Have every distinct passage weighed once, and return the value of every prefix.

    A case takes no part at the depths that hold a passage whose verdict failed for good. Raises
    BudgetSpentError and InputError.
    """
    progress = calls.progress
    before = (progress.tokens_in, progress.tokens_out, progress.usd)
    asked = _asked(places, weighing)
    found = {
        key: _decode(raw)
        for key, raw in calls.run(
            [
                Ask(key, _asking(one, weighing), _taken, weighing.model.usd, ever=True)
                for key, one in asked.items()
            ]
        ).items()
    }
    weights = Weights(
        verdicts=len(found),
        without_reference=sum(case.kind == "answerable" and not case.reference for case in cases),
    )
    _place(weights, places, weighing, found, calls)
    weights.prompt_tokens = progress.tokens_in - before[0]
    weights.completion_tokens = progress.tokens_out - before[1]
    weights.usd = progress.usd - before[2]
    return weights


def _place(
    weights: Weights,
    places: Sequence[Place],
    weighing: Weighing,
    found: Mapping[str, Usefulness],
    calls: Calls,
) -> None:
    """Put values and verdicts where they belong, and name what failed."""
    told: dict[tuple[str, str], Weighed] = {}
    for place in places:
        keys = [_key(_to_weigh(place.case, text), weighing) for _, text in place.passages]
        for key, (passage, _) in zip(keys, place.passages, strict=True):
            if key in found:
                one = Weighed(place.case.case_id, passage, found[key].useful, found[key].reason)
                told.setdefault((place.case.case_id, passage), one)
            else:
                weights.errors[place.case.case_id] = calls.errors.get(key, "no verdict")
        if all(key in found for key in keys):
            value = context_precision([found[key].useful for key in keys])
            weights.values.setdefault(place.cell, {})[place.case.case_id] = value
    weights.weighed = list(told.values())


_decode = msgspec.json.Decoder(Usefulness).decode
_encode = msgspec.json.Encoder().encode


def _asked(places: Sequence[Place], weighing: Weighing) -> dict[str, ToWeigh]:
    """Return what is to be asked by its key, each once however many depths hold it."""
    every = (_to_weigh(place.case, text) for place in places for _, text in place.passages)
    return {_key(one, weighing): one for one in dict.fromkeys(every)}


def _to_weigh(case: Case, text: str) -> ToWeigh:
    return ToWeigh(case.query or "", case.reference or "", text)


def _key(one: ToWeigh, weighing: Weighing) -> str:
    model = weighing.model
    return key_of("resweep.usefulness/1", model.name, model.version, weighing.rubric, *one)


def _asking(one: ToWeigh, weighing: Weighing) -> Callable[[], bytes]:
    return lambda: _encode(weighing.judge(one))


def _taken(raw: bytes) -> tuple[int, int]:
    found = _decode(raw)
    return found.prompt_tokens, found.completion_tokens
