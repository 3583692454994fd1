"""What weighted cases say of all traffic: means with intervals, quantiles, shares.

A case drawn with probability p stands for 1/p queries, so the mean is the Hájek ratio sum(w x) / sum(w), its
standard error the linearised one (Särndal, Swensson and Wretman, "Model Assisted Survey Sampling", 1992,
section 5.7), and its effective sample size Kish's (sum w)^2 / sum w^2.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np

from resweep.domain.errors import UsageError
from resweep.domain.measures import FloatArray

DEFAULT_ALPHA = 0.05
DEFAULT_STANDARD = 0.8
LOWER_QUANTILES: tuple[float, ...] = (0.1, 0.25)


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """A weighted mean with what stands beside it; every number None where there is no data (n = 0).

    `low` and `high` bound the mean with confidence 1 - alpha. `n` counts the cases with a value,
    `n_effective` is Kish's effective sample size. `q10`, `q25` and `median` are weighted quantiles, and
    `share_above` the weighted share of cases at or above the standard. `unweighted` is the plain mean.
    """

    mean: float | None = None
    low: float | None = None
    high: float | None = None
    n: int = 0
    n_effective: float = 0.0
    median: float | None = None
    q10: float | None = None
    q25: float | None = None
    share_above: float | None = None
    unweighted: float | None = None


def check_weights(weights: FloatArray, n: int) -> FloatArray:
    """Return the weights; raises UsageError unless there is one finite weight above 0 for each of n cases."""
    if weights.shape != (n,):
        raise UsageError(f"expected {n} weights, one per case, got an array of shape {weights.shape}")
    if not bool(np.all(np.isfinite(weights) & (weights > 0))):
        raise UsageError(
            "expected weights that are finite and above 0, got "
            f"{weights[~(np.isfinite(weights) & (weights > 0))][0]}; a weight is 1 / inclusion probability"
        )
    return weights


def effective_size(weights: FloatArray) -> float:
    """Return Kish's effective sample size, (sum w)^2 / sum w^2; 0 for no cases."""
    return float(weights.sum() ** 2 / np.square(weights).sum()) if len(weights) else 0.0


def weighted_mean(values: FloatArray, weights: FloatArray) -> float:
    """Return the Hájek mean sum(w x) / sum(w), never outside the range of the values."""
    mean = float(np.sum(weights * values) / np.sum(weights))
    return min(max(mean, float(values.min())), float(values.max()))


def standard_error(values: FloatArray, weights: FloatArray, mean: float) -> float:
    """Return the linearised standard error of the Hájek mean; infinite for a single case."""
    n = len(values)
    if n < 2:
        return math.inf
    residual = weights * (values - mean)
    return float(np.sqrt(n / (n - 1) * np.square(residual).sum()) / weights.sum())


def normal_quantile(probability: float) -> float:
    """Return the standard normal quantile."""
    return NormalDist().inv_cdf(probability)


def t_quantile(probability: float, df: float) -> float:
    """Return Student's t quantile for `df` degrees of freedom, within 0.3 % of it for 0.9 <= p <= 0.995.

    Exact for 1 and 2 degrees; from 3 by the Cornish-Fisher expansion (Abramowitz and Stegun, 26.7.5).
    """
    if df < 2:
        return math.tan(math.pi * (probability - 0.5))
    if df < 3:
        return (2 * probability - 1) / math.sqrt(2 * probability * (1 - probability))
    z = normal_quantile(probability)
    terms = (
        (z**3 + z) / 4,
        (5 * z**5 + 16 * z**3 + 3 * z) / 96,
        (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / 384,
        (79 * z**9 + 776 * z**7 + 1482 * z**5 - 1920 * z**3 - 945 * z) / 92160,
    )
    return z + sum(term / df**power for power, term in enumerate(terms, 1))


def share_interval(mean: float, error: float, size: float, alpha: float) -> tuple[float, float]:
    """Return an interval for the mean of values in [0, 1].

    Wilson's score interval at the sample size a plain share would need for this standard error, shortened
    for small samples (Korn and Graubard, Survey Methodology 24, 1998): it stays inside [0, 1] and does not
    collapse where every case agrees. `size` is the effective sample size.
    """
    if size <= 1 or math.isinf(error):
        return 0.0, 1.0
    z, t = normal_quantile(1 - alpha / 2), t_quantile(1 - alpha / 2, size - 1)
    if error == 0:
        # All alike: what may still differ is the share of cases of which none was drawn.
        unseen = z * z / (size * (z / t) ** 2 + z * z)
        return mean * (1 - unseen), mean + unseen * (1 - mean)
    n = mean * (1 - mean) / error**2 * (z / t) ** 2
    centre = (mean + z * z / (2 * n)) / (1 + z * z / n)
    half = z / (1 + z * z / n) * math.sqrt(mean * (1 - mean) / n + z * z / (4 * n * n))
    return max(0.0, min(centre - half, mean)), min(1.0, max(centre + half, mean))


def weighted_quantiles(values: FloatArray, weights: FloatArray, shares: tuple[float, ...]) -> list[float]:
    """Return the weighted quantiles: the smallest value with at least that share of the weight at or below.

    Where the share is met exactly, the mean of that value and the next, so that the median of an even
    number of equal weights is the usual one (Hyndman and Fan's definition 2).
    """
    order = np.argsort(values, kind="stable")
    ordered, upto = values[order], np.cumsum(weights[order])
    wanted = np.array(shares) * upto[-1]
    slack = 1e-12 * upto[-1]
    lower = np.searchsorted(upto, wanted - slack)
    upper = np.minimum(np.searchsorted(upto, wanted + slack), len(ordered) - 1)
    return [float((ordered[a] + ordered[b]) / 2) for a, b in zip(lower, upper, strict=True)]


def estimate(
    values: FloatArray,
    weights: FloatArray | None = None,
    *,
    alpha: float = DEFAULT_ALPHA,
    standard: float = DEFAULT_STANDARD,
) -> Estimate:
    """Return what the cases say of all traffic; NaN values are cases not observed and are left out.

    `values` lie in [0, 1], one per case. `standard` is what a case must reach to count in `share_above`.
    """
    weights = check_weights(np.ones(len(values)) if weights is None else weights, len(values))
    seen = ~np.isnan(values)
    x, w = values[seen], weights[seen]
    if not len(x):
        return Estimate()
    mean = weighted_mean(x, w)
    size = effective_size(w)
    low, high = share_interval(mean, standard_error(x, w, mean), size, alpha)
    q10, q25, median = weighted_quantiles(x, w, (*LOWER_QUANTILES, 0.5))
    return Estimate(
        mean=mean,
        low=low,
        high=high,
        n=len(x),
        n_effective=size,
        median=median,
        q10=q10,
        q25=q25,
        share_above=float(w[x >= standard - 1e-12].sum() / w.sum()),
        unweighted=weighted_mean(x, np.ones(len(x))),
    )
