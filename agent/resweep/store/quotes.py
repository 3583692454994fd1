"""What stored reports quote of cases whose words have to go."""

from __future__ import annotations

import gzip
import io
import zlib
from collections.abc import Collection, Iterator
from typing import Any

import msgspec
from sqlalchemy import Connection, select, update

from resweep.store.part import chunks
from resweep.store.schema import cases, reports


class _Line(msgspec.Struct):
    case_id: str = ""


_case_of = msgspec.json.Decoder(_Line).decode
_decode = msgspec.json.Decoder(dict[str, Any]).decode
_encode = msgspec.json.encode


def take_words_out(connection: Connection, case_ids: Collection[str]) -> int:
    """Take question, reference and answers of cases out of the reports that quote them, figures stay.

    To be called while the cases are still there. Returns how many reports quoted one.
    """
    gone, pipelines = set(case_ids), set[str]()
    for some in chunks(sorted(gone)):
        query = select(cases.c.pipeline).where(cases.c.id.in_(some)).distinct()
        pipelines.update(connection.execute(query).scalars())
    changed = 0
    asked = select(reports.c.pipeline, reports.c.id).where(reports.c.pipeline.in_(pipelines))
    for pipeline, report_id in connection.execute(asked).all():
        mine = (reports.c.pipeline == pipeline) & (reports.c.id == report_id)
        document, packed = connection.execute(select(reports.c.document, reports.c.cases).where(mine)).one()
        values = {"document": _without(document, gone), "cases": packed and _lines_without(packed, gone)}
        changes = {name: value for name, value in values.items() if value is not None}
        if changes:
            connection.execute(update(reports).where(mine).values(changes))
            changed += 1
    return changed


def _without(document: bytes, gone: set[str]) -> bytes | None:
    """Return a packed report without the words of cases; None where it has none."""
    report = _decode(zlib.decompress(document))
    quoting = [one for one in report.get("regressions", ()) if one["case_id"] in gone and one.get("query")]
    for one in quoting:
        one["query"] = None
    return zlib.compress(_encode(report)) if quoting else None


def _lines_without(packed: bytes, gone: set[str]) -> bytes | None:
    """Return packed lines of cases without the words of some; None where none of these is there.

    Nothing is left of what cannot be read, for nobody knows whose words it holds.
    """
    try:
        held = gzip.decompress(packed).splitlines()
        if not any(_case_of(line).case_id in gone for line in held):
            return None
    except (OSError, EOFError, zlib.error, msgspec.DecodeError):
        return gzip.compress(b"", mtime=0)
    into = io.BytesIO()
    with gzip.GzipFile(fileobj=into, mode="wb", mtime=0) as stream:
        stream.writelines(line + b"\n" for line in _silenced(held, gone))
    return into.getvalue()


def _silenced(held: Collection[bytes], gone: set[str]) -> Iterator[bytes]:
    for line in held:
        if _case_of(line).case_id not in gone:
            yield line
            continue
        case = _decode(line)
        answers = [{**one, "answer": None, "reason": None} for one in case.get("answers", ())]
        yield _encode({**case, "query": None, "reference_answer": None, "answers": answers})
