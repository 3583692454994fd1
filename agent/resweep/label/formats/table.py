"""CSV: what a support team keeps (question, answer, link), and the whole set for a spreadsheet.

Separator and encoding are found out. Headings are known in any case: a question column is required.
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterable, Iterator, Mapping
from hashlib import blake2b
from typing import Any

import msgspec

from resweep.domain.case import CaseLine, Judgment, question_key
from resweep.domain.errors import InputError
from resweep.label.formats import BadRow, ReadCases
from resweep.label.formats.caselines import trouble

NAMES: Mapping[str, tuple[str, ...]] = {
    "query": ("query", "question", "questions", "user question", "customer question", "prompt", "user_input"),
    "reference_answer": (
        "reference_answer",
        "answer",
        "answers",
        "reply",
        "response",
        "reference",
        "solution",
    ),
    "link": ("link", "links", "url", "article", "source", "document", "doc", "page"),
    "case_id": ("case_id", "id", "ticket", "ticket id", "ticket_id"),
    "notes": ("notes", "note", "comment", "comments"),
}
COLUMNS = (
    "case_id",
    "query",
    "filters",
    "reference_answer",
    "link",
    "notes",
    "pipeline",
    "stratum",
    "inclusion_probability",
    "weight",
    "plan",
    "state",
    "split",
    "judgments",
    "required",
    "answerable",
    "slices",
    "provenance",
    "event_id",
    "config",
    "corpus_revision",
    "cluster",
    "seen",
    "first_ts",
    "last_ts",
    "events",
)
_JSON = ("filters", "judgments", "required", "slices", "events", "answerable")
_NUMBERS = ("inclusion_probability", "weight", "seen", "first_ts", "last_ts")
_FORMULA = ("=", "+", "-", "@", "\t", "\r")  # a spreadsheet would run it
FIELD_MAX = 1 << 20


def read(body: bytes, *, link_is_passage: bool = False) -> ReadCases:
    """Return the cases of a CSV file.

    `link_is_passage` takes a link for the id of the passage that answers; else it is noted for the reviewer.
    Raises InputError for a file without a column of questions.
    """
    csv.field_size_limit(FIELD_MAX)
    text = _decoded(body)
    found = ReadCases()
    rows = _checked(text, found)
    _, heading = next(rows, (0, []))
    columns, wide = _columns(heading), len(heading)
    seen: dict[str, int] = {}
    for number, row in rows:
        if any(cell.strip() for cell in row[wide:]):
            reason = f"expected at most {wide} cells, as in the heading; got {len(row)}"
            found.bad.append(BadRow(number, f"{reason}: put what holds a separator in quotes"))
            continue
        _take(number, row, columns, seen, found, link_is_passage)
    return found


def _checked(text: str, found: ReadCases) -> Iterator[tuple[int, list[str]]]:
    """Yield rows that are not blank, with the number of their last line; broken ones are told.

    A quote that is never closed would swallow the rest of the file: its line is told, the rest is read.
    """
    dialect, lines, offset = _dialect(text), list(io.StringIO(text, newline="")), 0
    reader = csv.reader(lines, dialect)
    while True:
        begun = offset + reader.line_num
        try:
            row = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            found.bad.append(BadRow(offset + reader.line_num, f"expected a row of CSV; {error}"))
            continue
        if offset + reader.line_num == len(lines) and _is_torn(lines[begun:], dialect):
            found.bad.append(BadRow(begun + 1, "expected the quote that this row opens to be closed"))
            offset = begun + 1
            reader = csv.reader(lines[offset:], dialect)
        elif any(cell.strip() for cell in row):
            yield offset + reader.line_num, row


def _is_torn(lines: list[str], dialect: Any) -> bool:
    """Whether a file ends inside a quoted cell of its last row."""
    try:
        list(csv.reader(lines, dialect, strict=True))
    except csv.Error as error:
        return "end of data" in str(error)
    return False


def _take(
    number: int,
    row: list[str],
    columns: Mapping[str, int],
    seen: dict[str, int],
    found: ReadCases,
    link_is_passage: bool,
) -> None:
    cells = {name: _plain(row[place]) for name, place in columns.items() if place < len(row)}
    try:
        case = _case({name: cell for name, cell in cells.items() if cell}, link_is_passage)
    except InputError as error:
        found.bad.append(BadRow(number, str(error)))
        return
    key = question_key(case.query) if case.query else case.case_id
    first = seen.setdefault(key, number)
    reason = trouble(case) or (None if first == number else f"asks the same question as row {first}")
    if reason:
        found.bad.append(BadRow(number, reason))
    else:
        found.lines.append(case)


def _case(cells: Mapping[str, str], link_is_passage: bool) -> CaseLine:
    query = cells.get("query")
    if query is None and not ("case_id" in cells and "judgments" in cells):
        raise InputError("expected a question; the cell is empty")
    values: dict[str, object] = {}
    for name, cell in cells.items():
        if name in _JSON:
            values[name] = _json(name, cell)
        elif name in _NUMBERS:
            values[name] = _number(name, cell)
        elif name != "link":
            values[name] = cell
    made = blake2b((query or "").encode("utf-8", "surrogatepass"), digest_size=8).hexdigest()
    try:
        case = msgspec.convert({"case_id": made, **values}, CaseLine, strict=False)
    except msgspec.ValidationError as error:
        raise InputError(f"expected the columns of a case; {error}") from None
    link = cells.get("link")
    if link:
        case.links = [part for part in link.split() if part]
        if link_is_passage:
            case.judgments = [Judgment(passage_id=part, grade=1) for part in case.links]
    if case.provenance is None:
        case.provenance = "imported"
    return case


def _json(name: str, cell: str) -> object:
    try:
        return json.loads(cell)
    except (ValueError, RecursionError):
        if name == "answerable" and cell.casefold() in ("yes", "no", "true", "false"):
            return cell.casefold() in ("yes", "true")
        raise InputError(f"{name}: expected JSON; got {cell!r:.60}") from None


def _number(name: str, cell: str) -> float:
    try:
        number = float(cell)
    except ValueError:
        raise InputError(f"{name}: expected a number; got {cell!r:.40}") from None
    return int(number) if name == "seen" else number


def _decoded(body: bytes) -> str:
    if b"\x00" in body[:4096]:
        try:
            return body.decode("utf-16")
        except UnicodeDecodeError:
            raise InputError("expected CSV text; got other bytes (a spreadsheet? save it as CSV)") from None
    try:
        return body.decode("utf-8-sig")
    except UnicodeDecodeError:
        return body.decode("cp1252", "replace")  # what spreadsheets of the West still write


def _dialect(text: str) -> type[csv.Dialect]:
    head = text.partition("\n")[0]

    class Found(csv.excel):
        delimiter = max(",;\t|", key=lambda mark: (head.count(mark), mark == ","))

    return Found


def _columns(heading: list[str]) -> dict[str, int]:
    given = [" ".join(name.casefold().replace("-", " ").split()) for name in heading]
    columns = {name: given.index(name) for name in COLUMNS if name in given}
    for name, others in NAMES.items():
        for other in others:
            if name not in columns and other in given:
                columns[name] = given.index(other)
    if "query" not in columns:
        raise InputError(
            f"expected a heading with a column of questions ({', '.join(NAMES['query'][:3])}); "
            f"got {', '.join(heading)[:200] or 'an empty file'}"
        )
    return columns


def _plain(cell: str) -> str:
    """Take the guard off that `write` puts before what a spreadsheet would run."""
    cell = cell.strip()
    return cell[1:] if cell.startswith("'") and cell[1:].startswith(_FORMULA) else cell


def write(cases: Iterable[CaseLine]) -> Iterator[str]:
    """Yield the whole set as CSV, a row at a time; what a spreadsheet would run gets an apostrophe."""
    out = io.StringIO()
    writer = csv.writer(out)
    writer.writerow(COLUMNS)
    yield _drained(out)
    for case in cases:
        writer.writerow([_cell(case, name) for name in COLUMNS])
        yield _drained(out)


def _drained(out: io.StringIO) -> str:
    text = out.getvalue()
    out.seek(0)
    out.truncate()
    return text


def _cell(case: CaseLine, name: str) -> str:
    value = case.links if name == "link" else getattr(case, name)
    if value is None or (name != "answerable" and value in ([], {})):
        return ""
    if name == "link":
        text = " ".join(case.links)
    elif name in _JSON:
        text = msgspec.json.encode(value).decode()
    elif name in _NUMBERS:
        return repr(value)
    else:
        text = str(value)
    return f"'{text}" if text.startswith(_FORMULA) else text
