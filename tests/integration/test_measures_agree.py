"""Where definitions agree, so do the numbers of the tools people trust: to 1e-9, case by case."""

from __future__ import annotations

import random
from collections.abc import Mapping
from typing import Any

import pytest

from resweep.domain.measures import MEASURES, FloatArray, measure, rank_table

pytestmark = pytest.mark.integration
DEPTHS = (1, 3, 5, 10, 20, 40)
Run = dict[str, list[str]]
Qrels = dict[str, dict[str, int]]


@pytest.fixture(scope="module")
def random_set() -> tuple[Run, Qrels]:
    """300 queries with graded judgments, lists from empty to 60, and relevant passages never returned."""
    rng = random.Random(12)
    run: Run = {}
    qrels: Qrels = {}
    for i in range(300):
        ids = rng.sample([f"d{j}" for j in range(300)], rng.choice([1, 3, 17, 60]))
        judged = {d: rng.choice([0, 0, 1, 1, 2, 3]) for d in rng.sample(ids, min(len(ids), 5))}
        judged |= {f"never{j}": rng.choice([0, 1]) for j in range(rng.randint(0, 3))}
        judged.setdefault(ids[-1], 1)
        if not any(judged.values()):
            judged[ids[-1]] = 1
        run[f"q{i}"], qrels[f"q{i}"] = ids, judged
    return run, qrels


@pytest.fixture(scope="module")
def ours(random_set: tuple[Run, Qrels]) -> Mapping[str, FloatArray]:
    """Return our values for the same lists."""
    run, qrels = random_set
    return measure(rank_table(list(run.values()), list(qrels.values())), DEPTHS, MEASURES).values


def _scored(run: Run) -> dict[str, dict[str, float]]:
    """Give scores that repeat the positions, for tools that know nothing else."""
    return {q: {d: float(len(ids) - i) for i, d in enumerate(ids)} for q, ids in run.items()}


@pytest.mark.parametrize(
    ("theirs", "name"),
    [("recall", "recall"), ("P", "precision"), ("map_cut", "ap"), ("ndcg_cut", "ndcg")],
)
def test_pytrec_eval(
    theirs: str, name: str, random_set: tuple[Run, Qrels], ours: Mapping[str, FloatArray]
) -> None:
    """trec_eval's recall, P, map_cut and ndcg_cut are recall, precision, ap and ndcg at every depth."""
    pytrec_eval: Any = pytest.importorskip("pytrec_eval")
    run, qrels = random_set
    asked = {f"{theirs}.{','.join(map(str, DEPTHS))}"}
    found = pytrec_eval.RelevanceEvaluator(qrels, asked).evaluate(_scored(run))
    for row, query in enumerate(run):
        for column, k in enumerate(DEPTHS):
            assert ours[name][row, column] == pytest.approx(found[query][f"{theirs}_{k}"], abs=1e-9)


@pytest.mark.parametrize(
    ("theirs", "name"),
    [
        ("R", "recall"),
        ("P", "precision"),
        ("AP", "ap"),
        ("nDCG", "ndcg"),
        ("RR", "mrr"),
        ("Judged", "judged"),
    ],
)
def test_ir_measures(
    theirs: str, name: str, random_set: tuple[Run, Qrels], ours: Mapping[str, FloatArray]
) -> None:
    """ir-measures' R, P, AP, nDCG, RR and Judged at a cut-off are ours."""
    ir_measures: Any = pytest.importorskip("ir_measures")
    run, qrels = random_set
    kinds = [getattr(ir_measures, theirs) @ k for k in DEPTHS]
    rows = {query: row for row, query in enumerate(run)}
    columns = {str(kind): column for column, kind in enumerate(kinds)}
    seen = 0
    for found in ir_measures.iter_calc(kinds, qrels, _scored(run)):
        seen += 1
        value = ours[name][rows[found.query_id], columns[str(found.measure)]]
        assert value == pytest.approx(found.value, abs=1e-9)
    assert seen == len(run) * len(DEPTHS)
