"""`resweep.case/1`: one JSON object a line."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator

import msgspec

from resweep.domain.case import CASE_STATES, SIDES, CaseLine, line_of
from resweep.label.formats import BadRow, ReadCases

QUERY_MAX = 20_000  # characters
_decoder = msgspec.json.Decoder(CaseLine, strict=False)


def read(text: Iterable[str | bytes]) -> ReadCases:
    """Return the cases of lines; blank ones are passed over."""
    found = ReadCases()
    seen: dict[str, int] = {}
    for row, line in enumerate(text, 1):
        if not line.strip():
            continue
        try:
            case = _decoder.decode(line)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            found.bad.append(BadRow(row, f"expected a resweep.case/1 object; {error}"))
            continue
        reason = trouble(case) or _again(case, seen, row)
        if reason:
            found.bad.append(BadRow(row, reason))
        else:
            found.lines.append(case)
    return found


def _again(case: CaseLine, seen: dict[str, int], row: int) -> str | None:
    first = seen.setdefault(case.case_id, row) if case.case_id else row
    return None if first == row else f"case_id {case.case_id!r:.80} is that of row {first} too"


def trouble(case: CaseLine) -> str | None:
    """Return why a case cannot be taken; None where it can."""
    if not case.case_id and not (case.query or "").strip():
        return "expected a case_id or a query"
    if case.query is not None and not case.query.strip():
        return "expected a query; got spaces"
    if "\x00" in "".join(filter(None, (case.query, case.reference_answer, case.notes))):
        return "expected text; got a NUL byte in query, reference_answer or notes"
    if case.query is not None and len(case.query) > QUERY_MAX:
        return f"expected a query of at most {QUERY_MAX} characters; got {len(case.query)}"
    if case.state is not None and case.state not in CASE_STATES:
        return f"expected a state in {', '.join(CASE_STATES)}; got {case.state!r:.40}"
    if case.split is not None and case.split not in SIDES:
        return f"expected a split in {', '.join(SIDES)}; got {case.split!r:.40}"
    if case.weight is not None and not (math.isfinite(case.weight) and case.weight >= 0):
        return f"expected a weight from 0; got {case.weight}"
    p = case.inclusion_probability
    if p is not None and not 0 < p <= 1:
        return f"expected an inclusion_probability in (0, 1]; got {p}"
    return _judgments(case)


def _judgments(case: CaseLine) -> str | None:
    for one in case.judgments:
        if not 0 < len(one.passage_id) <= 400:
            return f"expected a passage_id of 1 to 400 characters; got {one.passage_id!r:.60}"
        if not (math.isfinite(one.grade) and one.grade >= 0):
            return f"expected a grade from 0 for {one.passage_id!r:.60}; got {one.grade}"
    return None


def write(cases: Iterable[CaseLine]) -> Iterator[str]:
    """Yield a line for each case, with its end."""
    for case in cases:
        yield line_of(case).decode() + "\n"
