"""Where retrieval canaries take their questions from: a file, the labelled set, live queries."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from hashlib import blake2b
from pathlib import Path

import msgspec

from resweep.detect.canary.quality import lost_cases
from resweep.domain.case import Filter, question_key
from resweep.domain.errors import InputError
from resweep.domain.event import RetrievalEvent
from resweep.schedule.canaries import load_system
from resweep.store.canaries import CanaryQuery
from resweep.store.sql import SqlStore

QUESTIONS_MAX = 500  # of a file, for one pipeline
LABELLED_MAX = 100  # of the labelled set


class _Line(msgspec.Struct, kw_only=True):
    """A question in a file. Lines of an exported labelled set have these fields too."""

    query: str
    pipeline: str | None = None
    kwargs: dict[str, object] = {}
    relevant: dict[str, int] | list[str] = []
    id: str | None = None


def read_questions(path: Path, pipeline: str) -> list[CanaryQuery]:
    """Return the questions that a file holds for a pipeline: one a line, as text or as a JSON object.

    An object has `query`, and may have `pipeline` (without it, every pipeline's), `relevant` (passage ids,
    or grades by id) and `kwargs`. Raises InputError for a file or line that cannot be used.
    """
    try:
        lines = path.read_text("utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"expected questions in {path}; got {error}: check canary.file") from None
    found = [_question(path, number, line) for number, line in enumerate(lines, 1) if line.strip()]
    mine = [one for one in found if one.pipeline in (None, pipeline)]
    return [_as_query(one) for one in mine[:QUESTIONS_MAX]]


def labelled(store: SqlStore, pipeline: str, wanted: int = LABELLED_MAX) -> list[CanaryQuery]:
    """Return labelled cases as judged questions: those with the smallest hashes, so that they stay the same.

    Only cases that were asked without a filter: what it was made of cannot be made again.
    """
    scoped = {text for _, text, scope, _, _ in store.questions(pipeline) if scope}
    lines = store.case_lines(Filter(pipeline=pipeline, states=("labelled",)))
    usable = {line.case_id: line for line in lines if line.query and line.query not in scoped}
    found: list[CanaryQuery] = []
    for case_id in sorted(usable, key=lambda id_: blake2b(id_.encode(), digest_size=8).digest()):
        relevant = {j.passage_id: int(j.grade) for j in usable[case_id].judgments if j.grade >= 1}
        if relevant and len(found) < wanted:
            query = usable[case_id].query or ""
            found.append(CanaryQuery(id=case_id, query=query, origin="case", relevant=relevant))
    return found


def lost_questions(store: SqlStore, pipeline: str) -> frozenset[str]:
    """Return the keys of the questions whose canary lost its evidence, run after run."""
    lost: set[str] = set()
    for name, basis in store.systems():
        if name == pipeline:
            lost.update(lost_cases(load_system(store, name, basis).quality))
    if not lost:
        return frozenset()
    asked = [*store.canaries(pipeline), *labelled(store, pipeline)]
    return frozenset(question_key(one.query) for one in asked if one.id in lost)


def frozen(events: list[RetrievalEvent], wanted: int) -> Iterator[CanaryQuery]:
    """Yield live queries to freeze: those with the smallest hashes, so that every look chooses alike.

    Only queries that came without a filter: what a filter was made of cannot be made again.
    """
    usable = {
        event.query_key: event
        for event in events
        if event.query and event.query_key is not None and not event.filters and event.hits
        and event.error is None and not event.probe and not event.partial
    }  # fmt: skip
    for key in sorted(usable, key=_hash)[:wanted]:
        event = usable[key]
        yield CanaryQuery(id=f"q{key:016x}", query=event.query or "", origin="event", event_id=event.id)


def _hash(key: int) -> bytes:
    return blake2b(key.to_bytes(8, "big"), digest_size=8).digest()


def _question(path: Path, number: int, line: str) -> _Line:
    if not line.lstrip().startswith("{"):
        return _Line(query=line.strip())
    try:
        return msgspec.json.decode(line, type=_Line)
    except msgspec.MsgspecError as error:
        raise InputError(f"{path}, line {number}: expected a question; {error}") from None


def _as_query(line: _Line) -> CanaryQuery:
    grades: Mapping[str, int] = (
        line.relevant if isinstance(line.relevant, dict) else dict.fromkeys(line.relevant, 1)
    )
    whole = msgspec.json.encode([line.query, line.kwargs], order="sorted")
    id_ = line.id if line.id and len(line.id) <= 64 else blake2b(whole, digest_size=8).hexdigest()
    return CanaryQuery(id=id_, query=line.query, kwargs=line.kwargs, relevant=grades)
