"""How far a judge can be trusted: a person's verdicts on some of the same answers.

An agreement rate alone says little: what moves a level is the *net* bias, the judge's wrong "right" less its
wrong "wrong". Levels are corrected by prediction-powered inference (Angelopoulos, Duchi and Zrnic, 2023,
"PPI++: Efficient Prediction-Powered Inference"): the judge's mean over all cases, moved by what the audited
ones show. Audited answers are some of the judged ones, not others beside them, so that the error is that of
double sampling (Cochran, "Sampling Techniques", 1977, chapter 12): taken as apart, intervals come out too
short. A difference between two depths keeps its place only where the judge's errors do not depend on the
depth, so audited answers have to be spread over depths.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import NormalDist
from typing import Any, NamedTuple

import numpy as np

from resweep.domain.errors import InputError
from resweep.domain.estimate import effective_size, share_interval, weighted_mean
from resweep.domain.measures import FloatArray
from resweep.sweep.evidence import Cell
from resweep.sweep.textfile import lines

AUDIT_DAYS = 90.0  # after which an audit speaks for the judge no longer
TOLERANCE = 0.02  # differences below this are left unresolved
BY_DEPTH_LEAST = 20  # audited answers at a depth before it is corrected by its own
DAY_S = 86_400.0


class Item(NamedTuple):
    """A person's verdict on one answer; `candidate_k` None where the sweep has one candidate depth."""

    case_id: str
    context_k: int
    candidate_k: int | None
    right: bool
    ts: float | None


class Level(NamedTuple):
    """An accuracy by the judge alone, and as corrected, with its interval. `own`: by audits at this depth."""

    cell: Cell
    judged: float
    mean: float
    low: float
    high: float
    own: bool


class Bias(NamedTuple):
    """How the judge differs from people on some answers: net bias is judge minus person, in [-1, 1]."""

    n: int
    agree: int
    too_kind: int
    too_harsh: int
    net: float
    low: float
    high: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Audit:
    """What an audit shows: agreement with Wilson's interval, net bias over all and by context depth.

    `tolerance` is the difference below which two depths are not told apart; `to_halve` how many more audited
    answers would halve the width of the net bias.
    """

    overall: Bias
    agreement: tuple[float, float, float]
    by_depth: Mapping[int, Bias]
    levels: Sequence[Level]
    tolerance: float
    to_halve: int
    valid_until: float | None
    expired: bool

    def as_dict(self) -> dict[str, Any]:
        """Return the audit as the report holds it."""
        share, low, high = self.agreement
        return {
            "n": self.overall.n,
            "agreement": {"mean": share, "low": low, "high": high},
            "net_bias": self.overall._asdict(),
            "by_depth": {str(k): bias._asdict() for k, bias in self.by_depth.items()},
            "levels": [
                {"context_k": one.cell.context_k, "candidate_k": one.cell.candidate_k}
                | {name: getattr(one, name) for name in ("judged", "mean", "low", "high", "own")}
                for one in self.levels
            ],
            "tolerance": self.tolerance,
            "more_to_halve": self.to_halve,
            "valid_until": self.valid_until,
            "expired": self.expired,
        }


def read_audit(path: Path) -> list[Item]:
    """Return the items of a file: lines of `{"case_id", "context_k", "right"}`, `candidate_k`, `ts` optional.

    Raises InputError with the line of what is none.
    """
    items = []
    for line in lines(path):
        try:
            raw = json.loads(line.text)
            right, candidates, ts = raw["right"], raw.get("candidate_k"), raw.get("ts")
            if not isinstance(right, bool):
                raise ValueError("`right` has to be true or false")
            items.append(
                Item(
                    str(raw["case_id"]),
                    int(raw["context_k"]),
                    None if candidates is None else int(candidates),
                    right,
                    None if ts is None else float(ts),
                )
            )
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise InputError(
                f'{path}, line {line.number}: expected {{"case_id", "context_k", "right"}}; {error}: correct '
                "the line or leave it out"
            ) from None
    return items


def audit(
    items: Sequence[Item],
    judged: Mapping[Cell, Mapping[str, float]],
    now: float,
    *,
    weights: Mapping[str, float] | None = None,
    alpha: float = 0.05,
    tolerance: float | None = None,
) -> Audit:
    """Return what a person's verdicts say of the judge's.

    `judged` are the judge's verdicts by cell and case, `weights` those of the cases whose levels are told
    (None: of all alike). Of two verdicts on one answer the later line counts. `tolerance` None takes the
    larger of 2 points and half the width of the net bias. Raises InputError where no item speaks of an answer
    that was judged.
    """
    pairs = _pairs(items, judged)
    if not pairs:
        raise InputError("expected audited answers of this sweep, got none: grade answers that it judged")
    weighed = {case: 1.0 for found in judged.values() for case in found} if weights is None else weights
    overall = _bias(pairs, alpha)
    depths = sorted({pair.cell.context_k for pair in pairs})
    half = (overall.high - overall.low) / 2
    stamps = [item.ts for item in items if item.ts is not None]
    until = max(stamps) + AUDIT_DAYS * DAY_S if stamps else None
    return Audit(
        overall=overall,
        agreement=_agreement(overall, alpha),
        by_depth={k: _bias([pair for pair in pairs if pair.cell.context_k == k], alpha) for k in depths},
        levels=[
            _level(cell, by_case, pairs, weighed, alpha)
            for cell, by_case in sorted(judged.items())
            if by_case.keys() & weighed.keys()
        ],
        tolerance=max(TOLERANCE, half) if tolerance is None else tolerance,
        to_halve=3 * overall.n,
        valid_until=until,
        expired=until is not None and now > until,
    )


class Pair(NamedTuple):
    """One audited answer: the judge's verdict and the person's."""

    cell: Cell
    case_id: str
    judge: float
    person: float


def _pairs(items: Sequence[Item], judged: Mapping[Cell, Mapping[str, float]]) -> list[Pair]:
    pairs: dict[tuple[Cell, str], Pair] = {}
    for item in items:
        cell = next(
            (
                cell
                for cell in judged
                if cell.context_k == item.context_k and item.candidate_k in (None, cell.candidate_k)
            ),
            None,
        )
        if cell is not None and item.case_id in judged[cell]:
            ruled = judged[cell][item.case_id]
            pairs[cell, item.case_id] = Pair(cell, item.case_id, ruled, float(item.right))
    return list(pairs.values())


def _bias(pairs: Sequence[Pair], alpha: float) -> Bias:
    """Return the net bias with an interval: Wald's, with one disagreement of each kind added where few came.

    The two added ones keep the interval from closing where no disagreement happened to be seen.
    """
    n = len(pairs)
    kind = sum(pair.judge > pair.person for pair in pairs)
    harsh = sum(pair.judge < pair.person for pair in pairs)
    net = (kind - harsh) / n
    spread = (kind + harsh + 2) / (n + 2) - ((kind - harsh) / (n + 2)) ** 2
    half = NormalDist().inv_cdf(1 - alpha / 2) * math.sqrt(max(spread, 0.0) / (n + 2))
    return Bias(n, n - kind - harsh, kind, harsh, net, net - half, net + half)


def _agreement(bias: Bias, alpha: float) -> tuple[float, float, float]:
    share = bias.agree / bias.n
    return (share, *share_interval(share, math.sqrt(share * (1 - share) / bias.n), bias.n, alpha))


def _level(
    cell: Cell,
    by_case: Mapping[str, float],
    pairs: Sequence[Pair],
    weights: Mapping[str, float],
    alpha: float,
) -> Level:
    """Return one depth's accuracy, corrected by its own audits where there are enough, else by all."""
    known = [case for case in by_case if case in weights]
    everyone = Verdicts(np.array([by_case[c] for c in known]), np.array([weights[c] for c in known]))
    all_audited = [pair for pair in pairs if pair.case_id in weights]
    mine = [pair for pair in all_audited if pair.cell == cell]
    own = len(mine) >= BY_DEPTH_LEAST
    some = (mine if own else all_audited) or list(pairs)
    audited = Verdicts(
        np.array([pair.judge for pair in some]), np.array([weights.get(pair.case_id, 1.0) for pair in some])
    )
    found = ppi(everyone, audited, np.array([pair.person for pair in some]), own=own, alpha=alpha)
    return Level(cell, weighted_mean(*everyone), *found, own)


class Verdicts(NamedTuple):
    """Verdicts of a judge with the weights of their cases."""

    values: FloatArray
    weights: FloatArray


def ppi(
    everyone: Verdicts, audited: Verdicts, person: FloatArray, *, own: bool = True, alpha: float = 0.05
) -> tuple[float, float, float]:
    """Return a mean with its interval, from a judge's verdicts and a person's (`person`) on the audited ones.

    `own`: the audited answers are some of `everyone`; the judge weighs as much as it agrees (PPI++). Else
    they are of other depths, and its weight is 1. For the spread half a disagreement of each kind is added,
    and the interval is Wilson's at the sample size of that spread: twenty answers may show no disagreement at
    all, and would leave no width.
    """
    n, many = effective_size(audited.weights), effective_size(everyone.weights)
    half = audited.weights.mean() / 2
    f, y = np.append(audited.values, (1.0, 0.0)), np.append(person, (0.0, 1.0))
    w = np.append(audited.weights, (half, half))
    weight = 1.0
    if own:
        spread = _covariance(f, f, w)
        weight = min(1.0, max(0.0, _covariance(f, y, w) / spread)) if spread > 0 else 0.0
    moved = weighted_mean(person - weight * audited.values, audited.weights)
    mean = min(1.0, max(0.0, weight * weighted_mean(*everyone) + moved))
    left = _covariance(y - weight * f, y - weight * f, w)
    if own:
        variance = left * max(0.0, 1 / n - 1 / many) + mean * (1 - mean) / many
    else:
        variance = left / n + _covariance(everyone.values, everyone.values, everyone.weights) / many
    edge = 0.5 / (n + 1)  # a mean of 0 or 1 has no spread of its own
    inside = min(1 - edge, max(edge, mean))
    low, high = share_interval(inside, math.sqrt(variance), n, alpha)
    return mean, min(low, mean), max(high, mean)


def _covariance(one: FloatArray, other: FloatArray, weights: FloatArray) -> float:
    means = [float(np.average(column, weights=weights)) for column in (one, other)]
    return float(np.average((one - means[0]) * (other - means[1]), weights=weights))
