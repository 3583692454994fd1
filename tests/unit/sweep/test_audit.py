"""What a person's verdicts on some answers say of a judge."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from resweep.domain.errors import InputError
from resweep.sweep.audit import AUDIT_DAYS, DAY_S, Item, audit, ppi, read_audit
from resweep.sweep.evidence import Cell

CELL = Cell(40, 8)
NOW = 1e9


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


def test_corrected_levels_cover_the_truth_where_the_judge_alone_does_not() -> None:
    """400 answers, 60 audited, sensitivity 0.955 and specificity 0.81: truth 73.5 %, judge 75 %."""
    rng = np.random.default_rng(7)
    covered, widths, runs = 0, [], 400
    for _ in range(runs):
        truth = (rng.random(400) < 0.735).astype(float)
        kept = rng.random(400) < np.where(truth == 1, 0.955, 0.81)
        judge = np.where(kept, truth, 1 - truth)
        rows = rng.choice(400, 60, replace=False)
        mean, error = ppi(np.delete(judge, rows), judge[rows], truth[rows])
        covered += abs(mean - 0.735) <= 1.96 * error
        widths.append(1.96 * error)
    assert covered / runs >= 0.90
    assert float(np.mean(widths)) == pytest.approx(0.076, abs=0.01)


def test_the_file_is_read_line_by_line(tmp_path: Path) -> None:
    """A bad line is named."""
    path = tmp_path / "audit.jsonl"
    path.write_text('{"case_id": "c1", "context_k": 8, "right": true, "ts": 5}\n')
    assert read_audit(path) == [Item("c1", 8, None, True, 5.0)]
    for bad in ('{"case_id": "c1"}', '{"case_id": "c1", "context_k": 8, "right": 1}', "[]", "{"):
        path.write_text(f"{bad}\n")
        with pytest.raises(InputError, match="line 1: expected"):
            read_audit(path)
