"""What a sweep works on: labelled cases, and one ranked list per case."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

from resweep.domain.errors import InputError
from resweep.domain.measures import RELEVANT_GRADE

Split = Literal["tune", "holdout"]
CaseKind = Literal["answerable", "unanswerable", "unjudged"]


class RankedList(NamedTuple):
    """The passages one retrieval returned, in rank order.

    `scores`, `sources`, `tokens` and `text_hashes` are empty where nothing is known, else one entry per id,
    None where that one is unknown. `complete` says that the retriever had no more to give; a list that was
    cut off (a live event without a probe) says nothing about the ranks beyond it. `candidates` is how many
    the index was asked for, where recorded. `texts` are the passages themselves, where a live sweep saw them.
    """

    ids: Sequence[str]
    scores: Sequence[float | None] = ()
    sources: Sequence[str | None] = ()
    tokens: Sequence[int | None] = ()
    text_hashes: Sequence[str | None] = ()
    complete: bool = True
    query: str | None = None
    candidates: int | None = None
    texts: Sequence[str | None] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One query of the labelled set.

    `judgments` are grades by passage id, None where nobody judged it; `text_hashes` the text hash of a
    judged passage where known. `required` lists required facts, each as the ids of the passages that state
    it. `answerable` is False for a question without an answer in the corpus, None where nobody said.
    `split` is None where the set is not split. `filters` are what it was asked under. `reference` is the
    answer that a judge compares with.
    """

    case_id: str
    query: str | None = None
    judgments: Mapping[str, float] | None = None
    text_hashes: Mapping[str, str] = field(default_factory=dict)
    required: Sequence[frozenset[str]] = ()
    answerable: bool | None = None
    weight: float = 1.0
    split: Split | None = None
    slices: Mapping[str, str] = field(default_factory=dict)
    event_id: str | None = None
    reference: str | None = None
    filters: Mapping[str, object] | None = None

    @property
    def kind(self) -> CaseKind:
        """Return whether the case can be measured, has no answer to find, or has not been judged."""
        relevant = any(grade >= RELEVANT_GRADE for grade in (self.judgments or {}).values())
        if self.answerable is False:
            return "unanswerable"
        if relevant:
            return "answerable"
        # Somebody looked and found nothing, which is an answer unless they also said there is one.
        return "unanswerable" if self.judgments is not None and self.answerable is None else "unjudged"


Lists = Mapping[str, RankedList]


class Splits(NamedTuple):
    """The labelled set in two: depths are chosen on `tune` and confirmed on `holdout`."""

    tune: tuple[Case, ...]
    holdout: tuple[Case, ...]


def split_cases(cases: Iterable[Case]) -> Splits:
    """Return the cases by split; an unsplit case is for tuning. Raises InputError for a repeated case id."""
    tune: list[Case] = []
    holdout: list[Case] = []
    seen: set[str] = set()
    for case in cases:
        if case.case_id in seen:
            raise InputError(
                f"expected every case once, got case '{case.case_id}' twice; merge its judgments into one"
            )
        seen.add(case.case_id)
        (holdout if case.split == "holdout" else tune).append(case)
    return Splits(tuple(tune), tuple(holdout))
