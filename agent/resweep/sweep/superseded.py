"""Superseded passages: how often they are in the context, and how often an answer rests on one.

A deeper context brings what distracts and what is out of date alike, and accuracy falls by both. An answer
that cites a passage which another has replaced is stale; one that is wrong without is not.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from resweep.domain.errors import InputError
from resweep.domain.estimate import weighted_mean
from resweep.sweep.answers import Judged
from resweep.sweep.engine import Sweep
from resweep.sweep.evidence import Cell, Evidence
from resweep.sweep.findings.picture import percent
from resweep.sweep.textfile import lines

_HEADINGS = frozenset(("id", "passage_id", "doc_id", "docid", "superseded"))
Superseded = Mapping[str, str | None]  # id of a passage -> id of what replaced it, None where nobody said


def read_superseded(path: Path) -> dict[str, str | None]:
    """Return the superseded passages of a file, with what replaced them where it says.

    JSON: a list of ids, or an object of id to replacement (null where there is none). A table (`.csv`,
    `.tsv`): the id in the first column, the replacement in the second. Else an id a line. Raises InputError
    where it holds no id.
    """
    text = "\n".join(line.text.rstrip("\r\n") for line in lines(path))
    if text.lstrip()[:1] in ("[", "{"):
        found = _json(path, text)
    elif path.name.removesuffix(".gz").endswith((".csv", ".tsv")):
        found = _table(text)
    else:
        found = {row.strip(): None for row in text.splitlines()}
    if not found:
        raise InputError(f"{path}: expected ids of superseded passages, got none; give one a line")
    return found


def _json(path: Path, text: str) -> dict[str, str | None]:
    try:
        raw = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise InputError(f"{path}: expected a JSON list or object of ids; {error}: correct it") from None
    found = {}
    for one, by in raw.items() if isinstance(raw, dict) else ((one, None) for one in raw):
        if not isinstance(one, str | int) or isinstance(one, bool) or not isinstance(by, str | int | None):
            raise InputError(
                f"{path}: expected ids of passages, as a list or as id to replacement; got {one!r:.60}: "
                f"{by!r:.60}"
            )
        found[str(one)] = None if by is None else str(by)
    return found


def _table(text: str) -> dict[str, str | None]:
    rows = text.splitlines()
    found: dict[str, str | None] = {}
    for number, row in enumerate(csv.reader(rows, delimiter="\t" if "\t" in rows[0] else ",")):
        cells = [cell.strip() for cell in row]
        if cells and cells[0] and not (number == 0 and cells[0].lower() in _HEADINGS):
            found[cells[0]] = (cells[1] or None) if len(cells) > 1 else None
    return found


class _Row(NamedTuple):
    """One answer at a cell: its weight, whether it is right, cites anything, cites what is superseded."""

    weight: float
    right: bool
    cites: bool
    stale: bool


def with_superseded(swept: Sweep, superseded: Superseded) -> Sweep:
    """Return the sweep with what superseded passages do, over the tuning cases at every measured depth."""
    by_cell: dict[Cell, list[Judged]] = {}
    for one in swept.answers:
        if one.cell is not None:
            by_cell.setdefault(one.cell, []).append(one)
    citing = any(one.cited for found in by_cell.values() for one in found)
    points = [
        _contexts(swept.tune, cell, superseded)
        | _answers(swept.tune, by_cell.get(cell, ()), superseded, citing)
        for cell in swept.tune.cells
    ]
    citations = None if not by_cell else "read" if citing else "not read"
    told = {"listed": len(superseded), "citations": citations, "points": points}
    found = {"code": "superseded", "text": _text(told, swept.report.chosen)}
    report = replace(swept.report, superseded=told, diagnosis=[*swept.report.diagnosis, found])
    return replace(swept, report=report)


def _contexts(evidence: Evidence, cell: Cell, superseded: Superseded) -> dict[str, Any]:
    """Return how many contexts hold a superseded passage, and how many hold what replaced it too."""
    run = evidence.run(cell)
    held, beside, weights = [], 0, []
    for ranked, weight in zip(run.lists, evidence.weights.tolist(), strict=True):
        if ranked is None:
            continue
        ids = set(ranked.ids[: cell.context_k])
        old = ids & superseded.keys()
        held.append(bool(old))
        beside += any(superseded[one] in ids for one in old)
        weights.append(weight)
    return {
        "context_k": cell.context_k,
        "candidate_k": cell.candidate_k,
        "contexts": len(held),
        "holding": sum(held),
        "holding_share": _share(held, weights),
        "holding_both": beside if any(superseded.values()) else None,
    }


def _answers(
    evidence: Evidence, answers: Sequence[Judged], superseded: Superseded, citing: bool
) -> dict[str, Any]:
    """Return how many answers cite a superseded passage, and how those and the others fare.

    Where no answer of the sweep cites anything, citations could not be read: null, never 0.
    """
    rows = list(_rows(evidence, answers, superseded))
    told: dict[str, Any] = {"answers": len(rows) if answers else None}
    if not citing or not rows:
        return told | dict.fromkeys(_CITED)
    stale, fresh = ([row for row in rows if row.stale is which] for which in (True, False))
    return told | {
        "cite": sum(row.cites for row in rows),
        "cite_superseded": len(stale),
        "cite_superseded_share": _share([row.stale for row in rows], [row.weight for row in rows]),
        "wrong_citing": sum(not row.right for row in stale),
        "wrong_not_citing": sum(not row.right for row in fresh),
        "accuracy_citing": _share([row.right for row in stale], [row.weight for row in stale]),
        "accuracy_not_citing": _share([row.right for row in fresh], [row.weight for row in fresh]),
    }


_CITED = (
    "cite",
    "cite_superseded",
    "cite_superseded_share",
    "wrong_citing",
    "wrong_not_citing",
    "accuracy_citing",
    "accuracy_not_citing",
)


def _rows(evidence: Evidence, answers: Sequence[Judged], superseded: Superseded) -> Iterator[_Row]:
    weights = {case.case_id: case.weight for case in evidence.cases}
    for one in answers:
        if one.case_id in weights:
            stale = any(passage in superseded for passage in one.cited_ids)
            yield _Row(weights[one.case_id], one.right, bool(one.cited), stale)


def _share(held: Sequence[bool], weights: Sequence[float]) -> float | None:
    """Return the weighted share that is set; None of nothing."""
    if not held:
        return None
    return weighted_mean(np.array(held, dtype=np.float64), np.array(weights, dtype=np.float64))


def _text(told: Mapping[str, Any], chosen: Mapping[str, Any]) -> str:
    points = told["points"]
    depth = chosen["candidate_k"] or max((p["candidate_k"] for p in points), default=0)
    row = [p for p in points if p["candidate_k"] == depth and p["holding_share"] is not None]
    held = "; ".join(f"{percent(p['holding_share'])} at {p['context_k']}" for p in row) or "no context"
    said = [f"Of the contexts, with {told['listed']} superseded passages listed, so many hold one: {held}."]
    if told["citations"] == "not read":
        said.append("No answer cites a passage, so that citations of superseded ones could not be read.")
    elif told["citations"] == "read":
        cited = [p for p in row if p["cite_superseded"] is not None]
        said.append(f"Answers that cite one: {'; '.join(map(_cited, cited))}.")
    return " ".join(said)


def _cited(point: Mapping[str, Any]) -> str:
    """Return how many answers cite a superseded passage at a depth, and who is wrong."""
    stale, share = point["cite_superseded"], percent(point["cite_superseded_share"])
    wrong = f", {point['wrong_citing']} of them wrong ({point['wrong_not_citing']} wrong that cite none)"
    return f"{stale} of {point['answers']} ({share}) at {point['context_k']}{wrong if stale else ''}"
