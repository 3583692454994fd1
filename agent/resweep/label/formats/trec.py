"""TREC runs and qrels: the exchange format of every retrieval toolkit.

Ids in these files must not hold white space: what does is written percent-encoded.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import NamedTuple
from urllib.parse import quote

from resweep.domain.case import CaseLine, Judgment
from resweep.domain.event import Hit

TAG = "resweep"
_SPACE = re.compile(r"\s")


class Listed(NamedTuple):
    """A case and what was retrieved for it, in rank order."""

    case_id: str
    hits: tuple[Hit, ...]


def name(text: str) -> str:
    """Return an id fit for a column: white space and percent signs encoded where there is white space."""
    return quote(text, safe="/:;,.@!$&'()*+=~#?[]|{}<>^`\\\"-_") if _SPACE.search(text) or not text else text


def qrels(cases: Iterable[CaseLine]) -> Iterator[str]:
    """Yield `query 0 passage grade`; of cases without a word of anybody nothing."""
    for case in cases:
        for one in case.judgments:
            yield f"{name(case.case_id)} 0 {name(one.passage_id)} {grade(one.grade)}\n"


def grade(value: float) -> str:
    """Return a grade as a whole number, as these files want it."""
    return str(round(value))


def run(listed: Iterable[Listed], tag: str = TAG) -> Iterator[str]:
    """Yield `query Q0 passage rank score tag`.

    The score falls with the rank, so that a toolkit that sorts by score keeps the order of the retriever.
    """
    for one in listed:
        for rank, hit in enumerate(_distinct(one.hits), 1):
            score = len(one.hits) - rank + 1
            yield f"{name(one.case_id)} Q0 {name(hit.id)} {rank} {score} {tag}\n"


def _distinct(hits: Iterable[Hit]) -> Iterator[Hit]:
    seen: set[str] = set()
    for hit in hits:
        if hit.id not in seen:
            seen.add(hit.id)
            yield hit


def cases_of(grades: dict[str, dict[str, float]], queries: dict[str, str] | None = None) -> list[CaseLine]:
    """Return a case for each judged query; `queries` gives their text where known."""
    return [
        CaseLine(
            case_id=query,
            query=(queries or {}).get(query),
            judgments=[Judgment(passage_id=p, grade=max(0.0, g)) for p, g in judged.items()],
            provenance="imported",
        )
        for query, judged in grades.items()
    ]
