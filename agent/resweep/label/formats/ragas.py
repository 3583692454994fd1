"""A Ragas evaluation dataset as JSON lines: `EvaluationDataset.from_jsonl` reads it.

One single-turn sample a case: `user_input`, the retrieved and the reference contexts with their ids, the
reference. Cases without text or without judgments are no samples.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from resweep.domain.case import CaseLine, Judgment
from resweep.domain.event import Hit
from resweep.domain.measures import RELEVANT_GRADE
from resweep.domain.values import text_hash
from resweep.label.formats import BadRow, ReadCases


def samples(cases: Iterable[tuple[CaseLine, tuple[Hit, ...]]]) -> Iterator[str]:
    """Yield a sample for each judged case with text; hits give contexts and texts."""
    for case, hits in cases:
        if case.query and case.judgments:
            yield json.dumps(_sample(case, hits), ensure_ascii=False) + "\n"


def _sample(case: CaseLine, hits: tuple[Hit, ...]) -> dict[str, Any]:
    texts = {hit.id: hit.text or "" for hit in hits}
    relevant = [one.passage_id for one in case.judgments if one.grade >= RELEVANT_GRADE]
    return {
        "user_input": case.query,
        "retrieved_contexts": [hit.text or "" for hit in hits],
        "retrieved_context_ids": [hit.id for hit in hits],
        "reference_contexts": [texts.get(passage, "") for passage in relevant],
        "reference_context_ids": relevant,
        "reference": case.reference_answer or "",
    }


def read(lines: Iterable[str]) -> ReadCases:
    """Return the cases of samples: reference contexts are what answers; without ids, their text hash is."""
    found = ReadCases()
    for row, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            found.lines.append(_case(json.loads(line), row))
        except (ValueError, TypeError, AttributeError, KeyError) as error:
            found.bad.append(BadRow(row, f"expected a single-turn sample with user_input; {error}"))
    return found


def _case(sample: Mapping[str, Any], row: int) -> CaseLine:
    query = sample["user_input"]
    if not isinstance(query, str) or not query.strip():
        raise ValueError("user_input is no text (a conversation is no case)")
    contexts = sample.get("reference_contexts") or []
    ids = sample.get("reference_context_ids") or [f"text:{text_hash(text)}" for text in contexts]
    hashes = [text_hash(text) if text else None for text in contexts]
    hashes += [None] * (len(ids) - len(hashes))
    return CaseLine(
        case_id=f"ragas-{row}",
        query=query,
        reference_answer=sample.get("reference") or None,
        judgments=[
            Judgment(passage_id=str(passage), grade=1, text_hash=text)
            for passage, text in zip(ids, hashes, strict=False)
        ],
        provenance="imported",
    )
