"""A sweep kept in a folder: its report, and what every figure in it can be followed to.

`report.json` is the `resweep.report/1` object. `cases.jsonl.gz` has a line for each case (`resweep.swept/1`):
its judgments, and the ranked lists it was measured on, with scores, sources, tokens and text hashes; its
answers with verdict and reason, and the verdicts on its passages, where any were made. Passages themselves
are not in it.
"""

from __future__ import annotations

import gzip
import io
import json
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from resweep.documents import read_bytes
from resweep.domain.errors import InputError
from resweep.sweep.answers import Judged
from resweep.sweep.caselines import case_of
from resweep.sweep.engine import Sweep
from resweep.sweep.evidence import Cell, Evidence, Run
from resweep.sweep.lists import Case, Lists, RankedList
from resweep.sweep.textfile import lines

REPORT_FILE = "report.json"
CASES_FILE = "cases.jsonl.gz"
CASE_SCHEMA = "resweep.swept/1"
LARGEST = 256 << 20  # bytes of a report
_LIST_FIELDS = ("ids", "scores", "sources", "tokens", "text_hashes")


class Saved(NamedTuple):
    """A sweep as it was kept: the report's object, the cases, and their lists by candidate depth or cell."""

    report: dict[str, Any]
    cases: list[Case]
    runs: dict[int, Lists]
    own: dict[Cell, Lists]

    def at(self, cell: Cell) -> Lists:
        """Return the lists a cell was measured on. Raises InputError for one that was not swept."""
        found = self.own.get(cell) or self.runs.get(cell.candidate_k)
        if found is None:
            known = ", ".join(map(str, sorted(self.runs)))
            raise InputError(f"expected a candidate_k among {known}, got {cell.candidate_k}")
        return found


def write_saved(folder: Path, sweep: Sweep) -> None:
    """Write a sweep into a folder, which is made. Raises InputError where it cannot be written."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        (folder / CASES_FILE).write_bytes(pack_cases(sweep))
        (folder / REPORT_FILE).write_text(sweep.report.to_json(indent=1) + "\n", "utf-8")
    except OSError as error:
        raise InputError(f"expected a folder to write at {folder}; {error.strerror or error}") from None


def pack_cases(sweep: Sweep) -> bytes:
    """Return the lines of `cases.jsonl.gz`; equal sweeps give equal bytes."""
    packed = io.BytesIO()
    with gzip.GzipFile(fileobj=packed, mode="wb", mtime=0) as stream:
        for part in (sweep.tune, sweep.holdout):
            for line in _lines(part, sweep) if part is not None else ():
                stream.write(json.dumps(line, ensure_ascii=False, separators=(",", ":")).encode() + b"\n")
    return packed.getvalue()


def _lines(evidence: Evidence, sweep: Sweep) -> Iterator[Mapping[str, Any]]:
    judged: dict[str, list[dict[str, Any]]] = {}
    for one in sweep.answers:
        judged.setdefault(one.case_id, []).append(_answer(one))
    useful: dict[str, list[dict[str, Any]]] = {}
    for weighed in sweep.weighed:
        told = {"passage_id": weighed.passage_id, "useful": weighed.useful, "reason": weighed.reason}
        useful.setdefault(weighed.case_id, []).append(told)
    for row, case in enumerate(evidence.cases):
        found = [_list(candidate_k, None, run, row) for candidate_k, run in evidence.runs.items()]
        found += [_list(cell.candidate_k, cell.context_k, run, row) for cell, run in evidence.own.items()]
        yield {
            "schema": CASE_SCHEMA,
            "case_id": case.case_id,
            "query": case.query,
            "filters": dict(case.filters) if case.filters else None,
            "weight": case.weight,
            "split": case.split,
            "answerable": case.answerable,
            "slices": dict(case.slices),
            "required": [{"passages": sorted(fact)} for fact in case.required],
            "judgments": [
                {"passage_id": passage, "grade": grade, "text_hash": case.text_hashes.get(passage)}
                for passage, grade in (case.judgments or {}).items()
            ],
            "reference_answer": case.reference,
            "lists": [one for one in found if one is not None],
            "answers": judged.get(case.case_id, []),
            "usefulness": useful.get(case.case_id, []),
        }


def _answer(one: Judged) -> dict[str, Any]:
    """Return an answer with its verdict; the depths are null for the closed book."""
    candidate_k, context_k = one.cell or (None, None)
    told = {"candidate_k": candidate_k, "context_k": context_k}
    cited = {"cited": list(one.cited), "cited_ids": list(one.cited_ids)}
    return {**told, "answer": one.answer, "right": one.right, "reason": one.reason, **cited}


def _list(candidate_k: int, context_k: int | None, run: Run, row: int) -> dict[str, Any] | None:
    ranked = run.lists[row]
    if ranked is None:
        return None
    told = {name: list(values) for name in _LIST_FIELDS if (values := getattr(ranked, name))}
    return {"candidate_k": candidate_k, "context_k": context_k, "ids": [], **told}


def is_saved(path: Path) -> bool:
    """Return whether a path is a sweep that was kept."""
    return (path / REPORT_FILE).is_file()


def read_saved(folder: Path) -> Saved:
    """Return a sweep that was kept in a folder. Raises InputError for what is none."""
    report = read_report(folder / REPORT_FILE)
    cases: list[Case] = []
    runs: dict[int, dict[str, RankedList]] = {}
    own: dict[Cell, dict[str, RankedList]] = {}
    for line in lines(folder / CASES_FILE):
        try:
            raw = json.loads(line.text)
            case = case_of(raw)
            for cell, ranked in _ranked(raw["lists"], case.query):
                into = runs.setdefault(cell[0], {}) if cell[1] is None else own.setdefault(Cell(*cell), {})  # type: ignore[arg-type]
                into[case.case_id] = ranked
        except (ValueError, KeyError, TypeError, InputError) as error:
            raise InputError(
                f"{folder / CASES_FILE}, line {line.number}: expected {CASE_SCHEMA}; {error}: sweep again"
            ) from None
        cases.append(case)
    return Saved(report, cases, dict(runs), dict(own))


def _ranked(
    raw: Iterable[Mapping[str, Any]], query: str | None
) -> Iterator[tuple[tuple[int, int | None], RankedList]]:
    for one in raw:
        values = {name: one.get(name, ()) for name in _LIST_FIELDS}
        yield (int(one["candidate_k"]), one["context_k"]), RankedList(**values, query=query)


def read_report(path: Path) -> dict[str, Any]:
    """Return the object of a report file. Raises InputError where it is none."""
    try:
        raw = json.loads(read_bytes(path, LARGEST))
    except (InputError, ValueError, RecursionError) as error:
        raise InputError(f"expected a report at {path}; {error}: give what `resweep sweep` wrote") from None
    if not isinstance(raw, dict) or raw.get("schema") != "resweep.report/1":
        found = raw.get("schema") if isinstance(raw, dict) else type(raw).__name__
        raise InputError(f"{path}: expected a resweep.report/1 object, got {found!r:.60}")
    return raw
