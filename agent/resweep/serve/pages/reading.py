"""A case as a reviewer reads it: equal passages once, the question's words marked, what is judged so far."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from markupsafe import Markup, escape

from resweep.domain.case import CaseView, Graded, Review, Suggestion
from resweep.domain.errors import UsageError
from resweep.domain.event import Hit
from resweep.domain.measures import RELEVANT_GRADE

FOLD = 700  # characters of a passage shown before it is folded
_WORD = re.compile(r"\w+")
_ENDINGS = ("ing", "ies", "ed", "es", "s")
_COMMON = frozenset(
    _WORD.findall(
        "a about an and any are as at be been but by can could did do does for from had has have how i if in "
        "into is it its may me my no not of on or our out so some than that the their them then there these "
        "they this to up us was we were what when where which who why will with would you your"
    )
)
WHY: Mapping[str, str] = {
    "uniform": "Drawn evenly from all traffic. These cases keep the set honest.",
    "low_confidence": "The retriever was less sure of it than it usually is under this config.",
    "novel": "It is far from every question that the labelled set holds.",
    "empty_or_short": "It got nothing, or fewer passages than were asked for.",
    "feedback": "A user was not content with the answer.",
    "canary_lost": "A retrieval canary: it found evidence that it finds no more.",
    "imported": "Brought in from a file.",
    "synthetic": "Written from a passage. Such questions are easier, and are reported apart.",
}


def stem(word: str) -> str:
    """Return a word without its commonest endings, so that `refunds` meets `refund`."""
    word = word.casefold()
    for ending in _ENDINGS:
        if word.endswith(ending) and len(word) - len(ending) >= 3:
            return word[: -len(ending)] + ("y" if ending == "ies" else "")
    return word


def stems(text: str) -> frozenset[str]:
    """Return the stems of the words of a text that say something."""
    words = (word.casefold() for word in _WORD.findall(text))
    return frozenset(stem(word) for word in words if word not in _COMMON and len(word) > 1)


def marked(text: str, wanted: frozenset[str]) -> Markup:
    """Return a text as HTML with the wanted words marked; everything else is escaped."""
    parts: list[str] = []
    end = 0
    for found in _WORD.finditer(text):
        if stem(found.group()) in wanted:
            parts += (escape(text[end : found.start()]), Markup("<mark>"), escape(found.group()))
            parts.append(Markup("</mark>"))
            end = found.end()
    parts.append(escape(text[end:]))
    return Markup("").join(parts)


@dataclass(frozen=True, slots=True, kw_only=True)
class Passage:
    """One text to judge. `ids` are all passages with it, `also` their other ranks.

    `grade` is the reader's own, None while there is none; `others` what others gave, where it may be seen.
    """

    rank: int
    hit: Hit
    ids: Sequence[str]
    also: Sequence[int]
    head: Markup
    rest: Markup
    grade: float | None
    others: Sequence[tuple[str, float]]
    is_new: bool
    suggestion: Suggestion | None = None

    @property
    def fully(self) -> bool:
        """Whether the reader gave more than the grade of a passage that answers."""
        return self.grade is not None and self.grade > RELEVANT_GRADE

    def suggested(self, grades: int) -> str:
        """Return the grade that confirming the suggestion gives, as forms say it; '' without one."""
        if self.suggestion is None:
            return ""
        grade = self.suggestion.grade
        return str(int(min(grade, grades))) if grade >= RELEVANT_GRADE else "0"

    @property
    def answers(self) -> bool | None:
        """Whether it answers the question, as the reader said."""
        return None if self.grade is None else self.grade >= RELEVANT_GRADE


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """A case with its passages for one reader. `end` is the rank that the prompt ends with."""

    view: CaseView
    question: Markup
    passages: Sequence[Passage]
    end: int | None
    who: str
    grades: int = 1

    @property
    def lost(self) -> Sequence[Graded]:
        """Return the reader's judgments whose text the list does not hold any more."""
        mine = [one for one in self.view.judgments if one.reviewer == self.who]
        return [one for one in mine if one.anchor == "lost"]

    @property
    def facts(self) -> str:
        """Return the required facts as text: one a line, the ranks of the passages that state it."""
        return "\n".join(", ".join(_told(fact, self.passages)) for fact in self.required)

    @property
    def judged(self) -> int:
        """How many passages the reader judged."""
        return sum(one.grade is not None for one in self.passages)

    @property
    def skipped_over(self) -> Sequence[Passage]:
        """Return the passages without a grade above the deepest one with one."""
        deepest = max((one.rank for one in self.passages if one.grade is not None), default=0)
        return [one for one in self.passages if one.grade is None and one.rank < deepest]

    @property
    def why(self) -> str:
        """Return why the case is in the set."""
        return WHY.get(self.view.case.stratum, "It was put here by hand.")

    @property
    def held_by(self) -> str | None:
        """Return who else has it open."""
        case = self.view.case
        return case.claimed_by if case.claimed_by not in (None, self.who) else None

    @property
    def own_word(self) -> str | None:
        """Return the outcome that the reader gave before."""
        return None if self._own is None else self._own.outcome

    @property
    def _own(self) -> Review | None:
        return next((r for r in self.view.reviews if r.reviewer == self.who), None)

    @property
    def reference_answer(self) -> str | None:
        """Return the reader's own reference answer, else the one that counts."""
        own = self._own.reference_answer if self._own else None
        return own or self.view.reference_answer

    @property
    def notes(self) -> str | None:
        """Return the reader's own notes, else those that count."""
        return (self._own.notes if self._own else None) or self.view.notes

    @property
    def required(self) -> Sequence[Sequence[str]]:
        """Return the required facts of the reader's own word, else those that count."""
        return (self._own.required if self._own else ()) or self.view.required


def _told(fact: Sequence[str], passages: Sequence[Passage]) -> Iterator[str]:
    yield from (str(one.rank) for one in passages if set(one.ids) & set(fact))
    listed = {passage_id for one in passages for passage_id in one.ids}
    yield from (f"id:{passage_id}" for passage_id in fact if passage_id not in listed)


def facts_in(text: str, passages: Sequence[Passage]) -> list[list[str]]:
    """Return the required facts that a text names, each as ids of passages. Raises UsageError.

    A line is one fact: ranks of passages, with commas or spaces between; `id:NAME` is one outside the list.
    """
    at = {rank: one.ids for one in passages for rank in (one.rank, *one.also)}
    facts: list[list[str]] = []
    for number, line in enumerate(text.splitlines(), 1):
        ids: list[str] = []
        for word in line.replace(",", " ").split():
            if word.startswith("id:") and len(word) > 3:
                ids.append(word[3:])
            elif word.isdecimal() and int(word) in at:
                ids.extend(at[int(word)])
            else:
                raise UsageError(
                    f"required facts, line {number}: expected ranks from 1 to {len(at)}; got {word!r:.40}"
                )
        if ids:
            facts.append(list(dict.fromkeys(ids)))
    return facts


def read(view: CaseView, who: str, grades: int = 1) -> Reading:
    """Return a case for a reader."""
    query = view.case.query or ""
    wanted = stems(query)
    return Reading(
        view=view,
        question=marked(query, _shared(wanted, view.hits)),
        passages=[_passage(ranks, view, wanted, who) for ranks in _grouped(view.hits)],
        end=view.asked,
        who=who,
        grades=grades,
    )


def _shared(wanted: frozenset[str], hits: Sequence[Hit]) -> frozenset[str]:
    """Return the wanted words that some passage has."""
    return wanted & frozenset().union(*(stems(hit.text) for hit in hits if hit.text))


def _grouped(hits: Sequence[Hit]) -> list[list[int]]:
    """Return the ranks of each distinct text, in the order of the first."""
    groups: dict[str, list[int]] = {}
    for rank, hit in enumerate(hits, 1):
        groups.setdefault(hit.text_hash or hit.text or hit.id, []).append(rank)
    return list(groups.values())


def _passage(ranks: Sequence[int], view: CaseView, wanted: frozenset[str], who: str) -> Passage:
    hit = view.hits[ranks[0] - 1]
    ids = [view.hits[rank - 1].id for rank in ranks]
    text = hit.text or ""
    cut = len(text) if len(text) <= FOLD else text.rfind(" ", 0, FOLD) + 1 or FOLD
    given = [one for one in view.judgments if one.passage_id in ids]
    return Passage(
        rank=ranks[0],
        hit=hit,
        ids=ids,
        also=ranks[1:],
        head=marked(text[:cut], wanted),
        rest=marked(text[cut:], wanted),
        grade=next((one.grade for one in given if one.reviewer == who), None),
        others=sorted({(one.reviewer, one.grade) for one in given if one.reviewer != who}),
        is_new=view.case.state == "needs_look" and not given,
        suggestion=next((one for one in view.suggestions if one.passage_id in ids), None),
    )
