"""`resweep.case/1`: the labelled set as JSON lines."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple, cast

from resweep.domain.errors import InputError
from resweep.sweep.lists import Case, Split
from resweep.sweep.textfile import Line, lines

# States in which a person has finished; a case without a state was labelled elsewhere.
_JUDGED_STATES = frozenset({None, "labelled", "needs_look", "unanswerable"})


class LeftOut(NamedTuple):
    """A line that takes no part: its number from 1, and why."""

    line: int
    reason: str


class CaseFile(NamedTuple):
    """The cases of a file, and the lines that take no part."""

    cases: list[Case]
    left_out: list[LeftOut]


def read_cases(path: Path) -> CaseFile:
    """Return the cases of a `resweep.case/1` file; bad lines are told and passed over.

    Rejected cases, and cases in quarantine between the splits, take no part. Raises InputError for a file
    that cannot be read.
    """
    cases: list[Case] = []
    left_out: list[LeftOut] = []
    for line in lines(path):
        try:
            raw = _object(line)
            case = case_of(raw)
        except InputError as error:
            left_out.append(LeftOut(line.number, str(error)))
            continue
        cases.append(case)
    return CaseFile(cases, left_out)


def _object(line: Line) -> Mapping[str, Any]:
    try:
        raw = json.loads(line.text)
    except (ValueError, RecursionError) as error:
        raise InputError(f"expected a JSON object on one line; {error}") from None
    if not isinstance(raw, dict):
        raise InputError(f"expected a JSON object; got {type(raw).__name__}")
    return raw


def case_of(raw: Mapping[str, Any]) -> Case:
    """Return the case in an object. Raises InputError where it is none, or takes no part, with the reason."""
    case_id, state = raw.get("case_id"), raw.get("state")
    if not case_id:
        raise InputError('expected a case with "case_id"')
    if state == "rejected":
        raise InputError("the case was rejected")
    judgments, texts = _judgments(raw, state)
    answerable = False if state == "unanswerable" else raw.get("answerable")
    return Case(
        case_id=str(case_id),
        query=_text(raw.get("query")),
        judgments=judgments,
        text_hashes=texts,
        required=_required(raw.get("required"), judgments or {}),
        answerable=answerable if isinstance(answerable, bool) else None,
        weight=_weight(raw),
        split=_split(raw.get("split")),
        slices=_slices(raw),
        event_id=_text(raw.get("event_id")),
        reference=_text(raw.get("reference_answer")) or None,
        filters=raw["filters"] if isinstance(raw.get("filters"), dict) and raw["filters"] else None,
    )


def _text(value: object) -> str | None:
    return None if value is None else str(value)


def _judgments(raw: Mapping[str, Any], state: str | None) -> tuple[dict[str, float] | None, dict[str, str]]:
    given = raw.get("judgments")
    if state not in _JUDGED_STATES or (not given and state is None and raw.get("answerable") is None):
        return None, {}
    if not isinstance(given, list):
        return {}, {}
    grades: dict[str, float] = {}
    texts: dict[str, str] = {}
    for judgment in given:
        passage, grade, text = _judgment(judgment)
        grades[passage] = max(grade, grades.get(passage, grade))
        if text:
            texts[passage] = text
    return grades, texts


def _judgment(raw: object) -> tuple[str, float, str | None]:
    try:
        judgment = cast("Mapping[str, Any]", raw)
        text = _text(judgment.get("text_hash"))
        passage = _text(judgment.get("passage_id")) or (f"text:{text}" if text else None)
        grade = float(judgment.get("grade", 1))
    except (AttributeError, TypeError, ValueError):
        raise InputError(f'expected a judgment {{"passage_id", "grade"}}; got {raw!r:.60}') from None
    if passage is None or not math.isfinite(grade):
        raise InputError(f'expected a judgment with a "passage_id" and a finite "grade"; got {raw!r:.60}')
    return passage, grade, text


def _required(raw: object, judged: Mapping[str, float]) -> tuple[frozenset[str], ...]:
    """Return facts as sets of passage ids; a fact that names no passage cannot be looked for."""
    facts = []
    for fact in raw if isinstance(raw, list) else ():
        passages = fact.get("passages", fact.get("passage_ids", ())) if isinstance(fact, dict) else fact
        if isinstance(passages, str):
            passages = [passages] if passages in judged else ()
        if passages:
            facts.append(frozenset(map(str, passages)))
    return tuple(facts)


def _weight(raw: Mapping[str, Any]) -> float:
    weight, probability = raw.get("weight"), raw.get("inclusion_probability")
    try:
        value = float(weight) if weight is not None else 1 / float(probability) if probability else 1.0
    except (TypeError, ValueError, ZeroDivisionError):
        value = math.nan
    if not (math.isfinite(value) and value > 0):
        raise InputError(
            f'expected a "weight" above 0 or an "inclusion_probability" in (0, 1]; '
            f"got weight {weight!r:.30}, probability {probability!r:.30}"
        )
    return value


def _split(raw: object) -> Split | None:
    if raw in (None, "", "tune", "holdout"):
        return cast("Split | None", raw or None)
    raise InputError(f'expected "split" to be "tune" or "holdout"; got {raw!r:.30}, which takes no part')


def _slices(raw: Mapping[str, Any]) -> dict[str, str]:
    given = raw.get("slices")
    slices = {str(name): str(value) for name, value in given.items()} if isinstance(given, dict) else {}
    # questions written from passages are easier than real ones, so that origins are told apart
    told = {"stratum": raw.get("stratum"), "origin": raw.get("provenance")}
    return {name: str(value) for name, value in told.items() if value} | slices
