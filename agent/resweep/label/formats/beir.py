"""A BEIR folder: `corpus.jsonl`, `queries.jsonl` and `qrels/<split>.tsv`.

Written are `test` (all judged cases), `tune` and `holdout`.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping

from resweep.domain.case import CaseLine
from resweep.label.formats.trec import grade

HEADING = "query-id\tcorpus-id\tscore\n"
_IDS = ("_id", "id", "query_id", "doc_id")
SPLITS = ("test", "tune", "holdout")


def queries(cases: Iterable[CaseLine]) -> Iterator[str]:
    """Yield the queries that have text."""
    for case in cases:
        if case.query is not None:
            about = {"reference_answer": case.reference_answer, "weight": case.weight, "state": case.state}
            metadata = {key: value for key, value in about.items() if value is not None}
            yield (
                json.dumps(
                    {"_id": case.case_id, "text": case.query, "metadata": metadata}, ensure_ascii=False
                )
                + "\n"
            )


def corpus(texts: Mapping[str, str], cases: Iterable[CaseLine]) -> Iterator[str]:
    """Yield every judged passage and every one whose text is known; a judged one without text is empty."""
    known = dict(texts)
    for case in cases:
        for one in case.judgments:
            known.setdefault(one.passage_id, "")
    for passage, text in known.items():
        yield json.dumps({"_id": passage, "title": "", "text": text}, ensure_ascii=False) + "\n"


def qrels(cases: Iterable[CaseLine], split: str = "test") -> Iterator[str]:
    """Yield the table of one split; ids with a tab cannot be written and are left out."""
    yield HEADING
    for case in cases:
        if split not in ("test", case.split):
            continue
        for one in case.judgments:
            if "\t" not in case.case_id + one.passage_id:
                yield f"{case.case_id}\t{one.passage_id}\t{grade(one.grade)}\n"


def texts_of(lines: Iterable[tuple[int, str]], tell: Callable[[int, str], None]) -> dict[str, str]:
    """Return texts by id from the numbered lines of `corpus.jsonl` or `queries.jsonl`.

    A line that is none is told, with its number and why.
    """
    found: dict[str, str] = {}
    for number, line in lines:
        try:
            row = json.loads(line)
            name = str(next(row[field] for field in _IDS if field in row))
            title, text = row.get("title") or "", row["text"]
        except (ValueError, KeyError, TypeError, AttributeError, StopIteration, RecursionError):
            tell(number, f'expected {{"_id", "text"}}, got {line.strip():.80}')
            continue
        if isinstance(text, str):
            found[name] = f"{title}\n{text}" if title else text
        else:
            tell(number, f"expected a text of {name!r:.60}, got {text!r:.60}")
    return found
