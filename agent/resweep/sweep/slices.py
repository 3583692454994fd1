"""Parts of the labelled set that a mean over everything would hide.

Out of the box: number of relevant passages, query length, language, source of the evidence, query cluster,
and whatever the cases carry of their own.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from resweep.domain.measures import RELEVANT_GRADE
from resweep.sweep.clusters import clusters
from resweep.sweep.evidence import Evidence
from resweep.sweep.language import language
from resweep.sweep.lists import Case, RankedList

UNKNOWN = "unknown"


class Slice(NamedTuple):
    """Some of the cases: which slicing, which part, and a mask over the cases of the evidence."""

    name: str
    value: str
    rows: np.ndarray[tuple[int], np.dtype[np.bool_]]

    @property
    def label(self) -> str:
        """Return `name=value`, as constraints and settings name it."""
        return f"{self.name}={self.value}"


def slices_of(evidence: Evidence) -> list[Slice]:
    """Return every slice of the evidence, by name, then largest first; a slicing with one part is none."""
    labels = _labels(evidence)
    found = []
    for name, column in labels.items():
        counts = Counter(column)
        values = np.array(column, dtype=object)
        if len(counts) > 1:
            ordered = sorted(counts, key=lambda value: (-counts[value], value))
            found += [Slice(name, value, np.asarray(values == value)) for value in ordered]
    return found


def _labels(evidence: Evidence) -> dict[str, list[str]]:
    """Return, by slicing, the part each case belongs to. A case's own word goes before what is worked out."""
    cases, run = evidence.cases, next(iter(evidence.runs.values()))
    worked_out = {
        "relevant_passages": [_count(int(n), 3) for n in run.table.relevant],
        "query_words": [_length(case.query) for case in cases],
        "language": [language(case.query) if case.query else UNKNOWN for case in cases],
        "source": [_source(case, ranked) for case, ranked in zip(cases, run.lists, strict=True)],
        "cluster": clusters([case.query for case in cases]),
    }
    own = {name for case in cases for name in case.slices}
    names = (*worked_out, *sorted(own - worked_out.keys()))
    nothing = [UNKNOWN] * len(cases)
    return {
        name: [
            case.slices.get(name, other)
            for case, other in zip(cases, worked_out.get(name, nothing), strict=True)
        ]
        for name in names
    }


def _count(n: int, most: int) -> str:
    return f"{most}+" if n >= most else str(n)


def _length(query: str | None) -> str:
    words = len((query or "").split())
    if not words:
        return UNKNOWN
    return "1-4" if words <= 4 else "5-9" if words <= 9 else "10-19" if words <= 19 else "20+"


def _source(case: Case, ranked: RankedList | None) -> str:
    """Return the source of the best-ranked relevant passage whose source is known."""
    relevant = {p for p, grade in (case.judgments or {}).items() if grade >= RELEVANT_GRADE}
    pairs: Sequence[tuple[str, str | None]] = (
        list(zip(ranked.ids, ranked.sources, strict=False)) if ranked is not None else []
    )
    return next((source for passage, source in pairs if passage in relevant and source), UNKNOWN)
