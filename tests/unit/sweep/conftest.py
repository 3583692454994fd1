"""The 400 cases whose figures are known, as lists and judgments."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from resweep.sweep.evidence import Cell
from resweep.sweep.lists import Case, RankedList

FIGURES = Path(__file__).parents[2] / "golden" / "sweep_figures.json"
DEPTH = 40


@pytest.fixture(scope="session")
def figures() -> Any:
    """Every figure that must come out."""
    return json.loads(FIGURES.read_text())


@pytest.fixture(scope="session")
def known(figures: Any) -> tuple[list[Case], dict[str, RankedList]]:
    """Cases with R relevant passages at the stated ranks of a list of 40; unfound ones are never returned."""
    cases: list[Case] = []
    lists: dict[str, RankedList] = {}
    for count, relevant, ranks in figures["groups"]:
        for _ in range(count):
            case_id = f"c{len(cases)}"
            ids = [f"x{rank}" for rank in range(1, DEPTH + 1)]
            for i, rank in enumerate(ranks):
                ids[rank - 1] = f"r{i}"
            judged = {f"r{i}": 1.0 for i in range(relevant)}
            cases.append(Case(case_id=case_id, judgments=judged))
            lists[case_id] = RankedList(ids, tokens=[figures["passage_tokens"]] * DEPTH)
    return cases, lists


@pytest.fixture(scope="session")
def answers(figures: Any) -> dict[str, dict[Cell, dict[str, float]]]:
    """Right and wrong answers with the stated counts: the first so many cases are right at each depth."""
    right = figures["answers_correct"]
    return {
        "answer_accuracy": {
            Cell(DEPTH, int(k)): {f"c{i}": float(i < n) for i in range(figures["cases"])}
            for k, n in right.items()
        }
    }
