"""What no ranking, however odd, may break."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from resweep.domain.measures import MEASURES, NEVER_FALL, Measured, measure, rank_table

DEPTHS = range(1, 13)
passages = st.sampled_from([f"p{i}" for i in range(9)])
rankings = st.lists(passages, max_size=12)
judgments = st.dictionaries(passages, st.integers(-1, 3), max_size=9).filter(
    lambda grades: any(grade >= 1 for grade in grades.values())
)
cases = st.lists(st.tuples(rankings, judgments), min_size=1, max_size=4)
Cases = list[tuple[list[str], dict[str, int]]]


def _measured(some: Cases) -> Measured:
    return measure(rank_table([r for r, _ in some], [j for _, j in some]), DEPTHS, MEASURES)


@given(cases)
def test_some_measures_never_fall_with_k(some: Cases) -> None:
    """Recall and its kin rise with k or stay, for every case."""
    values = _measured(some).values
    for name in NEVER_FALL & values.keys():
        assert (values[name][:, 1:] >= values[name][:, :-1]).all(), name


@given(cases)
def test_no_measure_leaves_zero_to_one(some: Cases) -> None:
    """Whatever repeats, nothing counts twice: no measure is above 1 or below 0."""
    for name, values in _measured(some).values.items():
        seen = values[values == values]
        assert ((seen >= 0) & (seen <= 1)).all(), name


@given(cases)
def test_all_evidence_is_at_most_recall(some: Cases) -> None:
    """It is never above recall, and equals it where one passage is relevant."""
    values = _measured(some).values
    assert (values["all_evidence"] <= values["recall"]).all()
    table = rank_table([r for r, _ in some], [j for _, j in some])
    single = table.relevant == 1
    assert (values["all_evidence"][single] == values["recall"][single]).all()


@given(rankings, judgments, st.data())
def test_a_later_copy_never_helps(ranking: list[str], grades: dict[str, int], data: st.DataObject) -> None:
    """A copy of a passage put in anywhere after its first place raises no measure at any depth."""
    if not ranking:
        return
    source = data.draw(st.integers(0, len(ranking) - 1))
    place = data.draw(st.integers(source + 1, len(ranking)))
    copied = [*ranking[:place], ranking[source], *ranking[place:]]
    before, after = (_measured([(one, grades)]).values for one in (ranking, copied))
    for name in set(MEASURES) - {"judged", "partial_credit"}:
        full = before[name] if name != "precision_returned" else before["precision"]
        compared = after[name] if name != "precision_returned" else after["precision"]
        assert (compared <= full + 1e-12).all(), name


@given(cases)
def test_cases_do_not_touch_one_another(some: Cases) -> None:
    """A case's values are the same alone and in company."""
    together = _measured(some).values
    for i, case in enumerate(some):
        alone = _measured([case]).values
        for name in MEASURES:
            assert ((together[name][i] == alone[name][0]) | (together[name][i] != together[name][i])).all(), (
                name
            )


def _by_hand(ranking: list[str], grades: dict[str, int], k: int) -> dict[str, float]:
    """Return the measures as their definitions read, one passage at a time."""
    relevant = {passage for passage, grade in grades.items() if grade >= 1}
    places = {p: ranking.index(p) + 1 for p in relevant if p in ranking[:k]}
    found = [sum(place <= rank for place in places.values()) for rank in range(k + 1)]
    gathered = sum(found[place] / place for place in places.values())
    gain = sum(grades[p] / math.log2(place + 1) for p, place in places.items())
    best = sorted((grades[p] for p in relevant), reverse=True)[:k]
    ideal = sum(grade / math.log2(rank + 1) for rank, grade in enumerate(best, 1))
    returned = ranking[:k]
    return {
        "recall": found[k] / len(relevant),
        "all_evidence": float(found[k] == len(relevant)),
        "partial_credit": found[k] / len(relevant) - (found[k] == len(relevant)),
        "precision": found[k] / k,
        "precision_returned": found[k] / len(returned) if returned else 0.0,
        "context_precision": gathered / min(len(relevant), k),
        "ap": gathered / len(relevant),
        "mrr": 1 / min(places.values()) if places else 0.0,
        "ndcg": gain / ideal,
        "judged": sum(p in grades for p in returned) / len(returned) if returned else math.nan,
    }


@given(rankings, judgments)
def test_the_one_pass_gives_what_the_definitions_say(ranking: list[str], grades: dict[str, int]) -> None:
    """Every measure at every depth is the one counted by hand."""
    values = _measured([(ranking, grades)]).values
    for column, k in enumerate(DEPTHS):
        for name, value in _by_hand(ranking, grades, k).items():
            assert values[name][0, column] == pytest.approx(value, abs=1e-12, nan_ok=True), (name, k)
