"""Which returned passage is which judged one: by id, or by text where text is known.

Ids do not outlive a re-ingest, and a re-ingest may leave two copies of one text under two ids; a text hash
sees through both. Where both sides carry a text hash, the text decides: many chunkers number passages by
position, so an old id may now stand for another text.
"""

from __future__ import annotations

from typing import NamedTuple

from resweep.domain.measures import RELEVANT_GRADE
from resweep.sweep.lists import Case, RankedList


class Matched(NamedTuple):
    """A case and its list in one naming: equal names are the same passage.

    `moved` counts judged relevant passages whose id came back with another text: they count as not found
    and wait for repair.
    """

    ranking: list[str]
    judgments: dict[str, float]
    required: list[frozenset[str]]
    moved: int = 0


def match(case: Case, ranked: RankedList) -> Matched:
    """Return the case's judgments and its ranked list, named so that equal names are the same passage."""
    judgments = dict(case.judgments or {})
    if not case.text_hashes and not ranked.text_hashes:
        return Matched(list(ranked.ids), judgments, list(case.required))
    texts = ranked.text_hashes or (None,) * len(ranked.ids)
    seen = [(passage, text) for passage, text in zip(ranked.ids, texts, strict=True) if text]
    # What the judgments speak of goes before what came back under the same id.
    known = dict(reversed(seen)) | dict(case.text_hashes)
    graded: dict[str, float] = {}
    for passage, grade in judgments.items():
        name = _name(passage, known.get(passage))
        graded[name] = max(grade, graded.get(name, grade))
    return Matched(
        [_name(p, text or known.get(p)) for p, text in zip(ranked.ids, texts, strict=True)],
        graded,
        [frozenset(_name(p, known.get(p)) for p in fact) for fact in case.required],
        sum(text != known[p] and judgments.get(p, 0) >= RELEVANT_GRADE for p, text in seen),
    )


def _name(passage: str, text: str | None) -> str:
    return f"text:{text}" if text else passage


def relevant_of(case: Case) -> list[str]:
    """Return the ids of a case's relevant passages, as they were judged."""
    return [passage for passage, grade in (case.judgments or {}).items() if grade >= RELEVANT_GRADE]


def name_in(case: Case, ranked: RankedList, passage: str) -> str:
    """Return the name that a judged passage has in the matched ranking of a list."""
    texts = dict(zip(reversed(ranked.ids), reversed(ranked.text_hashes or ()), strict=False))
    return _name(passage, case.text_hashes.get(passage) or texts.get(passage))
