"""Answers at every depth: made by the user's generator from what each depth retrieves, judged right or wrong.

The judge sees the question, the reference and the answer. Both are asked once for equal content: two depths
that bring the same passages share an answer, two equal answers share a verdict. A closed-book row (no passage
at all) shows what the model answers unaided.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, NamedTuple

import msgspec
import numpy as np

from resweep.domain.errors import InputError
from resweep.domain.estimate import estimate
from resweep.domain.measures import RELEVANT_GRADE
from resweep.sweep.cache import Kept, key_of
from resweep.sweep.calls import Ask, Calls
from resweep.sweep.citations import cited_places
from resweep.sweep.evidence import Cell, Extra
from resweep.sweep.lists import Case, RankedList
from resweep.sweep.settings import SweepSettings

MEASURE = "answer_accuracy"
MEASURED = (MEASURE,)  # what making and judging answers gives values of
RUBRIC = "resweep.rubric/1"
PROMPT = "resweep.prompt/1"
CITING_PROMPT = "resweep.prompt/1 citing"  # asks beside for the numbers of the passages used
TOKEN_CHARACTERS = 4  # of English text, about; for estimates before anything is asked
OVERHEAD_TOKENS = 120  # of instructions and question around the passages


class Said(msgspec.Struct, frozen=True):
    """What a model said, and what it took; tokens 0 where the model does not tell.

    `cited` are the places of the passages it cites, from 1; None where it left them to be read in its text.
    """

    text: str
    prompt_tokens: int = 0
    completion_tokens: int = 0
    cited: tuple[int, ...] | None = None


class Verdict(msgspec.Struct, frozen=True):
    """Whether an answer is right by the reference, why, and what judging took."""

    right: bool
    reason: str = ""
    prompt_tokens: int = 0
    completion_tokens: int = 0


class ToJudge(NamedTuple):
    """What a judge sees."""

    question: str
    reference: str
    answer: str


Generate = Callable[[str, Sequence[str]], Said]
Judge = Callable[[ToJudge], Verdict]


@dataclass(frozen=True, slots=True, kw_only=True)
class Model:
    """A generator or judge by name and version: what it says is only as good as what said it."""

    name: str
    version: str
    usd_per_million: float | None = None
    usd_per_million_out: float | None = None

    def usd(self, tokens_in: int, tokens_out: int) -> float:
        """Return what so many tokens cost; 0 without a price."""
        out = self.usd_per_million if self.usd_per_million_out is None else self.usd_per_million_out
        return (tokens_in * (self.usd_per_million or 0) + tokens_out * (out or 0)) / 1e6


@dataclass(frozen=True, slots=True, kw_only=True)
class Answering:
    """How answers are made and judged. `evidence_first` puts relevant passages on top.

    Putting evidence first separates where it stands from whether it is there: what the answers gain by it is
    what a perfect reranker could give. `prompt` names what a generator is told. `tell` is told what the
    answers will cost, before any is asked for.
    """

    generate: Generate
    judge: Judge
    generator: Model
    judge_model: Model
    evidence_first: bool = False
    prompt: str = PROMPT
    tell: Callable[[AnswerCost], None] | None = None


class Judged(NamedTuple):
    """One answer with its verdict; `cell` None for the closed book.

    `cited` are the places in its prompt, from 1, of the passages it cites, `cited_ids` what stood there.
    """

    case_id: str
    cell: Cell | None
    answer: str
    right: bool
    reason: str
    cited: tuple[int, ...] = ()
    cited_ids: tuple[str, ...] = ()


@dataclass(slots=True)
class Answers:
    """Every verdict, and what it all took."""

    judged: list[Judged] = field(default_factory=list)
    prompt_tokens: int = 0
    completion_tokens: int = 0
    usd: float = 0.0
    errors: dict[str, str] = field(default_factory=dict)
    without_reference: int = 0

    def extra(self) -> Extra:
        """Return the verdicts as values for the sweep."""
        cells: dict[Cell, dict[str, float]] = {}
        for one in self.judged:
            if one.cell is not None:
                cells.setdefault(one.cell, {})[one.case_id] = float(one.right)
        return {MEASURE: cells}

    def closed_book(self, cases: Sequence[Case], settings: SweepSettings) -> Mapping[str, Any]:
        """Return the accuracy without any passage, over the tuning cases."""
        weights = {case.case_id: case.weight for case in cases if case.split != "holdout"}
        rows = [one for one in self.judged if one.cell is None and one.case_id in weights]
        values = np.array([float(one.right) for one in rows])
        weighed = np.array([weights[one.case_id] for one in rows])
        return asdict(estimate(values, weighed, alpha=settings.alpha, standard=settings.standard))


class Wanted(NamedTuple):
    """One answer to make: for a case, from these passages, at a cell (None: the closed book).

    `ids` are those of the passages, in the same order.
    """

    case: Case
    passages: tuple[str, ...]
    cell: Cell | None
    ids: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerCost:
    """What answers will take at most: calls of each model, prompt tokens, and USD where prices are known."""

    answers: int
    verdicts: int
    prompt_tokens: int
    usd: float | None


NO_COST = AnswerCost(answers=0, verdicts=0, prompt_tokens=0, usd=None)


def wanted_answers(
    cases: Sequence[Case], lists: Mapping[Cell, Mapping[str, RankedList]], *, evidence_first: bool = False
) -> list[Wanted]:
    """Return the answers to make: every case with a reference, at every cell, and without any passage.

    Raises InputError where passages came without their texts.
    """
    found = []
    for case in cases:
        if case.reference is None or case.kind != "answerable":
            continue
        found.append(Wanted(case, (), None))
        for cell, by_case in lists.items():
            ranked = by_case.get(case.case_id)
            if ranked is not None:
                passages = passages_of(case, ranked, cell, evidence_first)
                ids, texts = zip(*passages, strict=True) if passages else ((), ())
                found.append(Wanted(case, texts, cell, ids))
    return found


def passages_of(
    case: Case, ranked: RankedList, cell: Cell, evidence_first: bool = False
) -> list[tuple[str, str]]:
    """Return id and text of the passages, in the order of the prompt. Raises InputError without texts."""
    texts = list(ranked.texts[: cell.context_k])
    if len(texts) < min(cell.context_k, len(ranked.ids)) or any(text is None for text in texts):
        raise InputError(
            f"expected the text of every passage, got none for some of case '{case.case_id}': answers need a "
            "live retriever that returns texts"
        )
    passages = [(ranked.ids[i], str(text)) for i, text in enumerate(texts)]
    if evidence_first:
        grades = case.judgments or {}
        passages.sort(key=lambda passage: grades.get(passage[0], 0) < RELEVANT_GRADE)
    return passages


_said = msgspec.json.Decoder(Said).decode
_verdict = msgspec.json.Decoder(Verdict).decode
_encode = msgspec.json.Encoder().encode


def answer_cost(wanted: Sequence[Wanted], answering: Answering, cache: Kept) -> AnswerCost:
    """Return what making and judging these answers will take at most, less what is answered already."""
    keys = {_answer_key(one, answering): one for one in wanted}
    made = {key: cache.get(key, ever=True) for key in keys}
    fresh = [one for key, one in keys.items() if made[key] is None]
    unruled = {
        verdict
        for key, raw in made.items()
        if raw is not None
        and cache.get(verdict := _verdict_key(keys[key], _said(raw), answering), ever=True) is None
    }
    tokens = sum(
        OVERHEAD_TOKENS + (sum(map(len, one.passages)) + len(one.case.query or "")) // TOKEN_CHARACTERS
        for one in fresh
    )
    verdicts = len(fresh) + len(unruled)
    judging = 2 * OVERHEAD_TOKENS * verdicts
    prices = (answering.generator.usd_per_million, answering.judge_model.usd_per_million)
    usd = None
    if any(price is not None for price in prices):
        usd = (tokens * (prices[0] or 0) + judging * (prices[1] or 0)) / 1e6
    return AnswerCost(answers=len(fresh), verdicts=verdicts, prompt_tokens=tokens + judging, usd=usd)


def make_answers(wanted: Sequence[Wanted], answering: Answering, calls: Calls) -> Answers:
    """Make and judge every answer, each distinct one once. Raises BudgetSpentError and InputError.

    What fails for good is left out and named; a case then takes no part in the means of answers.
    """
    answers = Answers()
    keys = [_answer_key(one, answering) for one in wanted]
    said = {
        key: _said(raw)
        for key, raw in calls.run(
            [
                Ask(
                    key,
                    _generating(one, answering),
                    lambda raw: _taken(_said(raw)),
                    answering.generator.usd,
                    ever=True,
                )
                for key, one in zip(keys, wanted, strict=True)
            ]
        ).items()
    }
    _note_errors(answers, calls, zip(keys, wanted, strict=True))
    judging = {
        key: (one, _verdict_key(one, said[key], answering))
        for key, one in zip(keys, wanted, strict=True)
        if key in said
    }
    verdicts = {
        key: _verdict(raw)
        for key, raw in calls.run(
            [
                Ask(
                    verdict_key,
                    _judging(one, said[key], answering),
                    lambda raw: _taken(_verdict(raw)),
                    answering.judge_model.usd,
                    ever=True,
                )
                for key, (one, verdict_key) in judging.items()
            ]
        ).items()
    }
    _note_errors(answers, calls, ((verdict_key, one) for one, verdict_key in judging.values()))
    for key, one in zip(keys, wanted, strict=True):
        verdict = verdicts.get(judging[key][1]) if key in judging else None
        if verdict is not None:
            answers.judged.append(_judged(one, said[key], verdict))
    answers.prompt_tokens, answers.completion_tokens = calls.progress.tokens_in, calls.progress.tokens_out
    answers.usd = calls.progress.usd
    return answers


def _judged(one: Wanted, said: Said, verdict: Verdict) -> Judged:
    places = cited_places(said.text, said.cited, len(one.ids))
    return Judged(
        one.case.case_id,
        one.cell,
        said.text,
        verdict.right,
        verdict.reason,
        places,
        tuple(one.ids[place - 1] for place in places),
    )


def _answer_key(one: Wanted, answering: Answering) -> str:
    model = answering.generator
    return key_of(
        "resweep.answer/1", model.name, model.version, answering.prompt, one.case.query, one.passages
    )


def _verdict_key(one: Wanted, said: Said, answering: Answering) -> str:
    model = answering.judge_model
    return key_of(
        "resweep.verdict/1", model.name, model.version, RUBRIC, one.case.query, one.case.reference, said.text
    )


def _generating(one: Wanted, answering: Answering) -> Callable[[], bytes]:
    return lambda: _encode(answering.generate(one.case.query or "", one.passages))


def _judging(one: Wanted, said: Said, answering: Answering) -> Callable[[], bytes]:
    asked = ToJudge(one.case.query or "", one.case.reference or "", said.text)
    return lambda: _encode(answering.judge(asked))


def _taken(said: Said | Verdict) -> tuple[int, int]:
    return said.prompt_tokens, said.completion_tokens


def _note_errors(answers: Answers, calls: Calls, asked: Any) -> None:
    for key, one in asked:
        if key in calls.errors:
            answers.errors[one.case.case_id] = calls.errors[key]
