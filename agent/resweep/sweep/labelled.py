"""The labelled set as a whole: its revision, and a small part of it that stays the same."""

from __future__ import annotations

import hashlib
import json
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace

from resweep.domain.errors import UsageError
from resweep.domain.measures import RELEVANT_GRADE
from resweep.sweep.lists import Case


def labelled_set(cases: Sequence[Case]) -> dict[str, object]:
    """Return revision (a digest that any change of a judgment changes) and size, judged and holdout cases."""
    judged = [case for case in cases if case.kind != "unjudged"]
    return {
        "revision": _revision(judged),
        "cases": len(judged),
        "holdout": sum(case.split == "holdout" for case in judged),
    }


def _revision(cases: Sequence[Case]) -> str:
    digest = hashlib.sha256()
    for case in sorted(cases, key=lambda one: one.case_id):
        grades: Mapping[str, float] = case.judgments or {}
        told = [case.case_id, case.query, sorted(grades.items()), case.answerable, case.weight, case.split]
        digest.update(json.dumps(told, ensure_ascii=False).encode("utf-8", "surrogatepass") + b"\n")
    return digest.hexdigest()[:12]


def smoke_cases(cases: Sequence[Case], n: int) -> list[Case]:
    """Return about n judged cases that stand for all, the same ones each time, weighted back to the whole.

    Strata are the number of relevant passages and the case's own stratum; each gives its share, one at least.
    Which cases is decided by a hash of their ids, so that a case stays in or out as the set grows. Raises
    UsageError for n below 1.
    """
    if n < 1:
        raise UsageError(f"expected a smoke set of at least 1 case, got {n}")
    judged = [case for case in cases if case.kind != "unjudged"]
    if n >= len(judged):
        return judged
    strata: dict[tuple[str, int], list[Case]] = defaultdict(list)
    for case in judged:
        strata[_stratum(case)].append(case)
    chosen: dict[str, Case] = {}
    for part in strata.values():
        take = max(1, round(n * len(part) / len(judged)))
        for case in sorted(part, key=_order)[:take]:
            chosen[case.case_id] = replace(case, weight=case.weight * len(part) / min(take, len(part)))
    return [chosen[case.case_id] for case in judged if case.case_id in chosen]


def _stratum(case: Case) -> tuple[str, int]:
    relevant = sum(grade >= RELEVANT_GRADE for grade in (case.judgments or {}).values())
    return case.slices.get("stratum", ""), min(relevant, 3)


def _order(case: Case) -> bytes:
    return hashlib.sha256(case.case_id.encode("utf-8", "surrogatepass")).digest()
