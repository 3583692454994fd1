"""Which depths cannot be told from the best, and whether one system is worse than another.

Both compare per-case values that belong together (the same cases, every depth), so both resample cases: one
draw of cases for all depths at once keeps their correlation, which is what makes a difference of two points
visible at all. Draws come from a seeded generator, so equal input gives equal output.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from resweep.domain.errors import UsageError
from resweep.domain.estimate import (
    DEFAULT_ALPHA,
    check_weights,
    effective_size,
    t_quantile,
    weighted_mean,
)
from resweep.domain.measures import FloatArray

RESAMPLES = 10_000
SEED = 7
# Below this many effective cases no depth is called worse: a paired test has nothing to stand on.
FEWEST_CASES = 10.0
# Cases times resamples drawn one by one; beyond it the normal limit of the same draws is used.
MOST_DRAWS = 60_000_000
_BLOCK_DRAWS = 1_000_000
# A difference whose variance is below this share of its parts' is the same for every case.
_SAME = 1e-12


@dataclass(frozen=True, slots=True, eq=False)
class BestSet:
    """The columns not shown worse than the best by more than the margin.

    `statistic[k]` is the largest studentised lead of any column over column k, beyond the margin;
    `critical[k]` what it must exceed for k to leave the set. `best` is the column of the largest mean (the
    first of equals). `too_few` says that everything was kept for want of cases.
    """

    kept: NDArray[np.bool_]
    best: int
    means: FloatArray
    statistic: FloatArray
    critical: FloatArray
    n: int
    n_effective: float
    too_few: bool


@dataclass(frozen=True, slots=True, eq=False)
class Comparison:
    """One paired comparison: the cases' values after a change against before.

    `difference` is the weighted mean of after - before, in [`low`, `high`] with confidence 1 - alpha.
    `lost` and `gained` are the positions of the cases whose value fell or rose, largest change first;
    they are listed whatever the mean does. `critical` is the one-sided value the studentised fall must
    exceed to be called one.
    """

    before: float
    after: float
    difference: float
    low: float
    high: float
    error: float
    critical: float
    lost: tuple[int, ...]
    gained: tuple[int, ...]
    n: int
    n_effective: float

    @property
    def same(self) -> int:
        """Return the number of cases whose value stayed."""
        return self.n - len(self.lost) - len(self.gained)

    @property
    def too_few(self) -> bool:
        """Return whether there are too few cases to call anything a fall."""
        return self.n_effective < FEWEST_CASES

    def shown_worse(self, max_drop: float = 0.0) -> bool:
        """Return whether the mean fell by more than `max_drop`, at the level of the comparison."""
        fall = -self.difference - max_drop
        if self.too_few or fall <= 0:
            return False
        return self.error == 0 or fall / self.error > self.critical


def _rows(values: FloatArray, weights: FloatArray | None) -> tuple[FloatArray, FloatArray]:
    if values.ndim != 2 or not values.size:
        raise UsageError(f"expected values of at least one case at one depth, got shape {values.shape}")
    if bool(np.isnan(values).any()):
        raise UsageError(
            "expected a value for every case at every depth, got cases not observed; leave those cases out"
        )
    return values, check_weights(np.ones(len(values)) if weights is None else weights, len(values))


def _covariance(centred: FloatArray, weights: FloatArray) -> FloatArray:
    """Return the linearised covariance of the Hájek means of the columns."""
    n = len(centred)
    z = centred * (weights / weights.sum())[:, None]
    return z.T @ z * (n / (n - 1)) if n > 1 else np.full((centred.shape[1],) * 2, np.inf)


def _difference_errors(covariance: FloatArray) -> FloatArray:
    """Return the standard error of mean_j - mean_k for every pair, 0 where the difference is constant."""
    own = np.diag(covariance)
    parts = own[:, None] + own[None, :]
    with np.errstate(invalid="ignore"):  # of one case nothing is known: infinite less infinite
        variance = parts - 2 * covariance
    return np.sqrt(np.where(variance > _SAME * parts, variance, 0.0))


def resampled_deviations(
    centred: FloatArray,
    weights: FloatArray,
    resamples: int,
    rng: np.random.Generator,
    most_draws: int = MOST_DRAWS,
) -> FloatArray:
    """Return, per resample of the cases, how far each column's Hájek mean moved: (resamples, columns).

    `centred` are values less their mean. Cases are drawn with replacement, all columns together. Above
    `most_draws` draws (cases times resamples) the means come from their normal limit instead, which has the
    same covariance. A resample of n cases spreads by (n - 1)/n too little; that is made good.
    """
    n, columns = centred.shape
    if n * resamples > most_draws:
        return _normal_deviations(_covariance(centred, weights), resamples, rng)
    weighted = np.column_stack([centred * weights[:, None], weights])
    deviations = np.empty((resamples, columns))
    step = max(1, _BLOCK_DRAWS // n)
    for start in range(0, resamples, step):
        stop = min(start + step, resamples)
        sums = _draw_counts(n, stop - start, rng) @ weighted
        deviations[start:stop] = sums[:, :-1] / sums[:, -1:]
    return deviations * math.sqrt(n / (n - 1)) if n > 1 else deviations


def _draw_counts(n: int, resamples: int, rng: np.random.Generator) -> FloatArray:
    """Return how often each resample drew each case."""
    drawn = rng.integers(n, size=(resamples, n))
    drawn += np.arange(resamples)[:, None] * n
    return np.bincount(drawn.ravel(), minlength=resamples * n).reshape(resamples, n).astype(np.float64)


def _normal_deviations(covariance: FloatArray, resamples: int, rng: np.random.Generator) -> FloatArray:
    values, vectors = np.linalg.eigh(covariance)
    root = vectors * np.sqrt(np.maximum(values, 0.0))
    deviations: FloatArray = rng.standard_normal((resamples, len(covariance))) @ root.T
    return deviations


def _for_size(critical: float, size: float) -> float:
    """Return a critical value of normal deviations as one of Student's, for this effective sample size."""
    if critical <= 0:
        return critical
    return t_quantile(min(NormalDist().cdf(critical), 1 - 1e-9), size - 1) if size > 1 else math.inf


def _leads(means: FloatArray, errors: FloatArray, margin: float) -> FloatArray:
    """Return for each column the largest studentised lead of any other over it, beyond the margin."""
    ahead = means[:, None] - means[None, :] - margin
    with np.errstate(divide="ignore", invalid="ignore"):
        leads = np.where(errors > 0, ahead / errors, np.where(ahead > 1e-12, np.inf, -np.inf))
    np.fill_diagonal(leads, -np.inf)
    largest: FloatArray = leads.max(axis=0)
    return largest


def _critical(deviations: FloatArray, errors: FloatArray, alpha: float) -> FloatArray:
    """Return, per column, the 1 - alpha quantile of the largest studentised lead over it by chance."""
    scale = np.divide(1.0, errors, out=np.zeros_like(errors), where=errors > 0)
    critical = np.zeros(len(errors))
    columns = np.ascontiguousarray(deviations.T)
    for k in range(len(errors)):
        others = scale[:, k] > 0
        if others.any():
            chance = (columns[others] - columns[k]) * scale[others, k][:, None]
            critical[k] = np.quantile(chance.max(axis=0), 1 - alpha)
    return critical


def best_set(
    values: FloatArray,
    weights: FloatArray | None = None,
    *,
    margin: float = 0.0,
    alpha: float = DEFAULT_ALPHA,
    resamples: int = RESAMPLES,
    seed: int = SEED,
) -> BestSet:
    """Return the columns of `values` (cases by depths) not shown worse than the best by more than `margin`.

    Column k leaves where T_k = max over j of (mean_j - mean_k - margin) / se(mean_j - mean_k) exceeds the
    1 - alpha quantile of the same maximum over paired resamples of the centred cases. Whatever the true best
    is, it stays with probability 1 - alpha at least; so does every column within the margin of it. This is
    the max-T form of multiple comparisons with the best (Hsu, Annals of Statistics 9, 1981; Romano and Wolf,
    JASA 100, 2005). With fewer than 10 effective cases everything stays.
    """
    values, weights = _rows(values, weights)
    if margin < 0 or not 0 < alpha < 1:
        raise UsageError(f"expected margin >= 0 and alpha in (0, 1), got margin {margin} and alpha {alpha}")
    means = np.array([weighted_mean(column, weights) for column in values.T])
    size = effective_size(weights)
    too_few = size < FEWEST_CASES
    centred = values - means
    errors = _difference_errors(_covariance(centred, weights))
    statistic = _leads(means, errors, margin)
    if too_few:
        critical = np.full(len(means), np.inf)
    else:
        rng = np.random.default_rng(seed)
        drawn = resampled_deviations(centred, weights, resamples, rng)
        critical = np.array([_for_size(one, size) for one in _critical(drawn, errors, alpha).tolist()])
    return BestSet(
        kept=np.asarray(too_few | (statistic <= critical)),
        best=int(np.argmax(means)),
        means=means,
        statistic=statistic,
        critical=critical,
        n=len(values),
        n_effective=size,
        too_few=bool(too_few),
    )


def compare(
    before: FloatArray,
    after: FloatArray,
    weights: FloatArray | None = None,
    *,
    alpha: float = DEFAULT_ALPHA,
    resamples: int = RESAMPLES,
    seed: int = SEED,
) -> Comparison:
    """Return the paired comparison of two values in [0, 1] per case.

    The interval is the symmetric bootstrap-t one (Hall, Annals of Statistics 16, 1988), the fall one-sided.
    """
    pair, weights = _rows(np.column_stack([before, after, after - before]), weights)
    means = [weighted_mean(column, weights) for column in pair.T]
    change = pair[:, 2]
    centred = (change - means[2])[:, None]
    size = effective_size(weights)
    variance = _covariance(centred, weights)[0, 0]
    error = math.sqrt(variance) if variance > _SAME * float(np.square(change).max()) / len(change) else 0.0
    two_sided, fall = _critical_change(centred, weights, error, alpha, resamples, seed)
    low, high = _around(means[2], two_sided * error)
    order = np.argsort(-np.abs(change), kind="stable")
    return Comparison(
        before=means[0],
        after=means[1],
        difference=means[2],
        low=low,
        high=high,
        error=error,
        critical=fall,
        lost=tuple(int(i) for i in order if change[i] < 0),
        gained=tuple(int(i) for i in order if change[i] > 0),
        n=len(change),
        n_effective=size,
    )


def _critical_change(
    centred: FloatArray, weights: FloatArray, error: float, alpha: float, resamples: int, seed: int
) -> tuple[float, float]:
    """Return the critical values of |change| and of a fall, in standard errors."""
    size = effective_size(weights)
    if error == 0 or math.isinf(error):
        return 0.0 if error == 0 else math.inf, math.inf
    drawn = resampled_deviations(centred, weights, resamples, np.random.default_rng(seed))[:, 0] / error
    both, fall = (float(np.quantile(x, 1 - alpha)) for x in (np.abs(drawn), -drawn))
    return _for_size(both, size), _for_size(fall, size)


def _around(difference: float, half: float) -> tuple[float, float]:
    if math.isnan(half) or math.isinf(half):
        return -1.0, 1.0
    return max(-1.0, difference - half), min(1.0, difference + half)


def smallest_within(depths: Sequence[int], kept: Sequence[bool], meets: Callable[[int], bool]) -> int | None:
    """Return the position of the smallest depth that was kept and meets the constraints, else None.

    `meets` is asked by position, in ascending depth, and no further than needed.
    """
    order = sorted(range(len(depths)), key=lambda i: depths[i])
    return next((i for i in order if kept[i] and meets(i)), None)
