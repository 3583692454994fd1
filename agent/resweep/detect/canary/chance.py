"""How surprising a count is, as a power of ten."""

from __future__ import annotations

import math

from resweep.detect.introspect import binomial_tail

LARGEST = 300.0


def surprise(n: int, x: int, p: float) -> float:
    """Return -log10 of P(X >= x) for X ~ Binomial(n, p), exact; 0 for none, at most 300.

    3 stands for one in a thousand.
    """
    if n <= 0 or x <= 0:
        return 0.0
    tail = binomial_tail(n, x, p)
    return LARGEST if tail <= 0.0 else min(LARGEST, max(0.0, -math.log10(tail)))


def learnt(hits: int, n: int, prior: float, weight: float, most: float) -> float:
    """Return a share as known after n looks: the prior counts as `weight` of them; at most `most`."""
    return min(most, (hits + prior * weight) / (n + weight))
