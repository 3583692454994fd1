"""What a person's verdicts on some answers say of a judge."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from resweep.domain.errors import InputError
from resweep.sweep.audit import AUDIT_DAYS, DAY_S, Item, Verdicts, audit, ppi, read_audit
from resweep.sweep.evidence import Cell

CELL = Cell(40, 8)
NOW = 1e9
Array = NDArray[np.float64]
Pair = tuple[Array, Array]


def everyone(values: Array) -> Verdicts:
    """Return verdicts that all count alike."""
    return Verdicts(values, np.ones(len(values)))


def checked(
    kind: int, harsh: int, n: int = 60, ts: float | None = None
) -> tuple[list[Item], dict[str, float]]:
    """Return n items on which a judge was too kind and too harsh so many times, and its verdicts."""
    items, judged = [], {}
    for i in range(n):
        person = not (i < kind) and (kind <= i < kind + harsh or i % 2 == 0)
        ruled = True if i < kind else False if i < kind + harsh else person
        items.append(Item(f"c{i}", 8, None, person, ts))
        judged[f"c{i}"] = float(ruled)
    return items, judged


@pytest.mark.parametrize(("kind", "harsh", "net"), [(3, 2, 1 / 60), (4, 1, 3 / 60), (5, 0, 5 / 60)])
def test_agreement_alone_does_not_tell_a_bias(kind: int, harsh: int, net: float) -> None:
    """55 of 60 agree each time; the net bias is between two and eight points."""
    items, judged = checked(kind, harsh)
    found = audit(items, {CELL: judged}, NOW)
    assert found.overall.agree == 55
    assert found.overall.net == pytest.approx(net)
    assert found.overall.low < net < found.overall.high
    assert found.agreement[0] == pytest.approx(55 / 60)
    assert found.agreement[1] < 0.83 < 0.96 < found.agreement[2]


def test_a_net_bias_of_three_against_two_is_anything_from_minus_six_to_nine_points() -> None:
    """Sixty items say little: half a width of seven points, and 180 more would halve it."""
    items, judged = checked(3, 2)
    found = audit(items, {CELL: judged}, NOW)
    assert found.overall.low == pytest.approx(-0.056, abs=0.012)
    assert found.overall.high == pytest.approx(0.090, abs=0.012)
    assert found.to_halve == 180
    assert found.tolerance == pytest.approx((found.overall.high - found.overall.low) / 2)


def test_perfect_agreement_is_not_certainty() -> None:
    """The interval stays open though no disagreement was seen."""
    items, judged = checked(0, 0, 20)
    found = audit(items, {CELL: judged}, NOW)
    assert (found.overall.net, found.agreement[2]) == (0.0, 1.0)
    assert found.overall.low < -0.05
    assert found.overall.high > 0.05


def test_an_audit_expires() -> None:
    """Ninety days after its last item; without times it cannot."""
    items, judged = checked(3, 2, ts=NOW)
    assert not audit(items, {CELL: judged}, NOW + DAY_S).expired
    assert audit(items, {CELL: judged}, NOW + (AUDIT_DAYS + 1) * DAY_S).expired
    undated, judged = checked(3, 2)
    assert audit(undated, {CELL: judged}, NOW).valid_until is None


def test_items_of_other_sweeps_are_passed_over() -> None:
    """With none left there is no audit."""
    items, judged = checked(1, 1)
    with pytest.raises(InputError, match="expected audited answers of this sweep"):
        audit([item._replace(context_k=5) for item in items], {CELL: judged}, NOW)


RUNS = 400


def drawn(
    rng: np.random.Generator, truth: float, weights: Array, sensitivity: float, specificity: float
) -> Pair:
    """Return what is right by a person and by a judge who errs at these rates."""
    person = rng.random(len(weights)) < truth
    keeps = rng.random(len(weights)) < np.where(person, sensitivity, specificity)
    return person.astype(float), np.where(keeps, person, ~person).astype(float)


@pytest.mark.parametrize("audits", [20, 60, 134, 400])
@pytest.mark.parametrize(
    ("truth", "sensitivity", "specificity"),
    [(0.735, 0.955, 0.81), (0.6, 0.9, 0.9), (0.9, 0.99, 0.6), (0.05, 0.9, 0.9)],
)
def test_corrected_levels_cover_the_truth_at_the_nominal_rate(
    truth: float, sensitivity: float, specificity: float, audits: int
) -> None:
    """95 % of 400 sets of 400 answers, less two standard errors, however many of them are audited."""
    rng = np.random.default_rng(audits)
    covered = 0
    for _ in range(RUNS):
        person, judge = drawn(rng, truth, np.ones(400), sensitivity, specificity)
        rows = rng.choice(400, audits, replace=False)
        _, low, high = ppi(everyone(judge), everyone(judge[rows]), person[rows])
        covered += low <= truth <= high
    assert covered / RUNS >= 0.95 - 2 * (0.95 * 0.05 / RUNS) ** 0.5


def test_a_corrected_level_is_narrower_than_the_audit_alone() -> None:
    """Seven to eight points on each side at 60 of 400; people's verdicts alone leave eleven."""
    rng = np.random.default_rng(7)
    widths = []
    for _ in range(100):
        person, judge = drawn(rng, 0.735, np.ones(400), 0.955, 0.81)
        _, low, high = ppi(everyone(judge), everyone(judge[:60]), person[:60])
        widths.append((high - low) / 2)
    assert float(np.mean(widths)) == pytest.approx(0.077, abs=0.005)


def test_corrected_levels_speak_of_the_weighted_traffic() -> None:
    """Hard questions were drawn nine times as often as easy ones; the levels weigh them back."""
    rng = np.random.default_rng(3)
    covered = 0
    for _ in range(RUNS):
        hard = np.arange(400) < 180
        weights = np.where(hard, 1.0, 9.0)
        person = (rng.random(400) < np.where(hard, 0.2, 0.8)).astype(float)
        judge = np.where(rng.random(400) < 0.9, person, 1 - person)
        items = [Item(f"c{i}", 8, None, bool(person[i]), None) for i in rng.choice(400, 120, replace=False)]
        told = {f"c{i}": float(judge[i]) for i in range(400)}
        known = {f"c{i}": float(weights[i]) for i in range(400)}
        (level,) = audit(items, {CELL: told}, NOW, weights=known).levels
        assert level.judged == pytest.approx(np.average(judge, weights=weights))
        covered += level.low <= (180 * 0.2 + 220 * 9 * 0.8) / (180 + 220 * 9) <= level.high
    assert covered / RUNS >= 0.95 - 2 * (0.95 * 0.05 / RUNS) ** 0.5


def test_an_answer_that_was_audited_twice_counts_once() -> None:
    """As it was ruled last."""
    items, judged = checked(0, 0, 20)
    wrong = [item._replace(right=not item.right) for item in items]
    found = audit([*wrong, *items], {CELL: judged}, NOW)
    assert (found.overall.n, found.overall.agree) == (20, 20)


def test_the_file_is_read_line_by_line(tmp_path: Path) -> None:
    """A bad line is named."""
    path = tmp_path / "audit.jsonl"
    path.write_text('{"case_id": "c1", "context_k": 8, "right": true, "ts": 5}\n')
    assert read_audit(path) == [Item("c1", 8, None, True, 5.0)]
    for bad in ('{"case_id": "c1"}', '{"case_id": "c1", "context_k": 8, "right": 1}', "[]", "{"):
        path.write_text(f"{bad}\n")
        with pytest.raises(InputError, match="line 1: expected"):
            read_audit(path)
