"""TREC runs and qrels, and the qrels of a BEIR folder, as every retrieval toolkit writes them."""

from __future__ import annotations

import json
import math
from array import array
from collections.abc import Callable, Iterable
from itertools import pairwise
from pathlib import Path

from resweep.domain.errors import InputError
from resweep.sweep.lists import Case, RankedList
from resweep.sweep.textfile import Line, lines, numbered

_QUERY_FIELDS = ("query_id", "query-id", "qid")
_PASSAGE_FIELDS = ("doc_id", "corpus-id", "passage_id", "docid")
_GRADE_FIELDS = ("grade", "score", "relevance")


class _Ranked:
    """The rows of one query, as columns: a run may have ten million rows."""

    __slots__ = ("passages", "ranks", "scores")

    def __init__(self) -> None:
        self.ranks: array[float] = array("d")
        self.passages: list[str] = []
        self.scores: list[float | None] = []

    def in_order(self) -> RankedList:
        """Return the list by rank, then by place in the file."""
        ranks = self.ranks
        if any(later < earlier for earlier, later in pairwise(ranks)):
            order = sorted(range(len(ranks)), key=ranks.__getitem__)
            return RankedList([self.passages[i] for i in order], [self.scores[i] for i in order])
        return RankedList(self.passages, self.scores)


class _LineError(InputError):
    """A line that cannot be used; `reason` says why, without its place."""

    def __init__(self, path: Path, line: Line, reason: str) -> None:
        super().__init__(f"{path}, line {line.number}: {reason}; correct the line or leave it out")
        self.reason = reason


def read_run(path: Path) -> dict[str, RankedList]:
    """Return one ranked list per query of a TREC run: `query Q0 passage rank score tag`.

    Order is the rank column, then the file's; scores never reorder. Raises InputError with file and line.
    """
    ranked: dict[str, _Ranked] = {}
    same: dict[str, str] = {}  # one text for each passage, however many lists it stands in
    for number, text in numbered(path):
        parts = text.split()
        if len(parts) < 5:
            line = Line(number, text)
            raise _wrong(path, line, "`query Q0 passage rank score tag`", f"{len(parts)} columns")
        try:
            rank = float(parts[3])
        except ValueError:
            rank = math.nan
        if not math.isfinite(rank):
            raise _wrong(path, Line(number, text), "a rank, a number", f"'{parts[3]}'")
        into = ranked.get(parts[0])
        if into is None:
            into = ranked[parts[0]] = _Ranked()
        into.ranks.append(rank)
        into.passages.append(same.setdefault(parts[2], parts[2]))
        into.scores.append(_score(parts[4]))
    return {query: entries.in_order() for query, entries in ranked.items()}


def read_qrels(path: Path, tell: Callable[[int, str], None] | None = None) -> dict[str, dict[str, float]]:
    """Return grades by query and passage, from TREC qrels, a BEIR table or JSON lines.

    A pair that comes twice keeps its higher grade (evidence spans of one passage come so). A line that cannot
    be used is told, with its number and why, and the rest is taken. Raises InputError with file and line
    where nobody is told.
    """
    grades: dict[str, dict[str, float]] = {}
    for line in lines(path):
        try:
            row = _row(path, line)
        except _LineError as error:
            if tell is None:
                raise
            tell(line.number, error.reason)
            continue
        if row is not None:
            query, passage, grade = row
            judged = grades.setdefault(query, {})
            judged[passage] = max(grade, judged.get(passage, grade))
    return grades


def _row(path: Path, line: Line) -> tuple[str, str, float] | None:
    """Return query, passage and grade of a line; None for the heading of a BEIR table."""
    if line.text.lstrip().startswith("{"):
        return _json_row(path, line)
    parts = line.text.split("\t") if line.text.count("\t") == 2 else line.text.split()
    if len(parts) not in (3, 4):
        raise _wrong(path, line, "`query 0 passage grade`", f"{len(parts)} columns")
    if len(parts) == 3 and line.number == 1 and not _is_number(parts[2]):
        return None
    return parts[0].strip(), parts[-2].strip(), _number(path, line, parts[-1], "a grade")


def _json_row(path: Path, line: Line) -> tuple[str, str, float]:
    try:
        row = json.loads(line.text)
        query, passage = _field(row, _QUERY_FIELDS), _field(row, _PASSAGE_FIELDS)
        grade = _field(row, _GRADE_FIELDS)
    except (ValueError, TypeError, RecursionError, StopIteration):
        raise _wrong(path, line, '{"query_id", "doc_id", "grade"}', line.text.strip()) from None
    return query, passage, _number(path, line, grade, "a grade")


def _field(row: dict[str, object], names: Iterable[str]) -> str:
    return str(next(row[name] for name in names if name in row))


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _number(path: Path, line: Line, text: str, what: str) -> float:
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not math.isfinite(number):
        raise _wrong(path, line, f"{what}, a number", f"'{text.strip()}'")
    return number


def _score(text: str) -> float | None:
    try:
        score = float(text)
    except ValueError:
        return None
    return score if math.isfinite(score) else None


def _wrong(path: Path, line: Line, expected: str, got: str) -> InputError:
    return _LineError(path, line, f"expected {expected}, got {got:.80}")


def cases_of_qrels(grades: dict[str, dict[str, float]], queries: dict[str, str] | None = None) -> list[Case]:
    """Return a case per judged query; `queries` gives their text where known."""
    texts = queries or {}
    return [Case(case_id=query, query=texts.get(query), judgments=judged) for query, judged in grades.items()]


def read_beir(folder: Path, split: str = "test") -> list[Case]:
    """Return the cases of a BEIR folder: `queries.jsonl` and `qrels/<split>.tsv`.

    Queries of the split's file alone are cases. Raises InputError where the folder has no such split.
    """
    table = folder / "qrels" / f"{split}.tsv"
    if not table.is_file():
        found = sorted(path.stem for path in (folder / "qrels").glob("*.tsv"))
        raise InputError(
            f"expected judgments at {table}, got {', '.join(found) or 'none'}; name the split to use"
        )
    texts = folder / "queries.jsonl"
    return cases_of_qrels(read_qrels(table), read_queries(texts) if texts.is_file() else None)


def read_queries(path: Path) -> dict[str, str]:
    """Return the text of each query: JSON lines with `_id` and `text`, or `id<TAB>text`.

    Raises InputError with file and line.
    """
    return dict(_query(path, line) for line in lines(path))


def _query(path: Path, line: Line) -> tuple[str, str]:
    if not line.text.lstrip().startswith("{"):
        query, tab, text = line.text.strip().partition("\t")
        if not tab:
            raise _wrong(path, line, '{"_id", "text"} or `id<TAB>text`', line.text.strip())
        return query, text.strip()
    try:
        row = json.loads(line.text)
        return _field(row, ("_id", *_QUERY_FIELDS)), _field(row, ("text", "query"))
    except (ValueError, KeyError, TypeError, StopIteration):
        raise _wrong(path, line, '{"_id", "text"}', line.text.strip()) from None
